// The processes of this host as a stream: each device is a node with a cable to every plane, as its
// telemetry tells it (node/telemetry_reader.h). Nothing can be broken through it.
//
// A device keeps its node, one of kMaxDevices, until its process ends; the geometry never changes,
// and the page leaves out nodes and planes that nobody has reported (docs/view.md).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "commands/stat/device_report.h"
#include "node/telemetry_rates.h"
#include "node/telemetry_reader.h"
#include "view/stream.h"

namespace mrc::tool::view_tool {

class HostSource {
 public:
  static constexpr std::uint32_t kMaxDevices = 64;
  static constexpr unsigned kLooksPerReport = 4;

  // The header goes to `sink` at once. `directory`: node::telemetry_directory().
  HostSource(std::string directory, view::LineSink sink);

  // The next frame, and once a second what each device tells.
  void look();

 private:
  struct Slot {
    std::string path;  // of its page; empty: free
    node::TelemetryRates rates;
    std::uint32_t down = 0;  // bit n: plane n
    bool seen = false;       // in this look
  };

  std::optional<std::uint32_t> slot_of(const std::string& path);
  void fill(const node::TelemetryListing& now);
  void add_device(std::uint32_t number, const stat::Change& change);
  void add_planes(std::uint32_t number, const node::TelemetryBody& body);
  void add_counters(const stat::Change& change);
  void add_gauges(const stat::Change& change);
  void report(const node::TelemetryListing& now);

  std::string directory_;
  view::LineSink sink_;
  view::StreamWriter writer_;
  std::int64_t started_ns_;
  view::Frame frame_;
  std::array<Slot, kMaxDevices> slots_;
  node::TelemetryListing before_;    // at the look before
  node::TelemetryListing reported_;  // at the report before
  std::vector<bool> told_;           // slots of which something was told
  std::uint64_t round_trips_ = 0;    // in this look
  std::uint64_t round_trip_sum_ns_ = 0;
  unsigned looks_ = 0;
};

}  // namespace mrc::tool::view_tool
