// A NAK that is held against what comes next.
//
// A transport NAK has neither contexts nor an echo, so that it cannot prove itself, and a true one
// may have been caused by a packet that somebody else made up. What helps is asking: the packet is
// sent once more, and a truth repeats itself. Believed is the second NAK for a PSN, if a copy left
// after the first came and its answer can be back, and if by now an acknowledgement of either would
// be here, too: NAKs of one volley come on paths that take 0.4 and 1.9 us, and prove nothing. Who
// says it sooner is asked again, and so is who says it long after the last copy left: that may be a
// NAK of the first volley that the network kept, 80 us in a round trip of 2. Each question doubles
// what counts as long, and each copy that is refused too soon halves what counts as soon, since
// nobody may have told yet how long answers take: a peer that refuses everything gives few samples,
// and the only one may be of 480 us where 22 are usual. Of a packet that was
// acknowledged there is nothing to send again: copies of an old NAK would do. A peer that
// acknowledges first and refuses later, as a card may, has failed then, and what it said is why.
//
// Owns the one NAK in doubt. Of several the lowest PSN counts; one above it waits until it is
// refused again. Sends nothing and knows no window.
#pragma once

#include <cstdint>

#include "base/planted_bug.h"
#include "base/types.h"
#include "core/send_window.h"
#include "core/work.h"

namespace mrc::core {

class RefusalDoubt {
 public:
  // What is known of the packet that is refused.
  struct Refused {
    Sequence seq = SendWindow::kEnd;
    bool open = false;           // not acknowledged
    TimeNs sent_at = 0;          // open ones: their last copy
    DurationNs fastest_ns = 0;   // no answer to it can be back sooner
    DurationNs patience_ns = 0;  // by then there is one
  };

  // True: this one is believed. False: it is held against the next; `ask` when the packet is to be
  // sent again.
  bool weigh(TimeNs now, const Refused& refused, CompletionStatus status, bool& ask) {
    ask = false;
    if (MRC_BUG(kBelievesTheFirstNak)) return true;
    if (refused.seq == seq_) return weigh_again(now, refused, ask);
    if (refused.seq > seq_ && seq_ != SendWindow::kEnd) return false;
    seq_ = refused.seq;
    since_ = now;
    status_ = status;
    was_open_ = refused.open;
    soon_for_ = kNever;
    asked_ = too_soon_ = 0;
    ask = true;
    return false;
  }

  // Everything before `oldest` has arrived, so that nothing of it was refused.
  void note_arrived(Sequence oldest) {
    if (seq_ < oldest && was_open_) clear();
  }
  void clear() { seq_ = SendWindow::kEnd; }

  bool any() const { return seq_ != SendWindow::kEnd; }
  Sequence seq() const { return seq_; }
  CompletionStatus status() const { return status_; }

 private:
  bool weigh_again(TimeNs now, const Refused& refused, bool& ask) {
    if (MRC_BUG(kVolleyIsProof)) return true;
    if (was_open_ && !refused.open) {  // it was acknowledged: a lie
      clear();
      return false;
    }
    if (!refused.open || refused.sent_at < since_) return false;
    const DurationNs taken = now - refused.sent_at;
    if (taken < refused.fastest_ns >> too_soon_) {
      const bool counts = refused.sent_at != soon_for_ && !MRC_BUG(kTooSoonForEver);
      if (counts && too_soon_ < kMostDoublings) ++too_soon_;
      soon_for_ = refused.sent_at;
      return false;
    }
    const bool in_time = taken <= refused.patience_ns << asked_;
    if (in_time && now - since_ >= refused.patience_ns) return true;
    if (asked_ < kMostDoublings) ++asked_;
    ask = true;
    return false;
  }

  static constexpr std::uint8_t kMostDoublings = 16;

  Sequence seq_ = SendWindow::kEnd;
  TimeNs since_ = 0;
  CompletionStatus status_{};
  TimeNs soon_for_ = kNever;  // when the copy left that was refused too soon
  bool was_open_ = false;
  std::uint8_t asked_ = 0;     // again
  std::uint8_t too_soon_ = 0;  // copies
};

}  // namespace mrc::core
