// What an entry of the UDP back end's epoll set stands for.
#pragma once

#include <cstdint>

namespace mrc::nic {

enum class EpollSource : std::uint8_t { kReceive, kSend, kInterfaces, kNeighbours };

constexpr std::uint32_t epoll_tag(EpollSource source, unsigned plane) {
  return static_cast<std::uint32_t>(source) << 8 | plane;
}
constexpr EpollSource epoll_source(std::uint32_t tag) { return static_cast<EpollSource>(tag >> 8); }
constexpr unsigned epoll_plane(std::uint32_t tag) { return tag & 0xFF; }

}  // namespace mrc::nic
