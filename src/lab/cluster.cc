#include "lab/cluster.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fabric/input_error.h"
#include "lab/clock.h"

namespace mrc::lab {
namespace {

constexpr std::uint32_t kMaxFrames = 32'768;
constexpr Picoseconds kCaptureFlushPs = 200'000'000'000;

}  // namespace

fabric::TopologySpec scale_rates(fabric::TopologySpec spec, std::uint64_t bits_per_second) {
  const double factor =
      static_cast<double>(bits_per_second) / static_cast<double>(spec.host_link.bits_per_second);
  for (fabric::LinkClass* link : {&spec.t0_t1_link, &spec.t1_t2_link}) {
    const double rate = static_cast<double>(link->bits_per_second) * factor;
    link->bits_per_second = static_cast<std::uint64_t>(std::llround(rate));
  }
  spec.host_link.bits_per_second = bits_per_second;
  return spec;
}

Cluster::Cluster(const ClusterOptions& options)
    : topology_(options.topology),
      routing_(topology_),
      pool_(kMaxFrames),
      cables_(topology_, pool_, options.socket_directory),
      network_(routing_, options.network, pool_, cables_),
      start_ns_(monotonic_ns()) {
  cables_.attach(network_);
  for (const std::string& text : options.fault_plan)
    faults_.add(fabric::parse_fault(text, topology_), 0);
}

Picoseconds Cluster::now() const {
  return (monotonic_ns() - start_ns_) * fabric::kPicosecondsPerNs;
}

bool Cluster::step() {
  const Picoseconds at = now();
  fabric::FaultAction action;
  while (faults_.next(at, action)) {
    network_.run(action.time_ps);
    apply(action);
  }
  network_.run(at);
  cables_.poll();
  cables_.read(at);
  cables_.flush();
  flush_captures(at);
  return cables_.can_read();
}

Picoseconds Cluster::next_time() const {
  return std::min(network_.next_event(), faults_.next_time());
}

void Cluster::flush_captures(Picoseconds at) {
  if (captures_.empty() || at < captures_flushed_ps_ + kCaptureFlushPs) return;
  captures_flushed_ps_ = at;
  for (auto& [id, capture] : captures_)
    capture->flush();
}

void Cluster::apply(const fabric::FaultAction& action) {
  network_.apply(action);
  const fabric::Link link = topology_.describe(action.link);
  for (const fabric::Node& end : {link.from, link.to}) {
    if (end.kind == fabric::NodeKind::kHost)
      cables_.set_carrier(end.plane, end.index, network_.carrier(end.plane, end.index));
  }
}

void Cluster::add_fault(const std::string& text) {
  faults_.add(fabric::parse_fault(text, topology_), now());
}

std::vector<LinkId> Cluster::resolve(const std::string& target) const {
  if (target == "all") {
    std::vector<LinkId> links;
    for (std::uint32_t i = 0; i < topology_.link_count(); ++i)
      links.push_back(LinkId{i});
    return links;
  }
  if (target.find_first_of(" \t\n") != std::string::npos)
    throw fabric::InputError("'" + target + "' is no name of a link, a switch or a host port");
  return fabric::parse_fault(target + " down @0", topology_).links;
}

unsigned Cluster::heal(const std::string& target) {
  std::vector<fabric::FaultAction> actions;
  const unsigned count = faults_.heal(resolve(target), now(), actions);
  for (const fabric::FaultAction& action : actions)
    apply(action);
  return count;
}

CaptureId Cluster::start_capture(const std::string& target, const CaptureOptions& options) {
  const CaptureId id{next_capture_++};
  captures_.emplace(id, std::make_unique<Capture>(network_, resolve(target), options));
  return id;
}

std::uint64_t Cluster::stop_capture(CaptureId id) {
  const auto found = captures_.find(id);
  if (found == captures_.end()) return 0;
  const std::uint64_t frames = found->second->frames();
  captures_.erase(found);
  return frames;
}

}  // namespace mrc::lab
