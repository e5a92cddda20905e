#include "fabric/topology_options.h"

#include <array>
#include <cmath>
#include <string>

#include "fabric/input_error.h"

namespace mrc::fabric {
namespace {

using Options = TopologyOptions;

constexpr std::array kCountKeys{
    TopologyKey<unsigned>{"planes", &Options::planes, "Separate equal networks, 1 to 16"},
    TopologyKey<unsigned>{"hosts", &Options::hosts, "Hosts, each with a port in every plane"},
    TopologyKey<unsigned>{"hosts_per_t0", &Options::hosts_per_t0, "Hosts on each T0 switch"},
    TopologyKey<unsigned>{"t0", &Options::t0, "T0 switches in a plane"},
    TopologyKey<unsigned>{"t1", &Options::t1, "T1 switches in a plane"},
    TopologyKey<unsigned>{"pods", &Options::pods, "Pods of a fabric with three tiers"},
    TopologyKey<unsigned>{"t2", &Options::t2, "T2 switches in a plane, 0 for two tiers"},
    TopologyKey<unsigned>{"cables", &Options::cables, "Cables between a T0 and a T1"},
};
constexpr std::array kNumberKeys{
    TopologyKey<double>{"gbps", &Options::gbps, "Rate of all links in Gb/s"},
    TopologyKey<double>{"uplink_gbps", &Options::uplink_gbps, "Rate of the links above T0"},
    TopologyKey<double>{"core_gbps", &Options::core_gbps, "Rate of the links between T1 and T2"},
    TopologyKey<double>{"delay_us", &Options::delay_us, "Delay of all links in microseconds"},
    TopologyKey<double>{"uplink_delay_us", &Options::uplink_delay_us,
                        "Delay of the links above T0"},
    TopologyKey<double>{"core_delay_us", &Options::core_delay_us,
                        "Delay of the links between T1 and T2"},
    TopologyKey<double>{"oversubscription", &Options::oversubscription,
                        "Bandwidth of a T0's hosts over that of its uplinks; sets t1, or the "
                        "uplink rate where t1 is given"},
};

[[noreturn]] void fail(const std::string& why) { throw InputError("topology: " + why); }

void check_numbers(const Options& options) {
  for (const TopologyKey<double>& key : kNumberKeys) {
    const std::optional<double>& value = options.*key.member;
    if (value && !(*value > 0 && *value < 1e6))
      fail(std::string(key.name) + " must be above 0 and below a million");
  }
}

std::uint64_t bits_per_second(double gbps) {
  return static_cast<std::uint64_t>(std::llround(gbps * 1e9));
}

void set_links(const Options& options, TopologySpec& spec) {
  if (options.gbps) {
    for (LinkClass* link : {&spec.host_link, &spec.t0_t1_link, &spec.t1_t2_link})
      link->bits_per_second = bits_per_second(*options.gbps);
  }
  if (options.uplink_gbps) {
    spec.t0_t1_link.bits_per_second = bits_per_second(*options.uplink_gbps);
    spec.t1_t2_link.bits_per_second = bits_per_second(*options.uplink_gbps);
  }
  if (options.core_gbps) spec.t1_t2_link.bits_per_second = bits_per_second(*options.core_gbps);

  const auto delay_ps = [](double us) { return static_cast<Picoseconds>(std::llround(us * 1e6)); };
  if (options.delay_us) {
    for (LinkClass* link : {&spec.host_link, &spec.t0_t1_link, &spec.t1_t2_link})
      link->delay_ps = delay_ps(*options.delay_us);
  }
  if (options.uplink_delay_us) {
    spec.t0_t1_link.delay_ps = delay_ps(*options.uplink_delay_us);
    spec.t1_t2_link.delay_ps = delay_ps(*options.uplink_delay_us);
  }
  if (options.core_delay_us) spec.t1_t2_link.delay_ps = delay_ps(*options.core_delay_us);
}

void set_counts(const Options& options, TopologySpec& spec) {
  spec.planes = options.planes.value_or(spec.planes);
  spec.hosts = options.hosts.value_or(spec.hosts);
  spec.t0 = options.t0.value_or(spec.t0);
  spec.t1 = options.t1.value_or(spec.t1);
  spec.pods = options.pods.value_or(spec.pods);
  spec.t2 = options.t2.value_or(spec.t2);
  spec.cables = options.cables.value_or(spec.cables);
  if (!options.hosts_per_t0) return;
  const unsigned per_t0 = *options.hosts_per_t0;
  if (options.t0 && options.hosts) fail("give two of hosts, t0 and hosts_per_t0, not all three");
  if (per_t0 == 0) fail("hosts_per_t0 must be above 0");
  if (options.t0) {
    const std::uint64_t hosts = std::uint64_t{per_t0} * spec.t0;
    if (hosts > 0x4000'0000) fail("too many hosts");
    spec.hosts = static_cast<unsigned>(hosts);
    return;
  }
  if (spec.hosts % per_t0 != 0) {
    fail(std::to_string(spec.hosts) + " hosts cannot be split into T0s of " +
         std::to_string(per_t0));
  }
  spec.t0 = spec.hosts / per_t0;
}

// Expects everything else to be settled.
void oversubscribe(const Options& options, TopologySpec& spec) {
  const double ratio = *options.oversubscription;
  if (options.t1 && options.uplink_gbps)
    fail("give two of t1, uplink_gbps and oversubscription, not all three");
  if (spec.t0 == 0 || spec.pods == 0 || spec.cables == 0 || spec.hosts % spec.t0 != 0)
    return;  // refused later
  const unsigned hosts_per_t0 = spec.hosts / spec.t0;
  const double uplink_bps =
      hosts_per_t0 * static_cast<double>(spec.host_link.bits_per_second) / ratio;
  if (options.t1) {
    const unsigned t1_per_pod = spec.t1 / spec.pods;
    if (t1_per_pod == 0) return;
    spec.t0_t1_link.bits_per_second =
        static_cast<std::uint64_t>(std::llround(uplink_bps / t1_per_pod / spec.cables));
    return;
  }
  const double uplinks =
      uplink_bps / static_cast<double>(spec.t0_t1_link.bits_per_second) / spec.cables;
  const double whole = std::round(uplinks);
  if (whole < 1 || whole > 65'536 || std::fabs(uplinks - whole) > 1e-6) {
    fail("this oversubscription makes " + std::to_string(uplinks) +
         " T1s in a pod, which is no whole number up to 65536");
  }
  spec.t1 = static_cast<unsigned>(whole) * spec.pods;
}

}  // namespace

std::span<const TopologyKey<unsigned>> topology_count_keys() { return kCountKeys; }
std::span<const TopologyKey<double>> topology_number_keys() { return kNumberKeys; }

TopologySpec resolve_topology(const TopologySpec& base, const TopologyOptions& options) {
  check_numbers(options);
  TopologySpec spec = base;
  set_counts(options, spec);
  set_links(options, spec);
  if (options.oversubscription) oversubscribe(options, spec);
  return Topology(spec).spec();
}

}  // namespace mrc::fabric
