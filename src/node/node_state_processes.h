// What the processes of a node say about profiles: who uses which, and what they think of EVs.
//
// Everything lies in the directory users/, in files that are locked by the process they belong to;
// a file without a lock is that of a dead process and is removed by whoever meets it.
// Threads: any.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "node/node_state.h"
#include "node/node_state_files.h"

namespace mrc::node {

// One file per profile this process uses, kind and id in its name, however many queue pairs do.
class ProfileUsers {
 public:
  explicit ProfileUsers(std::string directory) : directory_(std::move(directory)) {}
  // Removes our files, unless we are a child of the process that made them.
  void close(bool ours);

  // While somebody withdraws the profile, waits for the end of that, at most kWriterPatienceNs.
  // Whoever looks at the state after this sees what holds as long as the profile is used.
  int add(ProfileKind kind, std::uint64_t id);
  // True when nothing of this process uses it any more.
  bool remove(ProfileKind kind, std::uint64_t id);
  bool in_use(ProfileKind kind, std::uint64_t id) const;

  // Says that profiles are about to leave ONLINE, as long as it lives. A user that comes after this
  // waits; one that came before is seen by in_use().
  class Withdrawal {
   public:
    Withdrawal() = default;
    ~Withdrawal();
    Withdrawal(const Withdrawal&) = delete;
    Withdrawal& operator=(const Withdrawal&) = delete;

   private:
    friend class ProfileUsers;
    struct Notice {
      node_files::LifeDescriptor lock;
      std::string path;
    };
    std::vector<Notice> notices_;
  };
  int withdraw(ProfileKind kind, std::uint64_t id, Withdrawal& out) const;

 private:
  struct Use {
    unsigned count = 0;
    node_files::LifeDescriptor lock;
    std::string path;
  };
  using Key = std::pair<ProfileKind, std::uint64_t>;

  const std::string directory_;
  std::mutex mutex_;
  std::map<Key, Use> uses_;
};

bool has_ev(const NodeSnapshot& state, std::uint64_t profile_id,
            const std::array<std::uint8_t, wire::kEvBytes>& value, PortId port);

// One file per process with a record for each EV it does not think well of. Records are written in
// place and carry a checksum, so that a reader notices one that is being written.
class EvOpinions {
 public:
  explicit EvOpinions(std::string directory) : directory_(std::move(directory)) {}
  void close(bool ours);

  // `is_known` is asked, with the lock held, before anything is said of an EV for the first time.
  void publish(std::uint64_t profile_id, const wire::EvValue& value, PortId port,
               core::EvState state, const std::function<bool()>& is_known);
  void forget(std::uint64_t profile_id);
  void forget_replaced(const NodeSnapshot& now);
  // The worst opinion of all processes for each EV of the profile that has one.
  std::vector<NodeState::EvOpinion> read(const NodeSnapshot& now, std::uint64_t profile_id) const;

 private:
  struct Key {
    std::uint64_t profile_id = 0;
    PortId port = kNoPort;
    std::array<std::uint8_t, wire::kEvBytes> value{};
    // clang-tidy takes the generated comparison for a null pointer.
    friend auto operator<=>(const Key&, const Key&) = default;  // NOLINT(modernize-use-nullptr)
  };
  struct Slot {
    std::uint32_t position = 0;
    core::EvState state = core::EvState::kGood;
  };
  using Slots = std::map<Key, Slot>;
  bool claim_slot(std::uint32_t& position);
  Slots::iterator write(Slots::iterator slot, core::EvState state);

  const std::string directory_;
  std::mutex mutex_;
  node_files::LifeDescriptor file_;
  std::string path_;
  Slots slots_;
  std::vector<std::uint32_t> free_;
  std::uint32_t slot_count_ = 0;
};

// One file per process with the version of the state it follows.
class Followers {
 public:
  explicit Followers(std::string directory) : directory_(std::move(directory)) {}
  void close(bool ours);

  void note(std::uint64_t version, std::uint64_t stranded);
  std::vector<NodeFollower> read() const;

 private:
  bool open_file();

  const std::string directory_;
  std::mutex mutex_;
  node_files::LifeDescriptor file_;
  std::string path_;
};

}  // namespace mrc::node
