#include "fabric/presets.h"

#include <array>

#include "fabric/input_error.h"

namespace mrc::fabric {
namespace {

// The same rate and delay on every cable.
constexpr TopologySpec uniform(TopologySpec spec, unsigned gbps, unsigned delay_us = 1) {
  const LinkClass link{.bits_per_second = std::uint64_t{gbps} * 1'000'000'000,
                       .delay_ps = Picoseconds{delay_us} * 1'000'000};
  spec.host_link = link;
  spec.t0_t1_link = link;
  spec.t1_t2_link = link;
  return spec;
}

// A fat tree of switches with `radix` ports: as many hosts as it can hold at full bandwidth.
constexpr TopologySpec fat_tree(unsigned radix) {
  const unsigned half = radix / 2;
  return {.planes = 1,
          .hosts = radix * half * half,
          .t0 = radix * half,
          .t1 = radix * half,
          .pods = radix,
          .t2 = half * half};
}

constexpr std::array kPresets{
    Preset{"tiny", "16 hosts, 2 planes, for a first look",
           uniform({.planes = 2, .hosts = 16, .t0 = 4, .t1 = 4}, 100)},
    Preset{"anchor-128", "128 hosts at 400 Gb/s, one plane of 8 T0 and 16 T1",
           uniform({.planes = 1, .hosts = 128, .t0 = 8, .t1 = 16}, 400)},
    Preset{"anchor-128-planes", "the same hosts on 4 planes of 100 Gb/s",
           uniform({.planes = 4, .hosts = 128, .t0 = 8, .t1 = 16}, 100)},
    Preset{"anchor-128-wide", "128 hosts at 400 Gb/s, one plane of 16 T0 and 8 T1",
           uniform({.planes = 1, .hosts = 128, .t0 = 16, .t1 = 8}, 400)},
    Preset{"anchor-1024", "1,024 hosts at 400 Gb/s, one plane of 32 T0 and 32 T1",
           uniform({.planes = 1, .hosts = 1'024, .t0 = 32, .t1 = 32}, 400)},
    Preset{"anchor-8192", "8,192 hosts at 400 Gb/s, one plane of 128 T0 and 64 T1",
           uniform({.planes = 1, .hosts = 8'192, .t0 = 128, .t1 = 64}, 400)},
    Preset{"paper-64", "64 hosts on 4 planes of 100 Gb/s",
           uniform({.planes = 4, .hosts = 64, .t0 = 4, .t1 = 16}, 100)},
    Preset{"paper-32768", "32,768 NICs, 4 planes of 200 Gb/s, 256-port switches",
           uniform({.planes = 4, .hosts = 32'768, .t0 = 256, .t1 = 128}, 200)},
    Preset{"paper-131072", "131,072 NICs, 8 planes of 100 Gb/s, 512-port switches",
           uniform({.planes = 8, .hosts = 131'072, .t0 = 512, .t1 = 256}, 100)},
    Preset{"fat-tree-1024", "1,024 hosts at 400 Gb/s, three tiers of 16-port switches",
           uniform(fat_tree(16), 400)},
    Preset{"fat-tree-65536", "65,536 NICs at 800 Gb/s, three tiers of 64-port switches",
           uniform(fat_tree(64), 800)},
};

}  // namespace

std::span<const Preset> presets() { return kPresets; }

const Preset& find_preset(std::string_view name) {
  std::string known;
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return preset;
    known += known.empty() ? "" : ", ";
    known += preset.name;
  }
  throw InputError("there is no preset '" + std::string(name) + "'; known are " + known);
}

}  // namespace mrc::fabric
