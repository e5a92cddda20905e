#include "lab/cluster.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lab/cables.h"
#include "lab/interface_cables.h"

namespace mrc::lab {
namespace {

constexpr std::uint32_t kMaxFrames = 32'768;
constexpr Picoseconds kCaptureFlushPs = 200'000'000'000;

std::unique_ptr<HostPorts> make_ports(const fabric::Routing& routing, FramePool& pool,
                                      const ClusterOptions& options) {
  if (options.switches == SwitchKind::kNamespace)
    return std::make_unique<InterfaceCables>(routing, pool, options.namespace_prefix);
  return std::make_unique<Cables>(routing.topology(), pool, options.socket_directory);
}

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
    : Testbed(options.topology),
      pool_(kMaxFrames),
      ports_(make_ports(routing(), pool_, options)),
      network_(routing(), options.network, pool_, *ports_) {
  ports_->attach(network_);
  if (options.switches == SwitchKind::kNamespace) {
    const NetnsPlan plan(routing(), options.namespace_prefix, options.switches);
    for (unsigned host = 0; host < topology().hosts(); ++host)
      host_spaces_.push_back(plan.host_space(host));
  }
  for (const std::string& text : options.fault_plan)
    add_fault(text);
}

bool Cluster::step() {
  const Picoseconds at = now();
  fabric::FaultAction action;
  while (fault_book().next(at, action)) {
    network_.run(action.time_ps);
    apply({action});
  }
  network_.run(at);
  ports_->poll();
  ports_->read(at);
  ports_->flush();
  flush_captures(at);
  return ports_->can_read();
}

Picoseconds Cluster::next_time() const {
  return std::min(network_.next_event(), faults().next_time());
}

void Cluster::flush_captures(Picoseconds at) {
  if (captures_.empty() || at < captures_flushed_ps_ + kCaptureFlushPs) return;
  captures_flushed_ps_ = at;
  for (auto& [id, capture] : captures_)
    capture->flush();
}

void Cluster::apply(const std::vector<fabric::FaultAction>& actions) {
  for (const fabric::FaultAction& action : actions) {
    network_.apply(action);
    const fabric::Link link = topology().describe(action.link);
    for (const fabric::Node& end : {link.from, link.to}) {
      if (end.kind == fabric::NodeKind::kHost)
        ports_->set_carrier(end.plane, end.index, network_.carrier(end.plane, end.index));
    }
  }
}

CaptureId Cluster::start_capture(const std::string& target, const CaptureOptions& options) {
  const CaptureId id{next_capture_++};
  captures_.emplace(id, std::make_unique<Capture>(network_, resolve(target), options));
  return id;
}

std::uint64_t Cluster::stop_capture(CaptureId id) {
  const auto found = captures_.find(id);
  if (found == captures_.end()) return 0;
  const auto capture = std::move(found->second);
  captures_.erase(found);
  return capture->finish();
}

}  // namespace mrc::lab
