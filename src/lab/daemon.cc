#include "lab/daemon.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "base/one_line.h"
#include "base/quantity.h"
#include "lab/kernel_testbed.h"

namespace mrc::lab {
namespace {

constexpr unsigned long kTimerSlackNs = 1'000;
constexpr int kNice = -15;
constexpr Picoseconds kPicosecondsPerSecond = 1'000'000'000'000;
// A reply of the control socket has twice the room.
constexpr std::size_t kMaxLinksAnswer = 65'536;
constexpr Picoseconds kLongestSleepPs = kPicosecondsPerSecond;

std::unique_ptr<Testbed> make_testbed(ClusterOptions options, const Directory& directory) {
  options.socket_directory = directory.ports_path();
  options.namespace_prefix = directory.namespace_prefix();
  if (options.switches == SwitchKind::kKernel) return std::make_unique<KernelTestbed>(options);
  return std::make_unique<Cluster>(options);
}

Reply refused(std::string text) { return {.ok = false, .text = one_line(std::move(text))}; }
Reply done(std::string text = {}) { return {.ok = true, .text = std::move(text)}; }

}  // namespace

Daemon::Daemon(const Directory& directory, ClusterOptions options)
    : directory_(&directory),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      switches_{.kind = options.switches,
                .trim = options.switches != SwitchKind::kKernel && options.network.trims},
      testbed_(make_testbed(std::move(options), directory)),
      control_(
          directory.control_path(),
          [this](ClientId client, const std::vector<std::string>& words) {
            return answer(client, words);
          },
          [this](ClientId client) { forget(client); }) {
  write_host_configs(testbed_->routing(), directory, switches_);
}

void Daemon::stop() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
}

void Daemon::run() {
  ::prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
  // Real switches do not wait for the processors of hosts. Where that takes rights we lack, so be
  // it.
  ::setpriority(PRIO_PROCESS, 0, kNice);
  while (!ended_) {
    const bool again = testbed_->step();
    sleep(again);
  }
}

// Until something is due, or somebody has a frame or a word for us.
void Daemon::sleep(bool again) {
  Picoseconds wait = 0;
  if (!again) {
    const Picoseconds now = testbed_->now();
    const Picoseconds next = testbed_->next_time();
    wait = next <= now ? 0 : std::min(next - now, kLongestSleepPs);
  }
  const timespec limit{.tv_sec = wait / kPicosecondsPerSecond,
                       .tv_nsec = wait % kPicosecondsPerSecond / fabric::kPicosecondsPerNs};
  std::array<pollfd, 3> descriptors{{{testbed_->descriptor(), POLLIN, 0},
                                     {control_.descriptor(), POLLIN, 0},
                                     {wake_.get(), POLLIN, 0}}};
  if (::ppoll(descriptors.data(), descriptors.size(), &limit, nullptr) <= 0) return;
  if (descriptors[1].revents != 0) control_.poll();
  if (descriptors[2].revents != 0) ended_ = true;
}

Reply Daemon::answer(ClientId client, const std::vector<std::string>& words) {
  try {
    return execute(client, words);
  } catch (const std::runtime_error& error) {
    return refused(error.what());
  }
}

Reply Daemon::execute(ClientId client, const std::vector<std::string>& words) {
  const std::string& verb = words[0];
  const std::string argument = words.size() > 1 ? words[1] : "";
  if (verb == "status") return done(status());
  if (verb == "fault") {
    testbed_->add_fault(argument);
    return done();
  }
  if (verb == "links") {
    const auto from = parse_number(argument);
    if (!from) return refused("'" + argument + "' is no number of a link");
    return done(links(*from));
  }
  if (verb == "heal") return done(std::to_string(testbed_->heal(argument)));
  if (verb == "capture") return capture(client, words);
  if (verb == "frames") {
    const auto found = captures_.find(client);
    if (found == captures_.end()) return refused("there is no capture");
    const CaptureId id = found->second;
    captures_.erase(found);
    return done(std::to_string(testbed_->stop_capture(id)));
  }
  if (verb == "hold") return hold(client, words);
  if (verb == "down") {
    ended_ = true;
    return done();
  }
  return refused("no such command: " + verb);
}

Reply Daemon::capture(ClientId client, const std::vector<std::string>& words) {
  if (words.size() != 4) return refused("capture wants a link, a file and a length");
  if (captures_.contains(client)) return refused("one capture at a time for each connection");
  const auto snap = parse_number(words[3]);
  if (!snap) return refused("'" + words[3] + "' is no number of bytes");
  captures_[client] = testbed_->start_capture(words[1], {.file = words[2], .snap_bytes = *snap});
  return done();
}

Reply Daemon::hold(ClientId client, const std::vector<std::string>& words) {
  if (words.size() != 4) return refused("hold wants a host, a process and a command");
  const auto host = parse_number(words[1]);
  if (!host || *host >= testbed_->topology().hosts()) {
    return refused(fmt::format("there is no host {}; this lab has hosts 0 to {}", words[1],
                               testbed_->topology().hosts() - 1));
  }
  // A tab would begin another column of the status.
  programs_[client] = {.host = *host, .pid = one_line(words[2]), .command = one_line(words[3])};
  return done(testbed_->host_space(*host));
}

void Daemon::forget(ClientId client) {
  programs_.erase(client);
  if (const auto found = captures_.find(client); found != captures_.end()) {
    const CaptureId id = found->second;
    captures_.erase(found);
    try {
      testbed_->stop_capture(id);
    } catch (const std::runtime_error&) {
      // Whoever would be told that the file is not whole has gone.
    }
  }
}

std::string Daemon::status() {
  testbed_->refresh();
  const fabric::Topology& t = testbed_->topology();
  const fabric::TopologySpec& spec = t.spec();
  std::string text = fmt::format("lab\t{}\t{}\t{:.1f}\n", directory_->name(), ::getpid(),
                                 static_cast<double>(testbed_->now()) / 1e12);
  text += fmt::format("fabric\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", spec.planes, spec.hosts, spec.t0,
                      spec.t1, spec.t2, spec.host_link.bits_per_second, spec.pods, spec.cables);
  text += status_of_network();
  for (const FaultBook::Entry& entry : testbed_->faults().entries())
    text += fmt::format("fault\t{}\t{}\n", entry.active ? "active" : "waiting", entry.text);
  for (const auto& [client, program] : programs_)
    text += fmt::format("program\t{}\t{}\t{}\n", program.host, program.pid, program.command);
  return text;
}

std::string Daemon::links(unsigned from) {
  testbed_->refresh();
  const fabric::Topology& t = testbed_->topology();
  const fabric::TopologySpec& s = t.spec();
  std::string text = fmt::format("time\t{}\n", testbed_->now());
  text += fmt::format("fabric\t{}\t{}\t{}\t{}\t{}\t{}\t{}", s.planes, s.hosts, s.t0, s.t1, s.t2,
                      s.pods, s.cables);
  for (const fabric::LinkClass* c : {&s.host_link, &s.t0_t1_link, &s.t1_t2_link})
    text += fmt::format("\t{}\t{}", c->bits_per_second, c->delay_ps);
  text += "\n";
  for (const FaultBook::Entry& entry : testbed_->faults().entries())
    text += fmt::format("fault\t{}\t{}\n", entry.active ? "active" : "waiting", entry.text);
  LinkCounters sum;
  for (std::uint32_t i = 0; i < t.link_count() && from == 0; ++i)
    sum.add(testbed_->counters(LinkId{i}));
  text += fmt::format("sum\t{}\t{}\t{}", sum.marks, sum.trims, sum.corrupted);
  for (const std::uint64_t drops : sum.drops)
    text += fmt::format("\t{}", drops);
  text += "\n";
  for (std::uint32_t i = from; i < t.link_count(); ++i) {
    if (text.size() > kMaxLinksAnswer) return text + fmt::format("next\t{}\n", i);
    const LinkId link{i};
    const LinkCounters counters = testbed_->counters(link);
    if (counters.marks + counters.trims + counters.all_drops() > 0)
      text += fmt::format("count\t{}\t{}\t{}\t{}\n", i, counters.marks, counters.trims,
                          counters.all_drops());
    const std::uint64_t bytes = counters.bytes;
    const std::uint64_t queued = testbed_->queued_bytes(link);
    const fabric::LinkCondition c = testbed_->faults_of(link);
    const bool healthy = c == fabric::LinkCondition{};
    if (bytes == 0 && queued == 0 && healthy) continue;
    text += fmt::format("link\t{}\t{}\t{}", i, bytes, queued);
    if (!healthy)
      text += fmt::format("\t{}\t{}\t{}\t{}\t{}", c.rate_share, c.loss, c.corrupt,
                          c.black_hole ? 1 : 0, c.down ? 1 : 0);
    text += "\n";
  }
  return text;
}

std::string Daemon::status_of_network() const {
  const fabric::Topology& t = testbed_->topology();
  std::string text;
  std::vector<LinkCounters> planes(t.planes());
  for (std::uint32_t i = 0; i < t.link_count(); ++i) {
    const LinkId link{i};
    planes[t.describe(link).from.plane].add(testbed_->counters(link));
    const std::string condition = testbed_->condition(link);
    if (condition.empty()) continue;
    text += fmt::format("link\t{}\t{}", link_name(t, link), condition);
    if (const auto after = testbed_->offered_after(link))
      text += fmt::format("\t{:.3f}", static_cast<double>(*after) / 1e9);
    text += "\n";
  }
  for (unsigned plane = 0; plane < t.planes(); ++plane) {
    const LinkCounters& c = planes[plane];
    text += fmt::format("plane\t{}\t{}\t{}\t{}\t{}\t{}", plane, c.frames, c.bytes, c.marks, c.trims,
                        c.corrupted);
    for (const std::uint64_t drops : c.drops)
      text += fmt::format("\t{}", drops);
    text += "\n";
  }
  for (unsigned host = 0; host < t.hosts(); ++host) {
    for (unsigned plane = 0; plane < t.planes(); ++plane) {
      const bool up = testbed_->carrier(plane, host);
      const unsigned connections = testbed_->connections(plane, host);
      if (!up || connections > 0)
        text += fmt::format("port\t{}\t{}\t{}\t{}\n", host, plane, up ? "up" : "down", connections);
    }
  }
  return text;
}

}  // namespace mrc::lab
