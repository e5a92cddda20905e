// The two halves of a RoCEv2 queue pair, as pure state machines: the requester cuts messages into
// packets and goes back to the first unacknowledged one when told to; the responder takes packets
// in order only. Neither keeps anything per packet.
//
// PSNs are 32 bits wide here and wrap; a queue pair never has half of that space outstanding.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/host.h"
#include "sim/packet.h"

namespace mrc::sim {

// What all queue pairs of a simulation have in common.
struct RoceSegmentation {
  std::uint32_t path_mtu = 4096;
  std::uint32_t ack_every = 16;  // packets; the last one of a message asks for an ACK in any case
};

class RoceRequester {
 public:
  struct Segment {
    std::uint32_t psn = 0;
    std::uint64_t address = 0;  // at both ends
    std::uint32_t bytes = 0;
    bool first = false;  // of its message
    bool last = false;
    bool immediate = false;
    bool ack_request = false;
    bool retransmission = false;
  };

  explicit RoceRequester(std::uint32_t first_psn = 0)
      : unacked_(first_psn),
        next_(first_psn),
        highest_(first_psn),
        ack_requested_(first_psn),
        posted_(first_psn) {}

  void post(const RoceSegmentation& segmentation, const Message& message);

  bool has_unsent() const { return next_ != posted_; }
  bool has_unfinished() const { return unacked_ != posted_; }
  // Whether a packet that asked for an ACK has not been acknowledged.
  bool awaits_ack() const { return distance(unacked_, ack_requested_) > 0; }

  // has_unsent() must hold.
  Segment next_segment(const RoceSegmentation& segmentation);

  // Everything before `psn` has arrived: appends the finished tasks and returns true when that is
  // news.
  bool acknowledge(std::uint32_t psn, std::vector<TaskId>& finished);
  void rewind();
  // Gives up: appends all unfinished tasks.
  void abandon(std::vector<TaskId>& unfinished);

 private:
  struct Entry {
    std::uint64_t bytes = 0;
    std::uint32_t first_psn = 0;
    std::uint32_t end_psn = 0;
    TaskId task = 0;
    bool notify = false;
  };

  static std::int32_t distance(std::uint32_t from, std::uint32_t to) {
    return static_cast<std::int32_t>(to - from);
  }
  void forget_finished();

  std::vector<Entry> entries_;  // those before done_ are finished
  std::uint32_t done_ = 0;
  std::uint32_t current_ = 0;  // holds next_, or is behind the end
  std::uint32_t unacked_;
  std::uint32_t next_;
  std::uint32_t highest_;        // behind the last packet ever sent
  std::uint32_t ack_requested_;  // behind the last packet sent that asked for an ACK
  std::uint32_t posted_;         // behind the last packet of all messages
};

class RoceResponder {
 public:
  struct RxResult {
    bool accepted = false;  // its payload belongs at `address`
    bool duplicate = false;
    std::uint64_t address = 0;
    bool ack = false;
    bool nak = false;
  };

  explicit RoceResponder(std::uint32_t first_psn = 0) : expected_(first_psn) {}

  // `address` is that of the RETH and counts only with the first packet of a message.
  RxResult on_data(const RocePacket& packet, std::uint64_t address);
  // A packet came with a congestion mark: whether a CNP is due.
  bool on_mark(Time now, Time cnp_interval_ps);

  std::uint32_t expected() const { return expected_; }
  bool gap_reported() const { return gap_reported_; }

 private:
  std::uint64_t address_ = 0;  // of the next payload
  Time next_cnp_ = 0;
  std::uint32_t expected_;
  bool gap_reported_ = false;  // one NAK per gap, until what is missing has come
};

}  // namespace mrc::sim
