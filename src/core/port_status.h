// Which ports are up, ours and our peers', and who has to be told.
//
// Owns the state of our own ports; for each peer what it said of its ports; and our news on their
// way to it. News are told again after 20 us, then 40 us, doubling to 5 ms, until the peer answers;
// after 256 tries, which is more than a second, the distance grows to 1.3 s: a peer that was
// restarted without our queue pair never answers.
// Ids tell newer from older: a peer takes only what is newer than what it has. Each peer has ids of
// its own, so that what others are told makes none of them old: a counter for all had turned half
// round for a quiet peer after 32,768 announcements to others. What is older is answered with the
// id that is believed. Who hears of an id ahead of its own, which an earlier incarnation or a
// stranger has used, goes on behind that one; otherwise all it says would be old for ever.
//
// Whoever can send from the peer's address can say that its ports are down. So word that takes
// ports away is a claim. It is acted on, each of these ports is asked about at once, then after 1
// ms, 2 ms, doubling to 1 s, and an answer through the port that was asked for since then outweighs
// it: a lie is worth a round trip. For 10 ms after a claim no other is acted on, doubling to 1.3 s
// with each that is refuted. What does count then is a claim that is confirmed: our answer names an
// id up to 16,895 ahead of the peer's that nobody can guess, and whoever really said it goes on
// behind that one, as above. If nobody did, the true peer hears that somebody spoke in its name and
// says what is so. A peer that does not go on but repeats itself eight times, such as a card, is
// answered with its own id and not told that its word is not acted on.
//
// Sends nothing and knows no path: says to whom something is due.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/fixed_array.h"
#include "base/timer_heap.h"
#include "base/types.h"
#include "core/slot.h"

namespace mrc::core {

// Those peers of a table to whom something is due.
class DuePeers {
 public:
  explicit DuePeers(unsigned peers) : bits_((peers + 63) / 64) {}

  bool any() const { return count_ > 0; }
  void set(std::uint32_t peer, bool due);
  // The first from this one on; kNoSlot when there is none.
  std::uint32_t next(std::uint32_t from) const;

 private:
  FixedArray<std::uint64_t> bits_;
  unsigned count_ = 0;
};

class PortStatus {
 public:
  // All ports are up at first, and so are those of a peer that has said nothing.
  // `secret`: nobody else may know it.
  PortStatus(unsigned ports, unsigned peers, std::uint16_t first_id, std::uint64_t secret);

  PortMask ours() const { return ours_; }
  // False when it was so already.
  bool set_ours(PortId port, bool up);

  // --- What a peer says

  PortMask of_peer(std::uint32_t peer) const { return peers_[peer].ports; }
  // What its word is worth.
  enum class Word : std::uint8_t {
    kOld,       // it has said something else since: for nobody
    kKnown,     // it says what we know, maybe once more: it waits for an answer
    kNewPorts,  // other ports are up than we thought
    kHeldOff    // a claim like some that were refuted
  };
  struct Heard {
    Word word{};
    std::uint16_t answer = 0;  // the id that our answer names
  };
  Heard hear(std::uint32_t peer, TimeNs now, std::uint16_t id, PortMask ports);
  // It has said the same again: our answer may have been lost.
  bool repeats_itself(std::uint32_t peer) const { return peers_[peer].repeated; }
  // Something came in through a port that the peer called down. It shows that the port is up,
  // unless it may have been on its way at that time, `in_transit` ago or less, and answers nothing
  // that was asked since: `asked_ago`, kNever for what is no answer. False when nothing changed.
  bool hear_through(std::uint32_t peer, TimeNs now, PortId port, DurationNs in_transit,
                    DurationNs asked_ago = kNever);
  // Nothing has come from the peer for long: it is not believed any more. False when nothing
  // changed.
  bool disregard(std::uint32_t peer);
  // A new queue pair may mean a new incarnation of the peer, which what the earlier one said does
  // not bind; one with ports down tells so again when it connects. Word of the last moment is kept
  // while `others` are connected. False when nothing changed.
  bool forget_old(std::uint32_t peer, TimeNs now, bool others);

  // --- What we have to say

  void announce(std::uint32_t peer);
  const DuePeers& to_tell() const { return to_tell_; }
  std::uint16_t id(std::uint32_t peer) const { return peers_[peer].id; }
  bool told_before(std::uint32_t peer) const { return peers_[peer].tries > 0; }
  void note_told(std::uint32_t peer, TimeNs now);
  // The peer has used a port of ours that is down, though it has answered our word of that. It may
  // have taken what was on its way at that time for a sign of life: it is told again, every 10 ms
  // at most.
  void remind(std::uint32_t peer, TimeNs now);
  // The peer has heard it, or something with a newer id, which is then told anew; also when nothing
  // was to be told, every 10 ms at most, since then somebody else has spoken in our name. False
  // when it answers something else.
  bool note_answer(std::uint32_t peer, TimeNs now, std::uint16_t id);

  // --- What we have to ask

  const DuePeers& to_ask() const { return to_ask_; }
  PortMask called_down(std::uint32_t peer) const { return all_ ^ (all_ & peers_[peer].ports); }
  // Of those called down, the ones that are to be asked about now.
  PortMask unasked(std::uint32_t peer) const { return peers_[peer].unasked & called_down(peer); }
  // Something was sent through these, or cannot be.
  void note_asked(std::uint32_t peer, TimeNs now, PortMask ports);

  TimeNs deadline() const { return std::min(retries_.earliest(), questions_.earliest()); }
  void on_timer(TimeNs now);

  // Nobody is connected to the peer any more; the place is for another.
  void remove(std::uint32_t peer);

 private:
  struct Peer {
    PortMask ports = PortMask::first(kMaxPorts);
    TimeNs heard_at = 0;
    TimeNs told_at = 0;
    TimeNs refuted_at = 0;
    TimeNs held_off_until = 0;  // claims that are not confirmed are not acted on
    PortMask unasked;
    std::uint16_t claim_id = 0;  // of the last one that was held off
    std::uint16_t heard_id = 0;
    std::uint16_t id = 0;          // of our last word
    std::uint8_t claims = 0;       // with that id
    std::uint8_t refutations = 0;  // up to where the distances stop growing
    bool any_id = false;
    bool heard = false;
    bool repeated = false;
    bool pending = false;  // told, or to be told, and not answered
    std::uint8_t questions =
        0;                    // about ports it calls down, up to where the distances stop growing
    std::uint16_t tries = 0;  // up to where the distances stop growing
  };

  void believe(std::uint32_t peer, PortMask ports);
  void ask_now(std::uint32_t peer);
  std::uint16_t challenge(std::uint32_t peer) const;
  Heard hold_off(std::uint32_t peer, std::uint16_t id);
  std::uint16_t answer_to_claim(std::uint32_t peer, std::uint16_t id) const;
  void note_refuted(Peer& known, TimeNs now);

  PortMask all_;
  PortMask ours_;
  std::uint64_t secret_;
  std::uint16_t first_id_;  // for a peer that is new here, behind all for one that was before
  FixedArray<Peer> peers_;
  DuePeers to_tell_;
  DuePeers to_ask_;
  TimerHeap retries_;    // by peer
  TimerHeap questions_;  // by peer
};

}  // namespace mrc::core
