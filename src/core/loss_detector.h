// Which packets to send again, from what a SACK says, what was sent when and where, and how long
// answers take (docs/adr/0003-loss-inference.md):
//
//   path order  a packet sent later on the same EV has arrived, and a SACK made after that says
//               this one has not: proof, since each EV is a FIFO path
//   time        packets sent a reordering window later on any path have arrived, a SACK says this
//               one has not, and nothing was heard of its path for as long. With round trips of
//               12 us that vary by 2 us the window is 9 us
//   silence     nothing has said anything about it for a round trip longer than that; the path
//               is not blamed, since the SACK may have been what was lost
//   late        it is not lost, but holds up everything else: sent once more on another path, the
//               first such packet without waiting for feedback (docs/adr/0010-late-is-not-lost.md)
//
// Owns the reordering window: how much wider than usual it is after a false alarm, and what is the
// newest that is known to have arrived. Reads the send window, changes nothing in it: the caller is
// told {sequence, reason} and queues the packet.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/types.h"
#include "core/rtt.h"
#include "core/sack_reader.h"
#include "core/send_window.h"

namespace mrc::core {

class LossDetector {
 public:
  // What the caller knows and the window does not.
  struct Situation {
    const RttEstimator* rtt = nullptr;
    DurationNs jitter_ns = 0;       // of the ends; see EndpointConfig
    bool everything_waits = false;  // for what is out: nothing else can be sent
  };

  // A packet that was sent at this time is known to have arrived; or was acknowledged at all.
  void note_arrival(TimeNs sent_at) {
    newest_arrival_sent_at_ = std::max(newest_arrival_sent_at_, sent_at);
  }
  void note_acknowledged();
  // A packet given up by time or silence had arrived all the same.
  void note_false_alarm(TimeNs sent_at, TimeNs now);

  // How much paths differ without anything being wrong: by their queues up to about the delay that
  // the controller aims at, more when the round trips vary more.
  static DurationNs path_spread(const Situation& situation) {
    const RttEstimator& rtt = *situation.rtt;
    return std::max({rtt.minimum() * 3 / 4, 2 * rtt.variation(), situation.jitter_ns});
  }

  // Calls resend(sequence, reason) for each packet in flight that the SACK, or its silence about
  // it, gives up. The callee may queue the packet at once.
  template <typename Resend>
  void detect(TimeNs now, const SackView& view, const SendWindow& window,
              const Situation& situation, Resend&& resend) const {
    if (window.in_flight() == 0) return;
    if (view.fresh) detect_by_path_order(view, window, resend);
    detect_by_time(now, view, window, situation, resend);
  }

 private:
  // Bounds the work one SACK can cause in the time-ordered walk.
  static constexpr unsigned kMaxTimeScan = 64;
  static constexpr std::uint8_t kMaxReorderScale = 8;
  static constexpr std::uint32_t kForgiveAfterPackets = 1024;

  template <typename Resend>
  static void detect_by_path_order(const SackView& view, const SendWindow& window,
                                   Resend&& resend) {
    const Sequence hole = view.cumulative + 1;
    if (window.contains(hole) && window.overtaken(hole)) resend(hole, ResendReason::kPathOrder);
    const Sequence base = std::max(view.base, window.oldest());
    if (base >= window.next() || base - view.base >= 64) return;
    const auto skipped = static_cast<unsigned>(base - view.base);
    std::uint64_t missing = ~view.bitmap >> skipped;
    if (skipped > 0) missing &= (std::uint64_t{1} << (64 - skipped)) - 1;
    for (missing &= window.overtaken_bits(base); missing != 0; missing &= missing - 1) {
      const Sequence seq = base + static_cast<unsigned>(std::countr_zero(missing));
      if (window.contains(seq)) resend(seq, ResendReason::kPathOrder);
    }
  }

  template <typename Resend>
  void detect_by_time(TimeNs now, const SackView& view, const SendWindow& window,
                      const Situation& situation, Resend&& resend) const {
    const RttEstimator& rtt = *situation.rtt;
    const DurationNs spread = path_spread(situation);
    const DurationNs reordering = spread * reorder_scale_;
    Sequence seq = window.earliest_sent();
    for (unsigned step = 0; seq != SendWindow::kEnd && step < kMaxTimeScan; ++step) {
      const PacketRecord& packet = window.record(seq);
      // By how much it was sent before something that is known to have arrived.
      const DurationNs lead = newest_arrival_sent_at_ - packet.sent_at;
      // What waited at an end that was away is late for that reason, and will come with the rest.
      const TimeNs waited_since = std::max(packet.sent_at, rtt.held_up_at());
      const bool late = situation.everything_waits && now - waited_since >= rtt.smoothed() + spread;
      if (lead < reordering && !late) break;
      const Sequence following = window.sent_after(seq);
      // A path that delivers keeps its order: if this packet were gone, a later one would say so.
      const bool path_delivers = window.since_life(packet.ev, now) < reordering;
      const bool missing = view.fresh && view.reports_missing(seq);
      if (!path_delivers && lead >= reordering && missing) {
        resend(seq, ResendReason::kTime);
      } else if (!path_delivers && lead >= reordering + rtt.smoothed()) {
        resend(seq, ResendReason::kSilence);
      } else if (late && packet.transmissions == 1) {
        resend(seq, missing && !path_delivers ? ResendReason::kTime : ResendReason::kLate);
      }
      seq = following;
    }
  }

  TimeNs newest_arrival_sent_at_ = 0;
  TimeNs widened_at_ = 0;
  std::uint32_t acknowledged_since_widened_ = 0;
  std::uint8_t reorder_scale_ = 1;
};

}  // namespace mrc::core
