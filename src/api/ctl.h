// The rules of the controller API, applied to the state of a node.
//
// These functions know nothing of processes, files or rights: they take a NodeSnapshot and what the
// program passed, and return 0 or an errno. A refused change has changed nothing, except that a
// batch of EV operations keeps the entries before the first one that failed.
// node::NodeState::update() makes the result the node's state.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "mrc_ctl.h"
#include "node/node_state.h"

namespace mrc::api {

inline constexpr std::uint32_t kMaxEvOpEntries = kMaxEvsPerQp;

// What the device can do; the rest are constants.
struct CtlLimits {
  unsigned port_count = 1;
  std::uint32_t ev_count_align = 1;  // explicit profiles have a multiple of this
  std::uint32_t auto_ev_count = 1;   // of AUTO profiles that state none
  std::uint64_t seed = 1;            // for a profile that is created now
};

// A program may put any number into an enumeration; reading it as one would be undefined.
template <typename Enum>
int raw(const Enum& value) {
  static_assert(std::is_enum_v<Enum> && sizeof(Enum) == sizeof(int));
  int number = 0;
  std::memcpy(&number, &value, sizeof number);
  return number;
}

// The one life of all profiles: INIT -> OFFLINE -> ONLINE -> OFFLINE -> INIT.
enum class ProfileStep : std::uint8_t { kStay, kCreate, kGoOnline, kGoOffline, kRemove };

struct ProfileStepRequest {
  node::ProfileState from = node::ProfileState::kInit;
  bool has_state = false;
  int state = 0;
  bool has_current = false;
  int current = 0;
};
// EINVAL for any other step, and when `current` is not the state it is in.
int find_step(const ProfileStepRequest& request, ProfileStep& out);
// Where a step leads.
node::ProfileState state_after(ProfileStep step, node::ProfileState from);

mrc_ctl_profile_state to_api(node::ProfileState state);

// Masks of ports: bit n of the API is port n, as in ibv_query_port, and bit 0 is none. EINVAL for
// bits that are no port.
std::uint32_t ports_to_api(PortMask ports);
int ports_from_api(std::uint32_t bits, PortMask& out);

// Whether all bits of a mask are known, and something was asked for.
bool mask_within(int mask, std::uint32_t known);
// There are no vendor settings: only zeros can be set.
bool all_zero(std::span<const std::uint8_t> bytes);

// E2BIG and the needed count in `count` when `room` is too small. A count below 0 or no array for
// a count above 0 is EINVAL.
int check_room(std::size_t needed, const void* array, int& count);

// Those that modify take the operations that query as well, and answer them as the query would
// with the change made.
int modify_format(node::NodeSnapshot& state, std::uint64_t id, mrc_ctl_ev_fmt_profile_attr& attr,
                  int mask);
int query_format(const node::NodeSnapshot& state, std::uint64_t id,
                 mrc_ctl_ev_fmt_profile_attr& attr, int mask);

// `batch_error` is that of the entry at which a batch of EV operations stopped; what came before it
// is in `state`, which is to be kept although the program is told of the error.
int modify_ev_profile(node::NodeSnapshot& state, const CtlLimits& limits,
                      std::span<const node::NodeState::EvOpinion> opinions, std::uint64_t id,
                      mrc_ctl_ev_profile_attr& attr, int mask, int& batch_error);
int query_ev_profile(const node::NodeSnapshot& state,
                     std::span<const node::NodeState::EvOpinion> opinions, std::uint64_t id,
                     mrc_ctl_ev_profile_attr& attr, int mask);

int modify_cc_profile(node::NodeSnapshot& state, std::uint64_t id,
                      const mrc_ctl_cc_profile_attr& attr, int mask);
// `config` is where attr.cc_config will point.
int query_cc_profile(const node::NodeSnapshot& state, std::uint64_t id,
                     mrc_ctl_cc_profile_attr& attr, int mask, mrc_ctl_cc_nscc_cfg& config);
// The names of all algorithms, ended by none.
const char** cc_algorithms();

// --- Shared by the files that deal with EV profiles

// The entry `ev` as the API shows it.
mrc_ctl_ev to_api(const node::ProfileEv& ev);
mrc_ctl_ev_state state_of(const node::ProfileEv& ev,
                          std::span<const node::NodeState::EvOpinion> opinions);

// Fills in the packet form of an EV from its compact one. EINVAL when they do not go together.
int expand(const node::EvFormatProfile& format, std::span<const wire::EvField> fields,
           node::ProfileEv& ev);
// The EVs of a profile as they will be used: explicit ones expanded, others drawn. EINVAL.
int settle_evs(const node::NodeSnapshot& state, const CtlLimits& limits,
               node::NodeEvProfile& profile);
// The profile's format if it has its fields, or none.
const node::EvFormatProfile* format_of(const node::NodeSnapshot& state,
                                       const node::NodeEvProfile& profile);

// Change a profile entry by entry up to the first that fails, whose error they return.
int replace_evs(const node::EvFormatProfile* format, const CtlLimits& limits,
                node::NodeEvProfile& profile, std::span<const mrc_ctl_ev_op_entry> entries);
int set_ev_states(node::NodeEvProfile& profile, std::span<const mrc_ctl_ev_op_entry> entries);
int query_ev_states(const node::NodeEvProfile& profile,
                    std::span<const node::NodeState::EvOpinion> opinions,
                    std::span<mrc_ctl_ev_op_entry> entries);

}  // namespace mrc::api
