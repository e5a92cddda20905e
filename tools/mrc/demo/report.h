// Everything a run found out, as plain values, and its two renderings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/counters.h"
#include "demo/fault_plan.h"
#include "demo/measurements.h"
#include "demo/options.h"
#include "demo/virtual_network.h"
#include "exit_code.h"

namespace mrc::tool {
class Terminal;
}

namespace mrc::demo {

enum class Verdict : std::uint8_t { kPassed, kFailed, kWrongData, kStalled };
const char* verdict_name(Verdict verdict);
const char* fail_mode_name(FailMode mode);
tool::ExitCode exit_code(Verdict verdict);

struct FaultReport {
  Fault fault;
  FaultObservation observation;
  CutTrace trace;

  // Time from the cut to the last data packet that a host still sent into it; 0 when none was.
  DurationNs bypass_ns() const;
};

// Paths of all queue pairs by state at the end.
struct PathReport {
  std::uint64_t good = 0;
  std::uint64_t skip = 0;
  std::uint64_t assumed_bad = 0;
  std::uint64_t denied = 0;
  std::uint64_t bad_but_working = 0;  // of the assumed bad: the network would carry them
  std::uint64_t dead = 0;             // that the network does not carry
};

struct Report {
  Options options;
  unsigned leaves = 0;
  unsigned spines = 0;
  unsigned paths_per_flow = 0;
  unsigned flows = 0;
  std::uint64_t bytes_planned = 0;
  std::uint64_t messages_planned = 0;

  Verdict verdict = Verdict::kFailed;
  std::string failure;  // what went wrong, empty when nothing did
  TimeNs finished_at = 0;
  std::uint64_t bytes_moved = 0;  // payload placed, each byte once
  std::uint64_t bytes_verified = 0;
  std::uint64_t wrong_bytes = 0;
  std::uint64_t early_wrong_bytes = 0;
  std::uint64_t completions = 0;
  std::uint64_t immediates = 0;
  std::uint64_t immediates_out_of_order = 0;

  core::QpCounters totals;  // of all queue pairs
  EventTotals events;
  NetworkCounters network;
  std::uint64_t unreadable_frames = 0;
  PathReport paths;
  std::vector<FaultReport> faults;
  std::vector<Measurements::PlaneBytes> buckets;
  std::vector<std::byte> sample_frame;

  std::uint64_t line_rate_bits_per_second() const;  // of all hosts together
  double goodput_bits_per_second() const;
  std::uint64_t plane_bytes(unsigned plane_index) const;
};

// Goodput of a bucket; the last one may have been cut short by the end of the run.
double bucket_bits_per_second(const Report& report, std::size_t bucket);

void print_text(const Report& report, const tool::Terminal& terminal, double wall_seconds);
void print_json(const Report& report);

}  // namespace mrc::demo
