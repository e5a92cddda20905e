// A SACK in sequence numbers, and whether it is news.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/planted_bug.h"
#include "core/send_window.h"
#include "wire/packet.h"

namespace mrc::core {

struct SackView {
  Sequence cumulative = 0;
  Sequence base = 0;  // of the bitmap
  std::uint64_t bitmap = 0;
  bool fresh = false;  // not older than the newest one seen, so "missing" means missing

  bool reports_missing(Sequence seq) const {
    if (seq == cumulative + 1) return true;
    return seq > cumulative && seq >= base && seq - base < 64 &&
           ((bitmap >> (seq - base)) & 1) == 0;
  }
};

// Owns what the newest SACK said of how much had arrived, which only grows at the responder: SACKs
// overtake each other on their paths, and an old one must not call packets missing that came since.
class SackReader {
 public:
  // False when the SACK cannot be about what is or was lately in this window.
  bool read(const wire::Sack& sack, const SendWindow& window, std::uint32_t window_psns,
            SackView& view) {
    view.cumulative = sequence_near(window.oldest() - 1, sack.cumulative);
    if (view.cumulative >= window.next()) {
      if (!MRC_BUG(kBelievesUnsentSack)) return false;
      view.cumulative = window.next() - 1;
    }
    if (view.cumulative + window_psns < window.oldest()) return false;  // of another age
    view.base = view.cumulative + static_cast<Sequence>(std::int64_t{sack.bitmap_offset});
    view.bitmap = sack.bitmap;
    const std::uint32_t ahead =
        (sack.received_units - newest_received_units_) & wire::kReceivedUnitsMask;
    // How many packets had arrived when it was written; small ones may share a unit of received
    // bytes. No more than were sent, whatever it says: else no later one would be fresh for as many
    // packets.
    const Sequence told = view.cumulative + sack.out_of_order_count;
    const Sequence arrived =
        MRC_BUG(kBelievesAnyOooCount) ? told : std::min(told, window.next() - 1);
    view.fresh = view.cumulative + 1 >= window.oldest() && ahead < kHalfReceivedUnits &&
                 arrived >= newest_arrived_;
    if (view.fresh) {
      newest_received_units_ = sack.received_units;
      newest_arrived_ = arrived;
    }
    if (MRC_BUG(kStaleSackIsFresh)) view.fresh = true;
    return true;
  }

 private:
  static constexpr std::uint32_t kHalfReceivedUnits = 0x80'0000;

  std::uint32_t newest_received_units_ = 0;
  Sequence newest_arrived_ = 0;
};

}  // namespace mrc::core
