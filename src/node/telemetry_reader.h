// What the processes of this host tell of themselves: the pages of all users that let us read them.
//
//   const auto listing = node::read_telemetry({.directory = node::telemetry_directory()});
//   for (const node::TelemetryReading& reading : listing.readings) show(reading.body);
//
// Reading stops nobody and takes no lock that anybody waits for. Pages may be hostile: each is
// copied, once, with its size known, and checked (decode_telemetry); so many of one owner are
// looked at. telemetry_rates.h makes rates of two readings.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "node/telemetry_page.h"

namespace mrc::node {

// Where users have their folders: $MRC_STATE_DIR where that is set, otherwise /dev/shm.
std::string telemetry_directory();
std::string telemetry_folder(const std::string& directory, uid_t user);
inline constexpr const char* kTelemetryPrefix = "page-";

struct TelemetryQuery {
  std::string directory;
  std::optional<std::uint64_t> pid;
  std::string device;  // empty: all
};

struct TelemetryReading {
  std::string path;
  uid_t owner = 0;
  bool alive = true;  // false: its process has ended without removing it
  TelemetryBody body;
};

struct TelemetryListing {
  std::vector<TelemetryReading> readings;  // by pid, then device
  std::vector<std::string> problems;       // one line each
  unsigned closed_folders = 0;             // of other users
};

inline constexpr unsigned kMaxTelemetryPages = 512;  // of one owner
inline constexpr unsigned kMaxTelemetryFolders = 256;

TelemetryListing read_telemetry(const TelemetryQuery& query);
// Removes pages of dead processes in a folder; how many there were. Those of others stay.
unsigned clean_telemetry(const std::string& folder);
// In all folders below a directory.
unsigned clean_all_telemetry(const std::string& directory);

}  // namespace mrc::node
