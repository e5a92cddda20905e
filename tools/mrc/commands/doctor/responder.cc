#include "commands/doctor/responder.h"

#include <fmt/core.h>
#include <poll.h>

#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <vector>

#include "base/one_line.h"
#include "collective/exchange.h"
#include "commands/doctor/size_probe.h"
#include "device_facts.h"
#include "failure.h"
#include "nic/device.h"
#include "os/interrupt.h"

namespace mrc::tool::doctor {
namespace {

using collective::Exchange;
using nlohmann::json;

// Changes whenever a message changes its meaning.
constexpr unsigned kProtocol = 1;
constexpr double kPatienceS = 5;  // with a peer that connected
constexpr std::size_t kMaxTextBytes = 100;
constexpr int kPollMs = 200;
constexpr double kLongestVisitS = 600;
constexpr unsigned kSmallPacket = 100;
// Of a write, from the IP header to the check.
constexpr unsigned kWriteHeadersV4 = 72;
constexpr unsigned kWriteHeadersV6 = 92;

bool greets(const json& message) {
  const auto found = message.find("mrc_doctor");
  return found != message.end() && *found == kProtocol;
}

std::string text_in(const json& message, const char* key) {
  const auto found = message.find(key);
  if (found == message.end() || !found->is_string()) return {};
  return one_line(found->get<std::string>().substr(0, kMaxTextBytes));
}

struct Echoes {
  std::uint64_t token = 0;
  std::vector<SizeEcho> planes;
};

Echoes make_echoes(const DeviceFacts& facts) {
  std::random_device random;
  Echoes echoes{.token = std::uint64_t{random()} << 32 | random(), .planes = {}};
  for (const PlaneFacts& plane : facts.planes)
    echoes.planes.emplace_back(plane.address, echoes.token);
  return echoes;
}

// Until the visitor hangs up.
void echo_for(const Exchange& visitor, Echoes& echoes) {
  std::vector<pollfd> wanted = {{visitor.descriptor(), POLLIN, 0}};
  for (const SizeEcho& echo : echoes.planes)
    if (echo.works()) wanted.push_back({echo.descriptor(), POLLIN, 0});
  const int rounds = static_cast<int>(kLongestVisitS * 1'000) / kPollMs;
  for (int round = 0; round < rounds && !os::Interrupt::raised();) {
    if (::poll(wanted.data(), wanted.size(), kPollMs) <= 0) ++round;
    if (visitor.readable()) return;  // it has no more to say than that it goes
    for (SizeEcho& echo : echoes.planes)
      if (echo.works()) echo.answer();
  }
}

struct Answer {
  std::optional<DeviceFacts> device;
  std::string gid;
  std::string version;              // empty: of one that does not say
  std::vector<std::uint16_t> echo;  // UDP port by plane; 0: none
  std::uint64_t token = 0;
};

std::optional<Answer> read_answer(const json& message) {
  const auto device = message.find("device");
  const auto echo = message.find("echo");
  const auto token = message.find("token");
  if (!greets(message) || device == message.end() || echo == message.end() || !echo->is_array() ||
      token == message.end() || !token->is_number_unsigned())
    return std::nullopt;
  Answer answer{.device = read_facts(*device),
                .gid = text_in(message, "gid"),
                .version = text_in(message, "version"),
                .echo = {},
                .token = token->get<std::uint64_t>()};
  if (answer.device && answer.gid.empty())
    answer.gid = wire::format_address(answer.device->planes[0].address).view();
  const bool is_none = device->is_null() && echo->empty();
  if (!wire::parse_address(answer.gid).ok() ||
      (answer.device ? echo->size() != answer.device->planes.size() : !is_none))
    return std::nullopt;
  for (const json& port : *echo) {
    if (!port.is_number_unsigned() || port.get<std::uint64_t>() > UINT16_MAX) return std::nullopt;
    answer.echo.push_back(port.get<std::uint16_t>());
  }
  return answer;
}

// Versions that differ in no more than the last number work together (docs/stability.md).
std::string without_patch(const std::string& version) {
  return version.substr(0, version.find_last_of('.'));
}

Finding version_finding(const std::string& theirs, const std::string& host) {
  const std::string what = "versions here and at " + host;
  const std::string own = MRC_VERSION;
  if (without_patch(theirs) == without_patch(own))
    return {Verdict::kOk, what, fmt::format("mrc {} and {}", own, theirs), {}};
  return {Verdict::kBroken, what,
          fmt::format("mrc {} here, {} there", own, theirs.empty() ? "an older one" : theirs),
          "install one version on all hosts of a job"};
}

void compare_devices(const node::DeviceConfig& config, const Answer& answer,
                     const std::string& host, Findings& findings) {
  const std::string what = config.name + " and " + host;
  const bool own = facts_of(config).has_value();
  if (own != answer.device.has_value()) {
    findings.push_back(
        {Verdict::kBroken, what,
         fmt::format("back end {} here, {} there", own ? "udp" : "wire", own ? "wire" : "udp"),
         "give the devices of both hosts the same backend (docs/configuration.md)"});
  }
  if (!own || !answer.device) return;
  const std::vector<Disagreement> differences = compare(config, *answer.device, host);
  for (const Disagreement& each : differences)
    findings.push_back(
        {each.fatal ? Verdict::kBroken : Verdict::kSlow, what, each.found, each.fix});
  if (differences.empty())
    findings.push_back({Verdict::kOk, what, "ports, order and MTU of the planes agree", {}});
}

Finding size_finding(const std::string& what, SizeProbe& probe, unsigned mtu, unsigned needed) {
  if (probe.passes(mtu))
    return {Verdict::kOk, what, fmt::format("packets of {} bytes pass both ways", mtu), {}};
  const unsigned passes = mtu > needed && probe.passes(needed) ? needed : probe.largest_below(mtu);
  if (passes == 0 && !probe.passes(kSmallPacket))
    return {Verdict::kBroken, what, "no datagram comes back",
            "let UDP pass between the hosts (firewall, routes), and check the cable of this plane"};
  const std::string found = fmt::format(
      "packets of {} bytes pass, {} bytes do not, though that is "
      "the MTU of the interfaces",
      passes == 0 ? kSmallPacket : passes, mtu);
  return {passes < needed ? Verdict::kBroken : Verdict::kSlow, what, found,
          fmt::format("a switch between has a smaller MTU: raise it there, or set the interfaces "
                      "of both hosts to {}",
                      passes)};
}

void probe_sizes(const node::DeviceConfig& config, const Answer& answer, const std::string& host,
                 unsigned payload_bytes, Findings& findings) {
  const std::optional<DeviceFacts> own = facts_of(config);
  if (!own || !answer.device) return;
  for (std::size_t i = 0; i < std::min(own->planes.size(), answer.echo.size()); ++i) {
    const PlaneFacts& here = own->planes[i];
    const PlaneFacts& there = answer.device->planes[i];
    if (here.mtu == 0 || there.mtu == 0 || answer.echo[i] == 0) continue;
    if (here.address.is_v4 != there.address.is_v4) continue;
    SizeProbe probe(here.address, there.address, answer.echo[i], answer.token);
    const unsigned headers = here.address.is_v4 ? kWriteHeadersV4 : kWriteHeadersV6;
    const unsigned mtu = std::min({here.mtu, there.mtu, kLargestPacket});
    findings.push_back(size_finding(fmt::format("{} port {} way to {}", config.name, i + 1, host),
                                    probe, mtu, std::min(payload_bytes + headers, mtu)));
  }
}

}  // namespace

Responder::Responder(const node::DeviceConfig& config) : facts_(facts_of(config)) {
  std::string error;
  device_ = nic::Device::open(config, error);
  if (!device_) throw Failure(error);
}

bool Responder::is_question(const json& first) { return greets(first); }

std::string Responder::gid() const {
  return std::string(wire::format_address(device_->gid()).view());
}

void Responder::answer(Exchange& visitor) const {
  Echoes echoes = make_echoes(facts_.value_or(DeviceFacts{}));
  json ports = json::array();
  for (const SizeEcho& echo : echoes.planes)
    ports.push_back(echo.works() ? echo.port() : 0);
  visitor.send({{"mrc_doctor", kProtocol},
                {"version", MRC_VERSION},
                {"gid", gid()},
                {"device", facts_ ? to_json(*facts_) : json()},
                {"echo", ports},
                {"token", echoes.token}});
  echo_for(visitor, echoes);
}

void serve(const node::DeviceConfig& config, std::uint16_t port) {
  if (!facts_of(config)) {
    throw Failure(config.name +
                      " has back end wire, whose packets are no UDP packets; `mrc map` "
                      "looks at the ways of such devices",
                  FailureKind::kUsage);
  }
  const Responder responder(config);
  const collective::Listener listener(port);
  fmt::print("{} ({}) answers at TCP port {}; on the other host: mrc doctor --peer {}\n",
             config.name, responder.gid(), port, responder.gid());
  std::fflush(stdout);
  while (!os::Interrupt::raised()) {
    try {
      Exchange visitor = listener.accept(0);
      fmt::print("{} looks at this host\n", visitor.peer());
      std::fflush(stdout);
      if (!Responder::is_question(visitor.receive(kPatienceS)))
        throw Failure(fmt::format("{} does not speak our protocol", visitor.peer()));
      responder.answer(visitor);
    } catch (const Failure& failure) {
      if (failure.kind() == FailureKind::kInterrupted) return;
      fmt::print(stderr, "mrc doctor: {}\n", failure.what());  // the next one may do better
    }
  }
}

std::string ask_responder(const node::DeviceConfig& config, const PeerHost& peer,
                          unsigned payload_bytes, Findings& findings) {
  const std::string& host = peer.host;
  try {
    Exchange exchange = Exchange::connect(host, peer.port, kPatienceS / 2);
    exchange.send({{"mrc_doctor", kProtocol}, {"version", MRC_VERSION}});
    const std::optional<Answer> answer = read_answer(exchange.receive(kPatienceS));
    if (!answer) throw Failure(host + " does not speak our protocol; is it of another version?");
    findings.push_back(version_finding(answer->version, host));
    compare_devices(config, *answer, host, findings);
    probe_sizes(config, *answer, host, payload_bytes, findings);
    return answer->gid;
  } catch (const Failure& failure) {
    if (failure.kind() == FailureKind::kInterrupted) throw;
    findings.push_back({peer.must_answer ? Verdict::kBroken : Verdict::kSlow,
                        "responder of " + host, failure.what(),
                        fmt::format("run `mrc {} --serve` there: it answers probes, and tells what "
                                    "MTU and which planes that host has",
                                    peer.must_answer ? "check" : "doctor")});
    return {};
  }
}

}  // namespace mrc::tool::doctor
