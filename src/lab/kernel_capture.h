// Frames of cables between namespaces in a file, seen at the home end of each cable.
//
// They come through rings shared with the kernel, which copies a frame when it passes. A socket
// would hold on to the frame itself, and the kernel's SRv6 rewrites its header further on.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lab/capture.h"
#include "lab/netns_world.h"
#include "os/descriptor.h"

namespace mrc::lab {

class KernelCapture {
 public:
  // `now` is the lab's clock. Throws InputError when the file cannot be written, std::system_error
  // when the system refuses.
  KernelCapture(NetnsWorld& world, const fabric::Topology& topology, std::span<const LinkId> links,
                const CaptureOptions& options, Picoseconds now);

  // Descriptors that are readable when read() has something to do.
  std::vector<int> descriptors() const;
  void read();
  std::uint64_t finish() { return file_.finish(); }

 private:
  class Ring {
   public:
    Ring() = default;
    explicit Ring(int socket);  // throws std::system_error
    ~Ring();
    Ring(Ring&& other) noexcept : memory_(std::exchange(other.memory_, {})), next_(other.next_) {}
    Ring& operator=(Ring&&) = delete;
    // The slot the kernel fills next.
    std::byte* slot() const;
    void advance();

   private:
    std::span<std::byte> memory_;
    std::size_t next_ = 0;
  };
  struct Source {
    os::Descriptor socket;
    Ring ring;
    LinkId leaving = fabric::kNoLink;  // kNoLink: not wanted
    LinkId entering = fabric::kNoLink;
  };
  static std::vector<Source> open_sources(NetnsWorld& world, const fabric::Topology& topology,
                                          std::span<const LinkId> links);
  bool read_frame(Source& source);

  std::int64_t zero_ns_;  // of the lab's clock, on that of the system
  std::vector<Source> sources_;
  CaptureFile file_;
};

}  // namespace mrc::lab
