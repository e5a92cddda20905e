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
  kImmediateLimit = 4,  // more immediates in flight than agreed
  kRetries = 8,         // retries are limited, or the peer is gone
  kLocal = 16,          // fail_qp was called on one side
};

enum class EndState : std::uint8_t {
  kLive,
  kFailed,  // an error was reported; everything posted is to be flushed
  kGone,    // destroyed, or its host crashed: nothing may be heard of it again
};

// A queue pair as its owner set it up, and what its program has seen of it.
struct End {
  unsigned host = 0;
  core::QpConfig config;
  core::QpInit init;
  core::QpReadyToReceive rtr;
  core::QpReadyToSend rts;
  std::size_t region = 0;  // on this host: where the peer writes

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

  // Observations for checks that need history.
  std::uint64_t known_contiguous = 0;  // of the flow it sends: what the peer's answers told
  std::uint64_t nominal_bytes_arrived = 0;
  // What packets came in with; looked up, never iterated.
  std::unordered_set<std::uint32_t> entropies_seen;
  std::unordered_set<std::uint32_t> entropies_marked;
  std::unordered_set<std::uint32_t> entropies_corrupted;
  std::unordered_set<std::uint32_t> trimmed_psns;
  std::unordered_set<std::uint32_t> refused_psns;
  std::unordered_set<std::uint32_t> outside_psns;
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
