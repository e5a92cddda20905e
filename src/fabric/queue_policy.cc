#include "fabric/queue_policy.h"

#include <algorithm>

namespace mrc::fabric {
namespace {

// However small the bandwidth-delay product, a queue holds a few packets of full size.
constexpr std::uint32_t kFullPacketBytes = 4'300;
constexpr std::uint32_t kMinCapacityBytes = 8 * kFullPacketBytes;

std::uint32_t share_of(double share, std::uint64_t bdp_bytes) {
  const double bytes = share * static_cast<double>(bdp_bytes);
  return bytes < 4e9 ? static_cast<std::uint32_t>(bytes) : 4'000'000'000;
}

}  // namespace

std::uint64_t plane_bdp_bytes(const Topology& topology, Picoseconds elsewhere_ps) {
  Picoseconds round_trip = elsewhere_ps;
  const unsigned hops = topology.longest_hops();
  for (unsigned hop = 0; hop < hops; ++hop) {
    const bool host_link = hop == 0 || hop + 1 == hops;
    const bool core_link = hops == 6 && (hop == 2 || hop == 3);
    const LinkTier tier = host_link   ? LinkTier::kHost
                          : core_link ? LinkTier::kT1T2
                                      : LinkTier::kT0T1;
    const LinkClass& link = topology.link_class(tier);
    round_trip += 2 * link.delay_ps + transmission_ps(kFullPacketBytes, link.bits_per_second);
  }
  const std::uint64_t rate = topology.spec().host_link.bits_per_second;
  return static_cast<std::uint64_t>(round_trip / 1'000'000) * (rate / 1'000) / 8'000;
}

QueuePolicy make_queue_policy(const QueueShares& shares, std::uint64_t plane_bdp_bytes, bool trims,
                              bool faces_host) {
  const double trimming = faces_host ? shares.capacity_last_hop_trimming : shares.capacity_trimming;
  const double data = trims ? trimming : shares.capacity_dropping;
  QueuePolicy policy;
  policy.data_capacity_bytes = std::max(share_of(data, plane_bdp_bytes), kMinCapacityBytes);
  policy.control_capacity_bytes =
      std::max(share_of(shares.control_capacity, plane_bdp_bytes), kMinCapacityBytes);
  policy.ecn_min_bytes = share_of(shares.ecn_min, plane_bdp_bytes);
  policy.ecn_max_bytes = share_of(shares.ecn_max, plane_bdp_bytes);
  policy.trims = trims;
  policy.marks = !faces_host;
  policy.faces_host = faces_host;
  return policy;
}

}  // namespace mrc::fabric
