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
