#include "sim/roce_network.h"

#include <algorithm>
#include <string>

#include "fabric/input_error.h"

namespace mrc::sim {
namespace {

// As time at the rate of the host links: 20 us are 1 MB at 400 Gb/s.
constexpr double kEcnMinUs = 4;
constexpr double kEcnMaxUs = 16;
constexpr double kEcnMaxProbability = 0.2;
constexpr double kPauseUs = 20;
constexpr std::uint32_t kPacketBytes = 4'300;

std::uint32_t or_default(std::uint32_t given, double us, const fabric::Topology& topology) {
  if (given != 0) return given;
  const auto bps = static_cast<double>(topology.spec().host_link.bits_per_second);
  return std::max(static_cast<std::uint32_t>(bps * us / 8e6), kPacketBytes);
}

void check(const RoceOptions& options) {
  const auto require = [](bool fine, const char* what) {
    if (!fine) throw fabric::InputError(std::string("rocev2: ") + what);
  };
  require(options.timeout <= 31, "the local ACK timeout is a number from 0 to 31");
  require(options.split_paths > 0, "a message is split into 1 or more parts");
  require(options.ack_every > 0, "an ACK is asked for every 1 or more packets");
  require(options.ecn_max_probability >= 0 && options.ecn_max_probability <= 1,
          "the ECN probability lies between 0 and 1");
  require(options.rates.gain > 0 && options.rates.gain < 1, "the gain lies between 0 and 1");
  require(options.rates.alpha_period_ps > 0 && options.rates.stage_period_ps > 0 &&
              options.rates.stage_bytes > 0,
          "the periods of DCQCN are longer than 0");
}

unsigned largest_radix(const fabric::Topology& topology) {
  const unsigned t0 = topology.hosts_per_t0() + topology.uplinks_per_t0();
  const unsigned t1 = topology.t0_per_pod() * topology.cables() + topology.t2_per_group();
  return std::max({t0, t1, topology.spec().pods});
}

}  // namespace

// Two flights of the link, the packet whose transmission has begun when the pause arrives, the one
// that was being received when it left, and the one that went over the threshold.
std::uint64_t pfc_headroom_bytes(const SimConfig& config, const fabric::Topology& topology) {
  const std::uint64_t packets = 3 * (std::uint64_t{config.path_mtu} + 128);
  std::uint64_t most = 0;
  for (unsigned tier = 0; tier < fabric::kLinkTiers; ++tier) {
    const fabric::LinkClass& c = topology.link_class(static_cast<fabric::LinkTier>(tier));
    const std::uint64_t flight =
        static_cast<std::uint64_t>(c.delay_ps) / 1'000 * (c.bits_per_second / 1'000'000) / 8'000;
    most = std::max(most, 2 * flight + packets);
  }
  return most;
}

void set_up_for_roce(const SimConfig& config, const fabric::Topology& topology,
                     NetworkConfig& network) {
  const RoceOptions& options = config.roce;
  check(options);
  network.mode = config.transport == Transport::kSplit ? fabric::ForwardingMode::kStructuredEv
                                                       : fabric::ForwardingMode::kEcmp;
  network.trimming = false;
  network.mark_last_hop = true;
  network.ecn_max_probability =
      options.ecn_max_probability > 0 ? options.ecn_max_probability : kEcnMaxProbability;
  const auto bdp = static_cast<double>(std::max<std::uint64_t>(network.plane_bdp_bytes, 1));
  network.queue_shares.ecn_min = or_default(options.ecn_min_bytes, kEcnMinUs, topology) / bdp;
  network.queue_shares.ecn_max = or_default(options.ecn_max_bytes, kEcnMaxUs, topology) / bdp;
  if (network.queue_shares.ecn_min > network.queue_shares.ecn_max)
    throw fabric::InputError("rocev2: ECN marks begin above the threshold where all are marked");
  if (!options.pfc) return;
  network.pfc.enabled = true;
  network.pfc.pause_bytes = or_default(options.pause_bytes, kPauseUs, topology);
  network.pfc.resume_bytes =
      network.pfc.pause_bytes - std::min(network.pfc.pause_bytes, 2 * kPacketBytes);
  // One port may have to hold what all others have sent.
  const auto held =
      static_cast<double>(network.pfc.pause_bytes + pfc_headroom_bytes(config, topology));
  network.queue_shares.capacity_dropping = largest_radix(topology) * held / bdp;
}

fabric::Path ecmp_path(const fabric::Routing& routing, const PacketHead& head, unsigned plane) {
  const fabric::Topology& topology = routing.topology();
  fabric::Path path;
  path.plane = static_cast<std::uint8_t>(plane);
  fabric::Link link = topology.describe(topology.host_up(plane, head.source));
  const auto next = [&] {
    link = topology.describe(
        routing.next_by_hash(link.to, head.source, head.destination, head.entropy));
  };
  next();
  if (link.to.kind != fabric::NodeKind::kT1) return path;
  path.up = static_cast<std::uint16_t>(link.to.index % topology.t1_per_pod() * topology.cables() +
                                       link.cable);
  next();
  if (link.to.kind != fabric::NodeKind::kT2) return path;
  path.t2 = static_cast<std::uint16_t>(link.to.index % topology.t2_per_group());
  return path;
}

}  // namespace mrc::sim
