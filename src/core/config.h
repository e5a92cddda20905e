// Everything that is decided when an endpoint or a queue pair is set up.
#pragma once

#include <array>
#include <cstdint>

#include "base/types.h"
#include "core/ev_profile.h"

namespace mrc::core {

// --- Congestion control ---

enum class CcAlgorithm : std::uint8_t { kNone, kNscc };

// The parameters of "uet-1.0-nscc" by their API names. A zero (or negative) value means: derive the
// default from base RTT, link rate and MTU.
struct NsccParameters {
  bool disable_qa = false;
  std::uint32_t adjust_bytes_threshold = 0;  // bytes
  std::uint32_t adjust_period_threshold_ns = 0;
  std::uint32_t base_rtt_ns = 0;  // starting estimate, refined downward by samples
  float eta = 0;                  // bytes
  float fi = 0;                   // bytes
  float fi_scale = 0;
  float gamma = 0;
  float max_md_jump = 0;
  std::uint32_t max_cwnd = 0;  // bytes
  std::uint8_t qa_gate = 0;
  std::uint32_t qa_threshold_ns = 0;
  std::uint32_t target_delay_ns = 0;

  friend bool operator==(const NsccParameters&, const NsccParameters&) = default;
};

struct CcProfile {
  CcAlgorithm algorithm = CcAlgorithm::kNscc;
  bool network_trims = true;  // switches trim instead of dropping
  NsccParameters nscc;

  friend bool operator==(const CcProfile&, const CcProfile&) = default;
};

// What the program knows about its traffic; 0 = unknown.
struct QpHints {
  std::uint32_t qps_per_peer = 0;  // queue pairs that send to our peer, and so share a controller
  std::uint32_t send_peers = 0;    // peers this endpoint sends to at the same time
  // Queue pairs that send to our peer at the same time: the degree of its incast.
  std::uint32_t remote_recv_peers = 0;
  // Rates of one queue pair, in parts of kLineRate.
  std::uint32_t initial_rate = 0;
  std::uint32_t min_rate = 0;
  std::uint32_t max_rate = 0;

  static constexpr std::uint32_t kLineRate = 1U << 20;

  friend bool operator==(const QpHints&, const QpHints&) = default;
};

// What a receiver that cannot follow tells its senders with every answer.
struct ReceiverPenalty {
  static constexpr std::uint8_t kMost = 127;

  std::uint8_t value = 0;  // so many 128ths of what is acknowledged leave the sender's window
  bool restore = false;    // it is over: the window from before it may come back

  friend bool operator==(const ReceiverPenalty&, const ReceiverPenalty&) = default;
};

// --- Endpoint ---

struct EndpointConfig {
  Address address;
  unsigned port_count = 1;  // 1..16 planes
  std::uint64_t port_bits_per_second = 100'000'000'000;
  // Decides every shuffle, and what peers cannot guess: the core has no other randomness. Best from
  // the kernel.
  std::uint64_t seed = 1;
  unsigned max_qps = 64;
  unsigned max_peers = 64;
  unsigned max_regions = 64;
  unsigned event_capacity = 256;
  unsigned control_capacity = 512;          // answers waiting to be sent
  unsigned endpoint_request_capacity = 32;  // EV probes of a controller waiting for their answer
  bool add_service_time = true;             // add our residence time to reflected timestamps
  // By how much either end may be late for reasons of its own, such as the scheduler of its
  // machine: silence and lateness shorter than this are not held against the network. 0 suits
  // hardware.
  DurationNs jitter_ns = 0;
  // While a queue pair only receives, the way of its answers is probed once in a round trip and
  // peer, and no more often than this. Ends to whom a packet costs much more than to a card set it:
  // a probe and its answer are two packets for each that came in, where few come.
  DurationNs reverse_check_ns = 0;
  // Peers name both queue pairs in SACKs, NACKs and probes by the low halves of their numbers, and
  // number their messages in a row from 0: what does not fit is not theirs.
  bool strict = true;
  // Answers of a queue pair that leave at the same time take one path: for callers to whom packets
  // on one path come cheaper together.
  bool group_answers = false;
};

// --- Queue pair ---

inline constexpr std::uint32_t kWindowUnitPsns = 128;  // one unit of MPR
inline constexpr std::uint8_t kDefaultWindowUnits = 8;
inline constexpr std::uint32_t kMinPathMtu = 256;
inline constexpr std::uint32_t kMaxPathMtu = 8192;
constexpr bool is_path_mtu(std::uint64_t bytes) {
  return bytes >= kMinPathMtu && bytes <= kMaxPathMtu && bytes % 4 == 0;
}

struct QpConfig {
  QpNumber number{};  // chosen by the caller, best at random; 3..2^24-1
  ProtectionDomain domain{};
  std::uint32_t max_sends = 128;
  std::uint32_t max_receives = 128;
  // Sends land in receives, as in reliable connections of ordinary verbs. Not part of MRC: both
  // ends must be ours and have it set.
  bool allow_sends = false;
};

// RESET -> INIT.
struct QpInit {
  const EvProfile* ev_profile = nullptr;  // none: paths by hash, chosen by the endpoint (AUTO)
  CcProfile cc;
  QpHints hints;
  std::uint16_t ev_min_active = 0;  // 0 = a quarter of the profile
  std::uint16_t active_evs = 0;     // 0 = all; the rest are backups
  // To see what a part of the protocol is worth, it can be left out.
  bool oblivious = false;  // spray without regard to marks, trims and late packets
  bool probes = true;      // without: only the retry timer asks
  // Packets sent, lost and marked, counted for each EV: 12 bytes each, if anybody will ask.
  bool ev_counters = true;
};

// INIT -> RTR: what we are as a responder.
struct QpReadyToReceive {
  Address remote;
  QpNumber remote_qp{};
  Psn first_psn;                      // the first PSN the peer will send
  std::uint32_t path_mtu = 4096;      // payload bytes per packet, a multiple of 4 in 256..8192
  std::uint16_t max_wimm_dest = 128;  // immediates we can stash
  std::uint8_t mpr_dest = kDefaultWindowUnits;
  bool dynamic_mpr = false;                // both ends agreed: SACKs carry the current MPR
  bool trim_nack = true;                   // answer trimmed packets
  bool peer_nacks_trims = true;            // so does the peer; otherwise ours are not to be trimmed
  bool peer_tells_service_time = true;     // otherwise stamps come back as they were sent
  std::uint32_t sack_threshold_bytes = 0;  // SACK when more than this arrived since the last one
};

inline constexpr std::uint8_t kMaxTimeout = 24;
inline constexpr std::uint8_t kMaxLinearRetries = 7;
inline constexpr std::uint8_t kMaxExponentialRetries = 25;  // and this value means: for ever

// RTR -> RTS: what we are as a requester.
struct QpReadyToSend {
  Psn first_psn;
  std::uint16_t max_wimm = 128;  // immediates the peer can stash
  std::uint8_t mpr = kDefaultWindowUnits;
  // At most so many packets sent and not acknowledged, whatever the window; 0 = as many as it
  // holds. Each costs 18 bytes, and with a limit each PSN of the window one, or two from 255
  // packets on.
  std::uint16_t max_outstanding = 0;
  std::uint8_t timeout = 8;  // 1.024 us * 2^timeout
  std::uint8_t linear_retries = kMaxLinearRetries;
  std::uint8_t exponential_retries = 12;
  // A peer that answers that it has no receive for us, or no memory, is waited for; otherwise that
  // counts as any other try.
  bool waits_for_resources = false;
};

enum class QpState : std::uint8_t { kReset, kInit, kReadyToReceive, kReadyToSend, kError };

}  // namespace mrc::core
