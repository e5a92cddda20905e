#include "lab/kernel_testbed.h"

#include <fmt/core.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "fabric/input_error.h"

namespace mrc::lab {
namespace {

using fabric::FaultKind;

// A filter in the kernel's classic machine code: draw a random number, drop below a limit. The
// numbers are "load from the random source", "jump if not below", "go on" and "drop".
std::string drop_filter(double share) {
  constexpr double kRange = 4'294'967'296.0;
  const auto limit = static_cast<std::uint64_t>(std::llround(share * kRange));
  if (limit >= static_cast<std::uint64_t>(kRange)) return "1,6 0 0 2";
  return fmt::format("4,32 0 0 4294963256,53 1 0 {},6 0 0 2,6 0 0 4294967295", limit);
}

std::string set_filter(const std::string& port, bool leaving, double share) {
  const char* const side = leaving ? "egress" : "ingress";
  if (share == 0) return fmt::format("filter del dev {} {} prio 1\n", port, side);
  return fmt::format(
      "qdisc replace dev {0} clsact\n"
      "filter replace dev {0} {1} protocol all prio 1 handle 1 bpf da bytecode \"{2}\"\n",
      port, side, drop_filter(share));
}

}  // namespace

KernelTestbed::KernelTestbed(const ClusterOptions& options)
    : Testbed(options.topology),
      world_(routing(), options.namespace_prefix, SwitchKind::kKernel),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      filters_(can_filter()) {
  for (const std::string& text : options.fault_plan)
    add_fault(text);
}

// Tried out on a cable that is as it was afterwards.
bool KernelTestbed::can_filter() const {
  const CableEnd end = world_.plan().home_end(LinkId{0});
  try {
    NetnsWorld::tc(end.name_space, set_filter(end.port, true, 1e-9));
    NetnsWorld::tc(end.name_space, set_filter(end.port, true, 0));
  } catch (const std::runtime_error&) {
    return false;
  }
  return true;
}

void KernelTestbed::check(const fabric::Fault& fault) const {
  if (fault.kind == FaultKind::kCorrupt) {
    throw fabric::InputError(
        "the kernel's switches do not damage frames; `loss` does, or a lab without --switch "
        "kernel");
  }
  const std::set<LinkId> links(fault.links.begin(), fault.links.end());
  const bool one_way = std::any_of(links.begin(), links.end(), [&](LinkId link) {
    return !links.contains(topology().reverse(link));
  });
  const bool silent = fault.kind == FaultKind::kLoss || fault.kind == FaultKind::kBlackHole;
  if (!filters_ && (silent || (one_way && fault.kind != FaultKind::kRate))) {
    throw fabric::InputError(
        "this kernel has no clsact and cls_bpf, without which frames of one direction cannot be "
        "dropped; cut the cable, or use a lab without --switch kernel");
  }
}

bool KernelTestbed::step() {
  const Picoseconds at = now();
  std::vector<fabric::FaultAction> due;
  fabric::FaultAction action;
  while (fault_book().next(at, action))
    due.push_back(action);
  apply(due);
  for (auto& [id, capture] : captures_)
    capture->read();
  return false;
}

LinkId KernelTestbed::home_of(LinkId link) const {
  return world_.plan().leaves_home(link) ? link : topology().reverse(link);
}

// All at once, so that a cable is not taken down one direction after the other.
void KernelTestbed::apply(const std::vector<fabric::FaultAction>& actions) {
  std::set<LinkId> touched;
  for (const fabric::FaultAction& action : actions) {
    faults_now_.apply(action);
    touched.insert(home_of(action.link));
  }
  for (const LinkId home : touched)
    reconcile(home);
}

void KernelTestbed::reconcile(LinkId home) {
  const LinkId back = topology().reverse(home);
  const CableOrder order =
      order_for(faults_now_.of(home).condition(), faults_now_.of(back).condition());
  CableState& cable = cables_[home];
  cable.trouble.clear();
  try {
    if (order.down != cable.done.down) set_cable(home, order.down);
    cable.done.down = order.down;
    set_direction(home, order.home, cable.done.home);
    set_direction(back, order.back, cable.done.back);
  } catch (const std::runtime_error& error) {
    cable.trouble = error.what();
  }
}

void KernelTestbed::set_cable(LinkId home, bool down) {
  const CableEnd end = world_.plan().home_end(home);
  world_.space(end.name_space).set_up(end.port, !down);
  if (!down) NetnsWorld::ip(end.name_space, world_.plan().port_setup(end));
}

void KernelTestbed::set_direction(LinkId link, const DirectionOrder& order, DirectionOrder& done) {
  if (order.filtered != done.filtered) {
    const CableEnd end = world_.plan().home_end(link);
    NetnsWorld::tc(end.name_space,
                   set_filter(end.port, world_.plan().leaves_home(link), order.filtered));
    done.filtered = order.filtered;
  }
  if (order.rate_share != done.rate_share) {
    NetnsWorld::tc(world_.plan().sending_end(link).name_space,
                   world_.plan().rate_setup(link, order.rate_share));
    done.rate_share = order.rate_share;
  }
}

CaptureId KernelTestbed::start_capture(const std::string& target, const CaptureOptions& options) {
  const CaptureId id{next_capture_++};
  auto capture =
      std::make_unique<KernelCapture>(world_, topology(), resolve(target), options, now());
  for (const int descriptor : capture->descriptors()) {
    epoll_event event{};
    event.events = EPOLLIN;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event);
  }
  captures_.emplace(id, std::move(capture));
  return id;
}

std::uint64_t KernelTestbed::stop_capture(CaptureId id) {
  const auto found = captures_.find(id);
  if (found == captures_.end()) return 0;
  const auto capture = std::move(found->second);
  captures_.erase(found);
  capture->read();
  return capture->finish();
}

void KernelTestbed::refresh() {
  for (std::uint32_t i = 0; i < topology().link_count(); ++i) {
    const CableEnd end = world_.plan().sending_end(LinkId{i});
    counters_.try_emplace(end.name_space);
  }
  for (auto& [name, interfaces] : counters_)
    interfaces = world_.space(name).counters();
}

LinkCounters KernelTestbed::counters(LinkId link) const {
  LinkCounters result;
  const CableEnd end = world_.plan().sending_end(link);
  const auto space = counters_.find(end.name_space);
  if (space == counters_.end()) return result;
  const auto found = space->second.find(end.port);
  if (found == space->second.end()) return result;
  result.frames = found->second.sent_frames;
  result.bytes = found->second.sent_bytes;
  result.drops[static_cast<unsigned>(DropCause::kDown)] = found->second.send_drops;
  return result;
}

std::string KernelTestbed::condition(LinkId link) const {
  const auto cable = cables_.find(home_of(link));
  if (cable != cables_.end() && !cable->second.trouble.empty())
    return "not as asked: " + cable->second.trouble;
  return fabric::in_words(faults_now_.of(link).condition());
}

bool KernelTestbed::carrier(unsigned plane, unsigned host) const {
  const auto cable = cables_.find(topology().host_down(plane, host));
  return cable == cables_.end() || !cable->second.done.down;
}

}  // namespace mrc::lab
