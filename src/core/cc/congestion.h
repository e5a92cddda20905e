// Congestion control towards one destination, shared by the queue pairs that send there under the
// same profile and hints (peer.h).
//
// The controller owns the window; the base class keeps the bytes in flight, which always equal the
// sum of the nominal sizes of packets that are sent and neither acknowledged nor declared lost.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/assert.h"
#include "base/planted_bug.h"
#include "base/types.h"
#include "core/config.h"

namespace mrc::core {

// What one SACK told. `acked_bytes` is the nominal size of packets it acknowledged for the first
// time; they have already left the bytes in flight.
struct AckSample {
  TimeNs now = 0;
  std::int64_t acked_bytes = 0;
  bool marked = false;                 // the packet it answers met congestion (ECN)
  std::optional<DurationNs> rtt_ns{};  // unambiguous round trip, service time removed
  std::uint8_t window_penalty = 0;     // rcv_cwnd_pen, 0..127
  bool restore_window = false;
};

// The network as the controller sees it. Bandwidth is the sum of all usable planes.
struct CcEnvironment {
  std::uint64_t bits_per_second = 0;
  std::uint32_t mtu_bytes = 0;  // nominal size of a full packet
  QpHints hints;
  std::uint64_t seed = 0;  // differs between senders, so that they do not pace in step
};

class CongestionController {
 public:
  virtual ~CongestionController() = default;

  // Bookkeeping, done by the queue pairs.
  void on_sent(std::int64_t bytes) { in_flight_bytes_ += bytes; }
  void on_left_network(std::int64_t bytes) {  // acknowledged, trimmed, lost or abandoned
    in_flight_bytes_ -= bytes;
    MRC_ASSERT(in_flight_bytes_ >= 0);
  }
  std::int64_t in_flight_bytes() const { return in_flight_bytes_; }

  // One packet of this size may go now: it fits the window, or nothing is in flight.
  bool may_send(TimeNs now, std::int64_t bytes) const {
    return now >= next_send_ &&
           (in_flight_bytes_ == 0 || in_flight_bytes_ + bytes <= window_bytes());
  }
  // The same for the first of a burst of so many bytes, which waits until all of it fits. A piece
  // of a burst costs a system call as well, and its answer makes room for such a piece again: two
  // queue pairs came down from 15 packets a burst to 7. A window of less than four bursts is used
  // to the last byte.
  bool may_begin(TimeNs now, std::int64_t bytes, std::int64_t burst_bytes) const {
    if (!may_send(now, bytes)) return false;
    if (MRC_BUG(kBurstsAreCut)) return true;
    return in_flight_bytes_ + burst_bytes <= window_bytes() || window_bytes() / 4 < burst_bytes ||
           in_flight_bytes_ == 0;
  }
  // Pacing: when the next packet may leave at the earliest; 0 when unpaced.
  TimeNs next_send() const { return next_send_; }

  // Signals.
  virtual void on_packet_sent(TimeNs now, std::int64_t bytes) = 0;  // after on_sent
  virtual void on_ack(const AckSample& sample) = 0;
  // The packet has already left the bytes in flight.
  virtual void on_trim(TimeNs now, std::int64_t bytes, bool last_hop) = 0;
  virtual void on_loss(TimeNs now, std::int64_t bytes) = 0;
  virtual void set_bandwidth(std::uint64_t bits_per_second) = 0;  // a plane was lost or came back

  virtual std::int64_t window_bytes() const = 0;
  virtual DurationNs base_rtt_ns() const = 0;

 protected:
  TimeNs next_send_ = 0;

 private:
  std::int64_t in_flight_bytes_ = 0;
};

std::unique_ptr<CongestionController> make_controller(const CcProfile& profile,
                                                      const CcEnvironment& environment);

}  // namespace mrc::core
