// The pages of this host as metrics of Prometheus. docs/metrics.md lists the families; a test
// compares it with a scrape.
#pragma once

#include <cstddef>
#include <string>

#include "node/telemetry_reader.h"

namespace mrc::tool::exporter {

enum class Format { kPrometheus, kOpenMetrics };

struct Limits {
  std::size_t devices = 128;    // what is left out is counted
  std::size_t queue_pairs = 8;  // of a device, the busiest
};

std::string metrics_text(const node::TelemetryListing& listing, Format format,
                         const Limits& limits);

}  // namespace mrc::tool::exporter
