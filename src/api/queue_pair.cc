#include "api/queue_pair.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "api/log.h"
#include "api/raw_value.h"
#include "api/refusal.h"

namespace mrc::api {
namespace {

// Verbs attributes without a meaning here, or with one only in passing: never a reason to fail.
constexpr int kTolerated = IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_PORT | IBV_QP_TIMEOUT |
                           IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MIN_RNR_TIMER |
                           IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ALT_PATH |
                           IBV_QP_PATH_MIG_STATE;
constexpr int kRights = IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX;
constexpr int kPeer = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

constexpr std::uint32_t kPsnMask = 0xff'ffff;
constexpr std::uint32_t kMaxQpNumber = 0xff'ffff;
// 4.096 us * 2^t of verbs is 1.024 us * 2^(t+2) of MRC.
constexpr unsigned kTimeoutShift = 2;
constexpr DurationNs kTimeoutUnit = 1'024;
// Verbs timers are those of cards, which are never away. A process that waits for a processor is:
// OCP's benchmark (time-out 7, 14 retries) would give a peer up after 7 ms. So all retries
// together, whatever their number, last this long at least.
constexpr DurationNs kPatience = 2 * kSecondNs;

// Of a verbs queue pair: its RNR retry count for "until a receive is posted".
constexpr std::uint8_t kForEver = 7;

struct Step {
  ibv_qp_state from;
  ibv_qp_state to;
  int verbs_mask;
  int mrc_mask;
};
constexpr int kInitMrc =
    MRC_QP_EV_PROFILE_ID | MRC_QP_CC_PROFILE_ID | MRC_QP_HINT | MRC_QP_VENDOR_CFG;
// What we are as a receiver, and what we shall be as a sender: the published walk-through says both
// here, and the latter again at RTS, which then holds.
constexpr int kRtrMrc = MRC_QP_MAX_WIMM_DEST | MRC_QP_MPR_DEST | MRC_QP_CAP | MRC_QP_MAX_WIMM |
                        MRC_QP_MPR | MRC_QP_VENDOR_CFG;
constexpr int kRtsMrc =
    MRC_QP_MAX_WIMM | MRC_QP_MPR | MRC_QP_RETRY_CNT | MRC_QP_TIMEOUT | MRC_QP_VENDOR_CFG;
constexpr std::array<Step, 5> kSteps{{
    {IBV_QPS_RESET, IBV_QPS_INIT, kTolerated | kRights | kPeer | IBV_QP_SQ_PSN, kInitMrc},
    {IBV_QPS_INIT, IBV_QPS_INIT, kTolerated | kRights | kPeer | IBV_QP_SQ_PSN, 0},
    {IBV_QPS_INIT, IBV_QPS_RTR, kTolerated | kRights | kPeer | IBV_QP_SQ_PSN, kRtrMrc},
    {IBV_QPS_RTR, IBV_QPS_RTS, kTolerated | kRights | IBV_QP_SQ_PSN, kRtsMrc},
    {IBV_QPS_RTS, IBV_QPS_RTS, kTolerated | kRights, 0},
}};

const Step* find_step(ibv_qp_state from, ibv_qp_state to) {
  const auto* const found = std::find_if(kSteps.begin(), kSteps.end(), [&](const Step& step) {
    return step.from == from && step.to == to;
  });
  return found == kSteps.end() ? nullptr : found;
}

bool has(int mask, int bit) { return (mask & bit) != 0; }

std::uint8_t at_most(unsigned value, std::uint8_t limit) {
  return static_cast<std::uint8_t>(std::min<unsigned>(value, limit));
}

// How many doubling retries last as long as `count` linear ones, and kPatience at least: n of them
// are 2^(n+1) - 2 linear ones.
unsigned doublings_for(unsigned count, unsigned timeout) {
  const std::uint64_t least = static_cast<std::uint64_t>(kPatience / (kTimeoutUnit << timeout)) + 1;
  return static_cast<unsigned>(std::bit_width(std::max<std::uint64_t>(count, least) + 1)) - 1;
}

// The upper six bits of a traffic class; ECN, the other two, is the protocol's own.
std::uint8_t dscp_of(const ibv_ah_attr& ah) { return ah.grh.traffic_class >> 2; }

// Data that carries the mark of trimmed packets would be taken for such at the other end.
bool may_mark_data(const nic::Device& device, std::uint8_t dscp) {
  const wire::DscpMap& map = device.config().dscp;
  if (dscp != map.trimmed && dscp != map.trimmed_last_hop) return true;
  log(LogLevel::kError,
      "ah_attr.grh.traffic_class %u is DSCP %u, which on %s marks trimmed packets (`dscp` of its "
      "configuration)",
      dscp << 2, dscp, device.config().name.c_str());
  return false;
}

// Which of the capacities is beyond what the device holds.
void explain_capacity(const nic::QpSetup& setup, const nic::DeviceLimits& limits) {
  const struct {
    const char* field;
    std::uint32_t value;
    std::uint32_t most;
  } fields[] = {{"cap.max_send_wr", setup.max_sends, limits.max_sends},
                {"cap.max_recv_wr", setup.max_receives, limits.max_sends},
                {"cap.max_send_sge", setup.max_send_buffers, limits.max_buffers},
                {"cap.max_recv_sge", setup.max_receive_buffers, limits.max_buffers},
                {"cap.max_inline_data", setup.max_inline, limits.max_inline}};
  for (const auto& each : fields) {
    if (each.value <= each.most) continue;
    const std::string rule = "at most " + std::to_string(each.most);
    refused(EINVAL, each.field, each.value, rule.c_str());
  }
}

}  // namespace

wire::IpAddress address_of(const ibv_gid& gid) {
  static constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  wire::IpAddress address;
  address.is_v4 = std::memcmp(gid.raw, kMapped.data(), kMapped.size()) == 0;
  if (address.is_v4) {
    std::memcpy(address.bytes.data(), gid.raw + kMapped.size(), 4);
  } else {
    std::memcpy(address.bytes.data(), gid.raw, sizeof gid.raw);
  }
  return address;
}

ibv_gid gid_of(const wire::IpAddress& address) {
  ibv_gid gid{};
  if (address.is_v4) {
    gid.raw[10] = gid.raw[11] = 0xff;
    std::memcpy(gid.raw + 12, address.bytes.data(), 4);
  } else {
    std::memcpy(gid.raw, address.bytes.data(), sizeof gid.raw);
  }
  return gid;
}

std::uint32_t mtu_bytes(ibv_mtu mtu) { return 128U << mtu; }

ibv_mtu mtu_within(std::uint32_t bytes) {
  ibv_mtu mtu = IBV_MTU_4096;
  while (mtu > IBV_MTU_256 && mtu_bytes(mtu) > bytes)
    mtu = static_cast<ibv_mtu>(mtu - 1);
  return mtu;
}

int QueuePair::create(std::shared_ptr<nic::Device> device, Dialect dialect, nic::QpSetup& setup) {
  const int error = device->create_queue_pair(setup, pair_);
  if (error == EINVAL) explain_capacity(setup, device->limits());
  if (error != 0) return error;
  address_ = pair_.get();
  device_ = std::move(device);
  dialect_ = dialect;
  set_defaults(attributes_);
  return 0;
}

void QueuePair::set_defaults(Attributes& attributes) const {
  attributes = {};
  const core::QpReadyToReceive rtr;
  const core::QpReadyToSend& rts = device_->config().retry;
  attributes.verbs.path_mtu = mtu_within(device_->path_mtu());
  attributes.verbs.port_num = 1;
  attributes.verbs.cap = {.max_send_wr = pair_->setup().max_sends,
                          .max_recv_wr = pair_->setup().max_receives,
                          .max_send_sge = pair_->setup().max_send_buffers,
                          .max_recv_sge = pair_->setup().max_receive_buffers,
                          .max_inline_data = pair_->setup().max_inline};
  attributes.mrc.mpr = {.mpr = rts.mpr, .mpr_dest = rtr.mpr_dest};
  attributes.mrc.wimm = {.max_wimm = rts.max_wimm, .max_wimm_dest = rtr.max_wimm_dest};
  attributes.mrc.timeout = rts.timeout;
  attributes.mrc.retry = {.linear_cnt = rts.linear_retries, .exp_cnt = rts.exponential_retries};
}

ibv_qp_state QueuePair::state() const {
  switch (pair_->state()) {
    case core::QpState::kReset:
      return IBV_QPS_RESET;
    case core::QpState::kInit:
      return IBV_QPS_INIT;
    case core::QpState::kReadyToReceive:
      return IBV_QPS_RTR;
    case core::QpState::kReadyToSend:
      return IBV_QPS_RTS;
    case core::QpState::kError:
      return IBV_QPS_ERR;
  }
  return IBV_QPS_UNKNOWN;
}

int QueuePair::check_masks(const QpChange& change, ibv_qp_state from, ibv_qp_state to) const {
  if (to == IBV_QPS_ERR || to == IBV_QPS_RESET) {
    if (!has(change.verbs_mask, IBV_QP_STATE))
      return refused(EINVAL, "attr_mask", change.verbs_mask, "IBV_QP_STATE must be in it");
    if (!has(change.verbs_mask, ~kTolerated) && change.mrc_mask == 0) return 0;
    return refused(EINVAL, "attr_mask", change.verbs_mask,
                   "on the way to ERR and RESET nothing else can be set");
  }
  const Step* step = find_step(from, to);
  if (step == nullptr)
    return refused(EINVAL, "qp_state", to,
                   "no way leads there from the state it is in; RESET, INIT, RTR, RTS in a row");
  if (has(change.verbs_mask, ~step->verbs_mask))
    return refused(EINVAL, "attr_mask", change.verbs_mask & ~step->verbs_mask,
                   "these fields cannot be set in this step");
  if (has(change.mrc_mask, ~step->mrc_mask))
    return refused(EINVAL, "mrc_attr_mask", change.mrc_mask & ~step->mrc_mask,
                   "these fields of MRC cannot be set in this step");
  if (dialect_ == Dialect::kMrc) return 0;
  int needed = 0;
  if (to == IBV_QPS_RTR) needed = IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (from == IBV_QPS_RTR) needed = IBV_QP_SQ_PSN;
  if ((change.verbs_mask & needed) == needed) return 0;
  return refused(EINVAL, "attr_mask", change.verbs_mask,
                 "RTR needs AV, DEST_QPN and RQ_PSN, RTS needs SQ_PSN");
}

// MRC's own timers follow those of verbs, as long as the program does not set both.
void QueuePair::merge_timers(const QpChange& change, Attributes& into) {
  const ibv_qp_attr& attr = *change.verbs;
  if (has(change.verbs_mask, IBV_QP_TIMEOUT)) {
    into.verbs.timeout = attr.timeout;
    if (attr.timeout > 0)
      into.mrc.timeout = at_most(attr.timeout + kTimeoutShift, core::kMaxTimeout);
  }
  if (has(change.verbs_mask, IBV_QP_RETRY_CNT)) {
    into.verbs.retry_cnt = attr.retry_cnt;
    const std::uint8_t linear = at_most(attr.retry_cnt, core::kMaxLinearRetries);
    into.mrc.retry.linear_cnt = linear;
    const unsigned doublings = doublings_for(attr.retry_cnt - linear, into.mrc.timeout);
    into.mrc.retry.exp_cnt = at_most(doublings, core::kMaxExponentialRetries - 1);
  }
  // In verbs a timer of 0 never gives up.
  const bool for_ever = has(change.verbs_mask, IBV_QP_TIMEOUT) && attr.timeout == 0 &&
                        !has(change.mrc_mask, MRC_QP_TIMEOUT);
  if (for_ever) into.mrc.retry.exp_cnt = core::kMaxExponentialRetries;
}

int QueuePair::merge_verbs(const QpChange& change, Attributes& into) const {
  const int mask = change.verbs_mask;
  if (mask == 0) return 0;
  const ibv_qp_attr& attr = *change.verbs;
  ibv_qp_attr& to = into.verbs;
  if (has(mask, IBV_QP_PKEY_INDEX)) {
    if (attr.pkey_index != 0)
      return refused(EINVAL, "pkey_index", attr.pkey_index, "there is 0 only");
    to.pkey_index = 0;
  }
  if (has(mask, IBV_QP_PORT)) {
    const bool exists = attr.port_num >= 1 && attr.port_num <= device_->config().planes.size();
    if (!exists && dialect_ == Dialect::kVerbs)
      return refused(EINVAL, "port_num", attr.port_num, "the device has no such port");
    if (exists) to.port_num = attr.port_num;
  }
  if (has(mask, IBV_QP_PATH_MTU)) {
    const int mtu = raw_value(attr.path_mtu);
    if (mtu < IBV_MTU_256 || mtu > IBV_MTU_4096)
      return refused(EINVAL, "path_mtu", mtu, "from 1 (256 bytes) to 5 (4096 bytes)");
    to.path_mtu = attr.path_mtu;
  }
  if (has(mask, IBV_QP_DEST_QPN)) {
    if (attr.dest_qp_num > kMaxQpNumber || QpNumber{attr.dest_qp_num} < kFirstUsableQp)
      return refused(EINVAL, "dest_qp_num", attr.dest_qp_num,
                     "a number of 24 bits, and 0 to 2 are reserved");
    to.dest_qp_num = attr.dest_qp_num;
  }
  if (has(mask, IBV_QP_AV)) {
    const ibv_ah_attr& ah = attr.ah_attr;
    if (ah.is_global == 0)
      return refused(EINVAL, "ah_attr.is_global", 0, "must be 1: peers are known by GID");
    if (ah.grh.sgid_index >= kGidCount)
      return refused(EINVAL, "ah_attr.grh.sgid_index", ah.grh.sgid_index, "no such GID");
    if (address_of(ah.grh.dgid) == wire::IpAddress{})
      return refused(EINVAL, "ah_attr.grh.dgid is empty: it must be the peer's GID");
    if (!may_mark_data(*device_, dscp_of(ah)))
      return refused(EINVAL, "ah_attr.grh.traffic_class", ah.grh.traffic_class,
                     "its DSCP is that of other packets of the device (mrc info)");
    to.ah_attr = ah;
    into.has_peer = true;
  }
  if (has(mask, IBV_QP_ACCESS_FLAGS)) {
    to.qp_access_flags = attr.qp_access_flags;
    into.has_access_flags = true;
  }
  if (has(mask, IBV_QP_RQ_PSN)) to.rq_psn = attr.rq_psn & kPsnMask;
  if (has(mask, IBV_QP_SQ_PSN)) to.sq_psn = attr.sq_psn & kPsnMask;
  if (has(mask, IBV_QP_RNR_RETRY)) to.rnr_retry = attr.rnr_retry;
  if (has(mask, IBV_QP_MIN_RNR_TIMER)) to.min_rnr_timer = attr.min_rnr_timer;
  if (has(mask, IBV_QP_MAX_QP_RD_ATOMIC)) to.max_rd_atomic = attr.max_rd_atomic;
  if (has(mask, IBV_QP_MAX_DEST_RD_ATOMIC)) to.max_dest_rd_atomic = attr.max_dest_rd_atomic;
  merge_timers(change, into);
  return 0;
}

int QueuePair::merge_mrc(const QpChange& change, Attributes& into) const {
  const int mask = change.mrc_mask;
  if (mask == 0) return 0;
  const mrc_qp_attr& attr = *change.mrc;
  mrc_qp_attr& to = into.mrc;
  const nic::DeviceLimits& limits = device_->limits();
  if (has(mask, MRC_QP_MPR)) {
    if (attr.mpr.mpr == 0 || attr.mpr.mpr > limits.max_window_units)
      return refused(EINVAL, "mpr.mpr", attr.mpr.mpr, "not 0, and at most the device's max_mpr");
    to.mpr.mpr = attr.mpr.mpr;
  }
  if (has(mask, MRC_QP_MPR_DEST)) {
    if (attr.mpr.mpr_dest == 0 || attr.mpr.mpr_dest > limits.max_window_units)
      return refused(EINVAL, "mpr.mpr_dest", attr.mpr.mpr_dest,
                     "not 0, and at most the device's max_mpr");
    to.mpr.mpr_dest = attr.mpr.mpr_dest;
  }
  if (has(mask, MRC_QP_MAX_WIMM)) {
    if (attr.wimm.max_wimm > limits.max_immediates)
      return refused(EINVAL, "wimm.max_wimm", attr.wimm.max_wimm, "more than the device holds");
    to.wimm.max_wimm = attr.wimm.max_wimm;
  }
  if (has(mask, MRC_QP_MAX_WIMM_DEST)) {
    if (attr.wimm.max_wimm_dest > limits.max_immediates)
      return refused(EINVAL, "wimm.max_wimm_dest", attr.wimm.max_wimm_dest,
                     "more than the device holds");
    to.wimm.max_wimm_dest = attr.wimm.max_wimm_dest;
  }
  if (has(mask, MRC_QP_TIMEOUT)) {
    if (attr.timeout > core::kMaxTimeout)
      return refused(EINVAL, "timeout", attr.timeout, "at most 24");
    to.timeout = attr.timeout;
  }
  if (has(mask, MRC_QP_RETRY_CNT)) {
    if (attr.retry.linear_cnt > core::kMaxLinearRetries)
      return refused(EINVAL, "retry.linear_cnt", attr.retry.linear_cnt, "too many");
    if (attr.retry.exp_cnt > core::kMaxExponentialRetries)
      return refused(EINVAL, "retry.exp_cnt", attr.retry.exp_cnt, "too many");
    to.retry = attr.retry;
  }
  if (has(mask, MRC_QP_CAP)) {
    constexpr std::uint32_t kKnown = MRC_QP_CAP_TRIM_NACK_DEST_UNSUPPORTED |
                                     MRC_QP_CAP_DYNAMIC_MPR | MRC_QP_CAP_SVC_TIME_DEST_UNSUPPORTED;
    if ((attr.cap & ~kKnown) != 0) return refused(EINVAL, "cap", attr.cap, "has unknown bits");
    to.cap = attr.cap;
  }
  if (has(mask, MRC_QP_EV_PROFILE_ID)) to.profile.ev_profile_id = attr.profile.ev_profile_id;
  if (has(mask, MRC_QP_CC_PROFILE_ID)) to.profile.cc_profile_id = attr.profile.cc_profile_id;
  if (has(mask, MRC_QP_HINT)) {
    to.qp_hint = attr.qp_hint;
    into.hints = change.hints;
  }
  if (has(mask, MRC_QP_VENDOR_CFG)) {
    std::memcpy(to.vendor_cfg, attr.vendor_cfg, sizeof to.vendor_cfg);
  }
  into.mrc_given |= mask;
  return 0;
}

int QueuePair::merge(const QpChange& change, Attributes& into) const {
  const int error = merge_verbs(change, into);
  return error != 0 ? error : merge_mrc(change, into);
}

int QueuePair::modify(const QpChange& change) {
  if (change.verbs_mask != 0 && change.verbs == nullptr)
    return refused(EINVAL, "attr_mask", change.verbs_mask, "attr is missing");
  if (change.mrc_mask != 0 && change.mrc == nullptr)
    return refused(EINVAL, "mrc_attr_mask", change.mrc_mask, "mrc_attr is missing");
  const std::lock_guard lock(mutex_);
  const ibv_qp_state from = state();
  ibv_qp_state to = from;
  if (has(change.verbs_mask, IBV_QP_STATE)) {
    const int wanted_state = raw_value(change.verbs->qp_state);
    if (wanted_state < IBV_QPS_RESET || wanted_state > IBV_QPS_ERR)
      return refused(EINVAL, "qp_state", wanted_state, "no such state");
    to = static_cast<ibv_qp_state>(wanted_state);
  }
  if (has(change.verbs_mask, IBV_QP_CUR_STATE) && raw_value(change.verbs->cur_qp_state) != from) {
    return refused(EINVAL, "cur_qp_state", raw_value(change.verbs->cur_qp_state),
                   "the queue pair is in another state");
  }
  int error = check_masks(change, from, to);
  if (error != 0) return error;
  if (to == IBV_QPS_ERR) return pair_->to_error();
  Attributes wanted = attributes_;
  if (to == IBV_QPS_RESET) {
    error = pair_->to_reset();
    if (error == 0) set_defaults(attributes_);
    if (error == 0) failure_told_ = false;
    return error;
  }
  error = merge(change, wanted);
  if (error != 0) return error;
  const bool has_rights = has(change.verbs_mask, IBV_QP_ACCESS_FLAGS);
  if (has_rights) pair_->allow_remote_writes(wanted.allows_writes());
  error = apply(wanted, from, to);
  if (error == 0) {
    attributes_ = wanted;
  } else if (has_rights) {
    pair_->allow_remote_writes(attributes_.allows_writes());
  }
  return error;
}

int QueuePair::apply(const Attributes& wanted, ibv_qp_state from, ibv_qp_state to) {
  if (from == to) return 0;
  if (to == IBV_QPS_INIT) return to_init(wanted);
  if (to == IBV_QPS_RTR) return to_rtr(wanted);
  return to_rts(wanted);
}

// Why a queue pair cannot have the profiles that it names: not there, not ONLINE, or no path.
int QueuePair::explain_profiles(const nic::QpProfiles& profiles) const {
  const auto state = device_->node().snapshot();
  const auto online = [](const auto& known, std::uint64_t id) {
    const auto found = known.find(id);
    return found != known.end() && found->second.state == node::ProfileState::kOnline;
  };
  if (profiles.has_ev_profile && !online(state->ev_profiles, profiles.ev_profile))
    return refused(EINVAL, "profile.ev_profile_id", static_cast<std::int64_t>(profiles.ev_profile),
                   "no EV profile of that id is ONLINE");
  if (profiles.has_cc_profile && !online(state->cc_profiles, profiles.cc_profile))
    return refused(EINVAL, "profile.cc_profile_id", static_cast<std::int64_t>(profiles.cc_profile),
                   "no CC profile of that id is ONLINE");
  if (!profiles.has_ev_profile) return EINVAL;
  return refused(EINVAL, "profile.ev_profile_id", static_cast<std::int64_t>(profiles.ev_profile),
                 "none of its EVs can be used: the device has no such ports, or no more sockets");
}

int QueuePair::to_init(const Attributes& wanted) {
  nic::QpProfiles profiles;
  profiles.has_ev_profile = has(wanted.mrc_given, MRC_QP_EV_PROFILE_ID);
  profiles.has_cc_profile = has(wanted.mrc_given, MRC_QP_CC_PROFILE_ID);
  profiles.ev_profile = wanted.mrc.profile.ev_profile_id;
  profiles.cc_profile = wanted.mrc.profile.cc_profile_id;
  profiles.hints = wanted.hints;
  const int error = pair_->to_init(profiles);
  if (error == EINVAL || error == ENOENT) return explain_profiles(profiles);
  if (error != 0 || !profiles.has_ev_profile) return error;
  const nic::QpReport report = pair_->report();
  if (report.unusable_evs > 0) {
    log(LogLevel::kWarn,
        "queue pair 0x%06x: %u of %zu EVs of profile %llu cannot be used: %s has no such port or "
        "no more sockets (`ulimit -n`); they read as assumed bad",
        number(), report.unusable_evs, report.unusable_evs + report.paths.size(),
        static_cast<unsigned long long>(profiles.ev_profile), device_->config().name.c_str());
  }
  return 0;
}

// A queue pair that was given no peer is its own.
int QueuePair::to_rtr(const Attributes& wanted) {
  nic::QpPeer peer;
  core::QpReadyToReceive& settings = peer.settings;
  peer.gid = device_->gid();
  settings.remote_qp = pair_->number();
  if (wanted.has_peer) {
    peer.gid = address_of(wanted.verbs.ah_attr.grh.dgid);
    if (dscp_of(wanted.verbs.ah_attr) != 0) peer.dscp = dscp_of(wanted.verbs.ah_attr);
    settings.remote_qp = QpNumber{wanted.verbs.dest_qp_num};
  }
  settings.first_psn = Psn{wanted.verbs.rq_psn};
  settings.path_mtu = std::min(mtu_bytes(wanted.verbs.path_mtu), device_->path_mtu());
  settings.max_wimm_dest = wanted.mrc.wimm.max_wimm_dest;
  settings.mpr_dest = wanted.mrc.mpr.mpr_dest;
  settings.dynamic_mpr = (wanted.mrc.cap & MRC_QP_CAP_DYNAMIC_MPR) != 0;
  settings.peer_tells_service_time = (wanted.mrc.cap & MRC_QP_CAP_SVC_TIME_DEST_UNSUPPORTED) == 0;
  settings.peer_nacks_trims = (wanted.mrc.cap & MRC_QP_CAP_TRIM_NACK_DEST_UNSUPPORTED) == 0;
  if (settings.path_mtu < mtu_bytes(wanted.verbs.path_mtu)) {
    log(LogLevel::kInfo,
        "queue pair 0x%06x: the program asks for packets of %u bytes, %s carries %u", number(),
        mtu_bytes(wanted.verbs.path_mtu), device_->config().name.c_str(), settings.path_mtu);
  }
  return pair_->to_rtr(peer);
}

int QueuePair::to_rts(const Attributes& wanted) {
  core::QpReadyToSend settings = device_->config().retry;
  settings.first_psn = Psn{wanted.verbs.sq_psn};
  settings.max_wimm = wanted.mrc.wimm.max_wimm;
  settings.mpr = wanted.mrc.mpr.mpr;
  settings.timeout = wanted.mrc.timeout;
  settings.linear_retries = wanted.mrc.retry.linear_cnt;
  settings.exponential_retries = wanted.mrc.retry.exp_cnt;
  settings.waits_for_resources = dialect_ == Dialect::kVerbs && wanted.verbs.rnr_retry == kForEver;
  return pair_->to_rts(settings);
}

void QueuePair::query(ibv_qp_attr& verbs, mrc_qp_attr& mrc) {
  const std::lock_guard lock(mutex_);
  verbs = attributes_.verbs;
  verbs.qp_state = verbs.cur_qp_state = state();
  // What it sends, not what was asked for.
  verbs.path_mtu = std::min(verbs.path_mtu, mtu_within(device_->path_mtu()));
  mrc = attributes_.mrc;
}

}  // namespace mrc::api
