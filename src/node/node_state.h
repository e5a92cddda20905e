// What a controller has set for a device: port states, profiles, and parts of the fabric to stay
// off. It belongs to the node, not to a process: every process sees it, it survives them all, and
// it changes only as a whole.
//
// On disk, in the device's directory (docs/controller.md):
//   state    everything in NodeSnapshot, replaced by rename, with schema version and checksum. What
//            does not read well is reported in one line and counts as no state.
//   lock     serialises writers
//   users/   one locked file for each profile a process uses, one with its opinions of EVs, and one
//            with the version of the state it follows. The locks die with their process. Anybody
//            may add to it (mode 1777); only a controller's word that a profile is about to go
//            counts.
//   events/  one named pipe per listener; only controllers may add to it
// A controller is who owns the directory or has CAP_NET_ADMIN.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "core/config.h"
#include "core/event.h"
#include "wire/ev.h"
#include "wire/srv6.h"

namespace mrc::node {

// Limits of what a controller can set, which also bound the state file.
inline constexpr std::size_t kMaxFormatProfiles = 64;
inline constexpr std::size_t kMaxEvProfiles = 256;
inline constexpr std::size_t kMaxCcProfiles = 64;
inline constexpr std::size_t kMaxNodeEvs = 65'536;  // of all profiles together
inline constexpr std::size_t kMaxFormatFields = 8 * wire::kEvBytes;
inline constexpr std::size_t kMaxDrainedParts = 256;
inline constexpr std::size_t kMaxExclusions = 1'024;  // of one part
inline constexpr std::size_t kMaxPartName = 64;

// A profile in INIT is not kept at all: the maps below hold profiles in the other two states.
enum class ProfileState : std::uint8_t { kInit, kOffline, kOnline };
enum class EvMode : std::uint8_t { kAuto, kExplicit, kGenerated };

struct EvFormatProfile {
  ProfileState state = ProfileState::kInit;
  wire::EvKind kind{};
  std::vector<std::uint8_t> field_widths;
  friend bool operator==(const EvFormatProfile&, const EvFormatProfile&) = default;
};

// One path of an EV profile. A profile may hold several copies of one EV.
struct ProfileEv {
  wire::EvValue value;  // as it stands in packets (expanded); valid while the profile is online
  PortId port = kNoPort;
  bool denied = false;
  bool populated = false;  // explicit profiles are filled entry by entry
  wire::EvValue compact;   // as the API shows it; same as `value` when the profile has no fields
  // Denied, but to be shown as bad: a controller said so. It stays out of use until told otherwise.
  bool assumed_bad = false;
  friend bool operator==(const ProfileEv&, const ProfileEv&) = default;
};

struct NodeEvProfile {
  ProfileState state = ProfileState::kInit;
  EvMode mode = EvMode::kAuto;
  std::uint64_t format_id = 0;
  std::uint32_t min_active = 0;
  std::uint32_t event_mask = 0;  // MRC_CTL_EV_GOOD, MRC_CTL_EV_ASSUMED_BAD
  std::vector<wire::EvField> fields;
  std::vector<ProfileEv> evs;
  std::uint64_t seed = 0;  // what generated EVs are drawn with
  bool has_min_active = false;
  bool has_event_mask = false;
  friend bool operator==(const NodeEvProfile&, const NodeEvProfile&) = default;
};

// Whether the switches on the paths of a queue pair trim instead of dropping.
enum class Trimming : std::uint8_t { kOff, kAsDevice, kOn };

struct NodeCcProfile {
  ProfileState state = ProfileState::kInit;
  core::CcProfile cc;  // `network_trims` is not used here
  Trimming trimming = Trimming::kAsDevice;
  bool configured = false;
};

// Ways that are not to be taken: those of a port on which these uSIDs follow each other.
struct PathExclusion {
  PortId port = kNoPort;
  std::uint8_t hop_count = 0;  // 0: all ways of the port
  std::array<wire::Usid, 2> hops{};
  friend bool operator==(const PathExclusion&, const PathExclusion&) = default;
};
// `way`: the uSIDs of a path in visiting order.
bool excludes(const PathExclusion& exclusion, PortId port, std::span<const wire::Usid> way);

// Who drained a part, and is to give it back.
enum class DrainedBy : std::uint8_t { kCommand, kWatch };

// A cable or switch of the fabric that this node stays off, as far as its own ways go.
struct DrainedPart {
  DrainedBy by = DrainedBy::kCommand;
  std::vector<PathExclusion> exclusions;
  friend bool operator==(const DrainedPart&, const DrainedPart&) = default;
};
// Printable, not empty, kMaxPartName bytes at most.
bool is_part_name(std::string_view name);

struct NodeSnapshot {
  std::uint64_t version = 0;  // grows by one with every change
  PortMask ports_enabled = PortMask::first(kMaxPorts);
  std::map<std::uint64_t, EvFormatProfile> formats;
  std::map<std::uint64_t, NodeEvProfile> ev_profiles;
  std::map<std::uint64_t, NodeCcProfile> cc_profiles;
  std::map<std::string, DrainedPart> drained;  // by the name of the part
};

// How far a process is in doing what the state says.
struct NodeFollower {
  std::uint64_t process = 0;   // its number as it sees itself
  std::uint64_t version = 0;   // of the state that all its queue pairs follow
  std::uint64_t stranded = 0;  // queue pairs to which that state leaves no path
};

// A state change of an EV, told to controllers of any process of this node.
struct NodeEvEvent {
  std::uint64_t profile_id = 0;
  ProfileEv ev;
  std::uint32_t lost_before = 0;  // for a listener: events it had no room for since the last one
  core::EvState state = core::EvState::kGood;
};

enum class ProfileKind : std::uint8_t { kEv, kCc };

inline constexpr DurationNs kWriterPatienceNs = 30 * kSecondNs;

class NodeState {
 public:
  // Creates the directory where there is none; refuses one that somebody else, not root, owns
  // (errno is EACCES). `error` is one line for a person.
  static std::unique_ptr<NodeState> open(const std::string& directory, std::string& error);
  ~NodeState();
  NodeState(const NodeState&) = delete;
  NodeState& operator=(const NodeState&) = delete;

  // The state as of now; never null. Cheap when nothing changed. Any thread.
  std::shared_ptr<const NodeSnapshot> snapshot();
  // The file changed and could not be read: the last snapshot is what it held before. Ask again.
  bool is_behind() const;

  // Applies `change` to a copy of the newest state and makes the copy the state, unless it returns
  // an errno. Writers of all processes take turns. EPERM without the right to; EBUSY when an EV or
  // CC profile with users would leave ONLINE; E2BIG beyond the limits above; ETIMEDOUT when another
  // writer holds the lock for kWriterPatienceNs; ENOTSUP when a newer version wrote the state;
  // EMFILE, EIO and the like while the state cannot be read.
  int update(const std::function<int(NodeSnapshot&)>& change);
  // Whether update() would be allowed: 0 or EPERM.
  int may_update() const;

  // Becomes readable when the state may have changed; call acknowledge_change() then.
  int change_descriptor() const;
  void acknowledge_change();

  // Queue pairs of this process that use a profile: +1 and -1. Released by the kernel when the
  // process dies. in_use() counts the whole node. EINVAL unless the profile is ONLINE; EACCES when
  // the directory of another user has no users/ that takes us; EAGAIN while nobody can tell. Look
  // at snapshot() after it, not before: from then on the profile cannot go away.
  int add_user(ProfileKind kind, std::uint64_t id);
  void remove_user(ProfileKind kind, std::uint64_t id);
  bool in_use(ProfileKind kind, std::uint64_t id);

  // What the queue pairs of this process think of an EV, for queries from any process: the worst
  // opinion on the node counts. Forgotten when the process dies, when it uses the profile no more,
  // and when the EV is replaced: of one that the profile has not, nothing is kept.
  void publish_ev_state(std::uint64_t profile_id, const ProfileEv& ev, core::EvState state);
  core::EvState ev_state(std::uint64_t profile_id, const ProfileEv& ev);
  // All EVs of a profile that somebody thinks ill of; one entry each.
  struct EvOpinion {
    wire::EvValue value;
    PortId port = kNoPort;
    core::EvState state = core::EvState::kGood;
  };
  std::vector<EvOpinion> ev_opinions(std::uint64_t profile_id);
  // To be called with every new state: an EV that comes back later begins anew.
  void forget_replaced_evs(const NodeSnapshot& now);

  // From the time note_applied() returns, all that this process sends is in line with that version.
  // Told to the others, as long as the process lives. Where the directory does not take it, those
  // who wait for us do so in vain.
  void note_applied(std::uint64_t version, std::uint64_t stranded);
  // All processes that have the device open and said so.
  std::vector<NodeFollower> followers() const;

  // Events go to every listener of the node; a slow listener misses some (counted), nobody waits.
  // Only those that the profile's event mask selects are sent.
  void send_event(const NodeEvEvent& event);
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual int descriptor() const = 0;         // readable when there is an event
    virtual bool next(NodeEvEvent& event) = 0;  // false: none
  };
  // Holds `capacity` events or more; what does not fit is lost, and the next event of its sender
  // says how many. None when we may not listen (EPERM), when there is no descriptor left, or when
  // so many events cannot be held (ENOMEM); errno says which.
  std::unique_ptr<Listener> listen(std::size_t capacity = kUsualEvents);
  static constexpr std::size_t kUsualEvents = 1'024;

 private:
  struct Impl;
  explicit NodeState(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace mrc::node
