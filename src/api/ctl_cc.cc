// CC profiles.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <span>

#include "api/ctl.h"
#include "api/refusal.h"

namespace mrc::api {
namespace {

using core::CcAlgorithm;
using node::NodeCcProfile;
using node::NodeSnapshot;
using node::ProfileState;

constexpr const char* kNscc = "uet-1.0-nscc";
constexpr std::size_t kMaxAlgorithmName = 64;
constexpr std::uint32_t kCcBits = MRC_CTL_CC_PROFILE_STATE | MRC_CTL_CC_PROFILE_CUR_STATE |
                                  MRC_CTL_CC_PROFILE_ALGORITHM | MRC_CTL_CC_PROFILE_CONFIG |
                                  static_cast<std::uint32_t>(MRC_CTL_CC_PROFILE_VENDOR_CFG);

// The only vendor byte that means something here, the first one (docs/controller.md).
int take_vendor_bytes(const mrc_ctl_cc_profile_attr& attr, NodeCcProfile& profile) {
  const std::span<const std::uint8_t> bytes(attr.vendor_cfg);
  if (!all_zero(bytes.subspan(1))) return EINVAL;
  switch (bytes[0]) {
    case 0:
      profile.trimming = node::Trimming::kAsDevice;
      return 0;
    case 1:
      profile.trimming = node::Trimming::kOn;
      return 0;
    case 2:
      profile.trimming = node::Trimming::kOff;
      return 0;
    default:
      return EINVAL;
  }
}

std::uint8_t vendor_byte(node::Trimming trimming) {
  if (trimming == node::Trimming::kAsDevice) return 0;
  return trimming == node::Trimming::kOn ? 1 : 2;
}

bool algorithm_of(const char* name, CcAlgorithm& out) {
  out = name == nullptr ? CcAlgorithm::kNone : CcAlgorithm::kNscc;
  return name == nullptr || std::strncmp(name, kNscc, kMaxAlgorithmName) == 0;
}

// May change until the profile is online, and then needs its own settings.
int take_algorithm(const mrc_ctl_cc_profile_attr& attr, NodeCcProfile& profile) {
  CcAlgorithm algorithm{};
  if (!algorithm_of(attr.algorithm, algorithm))
    return refused(EINVAL, "algorithm is none of those that the device lists");
  const bool is_new = profile.state == ProfileState::kInit;
  if (!is_new && profile.cc.algorithm == algorithm) return 0;
  if (profile.state == ProfileState::kOnline) return EINVAL;
  profile.cc.algorithm = algorithm;
  profile.configured = false;
  return 0;
}

// No congestion control has no settings; a structure for it is not looked at.
int take_config(const mrc_ctl_cc_profile_attr& attr, NodeCcProfile& profile) {
  profile.configured = true;
  if (profile.cc.algorithm == CcAlgorithm::kNone) return 0;
  if (attr.cc_config == nullptr) return EINVAL;
  mrc_ctl_cc_nscc_cfg config{};
  std::memcpy(&config, attr.cc_config, sizeof config);
  for (const float number :
       {config.eta, config.fi, config.fi_scale, config.gamma, config.max_md_jump}) {
    if (!std::isfinite(number)) return EINVAL;
  }
  profile.cc.nscc = {.disable_qa = config.disable_qa != 0,
                     .adjust_bytes_threshold = config.adjust_bytes_threshold,
                     .adjust_period_threshold_ns = config.adjust_period_threshold,
                     .base_rtt_ns = config.base_rtt,
                     .eta = config.eta,
                     .fi = config.fi,
                     .fi_scale = config.fi_scale,
                     .gamma = config.gamma,
                     .max_md_jump = config.max_md_jump,
                     .max_cwnd = config.max_cwnd,
                     .qa_gate = config.qa_gate,
                     .qa_threshold_ns = config.qa_threshold,
                     .target_delay_ns = config.target_delay};
  return 0;
}

mrc_ctl_cc_nscc_cfg to_api(const core::NsccParameters& nscc) {
  return {.disable_qa = nscc.disable_qa ? std::uint8_t{1} : std::uint8_t{0},
          .adjust_bytes_threshold = nscc.adjust_bytes_threshold,
          .adjust_period_threshold = nscc.adjust_period_threshold_ns,
          .base_rtt = nscc.base_rtt_ns,
          .eta = nscc.eta,
          .fi = nscc.fi,
          .fi_scale = nscc.fi_scale,
          .gamma = nscc.gamma,
          .max_md_jump = nscc.max_md_jump,
          .max_cwnd = nscc.max_cwnd,
          .qa_gate = nscc.qa_gate,
          .qa_threshold = nscc.qa_threshold_ns,
          .target_delay = nscc.target_delay_ns};
}

// Whether a profile may go offline is for the node's state to say, which knows the users.
int take_cc_step(const NodeSnapshot& state, ProfileStep step, NodeCcProfile& profile) {
  const bool is_full = state.cc_profiles.size() >= node::kMaxCcProfiles;
  if (step == ProfileStep::kCreate && is_full) return EIO;  // the call has no other
  const bool is_ready = profile.configured || profile.cc.algorithm == CcAlgorithm::kNone;
  if (step == ProfileStep::kGoOnline && !is_ready)
    return refused(EINVAL, "cc_config is to be given before ONLINE");
  profile.state = state_after(step, profile.state);
  return 0;
}

}  // namespace

const char** cc_algorithms() {
  // The API hands out pointers that a program could write through.
  static std::array<const char*, 2> names{kNscc, nullptr};
  return names.data();
}

int modify_cc_profile(NodeSnapshot& state, std::uint64_t id, const mrc_ctl_cc_profile_attr& attr,
                      int mask) {
  if (!mask_within(mask, kCcBits)) return EINVAL;
  const auto known = state.cc_profiles.find(id);
  NodeCcProfile profile = known == state.cc_profiles.end() ? NodeCcProfile{} : known->second;
  if ((mask & MRC_CTL_CC_PROFILE_VENDOR_CFG) != 0) {
    const node::Trimming before = profile.trimming;
    if (const int error = take_vendor_bytes(attr, profile); error != 0) return error;
    const bool online = profile.state == ProfileState::kOnline;
    const bool nowhere =
        profile.state == ProfileState::kInit && (mask & MRC_CTL_CC_PROFILE_STATE) == 0;
    if (profile.trimming != before && (online || nowhere)) return EINVAL;
  }
  ProfileStep step{};
  const int wrong_step = find_step({.from = profile.state,
                                    .has_state = (mask & MRC_CTL_CC_PROFILE_STATE) != 0,
                                    .state = raw(attr.profile_state),
                                    .has_current = (mask & MRC_CTL_CC_PROFILE_CUR_STATE) != 0,
                                    .current = raw(attr.cur_profile_state)},
                                   step);
  if (wrong_step != 0) return wrong_step;
  const bool has_algorithm = (mask & MRC_CTL_CC_PROFILE_ALGORITHM) != 0;
  const bool has_config = (mask & MRC_CTL_CC_PROFILE_CONFIG) != 0;
  if (step == ProfileStep::kCreate && !has_algorithm) return EINVAL;
  if (profile.state == ProfileState::kInit && step == ProfileStep::kStay &&
      (has_algorithm || has_config))
    return EINVAL;
  if ((step == ProfileStep::kRemove || step == ProfileStep::kGoOffline) && has_config)
    return EINVAL;
  if (has_algorithm) {
    if (const int error = take_algorithm(attr, profile); error != 0) return error;
  }
  if (has_config) {
    if (const int error = take_config(attr, profile); error != 0) return error;
  }
  if (const int error = take_cc_step(state, step, profile); error != 0) return error;
  if (profile.state == ProfileState::kInit) {
    state.cc_profiles.erase(id);
  } else {
    state.cc_profiles[id] = profile;
  }
  return 0;
}

int query_cc_profile(const NodeSnapshot& state, std::uint64_t id, mrc_ctl_cc_profile_attr& attr,
                     int mask, mrc_ctl_cc_nscc_cfg& config) {
  if (!mask_within(mask, kCcBits)) return EINVAL;
  const auto known = state.cc_profiles.find(id);
  const NodeCcProfile profile = known == state.cc_profiles.end() ? NodeCcProfile{} : known->second;
  const bool nscc = profile.cc.algorithm == CcAlgorithm::kNscc;
  const bool details = (mask & (MRC_CTL_CC_PROFILE_ALGORITHM | MRC_CTL_CC_PROFILE_CONFIG)) != 0;
  if (details && profile.state == ProfileState::kInit) return EINVAL;
  if ((mask & MRC_CTL_CC_PROFILE_STATE) != 0) attr.profile_state = to_api(profile.state);
  if ((mask & MRC_CTL_CC_PROFILE_CUR_STATE) != 0) attr.cur_profile_state = to_api(profile.state);
  if ((mask & MRC_CTL_CC_PROFILE_ALGORITHM) != 0) attr.algorithm = nscc ? kNscc : nullptr;
  if ((mask & MRC_CTL_CC_PROFILE_CONFIG) != 0) {
    config = to_api(profile.cc.nscc);
    attr.cc_config = nscc && profile.configured ? &config : nullptr;
  }
  if ((mask & MRC_CTL_CC_PROFILE_VENDOR_CFG) != 0) {
    std::fill(std::begin(attr.vendor_cfg), std::end(attr.vendor_cfg), std::uint8_t{0});
    attr.vendor_cfg[0] = vendor_byte(profile.trimming);
  }
  return 0;
}

}  // namespace mrc::api
