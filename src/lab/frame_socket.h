// Batches of frames through a socket that carries one a message.
#pragma once

#include <array>
#include <span>

#include "lab/frame_pool.h"

namespace mrc::lab {

inline constexpr unsigned kFrameBatch = 32;

struct FrameBatch {
  struct Entry {
    FrameId frame = kNoFrame;
    bool truncated = false;  // it was longer than a frame can be
  };
  std::array<Entry, kFrameBatch> entries;
  unsigned count = 0;
  bool more = false;    // the socket may have more
  bool closed = false;  // by the other end
};

// Never blocks. The frames belong to the caller.
FrameBatch receive_frames(int socket, FramePool& pool);
// Sends as many as the socket takes, in order, and returns how many that were; the frames stay the
// caller's. `closed` when there is nobody at the other end.
std::size_t send_frames(int socket, FramePool& pool, std::span<const FrameId> frames, bool& closed);

}  // namespace mrc::lab
