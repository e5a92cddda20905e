// What two pages of one device, an earlier and a later one, say about the time between them, and
// what in it an operator should look at.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "node/telemetry_page.h"

namespace mrc::node {

// Whether both are of one life of one device, so that counters may be compared.
bool is_same_device(const TelemetryBody& before, const TelemetryBody& now);

// Per second.
struct TelemetryPlaneRates {
  double sent_bytes = 0;
  double received_bytes = 0;
  double lost_packets = 0;
};

struct TelemetryRates {
  double seconds = 0;     // between the two; 0: they are of the same time, and all else is 0
  double sent_bytes = 0;  // payload, as all of the device
  double received_bytes = 0;
  double sent_packets = 0;
  double resent_packets = 0;
  double messages = 0;
  double dropped_packets = 0;
  double processors = 0;  // that the process used
  std::vector<TelemetryPlaneRates> planes;
};

// With an empty `before`: since the process started.
TelemetryRates telemetry_rates(const TelemetryBody& before, const TelemetryBody& now);

enum class TelemetryAlarm : std::uint8_t {
  kPlaneDown,
  kPortFlapping,
  kPlanesUneven,
  kResends,
  kSilentPeer,
  kBadPaths,
};

// The bounds are those of examples/monitoring/mrc_rules.yml.
inline constexpr double kUnevenShare = 0.5;  // of what a plane would carry if all carried the same
inline constexpr double kLeastEvenBytes = 1e6;  // of all planes; below that nothing is said
inline constexpr std::uint64_t kFlaps = 4;      // changes of a link, up and down
inline constexpr double kManyResends = 0.01;    // of the packets sent
inline constexpr std::uint64_t kLeastPackets = 1'000;

struct TelemetryFinding {
  TelemetryAlarm alarm{};
  std::string text;  // one line, beginning with the plane where there is one
};
std::vector<TelemetryFinding> telemetry_findings(const TelemetryBody& before,
                                                 const TelemetryBody& now);

}  // namespace mrc::node
