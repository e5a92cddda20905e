#include "node/node_state_processes.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "base/prng.h"
#include "node/opinion_record.h"

namespace mrc::node {
namespace {

constexpr std::uint32_t kMaxOpinions = 16'384;  // of one process
constexpr unsigned kReadAttempts = 4;
constexpr const char* kOpinionPrefix = "opinions-";
constexpr const char* kFollowerPrefix = "follows-";

std::string user_prefix(ProfileKind kind, std::uint64_t id) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%s-%016llx-", kind == ProfileKind::kEv ? "ev" : "cc",
                static_cast<unsigned long long>(id));
  return text.data();
}

std::string notice_prefix(ProfileKind kind, std::uint64_t id) {
  return "leaving-" + user_prefix(kind, id);
}

// Everybody's use of a profile counts. Where nobody can tell, somebody uses it.
bool any_user(const std::string& directory, const std::string& prefix) {
  bool any = false;
  const auto note = [&any](const node_files::LifeFile&) {
    any = true;
    return false;
  };
  return !node_files::for_each_life_file(directory, prefix, note) || any;
}

// Of those who may withdraw a profile: all users may write to the directory.
bool any_notice(const std::string& directory, const std::string& prefix) {
  bool any = false;
  const auto note = [&](const node_files::LifeFile& file) {
    any = node_files::speaks_for(directory, file.owner);
    return !any;
  };
  return !node_files::for_each_life_file(directory, prefix, note) || any;
}

// A directory that is not there or closed to us.
int no_access(int error) {
  return error == ENOENT || error == EPERM || error == EROFS ? EACCES : error;
}

// Reads the record at `at` again until it is whole; one that never is belongs to nobody.
std::optional<OpinionRecord> read_record_again(int fd, std::size_t at) {
  std::optional<OpinionRecord> record;
  for (unsigned attempt = 0; attempt < kReadAttempts && !record; ++attempt) {
    OpinionBytes bytes{};
    if (pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(at)) != kOpinionBytes) break;
    record = decode_opinion(bytes);
  }
  return record;
}

// The worst of each EV that the profile has, by port and value. All users of the host may write
// such files: what they say of EVs that it has not takes no room.
using Opinions =
    std::map<std::pair<PortId, std::array<std::uint8_t, wire::kEvBytes>>, core::EvState>;

Opinions no_opinions(const NodeSnapshot& now, std::uint64_t profile_id) {
  Opinions all;
  const auto profile = now.ev_profiles.find(profile_id);
  if (profile == now.ev_profiles.end()) return all;
  for (const ProfileEv& ev : profile->second.evs)
    all.emplace(std::pair{ev.port, ev.value.bytes}, core::EvState::kGood);
  return all;
}

void read_opinions(int fd, std::uint64_t wanted, Opinions& all) {
  std::vector<std::byte> bytes;
  if (fd < 0 || node_files::read_all(fd, kMaxOpinions * kOpinionBytes, bytes) != 0) return;
  for (std::size_t at = 0; at + kOpinionBytes <= bytes.size(); at += kOpinionBytes) {
    auto record = decode_opinion(std::span(bytes).subspan(at).first<kOpinionBytes>());
    if (!record) record = read_record_again(fd, at);
    if (!record || record->profile_id != wanted) continue;
    const auto known = all.find({record->opinion.port, record->opinion.value.bytes});
    if (known != all.end()) known->second = std::max(known->second, record->opinion.state);
  }
}

// As it stands in the file, in the order of the host. `check` tells a record that is being written.
struct FollowerRecord {
  NodeFollower told;
  std::uint64_t check = 0;

  static FollowerRecord of(const NodeFollower& told) {
    return {told, mix64(told.process ^ mix64(told.version ^ mix64(told.stranded)))};
  }
  bool is_whole() const { return check == of(told).check; }
};
static_assert(std::has_unique_object_representations_v<FollowerRecord>);

}  // namespace

bool has_ev(const NodeSnapshot& state, std::uint64_t profile_id,
            const std::array<std::uint8_t, wire::kEvBytes>& value, PortId port) {
  const auto profile = state.ev_profiles.find(profile_id);
  return profile != state.ev_profiles.end() &&
         std::any_of(
             profile->second.evs.begin(), profile->second.evs.end(),
             [&](const ProfileEv& ev) { return ev.port == port && ev.value.bytes == value; });
}

void ProfileUsers::close(bool ours) {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, use] : uses_) {
    if (ours) unlink(use.path.c_str());
  }
  uses_.clear();
}

int ProfileUsers::add(ProfileKind kind, std::uint64_t id) {
  {
    const std::lock_guard lock(mutex_);
    Use& use = uses_[{kind, id}];
    if (use.count == 0) {
      const int error =
          node_files::create_life_file(directory_, user_prefix(kind, id), use.lock, use.path);
      if (error != 0) {
        uses_.erase({kind, id});
        return no_access(error);
      }
    }
    ++use.count;
  }
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::nanoseconds(kWriterPatienceNs);
  while (any_notice(directory_, notice_prefix(kind, id))) {
    if (std::chrono::steady_clock::now() > deadline) {
      remove(kind, id);
      return ETIMEDOUT;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return 0;
}

bool ProfileUsers::remove(ProfileKind kind, std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto use = uses_.find({kind, id});
  if (use == uses_.end() || --use->second.count > 0) return false;
  unlink(use->second.path.c_str());
  uses_.erase(use);
  return true;
}

bool ProfileUsers::in_use(ProfileKind kind, std::uint64_t id) const {
  return any_user(directory_, user_prefix(kind, id));
}

int ProfileUsers::withdraw(ProfileKind kind, std::uint64_t id, Withdrawal& out) const {
  Withdrawal::Notice& notice = out.notices_.emplace_back();
  return node_files::create_life_file(directory_, notice_prefix(kind, id), notice.lock,
                                      notice.path);
}

ProfileUsers::Withdrawal::~Withdrawal() {
  for (const Notice& notice : notices_) {
    if (notice.lock.valid()) unlink(notice.path.c_str());
  }
}

void EvOpinions::close(bool ours) {
  const std::lock_guard lock(mutex_);
  if (file_.valid() && ours) unlink(path_.c_str());
  file_ = {};
  slots_.clear();
}

bool EvOpinions::claim_slot(std::uint32_t& position) {
  if (!file_.valid() && node_files::create_life_file(directory_, kOpinionPrefix, file_, path_) != 0)
    return false;
  if (!free_.empty()) {
    position = free_.back();
    free_.pop_back();
    return true;
  }
  if (slot_count_ == kMaxOpinions) return false;
  position = slot_count_++;
  return true;
}

void EvOpinions::publish(std::uint64_t profile_id, const wire::EvValue& value, PortId port,
                         core::EvState state, const std::function<bool()>& is_known) {
  const std::lock_guard lock(mutex_);
  const Key key{profile_id, port, value.bytes};
  auto slot = slots_.find(key);
  if (slot == slots_.end()) {
    if (state == core::EvState::kGood || !is_known()) return;
    std::uint32_t position = 0;
    if (!claim_slot(position)) return;
    slot = slots_.emplace(key, Slot{position, core::EvState::kGood}).first;
  }
  if (slot->second.state != state) write(slot, state);
}

// Returns the one behind it: a slot that says nothing is free.
EvOpinions::Slots::iterator EvOpinions::write(Slots::iterator slot, core::EvState state) {
  const auto& [key, kept] = *slot;
  slot->second.state = state;
  const OpinionBytes record =
      encode_opinion({key.profile_id, {.value = {key.value}, .port = key.port, .state = state}});
  const auto at = static_cast<off_t>(kept.position * kOpinionBytes);
  const bool written = pwrite(file_.get(), record.data(), record.size(), at) == kOpinionBytes;
  if (state != core::EvState::kGood && written) return std::next(slot);
  free_.push_back(kept.position);
  return slots_.erase(slot);
}

void EvOpinions::forget(std::uint64_t profile_id) {
  const std::lock_guard lock(mutex_);
  for (auto slot = slots_.begin(); slot != slots_.end();)
    slot =
        slot->first.profile_id == profile_id ? write(slot, core::EvState::kGood) : std::next(slot);
}

void EvOpinions::forget_replaced(const NodeSnapshot& now) {
  const std::lock_guard lock(mutex_);
  for (auto slot = slots_.begin(); slot != slots_.end();) {
    const Key& key = slot->first;
    slot = has_ev(now, key.profile_id, key.value, key.port) ? std::next(slot)
                                                            : write(slot, core::EvState::kGood);
  }
}

std::vector<NodeState::EvOpinion> EvOpinions::read(const NodeSnapshot& now,
                                                   std::uint64_t profile_id) const {
  Opinions all = no_opinions(now, profile_id);
  node_files::for_each_life_file(directory_, kOpinionPrefix, [&](const node_files::LifeFile& file) {
    read_opinions(file.fd, profile_id, all);
    return true;
  });
  std::vector<NodeState::EvOpinion> list;
  for (const auto& [key, state] : all) {
    if (state != core::EvState::kGood)
      list.push_back({.value = {key.second}, .port = key.first, .state = state});
  }
  return list;
}

void Followers::close(bool ours) {
  const std::lock_guard lock(mutex_);
  if (file_.valid() && ours) unlink(path_.c_str());
  file_ = {};
}

// Programs that end without closing their device leave a file, and few ask who follows: whoever
// makes a new one looks at the others, which removes those of the dead.
bool Followers::open_file() {
  if (file_.valid()) return true;
  read();
  return node_files::create_life_file(directory_, kFollowerPrefix, file_, path_) == 0;
}

void Followers::note(std::uint64_t version, std::uint64_t stranded) {
  const std::lock_guard lock(mutex_);
  if (!open_file()) return;
  const auto record = FollowerRecord::of(
      {.process = static_cast<std::uint64_t>(getpid()), .version = version, .stranded = stranded});
  // What is not written is noticed by those who wait.
  [[maybe_unused]] const ssize_t written = pwrite(file_.get(), &record, sizeof(record), 0);
}

// One that is being written, or never was, follows nothing yet.
std::vector<NodeFollower> Followers::read() const {
  std::vector<NodeFollower> all;
  node_files::for_each_life_file(
      directory_, kFollowerPrefix, [&](const node_files::LifeFile& file) {
        FollowerRecord record;
        const bool whole = pread(file.fd, &record, sizeof(record), 0) == sizeof(record);
        all.push_back(whole && record.is_whole() ? record.told : NodeFollower{});
        return true;
      });
  return all;
}

}  // namespace mrc::node
