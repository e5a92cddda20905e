#include "demo/cluster.h"

#include <algorithm>

#include "base/prng.h"

namespace mrc::demo {
namespace {

constexpr std::uint64_t kBytesPerMbyte = 1'000'000;
// A run that needs this much longer than line rate would allow has stalled.
constexpr int kPatience = 20;
constexpr DurationNs kExtraPatienceNs = 50 * kMillisecondNs;
constexpr unsigned kStepsPerProgress = 1U << 14;

// How long a host needs for its share with all ports at line rate.
DurationNs ideal_duration(const Options& options) {
  const std::uint64_t bits = options.mbytes * kBytesPerMbyte * 8;
  return static_cast<DurationNs>(bits * kSecondNs / (kPortBitsPerSecond * options.planes));
}

void add(core::QpCounters& sum, const core::QpCounters& qp) {
  sum.data_sent += qp.data_sent;
  sum.retransmitted += qp.retransmitted;
  sum.lost_by_path_order += qp.lost_by_path_order;
  sum.lost_by_time += qp.lost_by_time;
  sum.lost_by_timeout += qp.lost_by_timeout;
  sum.trimmed += qp.trimmed;
  sum.refused += qp.refused;
  sum.spurious += qp.spurious;
  sum.marked += qp.marked;
  sum.probes_sent += qp.probes_sent;
  sum.timeouts += qp.timeouts;
  sum.data_received += qp.data_received;
  sum.bytes_received += qp.bytes_received;
  sum.duplicates += qp.duplicates;
  sum.sacks_sent += qp.sacks_sent;
  sum.nacks_sent += qp.nacks_sent;
  sum.acks_sent += qp.acks_sent;
}

}  // namespace

Cluster::Cluster(const Options& options)
    : options_(options),
      topology_(options.hosts, options.planes),
      transfer_(options.hosts, options.mbytes * kBytesPerMbyte),
      ideal_ns_(ideal_duration(options)),
      faults_(options, topology_, ideal_ns_),
      profile_(topology_.make_profile()),
      network_(topology_, static_cast<unsigned>(faults_.faults().size()), options.seed),
      measurements_(faults_, topology_) {
  const World world{topology_, transfer_, profile_, network_, measurements_};
  Prng seeds(options.seed);
  for (unsigned i = 0; i < options.hosts; ++i)
    hosts_.emplace_back(world, i, seeds.next64());
  connect_all();
}

void Cluster::connect_all() {
  for (unsigned a = 0; a < hosts_.size(); ++a) {
    for (unsigned b = 0; b < hosts_.size(); ++b) {
      if (a == b) continue;
      hosts_[a].connect(b, hosts_[b].introduce(a));
      hosts_[a].watch_source(b, hosts_[b].memory());
    }
  }
}

// --- Time

Report Cluster::run(const std::function<void(double)>& progress) {
  for (DemoHost& host : hosts_)
    host.start(now_);
  StepResult result = StepResult::kGoing;
  for (unsigned steps = 1; result == StepResult::kGoing; ++steps) {
    result = step();
    if (steps % kStepsPerProgress != 0) continue;
    progress(static_cast<double>(bytes_moved()) / static_cast<double>(transfer_.total_bytes()));
  }
  return make_report(result);
}

// One thing happens: a fault, a frame that arrives, or a host that wakes up, in this order when at
// the same time.
Cluster::StepResult Cluster::step() {
  unsigned sleeper = 0;
  const TimeNs wake = next_wake(sleeper);
  const TimeNs frame = network_.next_time();
  const TimeNs fault = faults_.next_time();
  const TimeNs next = std::min({wake, frame, fault});
  if (next == kNever) return StepResult::kNothingLeft;
  if (next > kPatience * ideal_ns_ + kExtraPatienceNs) return StepResult::kTooLate;
  now_ = std::max(now_, next);
  if (fault <= next) {
    act(faults_.take_next());
    return StepResult::kGoing;
  }
  if (frame > next) {
    hosts_[sleeper].on_wake(now_);
  } else {
    Delivery delivery;
    if (!network_.step(delivery)) return StepResult::kGoing;
    hosts_[delivery.host].on_frame(now_, delivery);
    network_.frames().release(delivery.frame);
  }
  return all_done() || any_failed() ? StepResult::kFinished : StepResult::kGoing;
}

TimeNs Cluster::next_wake(unsigned& host) const {
  TimeNs earliest = kNever;
  for (unsigned i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].wake_at() >= earliest) continue;
    earliest = hosts_[i].wake_at();
    host = i;
  }
  return earliest;
}

void Cluster::act(const FaultAction& action) {
  const Fault& fault = faults_.fault(action.fault);
  if (action.repair) {
    network_.repair(action.fault, fault.links);
  } else {
    network_.cut(now_, action.fault, fault.links);
  }
  measurements_.on_fault(action);
  // Only a port is seen to fail, and only by its own host.
  if (fault.kind == FaultKind::kPort) {
    hosts_[fault.host].set_port_up(now_, fault.plane, action.repair);
  }
}

bool Cluster::all_done() const {
  return std::all_of(hosts_.begin(), hosts_.end(), [](const DemoHost& h) { return h.done(); });
}

bool Cluster::any_failed() const {
  return std::any_of(hosts_.begin(), hosts_.end(),
                     [](const DemoHost& h) { return h.counters().failures > 0; });
}

std::uint64_t Cluster::bytes_moved() const {
  std::uint64_t bytes = 0;
  for (const Measurements::PlaneBytes& bucket : measurements_.buckets()) {
    for (const std::uint64_t plane : bucket)
      bytes += plane;
  }
  return bytes;
}

// --- Afterwards

Report Cluster::make_report(StepResult ending) const {
  Report report;
  report.options = options_;
  report.leaves = topology_.leaves();
  report.spines = topology_.spines();
  report.paths_per_flow = topology_.paths();
  report.flows = transfer_.flows();
  report.bytes_planned = transfer_.total_bytes();
  report.messages_planned = transfer_.total_messages();
  report.finished_at = now_;
  report.bytes_moved = bytes_moved();
  report.events = measurements_.events();
  report.network = network_.counters();
  report.buckets = measurements_.buckets();
  const auto sample = measurements_.sample_frame();
  report.sample_frame.assign(sample.begin(), sample.end());
  for (std::uint32_t i = 0; i < faults_.faults().size(); ++i) {
    const FaultId id{i};
    report.faults.push_back({faults_.fault(id), measurements_.observation(id), network_.trace(id)});
  }
  sum_hosts(report);
  verify(report);
  survey_paths(report);
  judge(report, ending);
  return report;
}

void Cluster::sum_hosts(Report& report) const {
  for (unsigned i = 0; i < hosts_.size(); ++i) {
    const HostCounters& counters = hosts_[i].counters();
    report.completions += counters.sends_completed;
    report.immediates += counters.receives_completed;
    report.immediates_out_of_order += counters.immediates_out_of_order;
    report.early_wrong_bytes += counters.early_wrong_bytes;
    report.unreadable_frames += counters.unreadable_frames;
    for (unsigned peer = 0; peer < hosts_.size(); ++peer) {
      if (peer == i) continue;
      add(report.totals,
          hosts_[i].endpoint().query_qp(hosts_[i].qp_towards(peer)).value().counters);
    }
  }
}

// Every byte of every host's memory against what its peers hold.
void Cluster::verify(Report& report) const {
  for (unsigned to = 0; to < hosts_.size(); ++to) {
    const HostMemory& memory = hosts_[to].memory();
    report.wrong_bytes += memory.damaged_guards();
    for (unsigned from = 0; from < hosts_.size(); ++from) {
      if (from == to) continue;
      const auto sent = hosts_[from].memory().outgoing(to);
      report.wrong_bytes += memory.wrong_bytes(from, 0, sent);
      report.bytes_verified += sent.size();
    }
  }
}

void Cluster::survey_paths(Report& report) const {
  using enum core::EvState;
  PathReport& paths = report.paths;
  for (unsigned from = 0; from < hosts_.size(); ++from) {
    for (unsigned to = 0; to < hosts_.size(); ++to) {
      for (unsigned i = 0; from != to && i < topology_.paths(); ++i) {
        const EvIndex ev{static_cast<std::uint16_t>(i)};
        const core::EvState state =
            hosts_[from].endpoint().query_ev(hosts_[from].qp_towards(to), ev).value();
        const bool works = network_.path_works({from, to}, topology_.path(ev));
        paths.good += state == kGood ? 1 : 0;
        paths.skip += state == kSkip ? 1 : 0;
        paths.assumed_bad += state == kAssumedBad ? 1 : 0;
        paths.denied += state == kDenied ? 1 : 0;
        paths.bad_but_working += state == kAssumedBad && works ? 1 : 0;
        paths.dead += works ? 0 : 1;
      }
    }
  }
}

void Cluster::judge(Report& report, StepResult ending) const {
  for (const DemoHost& host : hosts_) {
    if (host.counters().failures == 0) continue;
    report.verdict = Verdict::kFailed;
    report.failure = "a work request failed: " + host.counters().first_failure;
    return;
  }
  if (ending != StepResult::kFinished) {
    report.verdict = Verdict::kStalled;
    report.failure = "the transfer did not finish in time";
  } else if (report.bytes_moved != report.bytes_planned) {
    report.verdict = Verdict::kWrongData;
    report.failure = "not every byte was placed exactly once";
  } else if (report.wrong_bytes + report.early_wrong_bytes > 0) {
    report.verdict = Verdict::kWrongData;
    report.failure = "bytes that arrived are not those that were sent";
  } else if (report.immediates_out_of_order > 0) {
    report.verdict = Verdict::kWrongData;
    report.failure = "immediates arrived out of order";
  } else {
    report.verdict = Verdict::kPassed;
  }
}

}  // namespace mrc::demo
