// Short messages that wait for no credit.
//
// A sender that waits for the receiver's credit, and is done when its write is acknowledged, has to
// run three times for one message, and the receiver twice. With eight ranks on two processors each
// of these is a round of the scheduler: 4 KiB took ten times as long as over TCP. So a message of
// up to kEagerBytes for which no credit is there is copied into the receiver's ring and is done;
// the receiver copies it to its place. A receive with room for no more than that need not announce
// itself, unless the message is late.
//
// Both ends must come to the same opinion on which receive a message belongs to. The receiver gives
// a message that arrives to the oldest receive of its tag that has none, and a new receive the
// oldest message of its tag that waits. A credit says which messages were taken when it left. All
// others that the sender has sent meet it on their way, or have another tag: so they take the
// places of that credit and of later ones, the oldest first, tag by tag. While a place is open the
// sender sends nothing eagerly.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mrc::nccl {

inline constexpr std::size_t kEagerBytes = 32 << 10;
inline constexpr unsigned kEagerSlots = 8;
// In Message::capabilities, where the API has its flags below: this end takes eager messages.
inline constexpr std::uint32_t kTakesEager = 0x8000'0000;

// In front of the message.
struct EagerHeader {
  std::int32_t tag = 0;
  std::uint32_t size = 0;
};
inline constexpr std::size_t kEagerStride = sizeof(EagerHeader) + kEagerBytes;

// Messages are counted from 0 on; the counts travel with their low bits.
struct EagerTaken {
  std::uint32_t all_before = 0;
  std::uint16_t others = 0;  // bit i: number all_before + i, which bit 0 never is
};

class EagerOutbox {
 public:
  bool has_room() const { return sent_ - taken_ < kEagerSlots && sent_ - completed_ < kEagerSlots; }
  bool all_completed() const { return completed_ == sent_; }
  std::uint64_t sent() const { return sent_; }
  // The slot of the next message, which leaves now.
  unsigned add(int tag) {
    under_way_.push_back({sent_, tag});
    return static_cast<unsigned>(sent_++ % kEagerSlots);
  }
  // Writes complete in the order they were posted.
  void on_completed() {
    if (completed_ < sent_) ++completed_;
  }
  void give_up() { completed_ = sent_; }
  // The receiver says what it has taken, with so many bits of the count. False: it cannot be.
  bool on_told(const EagerTaken& told, std::uint32_t mask = UINT32_MAX) {
    const std::uint64_t more = (told.all_before - static_cast<std::uint32_t>(taken_)) & mask;
    if (more > sent_ - taken_) return false;
    taken_ += more;
    std::erase_if(under_way_, [&](const Message& message) {
      if (message.number < taken_) return true;
      const std::uint64_t behind = message.number - taken_;
      return behind < kEagerSlots && (told.others >> behind & 1) != 0;
    });
    return true;
  }
  // A credit has a place for this tag: whether a message is on its way to it.
  bool claim(int tag) {
    for (auto message = under_way_.begin(); message != under_way_.end(); ++message) {
      if (message->tag != tag) continue;
      under_way_.erase(message);
      return true;
    }
    return false;
  }

 private:
  struct Message {
    std::uint64_t number = 0;
    int tag = 0;
  };

  std::uint64_t sent_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t taken_ = 0;         // all before this, by the receiver
  std::vector<Message> under_way_;  // and in no credit's place; kEagerSlots at most
};

class EagerInbox {
 public:
  // The slot of the message that arrives next; none: there are more than there is room for.
  static constexpr unsigned kNone = kEagerSlots;
  unsigned next_slot() const {
    return arrived_ - taken_ < kEagerSlots ? static_cast<unsigned>(arrived_ % kEagerSlots) : kNone;
  }
  // It has this tag and waits to be taken.
  void add(int tag) {
    tags_.at(arrived_ % kEagerSlots) = tag;
    ++arrived_;
  }
  // Takes the oldest of this tag; its slot, or kNone.
  unsigned take(int tag) {
    for (std::uint64_t number = taken_; number != arrived_; ++number) {
      const auto slot = static_cast<unsigned>(number % kEagerSlots);
      const std::uint64_t bit = number - taken_;
      if ((others_ >> bit & 1) != 0 || tags_.at(slot) != tag) continue;
      others_ = static_cast<std::uint16_t>(others_ | 1U << bit);
      for (; (others_ & 1) != 0; others_ = static_cast<std::uint16_t>(others_ >> 1))
        ++taken_;
      return slot;
    }
    return kNone;
  }
  EagerTaken taken() const { return {static_cast<std::uint32_t>(taken_), others_}; }
  // The sender was told just now.
  void note_told() { told_ = taken_; }
  // Half of the slots are free and the sender does not know it.
  bool must_tell() const { return taken_ - told_ >= kEagerSlots / 2; }

 private:
  std::array<int, kEagerSlots> tags_{};
  std::uint64_t arrived_ = 0;
  std::uint64_t taken_ = 0;   // all before this
  std::uint16_t others_ = 0;  // of those behind
  std::uint64_t told_ = 0;
};

}  // namespace mrc::nccl
