#include "commands/perf/protocol.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/one_line.h"
#include "failure.h"

namespace mrc::tool::perf {
namespace {

using nlohmann::json;

// Changes whenever a message changes its meaning.
constexpr std::uint64_t kProtocol = 1;
constexpr std::uint64_t kMaxQpNumber = 0xff'ffff;
constexpr std::size_t kMaxTextBytes = 400;

const json& member(const json& message, const char* key, const std::string& peer) {
  const auto found = message.find(key);
  if (found == message.end()) refuse(peer, key);
  return *found;
}

const json& object_of(const json& message, const char* key, const std::string& peer) {
  const json& value = member(message, key, peer);
  if (!value.is_object()) refuse(peer, key);
  return value;
}

bool read_truth(const json& message, const char* key, const std::string& peer) {
  const json& value = member(message, key, peer);
  if (!value.is_boolean()) refuse(peer, key);
  return value.get<bool>();
}

std::vector<std::uint64_t> read_numbers(const json& message, const char* key, std::size_t most,
                                        const std::string& peer) {
  const json& list = member(message, key, peer);
  if (!list.is_array() || list.size() > most) refuse(peer, key);
  std::vector<std::uint64_t> numbers;
  for (const json& value : list) {
    if (!value.is_number_unsigned()) refuse(peer, key);
    numbers.push_back(value.get<std::uint64_t>());
  }
  return numbers;
}

json to_json(const Plan& plan) {
  return {{"test", name_of(plan.test)},   {"sizes", plan.sizes}, {"iterations", plan.iterations},
          {"seconds", plan.seconds},      {"qps", plan.qps},     {"depth", plan.depth},
          {"both_ways", plan.both_ways},  {"spin", plan.spin},   {"verify", plan.verify},
          {"verify_all", plan.verify_all}};
}

Plan read_plan(const json& message, const std::string& peer) {
  Plan plan;
  const auto test = test_of(read_text(message, "test", peer));
  if (!test) refuse(peer, "test");
  plan.test = *test;
  plan.sizes = read_numbers(message, "sizes", kMaxSizes, peer);
  plan.iterations = read_number(message, "iterations", kMaxIterations, peer);
  plan.seconds = read_real(message, "seconds", peer);
  plan.qps = static_cast<unsigned>(read_number(message, "qps", kMaxQps, peer));
  plan.depth = static_cast<unsigned>(read_number(message, "depth", kMaxDepth, peer));
  plan.both_ways = read_truth(message, "both_ways", peer);
  plan.spin = read_truth(message, "spin", peer);
  plan.verify = read_truth(message, "verify", peer);
  plan.verify_all = read_truth(message, "verify_all", peer);
  const std::string problem = why_not(plan);
  if (!problem.empty()) throw Failure(fmt::format("{} asks for too much: {}", peer, problem));
  return plan;
}

json to_json(const Address& address) {
  json message = {
      {"gid", address.gid},   {"qps", address.qps},         {"psn", address.psn},
      {"mtu", address.mtu},   {"memory", address.memory},   {"memory_bytes", address.memory_bytes},
      {"rkey", address.rkey}, {"dialect", address.dialect}, {"security", address.security}};
  if (address.device) message["device"] = to_json(*address.device);
  return message;
}

Address read_address(const json& message, const Plan& plan, const std::string& peer) {
  const json& value = object_of(message, "address", peer);
  Address address;
  const auto gid = read_numbers(value, "gid", address.gid.size(), peer);
  if (gid.size() != address.gid.size()) refuse(peer, "gid");
  for (std::size_t i = 0; i < gid.size(); ++i) {
    if (gid[i] > UINT8_MAX) refuse(peer, "gid");
    address.gid[i] = static_cast<std::uint8_t>(gid[i]);
  }
  for (const std::uint64_t qp : read_numbers(value, "qps", plan.qps, peer)) {
    if (qp > kMaxQpNumber) refuse(peer, "qps");
    address.qps.push_back(static_cast<std::uint32_t>(qp));
  }
  if (address.qps.size() != plan.qps) refuse(peer, "qps");
  address.psn = static_cast<std::uint32_t>(read_number(value, "psn", kMaxQpNumber, peer));
  address.mtu = static_cast<std::uint32_t>(read_number(value, "mtu", UINT16_MAX, peer));
  address.memory = read_number(value, "memory", UINT64_MAX, peer);
  address.memory_bytes = read_number(value, "memory_bytes", UINT64_MAX, peer);
  address.rkey = static_cast<std::uint32_t>(read_number(value, "rkey", UINT32_MAX, peer));
  if (value.contains("dialect")) address.dialect = read_text(value, "dialect", peer);
  if (value.contains("security"))
    address.security = read_number(value, "security", UINT64_MAX, peer);
  if (value.contains("device")) address.device = read_facts(value.at("device"));
  return address;
}

void check_version(const json& message, const std::string& peer) {
  const auto found = message.find("mrc_perf");
  if (found == message.end()) refuse(peer, "no greeting");
  const std::string theirs = read_text(message, "version", peer);
  if (!found->is_number_unsigned() || found->get<std::uint64_t>() != kProtocol)
    throw Failure(
        fmt::format("{} runs mrc {}, which measures in another way than mrc {} here; "
                    "use the same version on both sides",
                    peer, theirs, MRC_VERSION));
}

}  // namespace

void refuse(const std::string& peer, const char* key) {
  throw Failure(fmt::format("{} does not keep to the protocol of mrc perf: {}", peer, key));
}

std::uint64_t read_number(const json& message, const char* key, std::uint64_t most,
                          const std::string& peer) {
  const json& value = member(message, key, peer);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most) refuse(peer, key);
  return value.get<std::uint64_t>();
}

double read_real(const json& message, const char* key, const std::string& peer) {
  const json& value = member(message, key, peer);
  if (!value.is_number() || !std::isfinite(value.get<double>())) refuse(peer, key);
  return value.get<double>();
}

std::string read_text(const json& message, const char* key, const std::string& peer) {
  const json& value = member(message, key, peer);
  if (!value.is_string() || value.get_ref<const std::string&>().size() > kMaxTextBytes)
    refuse(peer, key);
  return one_line(value.get<std::string>());  // people may get to see it
}

std::vector<std::uint64_t> parse_counts(const json& message, const Plan& plan,
                                        const std::string& peer) {
  std::vector<std::uint64_t> counts = read_numbers(message, "counts", plan.qps, peer);
  if (counts.size() != plan.qps) refuse(peer, "counts");
  return counts;
}

json to_json(const Hello& hello) {
  return {{"mrc_perf", kProtocol},
          {"version", MRC_VERSION},
          {"plan", to_json(hello.plan)},
          {"seed", hello.seed},
          {"address", to_json(hello.address)}};
}

Hello parse_hello(const json& message, const std::string& peer) {
  check_version(message, peer);
  Hello hello;
  hello.plan = read_plan(object_of(message, "plan", peer), peer);
  hello.seed = read_number(message, "seed", UINT64_MAX, peer);
  hello.address = read_address(message, hello.plan, peer);
  return hello;
}

json answer_json(const Address& address) {
  return {{"mrc_perf", kProtocol}, {"version", MRC_VERSION}, {"address", to_json(address)}};
}

Address parse_answer(const json& message, const Plan& plan, const std::string& peer) {
  check_version(message, peer);
  return read_address(message, plan, peer);
}

json to_json(const Result& result) {
  const LatencySummary& l = result.latency;
  return {{"messages", result.messages},
          {"seconds", result.seconds},
          {"peak_bits_per_second", result.peak_bits_per_second},
          {"latency_ns", {l.min, l.max, l.median, l.mean, l.deviation, l.p99, l.p999}}};
}

Result parse_result(const json& message, const std::string& peer) {
  const json& value = object_of(message, "result", peer);
  Result result;
  result.messages = read_number(value, "messages", UINT64_MAX, peer);
  result.seconds = read_real(value, "seconds", peer);
  result.peak_bits_per_second = read_real(value, "peak_bits_per_second", peer);
  const json& list = member(value, "latency_ns", peer);
  LatencySummary& l = result.latency;
  const std::vector<double*> places = {&l.min,       &l.max, &l.median, &l.mean,
                                       &l.deviation, &l.p99, &l.p999};
  if (!list.is_array() || list.size() != places.size()) refuse(peer, "latency_ns");
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!list[i].is_number()) refuse(peer, "latency_ns");
    *places[i] = list[i].get<double>();
  }
  return result;
}

}  // namespace mrc::tool::perf
