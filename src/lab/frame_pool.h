// Buffers for the frames under way in a lab, all of one size, reused last in first out so that few
// of them stay warm. There is room in front of a frame for a tunnel header.
//
// Not thread safe. A number stays valid until it is given back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/assert.h"

namespace mrc::lab {

enum class FrameId : std::uint32_t {};
inline constexpr FrameId kNoFrame{0xFFFF'FFFF};

class FramePool {
 public:
  static constexpr std::size_t kHeadroom = 64;
  // Ethernet, two IPv6 headers, routing header, UDP, the longest transport part, and some more.
  static constexpr std::size_t kMaxFrameBytes = 9'152;

  // At most `limit` frames at a time.
  explicit FramePool(std::uint32_t limit) : limit_(limit) {}

  // kNoFrame when the limit is reached. The frame is empty and has its headroom.
  FrameId take();
  void give_back(FrameId id);

  std::span<std::byte> bytes(FrameId id) {
    Head& h = head(id);
    return {buffer(id) + h.offset, h.length};
  }
  // Where a new frame may be written.
  std::span<std::byte> room(FrameId id) { return {buffer(id) + kHeadroom, kMaxFrameBytes}; }
  void set_length(FrameId id, std::size_t length) {
    MRC_ASSERT(length <= kMaxFrameBytes);
    head(id).length = static_cast<std::uint16_t>(length);
  }
  // The frame grows by `count` bytes in front, at most up to the headroom.
  void grow_front(FrameId id, std::size_t count) {
    Head& h = head(id);
    MRC_ASSERT(count <= h.offset);
    h.offset = static_cast<std::uint16_t>(h.offset - count);
    h.length = static_cast<std::uint16_t>(h.length + count);
  }

  // A link for whoever holds the frame in a list.
  FrameId& next(FrameId id) { return head(id).next; }
  std::uint32_t in_use() const { return in_use_; }

 private:
  static constexpr std::uint32_t kPerSlab = 64;
  static constexpr std::size_t kSlotBytes = kHeadroom + kMaxFrameBytes;
  struct Head {
    FrameId next = kNoFrame;
    std::uint16_t offset = 0;
    std::uint16_t length = 0;
  };

  static std::uint32_t number(FrameId id) { return static_cast<std::uint32_t>(id); }
  Head& head(FrameId id) { return heads_[number(id)]; }
  std::byte* buffer(FrameId id) {
    return slabs_[number(id) / kPerSlab].get() + number(id) % kPerSlab * kSlotBytes;
  }

  std::uint32_t limit_;
  std::uint32_t in_use_ = 0;
  FrameId free_ = kNoFrame;
  std::vector<Head> heads_;
  std::vector<std::unique_ptr<std::byte[]>> slabs_;
};

}  // namespace mrc::lab
