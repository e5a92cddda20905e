// Queue pairs: creation, the way from RESET to RTS, failure, and the work posted to them.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/cc/base_rtt.h"
#include "core/endpoint_impl.h"

namespace mrc::core {
namespace {

constexpr std::uint32_t kMaxQueueDepth = 65'535;

Status check_rtr(const QpReadyToReceive& rtr) {
  if (!is_path_mtu(rtr.path_mtu)) {
    return {ErrorCode::kInvalidArgument, "path MTU must be a multiple of 4 in 256..8192"};
  }
  if (rtr.mpr_dest == 0) return {ErrorCode::kInvalidArgument, "MPR must be at least one unit"};
  const auto remote = static_cast<std::uint32_t>(rtr.remote_qp);
  if (rtr.remote_qp < kFirstUsableQp || remote > kQpNumberMask) {
    return {ErrorCode::kInvalidArgument, "remote queue pair number is reserved or too large"};
  }
  return {};
}

Status check_rts(const QpReadyToSend& rts) {
  if (rts.mpr == 0) return {ErrorCode::kInvalidArgument, "MPR must be at least one unit"};
  if (rts.timeout > kMaxTimeout) {
    return {ErrorCode::kInvalidArgument, "timeout exponent is above 24"};
  }
  if (rts.linear_retries > kMaxLinearRetries || rts.exponential_retries > kMaxExponentialRetries) {
    return {ErrorCode::kInvalidArgument, "at most 7 linear and 25 exponential retries"};
  }
  return {};
}

// For a queue pair without a profile: hash inputs in the range of ephemeral ports, equally many on
// each port. The low halves differ, so that IPv4, which carries only them, has as many paths.
EvProfile automatic_profile(unsigned ports, Prng& prng) {
  constexpr unsigned kEvsPerPort = 32;
  constexpr std::uint32_t kFirstEphemeral = 0xC000;
  std::vector<EvEntry> entries(kEvsPerPort * ports);
  for (unsigned i = 0; i < entries.size(); ++i) {
    entries[i].entropy = (prng.next32() << 16) | (kFirstEphemeral + i);
    entries[i].port = static_cast<PortId>(i % ports + 1);
  }
  Result<EvProfile> profile = EvProfile::create(entries);
  MRC_ASSERT(profile.ok());
  return std::move(profile).value();
}

PathSetConfig path_config(const QpInit& init, PortTurns& turns) {
  return {.min_active = init.ev_min_active,
          .active_evs = init.active_evs,
          .turns = &turns,
          .oblivious = init.oblivious,
          .ev_counters = init.ev_counters};
}

constexpr Status no_such_qp() { return {ErrorCode::kNotFound, "no such queue pair"}; }

}  // namespace

Qp* Endpoint::Impl::find(QpNumber number) {
  const std::uint32_t slot = qp_index.find(number);
  return slot == kNoSlot ? nullptr : qps[slot].get();
}

const Qp* Endpoint::Impl::find(QpNumber number) const {
  const std::uint32_t slot = qp_index.find(number);
  return slot == kNoSlot ? nullptr : qps[slot].get();
}

// --- Life cycle ---

Status Endpoint::create_qp(const QpConfig& config) {
  Impl& e = *impl_;
  const auto number = static_cast<std::uint32_t>(config.number);
  if (config.number < kFirstUsableQp || number > kQpNumberMask) {
    return {ErrorCode::kInvalidArgument, "queue pair number is reserved or too large"};
  }
  if (config.max_sends == 0 || config.max_sends > kMaxQueueDepth ||
      config.max_receives > kMaxQueueDepth) {
    return {ErrorCode::kInvalidArgument, "queue depth must be in 1..65535"};
  }
  if (e.find(config.number) != nullptr) {
    return {ErrorCode::kAlreadyExists, "queue pair number is in use"};
  }
  for (std::uint32_t slot = 0; slot < e.qps.size(); ++slot) {
    if (e.qps[slot]) continue;
    e.qps[slot] = std::make_unique<Qp>(config, slot, e.events);
    e.qps[slot]->incarnation = e.next_incarnation++;
    e.qp_index.insert(config.number, slot);
    return {};
  }
  return {ErrorCode::kNoSpace, "no room for another queue pair"};
}

Status Endpoint::init_qp(QpNumber number, const QpInit& init) {
  Qp* qp = impl_->find(number);
  if (qp == nullptr) return no_such_qp();
  if (qp->state != QpState::kReset) return {ErrorCode::kWrongState, "queue pair is not in RESET"};
  const EvProfile* profile = init.ev_profile;
  if (profile != nullptr && (profile->size() == 0 || profile->size() > kMaxEvsPerQp)) {
    return {ErrorCode::kInvalidArgument, "an EV profile holds 1 to 1024 EVs"};
  }
  if (profile != nullptr &&
      (profile->ports() & PortMask::first(impl_->config.port_count)).empty()) {
    return {ErrorCode::kInvalidArgument, "no EV of the profile uses a port of this endpoint"};
  }
  qp->init = init;
  if (profile == nullptr) {
    qp->own_profile =
        std::make_unique<EvProfile>(automatic_profile(impl_->config.port_count, impl_->prng));
    qp->init.ev_profile = qp->own_profile.get();
  }
  qp->paths = std::make_unique<PathSet>(*qp->init.ev_profile, path_config(init, impl_->port_turns),
                                        impl_->prng.next64(), *qp);
  qp->state = QpState::kInit;
  return {};
}

Status Endpoint::ready_to_receive(QpNumber number, const QpReadyToReceive& rtr) {
  Impl& e = *impl_;
  Qp* qp = e.find(number);
  if (qp == nullptr) return no_such_qp();
  if (qp->state != QpState::kInit) return {ErrorCode::kWrongState, "queue pair is not in INIT"};
  const Status valid = check_rtr(rtr);
  if (!valid.ok()) return valid;
  qp->rtr = rtr;
  qp->init.cc.network_trims = qp->init.cc.network_trims && rtr.peer_nacks_trims;
  const Status attached = e.attach_peer(*qp);
  if (!attached.ok()) return attached;
  const DurationNs base_rtt_ns = e.base_rtt_ns(*qp);
  qp->paths->pace_probes(std::max(base_rtt_ns, e.config.jitter_ns), e.peers[qp->peer].probe_turns);
  qp->requester.start_probing(e.links_of(*qp), base_rtt_ns);
  qp->responder.start(qp->rtr, e.config.strict, qp->counters);
  qp->state = QpState::kReadyToReceive;
  e.apply_ports(*qp);
  return {};
}

Status Endpoint::ready_to_send(TimeNs now, QpNumber number, const QpReadyToSend& rts) {
  Impl& e = *impl_;
  Qp* qp = e.find(number);
  if (qp == nullptr) return no_such_qp();
  if (qp->state != QpState::kReadyToReceive) {
    return {ErrorCode::kWrongState, "queue pair is not in RTR"};
  }
  const Status valid = check_rts(rts);
  if (!valid.ok()) return valid;
  e.attach_controller(*qp, qp->init, *qp->group);
  qp->requester.start(now,
                      {.rts = rts,
                       .path_mtu = qp->rtr.path_mtu,
                       .dynamic_mpr = qp->rtr.dynamic_mpr,
                       .network_trims = qp->init.cc.network_trims,
                       .peer_tells_service_time = qp->rtr.peer_tells_service_time,
                       .sack_threshold_bytes = qp->rtr.sack_threshold_bytes},
                      e.links_of(*qp));
  qp->state = QpState::kReadyToSend;
  return {};
}

Status Endpoint::follow_profiles(TimeNs now, QpNumber number, const EvProfile& paths,
                                 const CcProfile& cc) {
  Impl& e = *impl_;
  Qp* qp = e.find(number);
  if (qp == nullptr) return no_such_qp();
  if (qp->state == QpState::kReset || qp->state == QpState::kError) {
    return {ErrorCode::kWrongState, "queue pair is not set up"};
  }
  if (paths.size() != qp->paths->size()) {
    return {ErrorCode::kInvalidArgument, "the profile has more or fewer EVs than before"};
  }
  if ((paths.ports() & PortMask::first(e.config.port_count)).empty()) {
    return {ErrorCode::kInvalidArgument, "no EV of the profile uses a port of this endpoint"};
  }
  e.events.set_time(now);
  // What may run out of memory comes first, and then nothing has changed.
  QpInit init = qp->init;
  init.ev_profile = &paths;
  init.cc = cc;
  init.cc.network_trims = cc.network_trims && qp->rtr.peer_nacks_trims;
  std::vector<bool> replaced(paths.size());
  for (unsigned i = 0; i < paths.size(); ++i) {
    const auto ev = static_cast<EvIndex>(i);
    replaced[i] = !paths.entry(ev).same_path(qp->init.ev_profile->entry(ev));
  }
  std::optional<PathSet> fresh;
  if (&paths != qp->init.ev_profile) {
    fresh.emplace(paths, path_config(init, e.port_turns), e.prng.next64(), *qp);
  }
  CcGroup* group = qp->group;
  if (group != nullptr && !group->serves(init)) group = &e.group_for(init, e.peers[qp->peer]);
  if (qp->requester.started()) e.attach_controller(*qp, init, *group);

  if (fresh) {
    fresh->take_over(*qp->paths, now);
    *qp->paths = std::move(*fresh);
  }
  qp->init = init;
  if (group == nullptr) return {};
  if (group != qp->group) {
    e.unpark(*qp);
    CcGroup& left = *std::exchange(qp->group, group);
    ++group->users;
    --left.users;
    e.scheduler.wake_first(left.waiting);
  }
  qp->paths->pace_probes(std::max(e.base_rtt_ns(*qp), e.config.jitter_ns),
                         e.peers[qp->peer].probe_turns);
  qp->requester.follow(now, e.links_of(*qp), init.cc.network_trims, replaced);
  // What was under way on paths that are gone has made room, for itself perhaps.
  if (!MRC_BUG(kProfileWakesNobody)) e.scheduler.wake_first(qp->group->waiting);
  e.apply_ports(*qp);
  e.after_event(*qp);
  return {};
}

Status Endpoint::fail_qp(TimeNs now, QpNumber number) {
  Qp* qp = impl_->find(number);
  if (qp == nullptr) return no_such_qp();
  if (qp->state == QpState::kReset) return {ErrorCode::kWrongState, "queue pair is in RESET"};
  impl_->events.set_time(now);
  impl_->fail(*qp, CompletionStatus::kFlushed);
  return {};
}

Status Endpoint::reset_qp(QpNumber number) {
  Qp* qp = impl_->find(number);
  if (qp == nullptr) return no_such_qp();
  impl_->forget_work(*qp);
  qp->paths.reset();
  qp->own_profile.reset();
  qp->counters = {};
  qp->state = QpState::kReset;
  return {};
}

Status Endpoint::destroy_qp(QpNumber number) {
  Impl& e = *impl_;
  Qp* qp = e.find(number);
  if (qp == nullptr) return no_such_qp();
  const std::uint32_t slot = qp->slot;
  e.forget_work(*qp);
  e.qp_index.erase(number);
  e.qps[slot].reset();
  return {};
}

// --- Peers ---

// The group comes first: memory for it may be exhausted, and then nothing has changed.
Status Endpoint::Impl::attach_peer(Qp& qp) {
  std::uint32_t slot = peer_index.find(qp.rtr.remote);
  const bool is_new = slot == kNoSlot;
  if (is_new) {
    for (slot = 0; slot < peers.size() && peers[slot].users > 0; ++slot) {
    }
    if (slot == peers.size()) return {ErrorCode::kNoSpace, "no room for another peer"};
    peers[slot] = {};
    peers[slot].address = qp.rtr.remote;
  }
  Peer& peer = peers[slot];
  qp.group = &group_for(qp.init, peer);
  ++qp.group->users;
  if (is_new) peer_index.insert(qp.rtr.remote, slot);
  qp.peer = slot;
  qp.of_peer = {.next = kNoSlot, .previous = peer.last_qp};
  (peer.last_qp == kNoSlot ? peer.first_qp : qps[peer.last_qp]->of_peer.next) = qp.slot;
  peer.last_qp = qp.slot;
  ++peer.users;
  ++peer.live;
  if (ports.forget_old(slot, events.time(), peer.live > 1)) apply_ports_of(slot);
  if (!(ports.ours() == PortMask::first(config.port_count))) ports.announce(slot);
  return {};
}

// One that serves it already, one of the same algorithm that nobody uses any more, or a new one.
CcGroup& Endpoint::Impl::group_for(const QpInit& init, Peer& peer) {
  CcGroup* unused = nullptr;
  for (const auto& group : peer.groups) {
    if (group->serves(init)) return *group;
    if (group->users == 0 && group->profile.algorithm == init.cc.algorithm) unused = group.get();
  }
  if (unused == nullptr) {
    unused = peer.groups.emplace_back(std::make_unique<CcGroup>()).get();
  }
  *unused = {.profile = init.cc, .hints = init.hints, .controller = nullptr, .waiting = {}};
  return *unused;
}

// Who only receives needs none.
void Endpoint::Impl::attach_controller(Qp& qp, const QpInit& init, CcGroup& g) {
  if (g.controller) return;
  const PortMask planes = init.ev_profile->ports() & ports.ours();
  const unsigned plane_count = planes.count();
  const wire::Packet full{.bth = {.has_timestamp = true}, .body = wire::Write{}};
  g.controller =
      make_controller(init.cc, {.bits_per_second = config.port_bits_per_second * plane_count,
                                .mtu_bytes = wire::nominal_size(full, qp.rtr.path_mtu),
                                .hints = init.hints,
                                .seed = prng.next64()});
  refresh_bandwidth(qp);
}

DurationNs Endpoint::Impl::base_rtt_ns(const Qp& qp) {
  const CcGroup& g = *qp.group;
  return g.controller ? g.controller->base_rtt_ns()
                      : BaseRtt(qp.init.cc.nscc.base_rtt_ns).value_ns();
}

void Endpoint::Impl::leave_live(Qp& qp) {
  if (qp.state != QpState::kReadyToReceive && qp.state != QpState::kReadyToSend) return;
  --peers[qp.peer].live;
}

void Endpoint::Impl::detach_peer(Qp& qp) {
  if (qp.peer == kNoSlot) return;
  const std::uint32_t slot = std::exchange(qp.peer, kNoSlot);
  Peer& peer = peers[slot];
  const std::uint32_t next = qp.of_peer.next;
  const std::uint32_t previous = qp.of_peer.previous;
  (previous == kNoSlot ? peer.first_qp : qps[previous]->of_peer.next) = next;
  (next == kNoSlot ? peer.last_qp : qps[next]->of_peer.previous) = previous;
  if (peer.status_qp == qp.slot) peer.status_qp = previous;
  --std::exchange(qp.group, nullptr)->users;
  if (--peer.users > 0) return;
  ports.remove(slot);
  peer_index.erase(peer.address);
  peer = {};
}

// --- Failure ---

void Endpoint::Impl::fail(Qp& qp, CompletionStatus status, bool spares_sends) {
  if (qp.state == QpState::kError) return;
  leave_live(qp);
  unpark(qp);
  qp.requester.stop(spares_sends ? CompletionStatus::kFlushed : status);
  qp.responder.stop();
  qp.state = QpState::kError;
  timers.set(qp.slot, kNever);
  events.push({.kind = EventKind::kQpError, .qp = qp.config.number, .status = status});
  if (qp.peer != kNoSlot) scheduler.wake_first(qp.group->waiting);
  after_event(qp);
}

// Takes the queue pair out of every queue and forgets what was posted to it.
void Endpoint::Impl::forget_work(Qp& qp) {
  leave_live(qp);
  unpark(qp);
  qp.requester.reset();
  qp.responder.reset();
  if (qp.peer != kNoSlot && peers[qp.peer].users > 1) scheduler.wake_first(qp.group->waiting);
  detach_peer(qp);
  timers.set(qp.slot, kNever);
  control.forget(qp.slot);
  scheduler.remove(qp.slot);
  for (std::size_t n = completions.size(); n > 0; --n) {
    const std::uint32_t slot = completions.front();
    completions.pop_front();
    if (slot != qp.slot) completions.push_back(slot);
  }
  qp.completion_queued = qp.ack_queued = false;
  qp.answers.ev = kNoEv;
  qp.answers.last_word = {};
  qp.incarnation = next_incarnation++;
}

// --- Work and queries ---

Status Endpoint::post_send(TimeNs now, QpNumber number, const SendRequest& request) {
  Qp* qp = impl_->find(number);
  if (qp == nullptr) return no_such_qp();
  if (request.into_receive && !qp->config.allow_sends) {
    return {ErrorCode::kUnsupported, "sends are not allowed on this queue pair"};
  }
  const Status posted = qp->requester.post(now, request);
  if (posted.ok()) impl_->after_event(*qp);
  return posted;
}

Status Endpoint::post_receive(QpNumber number, const ReceiveRequest& request) {
  Qp* qp = impl_->find(number);
  if (qp == nullptr) return no_such_qp();
  if (qp->state == QpState::kReset || qp->state == QpState::kError) {
    return {ErrorCode::kWrongState, "receives are posted between INIT and RTS"};
  }
  return qp->responder.post(request);
}

Status Endpoint::refuse_send(TimeNs now, QpNumber number, Psn psn) {
  Qp* qp = impl_->find(number);
  if (qp == nullptr) return no_such_qp();
  impl_->events.set_time(now);
  const Requester::Outcome result = qp->requester.refuse(now, psn);
  if (result.drop != DropReason::kNone) return {ErrorCode::kNotFound, "no such packet"};
  impl_->settle_result(*qp, result);
  return {};
}

Result<std::uint64_t> Endpoint::receive_of(QpNumber number, const wire::Packet& packet) const {
  const Qp* qp = impl_->find(number);
  if (qp == nullptr) return no_such_qp();
  return qp->responder.receive_of(packet);
}

Status Endpoint::set_receive_window(QpNumber number, std::uint8_t units,
                                    const ReceiverPenalty& penalty) {
  Qp* qp = impl_->find(number);
  if (qp == nullptr) return no_such_qp();
  return qp->responder.set_window(units, penalty);
}

Result<Psn> Endpoint::expected_psn(QpNumber number) const {
  const Qp* qp = impl_->find(number);
  if (qp == nullptr) return no_such_qp();
  if (!qp->responder.started()) {
    return Status(ErrorCode::kWrongState, "queue pair is not ready to receive");
  }
  return qp->responder.expected();
}

Result<QpStatus> Endpoint::query_qp(QpNumber number) const {
  const Qp* qp = impl_->find(number);
  if (qp == nullptr) return no_such_qp();
  QpStatus status;
  status.state = qp->state;
  status.sends_outstanding = qp->requester.messages().outstanding();
  status.receives_outstanding = qp->responder.outstanding();
  status.counters = qp->counters;
  if (qp->paths) {
    status.good_evs = static_cast<std::uint16_t>(qp->paths->good_count());
    status.bad_evs = static_cast<std::uint16_t>(qp->paths->bad_count());
  }
  if (qp->responder.started()) status.expected_psn = qp->responder.expected();
  if (qp->peer != kNoSlot && qp->group->controller) {
    const CongestionController& cc = *qp->group->controller;
    status.window_bytes = cc.window_bytes();
    status.peer_bytes_in_flight = cc.in_flight_bytes();
  }
  if (qp->requester.started()) {
    const SendWindow& window = qp->requester.window();
    status.packets_in_flight = window.in_flight();
    status.packets_lost = window.to_resend();
    status.bytes_in_flight = window.in_flight_bytes();
    status.window_psns = qp->requester.window_psns();
    status.next_psn = psn_of(window.next());
    status.oldest_unacknowledged = psn_of(window.oldest());
  }
  // Of a failed queue pair too.
  if (qp->requester.started() || qp->requester.rtt().has_sample()) {
    status.smoothed_rtt_ns = qp->requester.rtt().smoothed();
  }
  return status;
}

Result<EvState> Endpoint::query_ev(QpNumber number, EvIndex ev) const {
  const Qp* qp = impl_->find(number);
  if (qp == nullptr) return no_such_qp();
  if (!qp->paths || static_cast<unsigned>(ev) >= qp->paths->size()) {
    return Status{ErrorCode::kNotFound, "no such EV"};
  }
  return qp->paths->state(ev);
}

Result<EvCounters> Endpoint::query_ev_counters(QpNumber number, EvIndex ev) const {
  const Qp* qp = impl_->find(number);
  if (qp == nullptr) return no_such_qp();
  if (!qp->paths || static_cast<unsigned>(ev) >= qp->paths->size()) {
    return Status{ErrorCode::kNotFound, "no such EV"};
  }
  if (!qp->paths->counts_evs()) return Status{ErrorCode::kUnsupported, "EVs are not counted here"};
  return qp->paths->counters(ev);
}

Status Endpoint::set_ev_denied(TimeNs now, QpNumber number, EvIndex ev, bool denied) {
  Qp* qp = impl_->find(number);
  if (qp == nullptr) return no_such_qp();
  if (!qp->paths || static_cast<unsigned>(ev) >= qp->paths->size()) {
    return {ErrorCode::kNotFound, "no such EV"};
  }
  impl_->events.set_time(now);
  qp->paths->set_denied(ev, denied, now);
  impl_->after_event(*qp);
  return {};
}

}  // namespace mrc::core
