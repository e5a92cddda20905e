#include "lab/kernel_capture.h"

#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <map>
#include <system_error>

namespace mrc::lab {
namespace {

constexpr unsigned kSlotBytes = 16'384;  // a frame of the cables' MTU and what the kernel adds
constexpr unsigned kBlockBytes = 4 * kSlotBytes;
constexpr unsigned kSlots = 1'024;

std::int64_t nanoseconds(std::int64_t seconds, std::int64_t rest_ns) {
  return seconds * 1'000'000'000 + rest_ns;
}

std::int64_t system_time_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return nanoseconds(now.tv_sec, now.tv_nsec);
}

}  // namespace

KernelCapture::Ring::Ring(int socket) {
  const int version = TPACKET_V2;
  const tpacket_req request{.tp_block_size = kBlockBytes,
                            .tp_block_nr = kSlots * kSlotBytes / kBlockBytes,
                            .tp_frame_size = kSlotBytes,
                            .tp_frame_nr = kSlots};
  constexpr std::size_t kBytes = std::size_t{kSlots} * kSlotBytes;
  void* memory = MAP_FAILED;
  if (::setsockopt(socket, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) == 0 &&
      ::setsockopt(socket, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)) == 0) {
    memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, socket, 0);
  }
  if (memory == MAP_FAILED)
    throw std::system_error(errno, std::generic_category(), "memory for a capture");
  memory_ = {static_cast<std::byte*>(memory), kBytes};
}

KernelCapture::Ring::~Ring() {
  if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
}

std::byte* KernelCapture::Ring::slot() const { return memory_.data() + next_ * kSlotBytes; }
void KernelCapture::Ring::advance() { next_ = (next_ + 1) % kSlots; }

// The file comes last: who sees it may count on every frame from then on.
KernelCapture::KernelCapture(NetnsWorld& world, const fabric::Topology& topology,
                             std::span<const LinkId> links, const CaptureOptions& options,
                             Picoseconds now)
    : zero_ns_(system_time_ns() - now / fabric::kPicosecondsPerNs),
      sources_(open_sources(world, topology, links)),
      file_(topology, links, options) {}

std::vector<KernelCapture::Source> KernelCapture::open_sources(NetnsWorld& world,
                                                               const fabric::Topology& topology,
                                                               std::span<const LinkId> links) {
  std::vector<Source> sources;
  std::map<LinkId, std::size_t> by_cable;
  for (const LinkId link : links) {
    const bool leaves = world.plan().leaves_home(link);
    const LinkId cable = leaves ? link : topology.reverse(link);
    const auto [at, is_new] = by_cable.try_emplace(cable, sources.size());
    if (is_new) {
      const CableEnd end = world.plan().home_end(link);
      os::Descriptor socket = world.space(end.name_space).packet_socket(end.port, ETH_P_ALL);
      Ring ring(socket.get());
      sources.push_back({.socket = std::move(socket), .ring = std::move(ring)});
    }
    (leaves ? sources[at->second].leaving : sources[at->second].entering) = link;
  }
  return sources;
}

std::vector<int> KernelCapture::descriptors() const {
  std::vector<int> list;
  list.reserve(sources_.size());
  for (const Source& source : sources_)
    list.push_back(source.socket.get());
  return list;
}

// A whole ring at most of each, so that all have their turn.
void KernelCapture::read() {
  for (Source& source : sources_) {
    for (unsigned i = 0; i < kSlots && read_frame(source); ++i) {
    }
  }
  file_.flush();
}

bool KernelCapture::read_frame(Source& source) {
  std::byte* const slot = source.ring.slot();
  tpacket2_hdr head{};
  void* const untyped = slot;
  const std::atomic_ref<std::uint32_t> status(*static_cast<std::uint32_t*>(untyped));
  static_assert(offsetof(tpacket2_hdr, tp_status) == 0);
  if ((status.load(std::memory_order_acquire) & TP_STATUS_USER) == 0) return false;
  std::memcpy(&head, slot, sizeof(head));
  sockaddr_ll from{};
  std::memcpy(&from, slot + TPACKET_ALIGN(sizeof(head)), sizeof(from));
  const LinkId link = from.sll_pkttype == PACKET_OUTGOING ? source.leaving : source.entering;
  if (link != fabric::kNoLink) {
    const std::int64_t at_ns = nanoseconds(head.tp_sec, head.tp_nsec);
    file_.add(
        link, (at_ns - zero_ns_) * fabric::kPicosecondsPerNs,
        {slot + head.tp_mac, std::min<std::size_t>(head.tp_snaplen, kSlotBytes - head.tp_mac)});
  }
  status.store(TP_STATUS_KERNEL, std::memory_order_release);
  source.ring.advance();
  return true;
}

}  // namespace mrc::lab
