// Two engines that write to each other without an end, in virtual time, over a network that loses
// one packet in a thousand: what the packets of strangers must leave as it is.
//
// Each message has a place of its own at its target, which is empty when the message is posted,
// equals the source when it is complete, and is emptied then. So a byte that lands twice, late or
// for somebody else is seen when the place is used again.
#pragma once

#include <cstdint>
#include <vector>

#include "base/prng.h"
#include "support/pair.h"

namespace mrc::strangers {

class Stream {
 public:
  static constexpr std::uint32_t kMtu = 1024;
  static constexpr std::uint32_t kPacketsEach = 16;  // in a message
  static constexpr std::uint32_t kWindow = 1024;     // of both ends, in PSNs

  // A packet as it arrived.
  struct Seen {
    TimeNs at = 0;  // no earlier than it arrived
    int to = 0;
    core::Arrival arrival;
    wire::Packet packet;
  };

  Stream(std::uint64_t seed, Psn first);

  // Data goes on for so long.
  void advance(DurationNs duration);
  // Somebody else's packet reaches one end; nothing of it may land.
  DropReason hand(int to, const core::Arrival& arrival, const wire::Packet& packet);
  // What that caused is sent.
  void settle(int side) { pair_.side(side).driver.pump(pair_.now()); }
  // All that was posted is complete, the memory is what it must be, and both ends live.
  void finish();

  // One of the last packets that arrived; null when there is none yet.
  const Seen* old_packet(Prng& prng) const;
  // All that can be known of an end.
  core::QpStatus status(int side) const { return pair_.status(side); }
  Psn first_psn() const { return first_; }
  std::uint64_t posted(int side) const { return ends_[side].posted; }
  Rkey key(int side) { return pair_.side(side).key; }

  std::uint64_t genuine() { return pair_.side(0).packets_sent + pair_.side(1).packets_sent; }
  std::uint64_t messages() const { return ends_[0].completed + ends_[1].completed; }

  static Address address_of(int side) { return {0, static_cast<std::uint64_t>(side) + 1}; }
  static core::Arrival arrival_at(int side, Prng& prng);

 private:
  struct End {
    std::uint64_t posted = 0;
    std::uint64_t completed = 0;
  };

  void post(int side);
  void collect(int side);
  std::byte* place(int side, std::uint64_t message);

  Psn first_;
  Prng losses_;
  test::Pair pair_;
  End ends_[2];
  bool over_ = false;
  std::vector<Seen> seen_;  // a ring
  std::size_t next_seen_ = 0;
};

}  // namespace mrc::strangers
