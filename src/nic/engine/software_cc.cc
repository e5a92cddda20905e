#include "nic/engine/software_cc.h"

#include <algorithm>

#include "base/types.h"
#include "wire/packet.h"

namespace mrc::nic {
namespace {

// Of a burst from a program to the network and back through the peer's, while both have a
// processor.
constexpr DurationNs kSystemCallsNs = 200 * kMicrosecondNs;
// What a round trip takes beyond that when both have to wait for one; labs size their queues for
// it, too (lab::NetworkOptions).
constexpr DurationNs kSchedulingNs = kMillisecondNs;
constexpr std::uint64_t kLargePacketBits = 4'352 * 8;
constexpr std::uint64_t kSlowestPort = 1'000'000;
constexpr DurationNs kHops = 4;
constexpr DurationNs kQueuedPackets = 8;
constexpr std::uint64_t kLeastWindowBytes = 64 * 1024;
constexpr std::uint64_t kLeastBufferBytes = 512 * 1024;
constexpr std::uint64_t kMostWindowBytes = 1024 * 1024;

// What the receive buffers of sockets hold (the peer's are taken to be like ours; the kernel counts
// up to twice what was sent), in whole bursts: one that a full window cuts in two leaves in two
// system calls, and so do all after it. More than 1 MiB leaves the caches: 2 MiB carried less in
// every case but that of 1,000 queue pairs.
std::uint64_t buffer_window(const SoftwarePorts& ports) {
  const std::uint64_t burst = std::uint64_t{ports.burst_packets} * ports.full_packet_bytes;
  const std::uint64_t window =
      std::clamp(ports.receive_buffer_bytes / 2, kLeastBufferBytes, kMostWindowBytes);
  return (window / burst + 1) * burst + ports.full_packet_bytes / 2;
}

// Slow ports hold less than buffers do: 512 KiB are 42 ms of two ports of 50 Mb/s, and two senders
// to one host that had that much under way lost a quarter of their packets in its switch.
std::uint64_t port_window(const SoftwarePorts& ports, DurationNs round_trip_ns) {
  const std::uint64_t bytes_per_ms = ports.bits_per_second / 8'000 * ports.ports;
  const std::uint64_t held =
      bytes_per_ms * static_cast<std::uint64_t>(round_trip_ns) / kMillisecondNs;
  return std::max(held * 3 / 2, kLeastWindowBytes);
}

}  // namespace

SoftwarePorts ports_of(const Backend& backend) {
  const wire::Packet packet{.bth = {.has_timestamp = true}, .body = wire::Write{}};
  return {.bits_per_second = std::max(backend.port_bits_per_second(), kSlowestPort),
          .ports = backend.port_count(),
          .receive_buffer_bytes = backend.receive_buffer_bytes(),
          .full_packet_bytes = wire::nominal_size(packet, backend.path_mtu()),
          .burst_packets = backend.burst_limit()};
}

// On slow ports the time counts that one packet takes on a link: it is spent at each hop, and
// queues are a few packets long. Where switches trim, the queue at the target is half of what a
// path holds while its ends wait for processors: the last hop's has room for three times that, and
// what finds none tells so at once. Where they drop, the target lets a window stand through those
// waits.
core::CcProfile software_cc(core::CcProfile given, const SoftwarePorts& ports) {
  core::NsccParameters& nscc = given.nscc;
  const auto unless_given = [](std::uint32_t& value, auto own) {
    if (value == 0) value = static_cast<std::uint32_t>(own);
  };
  const auto packet_ns =
      static_cast<DurationNs>(kLargePacketBits * kSecondNs / ports.bits_per_second);
  unless_given(nscc.base_rtt_ns, kSystemCallsNs + kHops * packet_ns);
  const DurationNs round_trip_ns = DurationNs{nscc.base_rtt_ns} + kSchedulingNs;
  unless_given(nscc.target_delay_ns, given.network_trims
                                         ? round_trip_ns / 2
                                         : kMillisecondNs + kQueuedPackets * packet_ns);
  unless_given(nscc.max_cwnd, std::min(buffer_window(ports), port_window(ports, round_trip_ns)));
  // Without trims only delay could trigger it.
  nscc.disable_qa = nscc.disable_qa || !(given.network_trims || nscc.qa_threshold_ns != 0);
  return given;
}

}  // namespace mrc::nic
