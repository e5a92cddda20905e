// A device as `mrc stat` and `mrc top` show it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "node/telemetry_reader.h"

namespace mrc::tool::stat {

// Two readings of one device; without an earlier one, rates are those since its process started.
struct Change {
  const node::TelemetryBody* before = nullptr;  // never null; empty where there was none
  const node::TelemetryReading* now = nullptr;
  // The two are too close to see a port come and go: what it did since the process started counts.
  bool is_short = false;
};
// For each reading of `now` the one of `before` that is of the same device.
std::vector<Change> changes_of(const node::TelemetryListing& before,
                               const node::TelemetryListing& now);

nlohmann::ordered_json describe(const Change& change);
// Lines for people, at most `queue_pairs` of them about queue pairs, none longer than 79 columns.
std::vector<std::string> lines_of(const Change& change, std::size_t queue_pairs);
// "3.21 Gb/s", at most 10 columns.
std::string rate_text(double bytes_per_second);

// What to say where nothing can be shown.
std::string nothing_line(const node::TelemetryQuery& query, const node::TelemetryListing& listing);

}  // namespace mrc::tool::stat
