// What queues and senders look like over time, taken at regular intervals that widen when the run
// gets long.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/simulation.h"

namespace mrc::sim {

struct Sample {
  Time at = 0;
  HostGauges senders;                       // summed over all hosts
  std::uint32_t deepest_queue_bytes = 0;    // since the sample before
  std::vector<std::uint64_t> queued_bytes;  // by plane
  std::vector<std::uint32_t> row_bytes;     // deepest queue of each row, since the sample before
};

// Rows gather the ports of one or several switches that lead the same way.
struct SampleSeries {
  Time period = 0;
  std::vector<std::string> rows;
  std::vector<Sample> samples;
};

class SampleRecorder {
 public:
  static constexpr std::size_t kMaxSamples = 512;  // even
  static constexpr unsigned kRowsPerKind = 16;

  // Before the simulation runs, which must outlive this.
  SampleRecorder(Simulation& simulation, Time period);

  SampleSeries take() { return std::move(series_); }

 private:
  static constexpr std::uint8_t kNoRow = 0xFF;

  void make_rows();
  Time on_sample(Time now);
  void widen();

  Simulation& simulation_;
  std::vector<std::uint8_t> row_of_link_;
  SampleSeries series_;
};

}  // namespace mrc::sim
