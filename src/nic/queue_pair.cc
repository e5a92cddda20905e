// Life cycle of a queue pair; posting is in queue_pair_post.cc, reports in queue_pair_report.cc.
#include "nic/queue_pair.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <new>

#include "nic/device_impl.h"
#include "os/errors.h"

namespace mrc::nic {
namespace {

constexpr std::uint32_t kSackThresholdBytes = 64 * 1024;

// An answer costs as much as a packet, so that a few packets share one: as many whole bursts of the
// back end as fit, and no fewer than take one path in a row. An answer in the middle of a burst
// would let the peer send a part of one next; the last byte of a burst is what exceeds the
// threshold.
std::uint32_t sack_threshold(const Backend& backend, std::uint32_t path_mtu) {
  const std::uint32_t burst = backend.burst_limit() * path_mtu;
  return std::max(kSackThresholdBytes / burst, PumpTransmit::kMostBurstsInARow) * burst - 1;
}

}  // namespace

QueuePairImpl::QueuePairImpl(std::shared_ptr<DeviceImpl> device, const QpSetup& setup)
    : device_(std::move(device)),
      engine_(&device_->group().least_loaded()),
      setup_(setup),
      send_cq_(static_cast<CompletionQueueImpl*>(setup.send_cq)),
      receive_cq_(static_cast<CompletionQueueImpl*>(setup.receive_cq)),
      sends_(setup.max_sends),
      send_pieces_(std::size_t{setup.max_sends} * setup.max_send_buffers),
      inline_data_(std::make_unique_for_overwrite<std::byte[]>(std::size_t{setup.max_sends} *
                                                               setup.max_inline)),
      receives_(setup.max_receives),
      receive_pieces_(std::size_t{setup.max_receives} * setup.max_receive_buffers) {}

int QueuePairImpl::enter() {
  EnginePump& pump = engine_->pump();
  Result<QpNumber> number = pump.qps().free_number(pump.random());
  if (!number.ok()) return os::errno_of(number.status());
  pump.qps().reserve(number.value());
  const Status created = pump.endpoint().create_qp({.number = number.value(),
                                                    .domain = ProtectionDomain{setup_.domain},
                                                    .max_sends = setup_.max_sends,
                                                    .max_receives = setup_.max_receives,
                                                    .allow_sends = setup_.allow_sends});
  if (!created.ok()) return os::errno_of(created);
  number_ = number.value();
  engine_->add_qp(*this);
  send_cq_->add_user(*engine_);
  receive_cq_->add_user(*engine_);
  return 0;
}

QueuePairImpl::~QueuePairImpl() {
  if (number_ == QpNumber{} || device_->in_child()) return;
  forget_work();
  {
    const EngineGuard guard(*engine_);
    [[maybe_unused]] const Status gone = engine_->pump().endpoint().destroy_qp(number_);
    engine_->remove_qp(*this);
  }
  device_->group().async->retire(static_cast<QueuePair*>(this));
  send_cq_->remove_user(*engine_);
  receive_cq_->remove_user(*engine_);
}

// --- Transitions ---

int QueuePairImpl::to_init(const QpProfiles& profiles) {
  if (device_->in_child()) return EIO;
  if (state() != core::QpState::kReset) return EINVAL;
  try {
    return init(profiles);
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

int QueuePairImpl::init(const QpProfiles& profiles) {
  // First counted as a user, so that a profile cannot go while its paths are prepared.
  ProfileUse use(device_->node());
  if (profiles.has_ev_profile) {
    const int added = use.add(node::ProfileKind::kEv, profiles.ev_profile);
    if (added != 0) return added;
  }
  if (profiles.has_cc_profile) {
    const int added = use.add(node::ProfileKind::kCc, profiles.cc_profile);
    if (added != 0) return added;
  }
  const std::shared_ptr<const node::NodeSnapshot> snapshot = device_->node().snapshot();
  core::QpInit init{.cc = engine_->pump().default_cc(), .hints = profiles.hints};
  if (profiles.has_cc_profile) {
    const auto found = snapshot->cc_profiles.find(profiles.cc_profile);
    if (found == snapshot->cc_profiles.end()) return ENOENT;
    if (found->second.state != node::ProfileState::kOnline) return EINVAL;
    init.cc = engine_->pump().cc_of(found->second);
  }
  const EngineGuard guard(*engine_);
  PathProfiles& known = engine_->pump().path_profiles();
  const PathProfileResult paths =
      profiles.has_ev_profile ? known.of_node(*snapshot, profiles.ev_profile) : known.own();
  if (paths.error != 0) return paths.error;
  init.ev_profile = &paths.profile->profile;
  init.active_evs = known.active_evs();
  init.ev_min_active = static_cast<std::uint16_t>(
      std::min<std::uint32_t>(paths.profile->min_active, paths.profile->profile.size()));
  const Status done = engine_->pump().endpoint().init_qp(number_, init);
  if (!done.ok()) return os::errno_of(done);
  e.paths = paths.profile;
  e.cc = init.cc;
  e.use = std::move(use);
  for (const node::ProfileEv& ev : paths.profile->unusable)
    device_->node().publish_ev_state(profiles.ev_profile, ev, core::EvState::kAssumedBad);
  set_state(core::QpState::kInit);
  return 0;
}

int QueuePairImpl::to_rtr(const QpPeer& peer) {
  if (device_->in_child()) return EIO;
  try {
    return ready_to_receive(peer);
  } catch (const std::bad_alloc&) {
    return give_up();
  }
}

// The protocol ran out of memory half-way: what it has is not to be used any more.
int QueuePairImpl::give_up() {
  const int failed = to_error();
  return failed == 0 ? ENOMEM : failed;
}

int QueuePairImpl::ready_to_receive(const QpPeer& peer) {
  const EngineGuard guard(*engine_);
  EnginePump& pump = engine_->pump();
  if (state() != core::QpState::kInit) return EINVAL;
  core::QpReadyToReceive settings = peer.settings;
  const PeerName name =
      peer_name(device_->config().dialect, peer.gid, process_of(settings.remote_qp));
  // Programs ask for the largest MTU of verbs wherever they run. Both ends cut it to what their
  // interfaces carry.
  settings.path_mtu = std::min(settings.path_mtu, pump.backend().path_mtu());
  if (settings.sack_threshold_bytes == 0) {
    settings.sack_threshold_bytes = sack_threshold(pump.backend(), settings.path_mtu);
  }
  if (setup_.allow_sends) e.waiting.reserve(receives_.size());
  if (setup_.last_byte_last) {
    e.held.reserve(std::size_t{settings.mpr_dest} * core::kWindowUnitPsns);
  }
  const Result<Address> address = pump.peers().acquire(name);
  if (!address.ok()) return os::errno_of(address.status());
  settings.remote = address.value();
  e.remote = name;
  e.dscp = peer.dscp;
  e.remote_address = address.value();
  e.connected = true;
  const Status done = pump.endpoint().ready_to_receive(number_, settings);
  if (!done.ok()) {
    disconnect();
    return os::errno_of(done);
  }
  e.rtr = settings;
  pump.settle_paths(*this);
  set_state(core::QpState::kReadyToReceive);
  return 0;
}

int QueuePairImpl::to_rts(const core::QpReadyToSend& settings) {
  if (device_->in_child()) return EIO;
  try {
    const EngineGuard guard(*engine_);
    core::Endpoint& endpoint = engine_->pump().endpoint();
    const Status done = endpoint.ready_to_send(Engine::clock(), number_, settings);
    if (!done.ok()) return os::errno_of(done);
    e.rts = settings;
    accepts_immediates_.store(settings.max_wimm > 0, std::memory_order_relaxed);
    set_state(core::QpState::kReadyToSend);
  } catch (const std::bad_alloc&) {
    return give_up();
  }
  return 0;
}

// Also from RESET, in which the engine does not know it yet: by way of INIT.
int QueuePairImpl::to_error() {
  if (device_->in_child()) return EIO;
  if (state() == core::QpState::kReset) {
    const int error = to_init({});
    if (error != 0) return error;
  }
  const EngineGuard guard(*engine_);
  EnginePump& pump = engine_->pump();
  pump.send_owed_answers();
  e.failing_on_request = true;
  const Status done = pump.endpoint().fail_qp(Engine::clock(), number_);
  if (!done.ok()) return os::errno_of(done);
  pump.take_posted(*this);
  set_state(core::QpState::kError);
  pump.hand_out_results();
  return 0;
}

int QueuePairImpl::to_reset() {
  if (device_->in_child()) return EIO;
  forget_work();
  return 0;
}

void QueuePairImpl::allow_remote_writes(bool allowed) {
  const EngineGuard guard(*engine_);
  e.remote_writes = allowed;
}

// What was posted is gone without a completion, and so are completions nobody has polled yet.
void QueuePairImpl::forget_work() {
  ProfileUse use;  // ends outside the locks
  {
    const std::lock_guard posting(post_lock_);
    const EngineGuard guard(*engine_);
    EnginePump& pump = engine_->pump();
    pump.send_owed_answers();
    pump.forget_sends(*this);
    pump.telemetry().settle(pump, *this);
    [[maybe_unused]] const Status done = pump.endpoint().reset_qp(number_);
    disconnect();
    use = std::move(e.use);
    e = {};
    e.sends_taken = e.sends_done = sends_posted_.load();
    e.receives_taken = receives_posted_.load();
    set_state(core::QpState::kReset);
  }
  send_cq_->forget(*this);
  if (receive_cq_ != send_cq_) receive_cq_->forget(*this);
  {
    const std::lock_guard posting(post_lock_);
    sends_returned_.store(sends_posted_.load());
    receives_returned_.store(receives_posted_.load());
  }
}

void QueuePairImpl::disconnect() {
  if (!e.connected) return;
  for (const PortId port : e.silent_planes)
    device_->group().planes.forget(e.remote.gid, port);
  e.silent_planes = {};
  e.gone_planes = {};
  engine_->pump().peers().release(e.remote_address);
  e.connected = false;
}

}  // namespace mrc::nic
