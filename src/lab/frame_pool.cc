#include "lab/frame_pool.h"

namespace mrc::lab {

FrameId FramePool::take() {
  if (in_use_ == limit_) return kNoFrame;
  if (free_ == kNoFrame) {
    const auto first = static_cast<std::uint32_t>(heads_.size());
    slabs_.push_back(std::make_unique_for_overwrite<std::byte[]>(kPerSlab * kSlotBytes));
    heads_.resize(first + kPerSlab);
    for (std::uint32_t i = kPerSlab; i-- > 0;) {
      heads_[first + i].next = free_;
      free_ = FrameId{first + i};
    }
  }
  const FrameId id = free_;
  free_ = head(id).next;
  head(id) = {.next = kNoFrame, .offset = kHeadroom, .length = 0};
  ++in_use_;
  return id;
}

void FramePool::give_back(FrameId id) {
  MRC_ASSERT(in_use_ > 0);
  --in_use_;
  head(id).next = free_;
  free_ = id;
}

}  // namespace mrc::lab
