#include "node/node_state.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "node/node_state_codec.h"
#include "node/node_state_events.h"
#include "node/node_state_files.h"
#include "node/node_state_processes.h"
#include "node/node_state_watch.h"

namespace mrc::node {
namespace {

constexpr const char* kStateName = "state";
constexpr const char* kLockName = "lock";
constexpr std::uint32_t kEventGood = 1;  // bits of NodeEvProfile::event_mask
constexpr std::uint32_t kEventAssumedBad = 2;

// Which file a snapshot was read from. Files are never written in place, and as long as we hold one
// open its number is not given to another, so equal numbers mean equal contents; size and time
// catch those who edit by hand.
struct FileIdentity {
  bool present = false;
  dev_t device = 0;
  ino_t number = 0;
  off_t size = 0;
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

FileIdentity identity_of(const struct stat& info) {
  return {true, info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

// 0, or why it is not even known whether there is one.
int identify(const std::string& path, FileIdentity& out) {
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0) {
    out = identity_of(info);
    return 0;
  }
  return errno == ENOENT ? 0 : errno;
}

bool online(const NodeSnapshot& state, ProfileKind kind, std::uint64_t id) {
  if (kind == ProfileKind::kEv) {
    const auto profile = state.ev_profiles.find(id);
    return profile != state.ev_profiles.end() && profile->second.state == ProfileState::kOnline;
  }
  const auto profile = state.cc_profiles.find(id);
  return profile != state.cc_profiles.end() && profile->second.state == ProfileState::kOnline;
}

// Profiles that were online and no longer are.
std::vector<std::pair<ProfileKind, std::uint64_t>> withdrawn(const NodeSnapshot& before,
                                                             const NodeSnapshot& after) {
  std::vector<std::pair<ProfileKind, std::uint64_t>> list;
  const auto collect = [&](ProfileKind kind, const auto& profiles) {
    for (const auto& [id, profile] : profiles) {
      if (profile.state == ProfileState::kOnline && !online(after, kind, id))
        list.emplace_back(kind, id);
    }
  };
  collect(ProfileKind::kEv, before.ev_profiles);
  collect(ProfileKind::kCc, before.cc_profiles);
  return list;
}

}  // namespace

bool excludes(const PathExclusion& exclusion, PortId port, std::span<const wire::Usid> way) {
  if (exclusion.port != port) return false;
  const auto hops = std::span(exclusion.hops).first(exclusion.hop_count);
  return std::search(way.begin(), way.end(), hops.begin(), hops.end()) != way.end() || hops.empty();
}

bool is_part_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxPartName &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~'; });
}

struct NodeState::Impl {
  explicit Impl(const std::string& where)
      : directory(where),
        path(where + "/" + kStateName),
        users(where + "/users"),
        opinions(where + "/users"),
        followers(where + "/users"),
        events(where + "/events") {}

  // The mutex is held for the first three.
  void load(const FileIdentity& seen);
  void miss(int error);
  int read_state(os::Descriptor& file, NodeSnapshot& out, std::string& problem,
                 bool& unknown_schema) const;
  // The newest state. `refused`: why it is no base for a change, an errno. ENOTSUP: the file is of
  // a version that we do not know; others: it cannot be read now, and this is what it held before.
  std::shared_ptr<const NodeSnapshot> newest(int& refused);
  int apply(const std::function<int(NodeSnapshot&)>& change);

  const std::string directory;
  const std::string path;
  const pid_t owner = getpid();
  DirectoryWatch watch;
  ProfileUsers users;
  EvOpinions opinions;
  Followers followers;
  EventSender events;

  std::mutex mutex;  // all below
  FileIdentity identity;
  os::Descriptor held;  // keeps the number of `identity` taken
  std::shared_ptr<const NodeSnapshot> cached = std::make_shared<const NodeSnapshot>();
  int not_ours = 0;                   // ENOTSUP while the file is of a newer version
  int unreadable = 0;                 // the errno of the last try, 0 when it could be read
  std::uint64_t highest_version = 0;  // that we have seen; a state that breaks starts behind it
};

// What cannot be read now, for want of a descriptor say, is read the next time: what was known
// before holds, and nothing may be put in its place.
void NodeState::Impl::miss(int error) {
  if (error != unreadable)
    node_files::complain(path + ": " + std::strerror(error) + "; using what it held before");
  unreadable = error;
}

// A file that is broken counts as none.
void NodeState::Impl::load(const FileIdentity& seen) {
  os::Descriptor file;
  FileIdentity loaded = seen;
  NodeSnapshot state;
  bool unknown_schema = false;
  if (seen.present) {
    std::string problem;
    const int error = read_state(file, state, problem, unknown_schema);
    if (error != 0) return miss(error);
    struct stat info {};
    if (file.valid() && fstat(file.get(), &info) == 0) loaded = identity_of(info);
    if (!problem.empty()) node_files::complain(path + ": " + problem + "; using no state");
  }
  unreadable = 0;
  highest_version = std::max(highest_version, state.version);
  cached = std::make_shared<const NodeSnapshot>(std::move(state));
  held = std::move(file);
  identity = loaded;
  not_ours = unknown_schema ? ENOTSUP : 0;
}

// 0 with what is wrong with the file in `problem`, or nothing; otherwise it could not be read.
int NodeState::Impl::read_state(os::Descriptor& file, NodeSnapshot& out, std::string& problem,
                                bool& unknown_schema) const {
  std::vector<std::byte> bytes;
  int error = node_files::open_for_reading(path, file);
  if (error == 0) error = node_files::read_all(file.get(), kMaxStateFileBytes, bytes);
  if (error == ENOENT) return 0;  // gone in this moment
  const bool no_state_file = error == ELOOP || error == EINVAL || error == EFBIG;
  if (no_state_file) problem = std::strerror(error);
  if (error != 0) return no_state_file ? 0 : error;
  Result<NodeSnapshot> state = decode_state(bytes);
  if (!state.ok()) {
    unknown_schema = state.status().code() == ErrorCode::kUnsupported;
    problem = state.status().what();
    return 0;
  }
  out = std::move(state).value();
  return 0;
}

std::shared_ptr<const NodeSnapshot> NodeState::Impl::newest(int& refused) {
  const std::lock_guard lock(mutex);
  FileIdentity now;
  if (const int error = identify(path, now); error != 0) {
    miss(error);
  } else if (now == identity) {
    unreadable = 0;
  } else {
    load(now);
  }
  refused = unreadable != 0 ? unreadable : not_ours;
  return cached;
}

int NodeState::Impl::apply(const std::function<int(NodeSnapshot&)>& change) {
  int refused = 0;
  const std::shared_ptr<const NodeSnapshot> before = newest(refused);
  if (refused != 0) return refused;
  NodeSnapshot after = *before;
  if (const int error = change(after); error != 0) return error;
  {
    const std::lock_guard lock(mutex);
    after.version = std::max(before->version, highest_version) + 1;
  }
  const auto old_bytes = encode_state(*before);
  const auto new_bytes = encode_state(after);
  if (!new_bytes.ok()) return E2BIG;
  if (old_bytes.ok() && same_contents(old_bytes.value(), new_bytes.value())) return 0;
  ProfileUsers::Withdrawal withdrawal;
  for (const auto& [kind, id] : withdrawn(*before, after)) {
    if (const int error = users.withdraw(kind, id, withdrawal); error != 0) return error;
    if (users.in_use(kind, id)) return EBUSY;
  }
  return node_files::replace_file(directory, kStateName, new_bytes.value());
}

NodeState::NodeState(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

NodeState::~NodeState() {
  const bool ours = impl_->owner == getpid();
  impl_->users.close(ours);
  impl_->opinions.close(ours);
  impl_->followers.close(ours);
}

std::unique_ptr<NodeState> NodeState::open(const std::string& directory, std::string& error) {
  if (directory.empty()) {
    error = "no directory for the state of the device";
    return nullptr;
  }
  if (const int code = node_files::make_directories(directory); code != 0) {
    error = directory + ": " + std::strerror(code);
    return nullptr;
  }
  error = node_files::distrust(directory);
  if (!error.empty()) {
    errno = EACCES;
    return nullptr;
  }
  // In the directory of another user only they can do this, and have done so.
  node_files::make_directory(directory + "/users", 01777);
  node_files::make_directory(directory + "/events", 0755);
  auto impl = std::make_unique<Impl>(directory);
  if (const int code = impl->watch.open(directory); code != 0) {
    error = directory + ": cannot be watched: " + std::strerror(code);
    return nullptr;
  }
  // Without a first look nothing is known: all ports and paths would count as allowed.
  int refused = 0;
  impl->newest(refused);
  if (impl->unreadable != 0) {
    error = impl->path + ": " + std::strerror(impl->unreadable);
    errno = impl->unreadable;
    return nullptr;
  }
  return std::unique_ptr<NodeState>(new NodeState(std::move(impl)));
}

std::shared_ptr<const NodeSnapshot> NodeState::snapshot() {
  try {
    int refused = 0;
    return impl_->newest(refused);
  } catch (const std::bad_alloc&) {  // what we had is better than nothing
    const std::lock_guard lock(impl_->mutex);
    return impl_->cached;
  }
}

bool NodeState::is_behind() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->unreadable != 0;
}

int NodeState::may_update() const { return node_files::may_control(impl_->directory); }

int NodeState::update(const std::function<int(NodeSnapshot&)>& change) {
  try {
    if (const int error = may_update(); error != 0) return error;
    node_files::LifeDescriptor lock;
    const int error = node_files::lock_file(impl_->directory, kLockName, kWriterPatienceNs, lock);
    return error != 0 ? error : impl_->apply(change);
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

int NodeState::change_descriptor() const { return impl_->watch.descriptor(); }
void NodeState::acknowledge_change() { impl_->watch.acknowledge(); }

int NodeState::add_user(ProfileKind kind, std::uint64_t id) {
  try {
    if (!online(*snapshot(), kind, id)) return EINVAL;
    if (const int error = impl_->users.add(kind, id); error != 0) return error;
    const bool still_online = online(*snapshot(), kind, id);
    if (still_online && !is_behind()) return 0;
    impl_->users.remove(kind, id);
    return still_online ? EAGAIN : EINVAL;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

void NodeState::remove_user(ProfileKind kind, std::uint64_t id) {
  if (!impl_->users.remove(kind, id) || kind != ProfileKind::kEv) return;
  if (impl_->owner != getpid()) return;  // a child has our file, not our queue pairs
  try {
    impl_->opinions.forget(id);
  } catch (const std::bad_alloc&) {
    return;  // what is left is forgotten with the next state, or with the process
  }
}

void NodeState::note_applied(std::uint64_t version, std::uint64_t stranded) {
  if (impl_->owner == getpid()) impl_->followers.note(version, stranded);
}

std::vector<NodeFollower> NodeState::followers() const { return impl_->followers.read(); }

void NodeState::forget_replaced_evs(const NodeSnapshot& now) {
  impl_->opinions.forget_replaced(now);
}

bool NodeState::in_use(ProfileKind kind, std::uint64_t id) { return impl_->users.in_use(kind, id); }

void NodeState::publish_ev_state(std::uint64_t profile_id, const ProfileEv& ev,
                                 core::EvState state) {
  impl_->opinions.publish(profile_id, ev.value, ev.port, state, [&] {
    const std::lock_guard lock(impl_->mutex);
    return has_ev(*impl_->cached, profile_id, ev.value.bytes, ev.port);
  });
}

std::vector<NodeState::EvOpinion> NodeState::ev_opinions(std::uint64_t profile_id) {
  return impl_->opinions.read(*snapshot(), profile_id);
}

core::EvState NodeState::ev_state(std::uint64_t profile_id, const ProfileEv& ev) {
  for (const EvOpinion& opinion : ev_opinions(profile_id)) {
    if (opinion.port == ev.port && opinion.value == ev.value) return opinion.state;
  }
  return core::EvState::kGood;
}

void NodeState::send_event(const NodeEvEvent& event) {
  const std::shared_ptr<const NodeSnapshot> state = snapshot();
  const auto profile = state->ev_profiles.find(event.profile_id);
  if (profile == state->ev_profiles.end()) return;
  const std::uint32_t bit = event.state == core::EvState::kGood         ? kEventGood
                            : event.state == core::EvState::kAssumedBad ? kEventAssumedBad
                                                                        : 0;
  if ((profile->second.event_mask & bit) == 0) return;
  impl_->events.send(event);
}

std::unique_ptr<NodeState::Listener> NodeState::listen(std::size_t capacity) {
  return open_listener(impl_->directory + "/events", capacity);
}

}  // namespace mrc::node
