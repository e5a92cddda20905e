// Frames for those who make the UDP payload themselves or read it in a way of their own, as sealed
// packets want it (src/seal): what stands around it is that of any frame, and so these functions
// stand in frame.cc beside theirs.
#pragma once

#include <cstddef>
#include <span>

#include "wire/frame.h"

namespace mrc::wire {

// Writes all that stands before a UDP payload of that length and returns how long it is; 0 if frame
// and payload do not fit `out` or the length fields.
[[nodiscard]] std::size_t build_frame_headers(const FrameFormat& format, const FrameHeader& header,
                                              std::size_t datagram_length,
                                              std::span<std::byte> out);

// The UDP payload of a frame, whole or what is left of it: a view into `frame`. Nothing in it is
// looked at.
[[nodiscard]] DropReason find_datagram(const FrameFormat& format, std::span<const std::byte> frame,
                                       FrameHeader& header, std::span<const std::byte>& datagram);

// As trim_frame(), for a frame whose UDP payload is to keep its first `keep` bytes; 0 also if it
// has no more than that.
[[nodiscard]] std::size_t trim_frame_to(const FrameFormat& format, std::span<std::byte> frame,
                                        bool last_hop, std::size_t keep);

}  // namespace mrc::wire
