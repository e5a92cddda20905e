#include "dst/swarm.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>

#include "dst/random.h"
#include "dst/theme.h"

namespace mrc::dst {
namespace {

// The highest chance per million packets of each fault that strikes single packets.
struct PacketRate {
  Fault fault;
  std::uint32_t highest_ppm;
};
constexpr PacketRate kPacketRates[] = {
    {Fault::kLoss, 300'000},
    {Fault::kLossBurst, 20'000},
    {Fault::kLossPeriodic, 200'000},
    {Fault::kLossFirstOfMessage, 400'000},
    {Fault::kLossLastOfMessage, 400'000},
    {Fault::kLossFeedback, 500'000},
    {Fault::kLossRetransmission, 500'000},
    {Fault::kDuplicateNow, 500'000},
    {Fault::kDuplicateLate, 300'000},
    {Fault::kDuplicateAfterCompletion, 50'000},
    {Fault::kReorderSmall, 400'000},
    {Fault::kReorderWindow, 200'000},
    {Fault::kFlipHeader, 200'000},
    {Fault::kFlipPayload, 300'000},
    {Fault::kMutateField, 100'000},
    {Fault::kTruncate, 100'000},
    {Fault::kExtend, 100'000},
    {Fault::kTrim, 300'000},
    {Fault::kTrimLastHop, 300'000},
    {Fault::kStaleReplay, 100'000},
    {Fault::kReplayAfterReuse, 300'000},
    {Fault::kForgedSource, 100'000},
    {Fault::kMisforward, 50'000},
    {Fault::kTimerLate, 500'000},
    {Fault::kTimerEarly, 500'000},
    {Fault::kOutOfBuffers, 200'000},
};

bool is_consequence(Fault fault) {
  return fault == Fault::kQueueMark || fault == Fault::kQueueTrim || fault == Fault::kQueueDrop;
}

std::uint32_t draw_rate(Random& random, Fault fault) {
  for (const PacketRate& rate : kPacketRates) {
    if (rate.fault == fault) return random.logarithmic(500, rate.highest_ppm);
  }
  return random.logarithmic(1, 12);  // episodes
}

// The share of the catalogue that a seed draws from, in percent.
std::uint32_t draw_density(Random& random) {
  static constexpr std::uint32_t kDensities[] = {0, 2, 4, 8, 8, 15, 15, 30, 50};
  return kDensities[random.below(std::size(kDensities))];
}

void draw_faults(Random& random, Swarm& swarm) {
  const std::uint32_t density = draw_density(random);
  for (std::size_t i = 0; i < kFaultCount; ++i) {
    const auto fault = static_cast<Fault>(i);
    if (fault >= Fault::kProfileChange) break;
    const bool on = random.percent(density) && !is_consequence(fault);
    const std::uint32_t rate = draw_rate(random, fault);
    swarm.faults[fault] = {on, on ? rate : 0};
  }
  // Replays from earlier connections need earlier connections.
  if (swarm.on(Fault::kReplayAfterReuse)) {
    swarm.faults[Fault::kQpNumberReuse] = {true, random.between(2, 12)};
  }
  // A peer that is gone is noticed only by retries that end.
  swarm.retries_limited = swarm.on(Fault::kRetryExhaustion) || swarm.on(Fault::kCrash) ||
                          swarm.on(Fault::kLocalFailure);
  if (swarm.on(Fault::kAllButOneDead) && !swarm.retries_limited && random.one_in(2)) {
    swarm.dead_for_ever = DeadForEver::kAllButOnePath;
    // Looking for the one path takes a time that grows with the number of pairs of paths.
    swarm.ports = std::min(swarm.ports, kMaxSearchedEvs);
  }
}

unsigned draw_hosts(Random& random) {
  const std::uint32_t dice = random.below(100);
  if (dice < 45) return 2;
  if (dice < 65) return 3;
  if (dice < 83) return random.between(4, 6);
  if (dice < 97) return random.between(7, 16);
  return random.between(17, 64);
}

unsigned draw_ports(Random& random) {
  static constexpr unsigned kPorts[] = {1, 1, 2, 2, 3, 4, 4, 8, 16};
  return kPorts[random.below(std::size(kPorts))];
}

void draw_shape(Random& random, Swarm& swarm) {
  swarm.hosts = draw_hosts(random);
  swarm.ports = draw_ports(random);
  swarm.port_bits_per_second = std::uint64_t{random.logarithmic(10, 400)} * 1'000'000'000;
  swarm.connections = random.between(1, 2 * swarm.hosts);
  swarm.packets = random.logarithmic(1'500, 40'000);
  swarm.fault_phase_ns = random.duration(kMillisecondNs, 16 * kMillisecondNs);
  swarm.carries_bytes = random.one_in(4);
}

void draw_network(Random& random, Swarm& swarm) {
  swarm.fifo_paths = !random.one_in(5);
  swarm.retransmissions_overtake = random.one_in(3);
  swarm.switches_trim = !random.one_in(3);
  swarm.last_hop_marks = random.one_in(4);
  swarm.never_mark = random.one_in(8);
  swarm.spines = random.logarithmic(1, 32);
  const std::uint64_t share = swarm.port_bits_per_second / 4;
  swarm.spine_bits_per_second = share * random.between(1, 12);
  swarm.queue_bytes = random.logarithmic(12'000, 600'000);
  swarm.mark_bytes = random.between(2'000, swarm.queue_bytes);
  swarm.min_delay_ns = random.duration(300, 3'000);
  swarm.max_delay_ns = swarm.min_delay_ns + random.logarithmic(200, 40'000);
  swarm.jitter_ns = random.one_in(3) ? 0 : random.logarithmic(50, 5'000);
  swarm.regime_ns = random.duration(20 * kMicrosecondNs, kMillisecondNs);
}

// Few seeds do this, for it takes its time: message numbers have 16 bits.
void make_many_tiny_messages(Swarm& swarm) {
  swarm.many_tiny_messages = true;
  swarm.hosts = 2;
  swarm.connections = 1;
  swarm.packets = 150'000;
  swarm.fault_phase_ns = 60 * kMillisecondNs;
  for (const PacketRate& rate : kPacketRates) {
    Knob& knob = swarm.faults[rate.fault];
    knob.rate = std::min(knob.rate, 20'000U);
  }
}

}  // namespace

Swarm draw_swarm(std::uint64_t seed) {
  Random random(seed, Stream::kSwarm);
  Swarm swarm;
  swarm.seed = seed;
  draw_shape(random, swarm);
  draw_network(random, swarm);
  draw_faults(random, swarm);
  if (random.one_in(100)) make_many_tiny_messages(swarm);
  apply_theme(swarm);
  return swarm;
}

std::string describe(const Swarm& swarm) {
  static constexpr const char* kDeadNames[] = {"", ", one path for ever", ", some paths for ever",
                                               ", one plane for ever"};
  char head[320];
  std::snprintf(head, sizeof head,
                "seed %" PRIu64 ": %u hosts, %u ports at %" PRIu64
                " Gb/s, %u connections, %u packets, fault phase %" PRId64 " us, %s, %s, %s%s%s%s",
                swarm.seed, swarm.hosts, swarm.ports, swarm.port_bits_per_second / 1'000'000'000,
                swarm.connections, swarm.packets, swarm.fault_phase_ns / kMicrosecondNs,
                swarm.carries_bytes ? "frames" : "structs",
                swarm.fifo_paths ? "fifo paths" : "unordered paths",
                swarm.switches_trim ? "trimming" : "dropping",
                swarm.many_tiny_messages ? ", many tiny messages" : "",
                swarm.retries_limited ? ", limited retries" : "",
                swarm.heals() ? "" : kDeadNames[static_cast<std::size_t>(swarm.dead_for_ever)]);
  std::string text = head;
  const Theme theme = theme_of_seed(swarm.seed);
  if (theme != Theme::kAny) text += std::string(", theme ") + theme_name(theme);
  if (theme == Theme::kDialects) {
    text += ", dialect " + std::string(wire::dialect_text(swarm.dialect).view());
  }
  const std::size_t before_faults = text.size();
  for (std::size_t i = 0; i < kFaultCount; ++i) {
    const auto fault = static_cast<Fault>(i);
    if (!swarm.on(fault)) continue;
    text += text.size() == before_faults ? "; faults: " : ", ";
    text += fault_name(fault);
    text += ' ';
    text += std::to_string(swarm.rate(fault));
  }
  return text;
}

}  // namespace mrc::dst
