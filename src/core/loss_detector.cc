#include "core/loss_detector.h"

namespace mrc::core {

// Packets sent before the last time were judged by the narrower window: together they are one false
// alarm.
void LossDetector::note_false_alarm(TimeNs sent_at, TimeNs now) {
  acknowledged_since_widened_ = 0;
  if (sent_at < widened_at_ || reorder_scale_ >= kMaxReorderScale) return;
  widened_at_ = now;
  reorder_scale_ = static_cast<std::uint8_t>(reorder_scale_ * 2);
}

// A wide window makes a dead path last: what was allowed for once is taken back step by step.
void LossDetector::note_acknowledged() {
  if (reorder_scale_ == 1 || ++acknowledged_since_widened_ < kForgiveAfterPackets) return;
  acknowledged_since_widened_ = 0;
  reorder_scale_ /= 2;
}

}  // namespace mrc::core
