// Which ports are up, ours and our peers', and who has to be told.
//
// Owns the state of our own ports; for each peer what it said of its ports; and our news on their
// way to it. News are told again after 20 us, then 40 us, doubling to 5 ms, until the peer answers;
// after 256 tries, which is more than a second, the distance grows to 1.3 s: a peer that was
// restarted without our queue pair never answers.
// Ids tell newer from older: a peer takes only what is newer than what it has. Sends nothing and
// knows no path: says to whom something is due.
#pragma once

#include <cstdint>

#include "base/fixed_array.h"
#include "base/timer_heap.h"
#include "base/types.h"
#include "core/slot.h"

namespace mrc::core {

class PortStatus {
 public:
  // All ports are up at first, and so are those of a peer that has said nothing.
  PortStatus(unsigned ports, unsigned peers, std::uint16_t first_id);

  PortMask ours() const { return ours_; }
  // False when it was so already.
  bool set_ours(PortId port, bool up);

  // --- What a peer says

  PortMask of_peer(std::uint32_t peer) const { return peers_[peer].ports; }
  // False when it is no news.
  bool hear(std::uint32_t peer, TimeNs now, std::uint16_t id, PortMask ports);
  // It has said the same again: our answer may have been lost.
  bool repeats_itself(std::uint32_t peer) const { return peers_[peer].repeated; }
  // Something came in through a port that the peer called down. It shows that the port is up,
  // unless it may have been on its way at that time, `in_transit` ago or less. False when nothing
  // changed.
  bool hear_through(std::uint32_t peer, TimeNs now, PortId port, DurationNs in_transit);
  // Nothing has come from the peer for long: it is not believed any more. False when nothing
  // changed.
  bool disregard(std::uint32_t peer);
  // A new queue pair may mean a new incarnation of the peer, which what the earlier one said does
  // not bind; one with ports down tells so again when it connects. Word of the last moment is kept
  // while `others` are connected. False when nothing changed.
  bool forget_old(std::uint32_t peer, TimeNs now, bool others);

  // --- What we have to say

  void announce(std::uint32_t peer);
  bool any_due() const { return due_count_ > 0; }
  // The first peer from this one on that is to be told now; kNoSlot when there is none.
  std::uint32_t next_due(std::uint32_t from) const;
  std::uint16_t id(std::uint32_t peer) const { return peers_[peer].id; }
  bool told_before(std::uint32_t peer) const { return peers_[peer].tries > 0; }
  void note_told(std::uint32_t peer, TimeNs now);
  // The peer has heard it. False when it answers something else.
  bool note_answer(std::uint32_t peer, std::uint16_t id);

  TimeNs deadline() const { return retries_.earliest(); }
  void on_timer(TimeNs now);

  // Nobody is connected to the peer any more; the place is for another.
  void remove(std::uint32_t peer);

 private:
  struct Peer {
    PortMask ports = PortMask::first(kMaxPorts);
    TimeNs heard_at = 0;
    std::uint16_t heard_id = 0;
    std::uint16_t id = 0;
    bool heard = false;
    bool repeated = false;
    bool pending = false;     // told, or to be told, and not answered
    std::uint16_t tries = 0;  // up to where the distances stop growing
  };

  bool is_due(std::uint32_t peer) const { return (due_[peer / 64] >> (peer % 64) & 1) != 0; }
  void set_due(std::uint32_t peer, bool due);

  PortMask ours_;
  std::uint16_t next_id_;
  unsigned due_count_ = 0;
  FixedArray<Peer> peers_;
  FixedArray<std::uint64_t> due_;  // a bit for each peer
  TimerHeap retries_;              // by peer
};

}  // namespace mrc::core
