// A connection between two queue pairs, and what the test world knows about it. Connections are
// never reused: a new one with the same queue pair numbers is another entry.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <set>
#include <unordered_set>
#include <vector>

#include "base/types.h"
#include "core/config.h"
#include "dst/flow.h"
#include "dst/send_history.h"

namespace mrc::dst {

// One end of one connection. Sides are 0 and 1.
struct EndRef {
  std::uint32_t connection = 0;
  std::uint8_t side = 0;
  EndRef peer() const { return {connection, static_cast<std::uint8_t>(1 - side)}; }
  friend bool operator==(const EndRef&, const EndRef&) = default;
};

// What the world did to a connection that entitles it to fail.
enum class Doom : std::uint8_t {
  kAccess = 1,          // a write that must be refused was posted, or its region invalidated
  kReceiveMissing = 2,  // an immediate was posted without a receive for it
  kRetries = 8,         // retries are limited, or the peer is gone
  kLocal = 16,          // fail_qp was called on one side
};

enum class EndState : std::uint8_t {
  kLive,
  kFailed,  // an error was reported; everything posted is to be flushed
  kGone,    // destroyed, or its host crashed: nothing may be heard of it again
};

// Something that happens again and again and has to have its effect at least now and then.
struct Tally {
  std::uint64_t count = 0;
  std::uint64_t answered = 0;
  TimeNs last = -1;

  void on_cause(TimeNs now) {
    ++count;
    last = now;
  }
};

// A queue pair as its owner set it up, and what its program has seen of it.
struct End {
  unsigned host = 0;
  core::QpConfig config;
  core::QpInit init;
  core::QpReadyToReceive rtr;
  core::QpReadyToSend rts;
  std::size_t region = 0;  // on this host: where the peer writes

  TimeNs created = 0;  // by its host's clock
  EndState state = EndState::kLive;
  std::uint8_t window_units = 0;  // receive window in force
  std::set<std::uint16_t> denied;

  // Sends, in posting order.
  std::size_t next_report = 0;  // the first message whose outcome is not known
  bool sends_failed = false;    // a send did not succeed, so none after it did
  bool error_reported = false;  // the one completion that says why
  bool offended = false;        // it posted what dooms the connection

  // Receives. Their completions and those of sends are two sequences.
  bool receives_failed = false;
  std::deque<std::uint64_t> receives;  // ids posted and not reported
  std::uint64_t receives_posted = 0;
  std::uint32_t immediates_delivered = 0;

  // As a sender: what it was told, and when. Times are by its host's clock.
  SendHistory history;
  std::uint64_t known_contiguous = 0;
  std::uint32_t known_messages = 0;  // by transport ACKs
  TimeNs last_progress = 0;          // a packet was acknowledged for the first time, or work began
  TimeNs last_heard = 0;
  TimeNs last_data = 0;
  TimeNs last_probe = 0;
  struct Question {
    std::uint16_t id = 0;
    EvIndex ev = kNoEv;
    TimeNs at = 0;
  };
  Question last_question;      // the last probe that waits for its answer
  TimeNs tries_renewed = 0;    // that, or it heard its peer with nothing under way
  TimeNs timeouts_since = -1;  // value of tries_renewed that timeouts_base belongs to
  std::uint64_t timeouts_base = 0;
  std::uint64_t timeouts_seen = 0;
  std::uint64_t transmissions_allowed = 0;  // until the drain is over
  Tally repeats_overtaken;                  // packets sent again that were overtaken on their path

  // As a receiver.
  Tally duplicates;  // answered: by a transport ACK soon after
  Tally probes;
  TimeNs last_ack = -kSecondNs;          // of the transport, by the world's clock
  std::uint64_t duplicates_arrived = 0;  // whole
  std::uint64_t nominal_bytes_arrived = 0;
  // What packets came in with; looked up, never iterated.
  std::unordered_set<std::uint32_t> entropies_seen;
  std::unordered_set<std::uint32_t> entropies_marked;
  std::unordered_set<std::uint32_t> entropies_corrupted;
  std::unordered_set<std::uint32_t> trimmed_psns;
  std::unordered_set<std::uint32_t> refused_psns;
  std::unordered_set<std::uint32_t> outside_psns;
  std::unordered_set<std::uint32_t> provoked_psns;     // of forged packets
  std::unordered_set<std::uint64_t> attacked_packets;  // that it sends, by the forger
};

struct Connection {
  std::uint32_t uid = 0;
  std::array<End, 2> ends;
  std::array<Flow, 2> flows;  // flows[s] goes from ends[s] to ends[1 - s]
  std::uint8_t doom = 0;
  unsigned generation = 0;  // earlier connections with the same queue pair numbers

  bool doomed() const { return doom != 0; }
  bool doomed_by(Doom cause) const { return (doom & static_cast<std::uint8_t>(cause)) != 0; }
  void add_doom(Doom cause) { doom |= static_cast<std::uint8_t>(cause); }
};

}  // namespace mrc::dst
