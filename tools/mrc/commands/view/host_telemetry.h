// What the programs in the hosts of a lab tell of themselves while they run (mrc stat), as lines of
// the page's stream.
#pragma once

#include <cstdint>
#include <set>
#include <span>

#include "launch/lab_status.h"
#include "node/telemetry_reader.h"
#include "view/stream.h"

namespace mrc::tool::view_tool {

class HostTelemetry {
 public:
  static constexpr std::size_t kMaxDevices = 4;  // of each host

  explicit HostTelemetry(view::LineSink sink) : sink_(std::move(sink)) {}

  // A line for each host that has a device, and one for each that has none any more.
  void look(view::Nanoseconds at, std::span<const LabStatus::Program> programs);

 private:
  view::LineSink sink_;
  node::TelemetryListing before_;
  std::set<unsigned> told_;  // hosts
};

}  // namespace mrc::tool::view_tool
