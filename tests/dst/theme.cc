#include "dst/theme.h"

#include <algorithm>

#include "dst/random.h"

namespace mrc::dst {
namespace {

constexpr std::array<const char*, kThemeCount> kNames = {
    "any",      "one-path",   "some-paths", "last-port",    "idle",
    "many-qps", "stalls",     "windows",    "software-nic", "bottleneck",
    "dialects", "controller", "narrow",     "forger",       "insider"};

void switch_on(Swarm& swarm, Fault fault, std::uint32_t rate) {
  swarm.faults[fault] = {true, rate};
}

// Whoever looks for the last path must not give up, and the search grows with the number of paths.
void leave_few_paths(Random& random, Swarm& swarm, DeadForEver dead) {
  for (const Fault fault : {Fault::kRetryExhaustion, Fault::kCrash, Fault::kLocalFailure}) {
    swarm.faults[fault] = {};
  }
  swarm.retries_limited = false;
  swarm.dead_for_ever = dead;
  swarm.ports = std::min(swarm.ports, kMaxSearchedEvs);
  if (random.one_in(2)) switch_on(swarm, Fault::kAllButOneDead, random.between(1, 12));
  const bool port_comes_back = dead == DeadForEver::kAllButOnePlane;
  if (port_comes_back || random.one_in(2)) {
    switch_on(swarm, Fault::kPortDown, random.between(1, 12));
  }
  if (random.one_in(4)) switch_on(swarm, Fault::kPlaneDead, random.between(1, 12));
}

void make_idle(Random& random, Swarm& swarm) {
  swarm.fault_phase_ns = random.duration(50 * kMillisecondNs, kSecondNs);
  swarm.longest_think_ns = swarm.fault_phase_ns / 4;
  swarm.packets = std::min(swarm.packets, 6'000U);
  swarm.most_evs = 32;
}

void make_many_qps(Random& random, Swarm& swarm) {
  swarm.hosts = random.between(2, 3);
  swarm.connections = random.between(16, 64);
  swarm.most_evs = 64;
}

void make_stalls(Random& random, Swarm& swarm) {
  switch_on(swarm, Fault::kPause, random.between(2, 16));
  if (random.one_in(2)) switch_on(swarm, Fault::kSlowConsumer, random.between(1, 12));
  if (random.one_in(2)) switch_on(swarm, Fault::kTimerLate, random.logarithmic(500, 500'000));
  if (random.one_in(3)) switch_on(swarm, Fault::kOutOfBuffers, random.logarithmic(500, 200'000));
  if (random.one_in(3)) switch_on(swarm, Fault::kClockJump, random.between(1, 12));
}

void make_windows(Random& random, Swarm& swarm) {
  switch_on(swarm, Fault::kWindowChange, random.between(12, 60));
  if (random.one_in(2)) switch_on(swarm, Fault::kLoss, random.logarithmic(500, 300'000));
  if (random.one_in(2)) switch_on(swarm, Fault::kReorderWindow, random.logarithmic(500, 200'000));
  if (random.one_in(3)) switch_on(swarm, Fault::kDuplicateLate, random.logarithmic(500, 300'000));
  swarm.psns_before_wrap = random.logarithmic(1, 1'024);
}

void make_software_nic(Random& random, Swarm& swarm) {
  swarm.end_jitter_ns = random.duration(10 * kMicrosecondNs, kMillisecondNs);
  swarm.group_answers = true;
  swarm.spray_quantum = random.logarithmic(1, 64);
  if (random.one_in(2)) switch_on(swarm, Fault::kPause, random.between(1, 8));
  if (random.one_in(2)) switch_on(swarm, Fault::kTimerLate, random.logarithmic(500, 500'000));
}

// Up to sixteen hosts share one queue at a quarter to a fortieth of a port's rate, and hundreds of
// paths all go through it: what is sent whatever the window says must not be what fills it.
void make_bottleneck(Random& random, Swarm& swarm) {
  swarm.hosts = random.between(6, 16);
  swarm.connections = random.between(swarm.hosts, 2 * swarm.hosts);
  swarm.ports = random.between(1, 2);
  swarm.spines = 1;
  swarm.spine_bits_per_second = swarm.port_bits_per_second / random.logarithmic(4, 40);
  swarm.packets = std::min(swarm.packets, 12'000U);
  if (random.one_in(2)) swarm.switches_trim = false;
}

// One of the values of a field.
std::uint16_t draw_value(Random& random, const wire::DialectField& field) {
  if (field.choices.empty()) {
    return static_cast<std::uint16_t>(random.between(field.min, field.max));
  }
  return field.choices[random.below(static_cast<std::uint32_t>(field.choices.size()))].value;
}

// What the engine does not see makes no difference to it: numbers that begin elsewhere and wrap,
// halves and bits in other places. An unknown NAK is nothing that an engine sends, and to believe
// one that was made up is what the dialect asks for.
void draw_dialect(Random& random, Swarm& swarm) {
  swarm.carries_bytes = true;
  if (random.one_in(8)) swarm.dialect = wire::kCard;
  for (const wire::DialectField& field : wire::dialect_fields()) {
    if (random.one_in(2)) field.set(swarm.dialect, draw_value(random, field));
  }
  swarm.dialect.unknown_nak = wire::UnknownNak::kDrop;
}

// Paths and congestion settings that a controller changes under queue pairs in use.
void make_controller(Random& random, Swarm& swarm) {
  swarm.faults[Fault::kAllButOneDead] = {};
  swarm.dead_for_ever = DeadForEver::kNothing;
  switch_on(swarm, Fault::kProfileChange, random.between(4, 60));
  if (random.one_in(2)) switch_on(swarm, Fault::kEvDenied, random.between(1, 12));
  if (random.one_in(2)) switch_on(swarm, Fault::kPortDown, random.between(1, 12));
  if (random.one_in(2)) switch_on(swarm, Fault::kLoss, random.logarithmic(500, 300'000));
}

// Queue pairs that have no way out for a while, beside others that do, to the same peer and to
// others.
void make_narrow(Random& random, Swarm& swarm) {
  swarm.faults[Fault::kAllButOneDead] = {};
  swarm.dead_for_ever = DeadForEver::kNothing;
  swarm.narrow_profiles = true;
  swarm.ports = std::max(swarm.ports, 2U);
  swarm.hosts = random.between(2, 4);
  swarm.connections = random.between(8, 48);
  swarm.most_evs = 32;
  switch_on(swarm, Fault::kPortDown, random.between(4, 40));
  if (random.one_in(3)) switch_on(swarm, Fault::kLoss, random.logarithmic(500, 300'000));
  if (random.one_in(3)) switch_on(swarm, Fault::kEvDenied, random.between(1, 12));
}

// One who forges in the name of peers. Nobody may fail, so that whatever does was the forger's
// work. In a quarter of the seeds the swarm's other faults stay.
void make_forger(Random& random, Swarm& swarm) {
  if (!random.one_in(4)) swarm.faults = {};
  for (const Fault fault : {Fault::kRetryExhaustion, Fault::kCrash, Fault::kLocalFailure}) {
    swarm.faults[fault] = {};
  }
  swarm.faults[Fault::kAllButOneDead] = {};
  swarm.retries_limited = false;
  swarm.dead_for_ever = DeadForEver::kNothing;
  swarm.packets = std::min(swarm.packets, 10'000U);
  switch_on(swarm, Fault::kForgery, random.between(40, 160));
  if (random.one_in(2)) switch_on(swarm, Fault::kStaleReplay, random.logarithmic(5'000, 300'000));
  if (random.one_in(3)) switch_on(swarm, Fault::kPortDown, random.between(1, 12));
  if (random.one_in(3)) switch_on(swarm, Fault::kLoss, random.logarithmic(500, 100'000));
}

}  // namespace

const char* theme_name(Theme theme) { return kNames[static_cast<std::size_t>(theme)]; }

std::optional<Theme> theme_of_name(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Theme>(found - kNames.begin());
}

Theme theme_of_seed(std::uint64_t seed) {
  const std::uint64_t top = seed >> kThemeShift;
  return top < kThemeCount ? static_cast<Theme>(top) : Theme::kAny;
}

std::uint64_t mixed_seed(std::uint64_t number) {
  if (number % 2 == 0) return number;
  return themed_seed(static_cast<Theme>(1 + number / 2 % (kMixedThemeCount - 1)), number);
}

void apply_theme(Swarm& swarm) {
  Random random(swarm.seed, Stream::kTheme);
  switch (theme_of_seed(swarm.seed)) {
    case Theme::kAny:
      return;
    case Theme::kOnePath:
      return leave_few_paths(random, swarm, DeadForEver::kAllButOnePath);
    case Theme::kSomePaths:
      return leave_few_paths(random, swarm, DeadForEver::kSomePaths);
    case Theme::kLastPort:
      return leave_few_paths(random, swarm, DeadForEver::kAllButOnePlane);
    case Theme::kIdle:
      return make_idle(random, swarm);
    case Theme::kManyQps:
      return make_many_qps(random, swarm);
    case Theme::kStalls:
      return make_stalls(random, swarm);
    case Theme::kWindows:
      return make_windows(random, swarm);
    case Theme::kSoftwareNic:
      return make_software_nic(random, swarm);
    case Theme::kBottleneck:
      return make_bottleneck(random, swarm);
    case Theme::kDialects:
      return draw_dialect(random, swarm);
    case Theme::kController:
      return make_controller(random, swarm);
    case Theme::kNarrow:
      return make_narrow(random, swarm);
    case Theme::kForger:
      return make_forger(random, swarm);
    case Theme::kInsider:
      make_forger(random, swarm);
      swarm.forger_knows_all = true;
      switch_on(swarm, Fault::kForgery, 4'000);  // it waits for its moment
      return;
  }
}

}  // namespace mrc::dst
