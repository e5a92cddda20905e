// Frames on their way through the virtual network. They are reused, so a run needs as many as are
// in the network at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/types.h"
#include "demo/topology.h"

namespace mrc::demo {

inline constexpr std::size_t kPathMtu = 4096;
inline constexpr std::size_t kMaxFrameBytes = kPathMtu + 256;

// For the books only; the network itself looks at nothing but the bytes.
enum class FrameKind : std::uint8_t { kData, kProbe, kControl };

struct Frame {
  FrameKind kind = FrameKind::kData;
  Flow flow;
  TimeNs sent_at = 0;
  std::size_t length = 0;
  std::array<std::byte, kMaxFrameBytes> buffer;

  std::span<std::byte> bytes() { return std::span(buffer).first(length); }
  std::span<const std::byte> bytes() const { return std::span(buffer).first(length); }
};

enum class FrameId : std::uint32_t {};

class FramePool {
 public:
  Frame& operator[](FrameId id) { return frames_[static_cast<std::size_t>(id)]; }

  FrameId take() {
    if (free_.empty()) {
      frames_.emplace_back();
      return FrameId{static_cast<std::uint32_t>(frames_.size() - 1)};
    }
    const FrameId id = free_.back();
    free_.pop_back();
    return id;
  }
  void release(FrameId id) { free_.push_back(id); }

 private:
  std::deque<Frame> frames_;
  std::vector<FrameId> free_;
};

}  // namespace mrc::demo
