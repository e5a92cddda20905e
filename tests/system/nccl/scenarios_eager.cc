// Short messages that wait for no credit, among others that do, in all orders the two ends may come
// in. A message that went to another receive than the sender thought is one with wrong bytes here.
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "credit.h"
#include "link.h"
#include "scenarios.h"

namespace mrc::test {
namespace {

constexpr std::size_t kGroups = 3'000;
constexpr std::size_t kRoom = 70'000;
constexpr int kTags = 3;

struct Planned {
  int tag = 0;
  std::size_t size = 0;
  std::size_t room = 0;
};

// What is sent from one rank to the other, the same at both: most of it alone and short. Within a
// group each tag occurs once, as in NCCL's.
std::vector<std::vector<Planned>> plan_of(int sender) {
  std::mt19937 random(static_cast<unsigned>(sender) + 17);
  const auto below = [&](unsigned n) { return random() % n; };
  std::vector<std::vector<Planned>> groups;
  for (std::size_t i = 0; i < kGroups; ++i) {
    const bool short_ones = i % 1'000 < 200;  // none of which needs a credit
    const unsigned count = !short_ones && below(6) == 0 ? 2 + below(kTags - 1) : 1;
    const int first = static_cast<int>(below(kTags));
    std::vector<Planned> group;
    for (unsigned k = 0; k < count; ++k) {
      const std::size_t size = !short_ones && below(8) == 0 ? below(kRoom) : below(5'000);
      const std::size_t room = !short_ones && below(3) == 0 ? kRoom : size + below(64);
      group.push_back({(first + static_cast<int>(k)) % kTags, size, room});
    }
    groups.push_back(group);
  }
  return groups;
}

// One end: takes a step at a time, so that a thread can do both and neither waits for the other.
class Side {
 public:
  Side(Driver& driver, void* comm, int sender, unsigned ahead)
      : driver_(driver), comm_(comm), sender_(sender), plan_(plan_of(sender)), ahead_(ahead) {
    for (unsigned i = 0; i < kBuffers; ++i)
      buffers_.push_back(std::make_unique<Buffer>(driver, comm, kRoom));
  }
  bool done() const { return next_ == plan_.size() && open_.empty(); }
  unsigned open() const { return static_cast<unsigned>(open_.size()); }
  unsigned ahead() const { return ahead_; }

 protected:
  static constexpr unsigned kBuffers = 8 * kTags;

  std::uint64_t seed(std::size_t group, std::size_t place) const {
    return group * 31 + place * 7 + static_cast<std::uint64_t>(sender_) + 1;
  }
  Buffer& buffer(std::size_t group, std::size_t place) {
    return *buffers_[group % 8 * kTags + place];
  }

  Driver& driver_;
  void* comm_;
  int sender_;
  std::vector<std::vector<Planned>> plan_;
  unsigned ahead_;
  std::size_t next_ = 0;
  std::deque<std::pair<std::size_t, void*>> open_;  // group, request
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

class Receiver : public Side {
 public:
  using Side::Side;

  void step() {
    while (next_ < plan_.size() && open() < ahead()) {
      const auto& group = plan_[next_];
      std::array<void*, kTags> data{};
      std::array<std::size_t, kTags> sizes{};
      std::array<int, kTags> tags{};
      std::array<void*, kTags> memory{};
      for (std::size_t k = 0; k < group.size(); ++k) {
        Buffer& place = buffer(next_, k);
        place.clear();
        data[k] = place.data();
        sizes[k] = group[k].room;
        tags[k] = group[k].tag;
        memory[k] = place.memory();
      }
      void* request = nullptr;
      MRC_CHECK(driver_.irecv(comm_, static_cast<int>(group.size()), data.data(), sizes.data(),
                              tags.data(), memory.data(), &request) == Result::kSuccess);
      if (request == nullptr) break;
      open_.emplace_back(next_++, request);
    }
    if (open_.empty()) return;
    int done = 0;
    std::array<int, kTags> got{};
    const auto [group, request] = open_.front();
    MRC_CHECK(driver_.test(request, &done, got.data()) == Result::kSuccess);
    if (done == 0) return;
    for (std::size_t k = 0; k < plan_[group].size(); ++k) {
      MRC_CHECK(static_cast<std::size_t>(got[k]) == plan_[group][k].size);
      buffer(group, k).check(seed(group, k), plan_[group][k].size);
    }
    open_.pop_front();
  }
};

class Sender : public Side {
 public:
  using Side::Side;

  void step() {
    if (next_ < plan_.size() && open() < ahead()) {
      const Planned& message = plan_[next_][place_];
      Buffer& from = buffer(next_, place_);
      from.fill(seed(next_, place_), message.size);
      void* request = nullptr;
      MRC_CHECK(driver_.isend(comm_, from.data(), message.size, message.tag, from.memory(),
                              &request) == Result::kSuccess);
      if (request != nullptr) {
        open_.emplace_back(next_, request);
        place_ = (place_ + 1) % plan_[next_].size();
        if (place_ == 0) ++next_;
      }
    }
    if (open_.empty()) return;
    int done = 0;
    int size = 0;
    MRC_CHECK(driver_.test(open_.front().second, &done, &size) == Result::kSuccess);
    if (done != 0) open_.pop_front();
  }

 private:
  std::size_t place_ = 0;
};

}  // namespace

void eager(const Setting& setting) {
  Driver driver(setting.plugin, setting.version);
  driver.init();
  const Meeting meeting(setting.directory, setting.rank);
  const int other = 1 - setting.rank;
  Link link = make_link(driver, meeting, {.rank = setting.rank, .next = other, .previous = other});
  {
    // Rank 0 posts receives far ahead, rank 1 one by one.
    Receiver receiver(driver, link.receive, other, setting.rank == 0 ? 7 : 1);
    Sender sender(driver, link.send, setting.rank, setting.rank == 0 ? 1 : 5);
    std::mt19937 random(static_cast<unsigned>(setting.rank) + 1);
    const Patience patience("the plan's end");
    while (!receiver.done() || !sender.done()) {
      // Each end is away now and then, so that messages wait for receives and receives for them.
      const bool receives = random() % 64 != 0;
      const unsigned steps = 1 + random() % 48;
      for (unsigned i = 0; i < steps; ++i)
        receives ? receiver.step() : sender.step();
      sender.step();
      if (random() % 256 == 0) usleep(300);
      patience.wait();
    }
    meeting.barrier("planned", setting.ranks);
  }
  close_link(driver, link);
}

}  // namespace mrc::test
