// Long flows that must share links: several on one, and one that crosses two busy ones.

#include <string>

#include "fabric/input_error.h"
#include "sim/workload_makers.h"

namespace mrc::sim {
namespace {

using fabric::InputError;
using fabric::Topology;

void require(bool fine, const std::string& why) {
  if (!fine) throw InputError("workload: " + why);
}

}  // namespace

// The i-th host of the first rack sends to the i-th of the second; each begins `stagger_ps` after
// the one before.
Workload make_fairness(const WorkloadSpec& spec, const Topology& topology) {
  const unsigned most = topology.hosts_per_t0();
  require(topology.spec().t0 >= 2, "fairness needs two racks");
  require(spec.senders >= 2 && spec.senders <= most, "fairness has 2 to " + std::to_string(most) +
                                                         " senders on this fabric, not " +
                                                         std::to_string(spec.senders));
  WorkloadBuilder builder("fairness");
  builder.record_shares();
  for (unsigned i = 0; i < spec.senders; ++i) {
    const TaskRange parts = add_transfer(builder, spec.connections, i, most + i, spec.bytes);
    for (unsigned p = 0; p < parts.count; ++p)
      builder.task(parts.first + p).delay = spec.stagger_ps * i;
  }
  return builder.build();
}

// Racks A, B, C: `crossing` flows from A to C, as many from C to B, and one from A to B, which
// shares the way out of A with the first and the way into B with the second.
Workload make_parking_lot(const WorkloadSpec& spec, const Topology& topology) {
  const unsigned hosts = topology.hosts_per_t0();
  require(topology.spec().t0 >= 3, "a parking lot needs three racks");
  require(hosts >= 2 && spec.crossing >= 1 && spec.crossing < hosts,
          "a parking lot has 1 to " + std::to_string(hosts < 2 ? 1 : hosts - 1) +
              " crossing flows on this fabric, not " + std::to_string(spec.crossing));
  const std::uint64_t through = spec.through_bytes == 0 ? spec.bytes : spec.through_bytes;
  require(through >= spec.connections && through >> kTaskAddressBits == 0,
          "the bytes of the through flow must be from " + std::to_string(spec.connections) +
              " to " + std::to_string((std::uint64_t{1} << kTaskAddressBits) - 1));
  WorkloadBuilder builder("parking-lot");
  builder.record_shares();
  const unsigned b = hosts;
  const unsigned c = 2 * hosts;
  for (unsigned i = 0; i < spec.crossing; ++i)
    add_transfer(builder, spec.connections, i, c + i, spec.bytes);
  for (unsigned i = 0; i < spec.crossing; ++i)
    add_transfer(builder, spec.connections, c + i, b + i, spec.bytes);
  const TaskRange parts =
      add_transfer(builder, spec.connections, spec.crossing, b + spec.crossing, through);
  for (unsigned p = 0; p < parts.count; ++p)
    builder.task(parts.first + p).victim = true;
  return builder.build();
}

}  // namespace mrc::sim
