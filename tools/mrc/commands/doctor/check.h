// What `mrc doctor` and `mrc check` look at. Each check says what it found, how bad that is and
// what to do.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "node/config.h"

namespace mrc::tool::doctor {

enum class Verdict : std::uint8_t { kOk, kSlow, kBroken };
inline const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kSlow:
      return "slow";
    case Verdict::kBroken:
      return "broken";
  }
  return "";
}

struct Finding {
  Verdict verdict = Verdict::kOk;
  std::string what;   // the thing looked at
  std::string found;  // its state
  std::string fix;    // what to do; empty when all is well
};
using Findings = std::vector<Finding>;

// The host, whatever the devices are (host_checks.cc).
void check_environment(Findings& findings);
void check_socket_buffers(Findings& findings);
void check_limits(Findings& findings);
void check_segmentation(Findings& findings);
void check_netlink(Findings& findings);
void check_processors(Findings& findings);

// A device (device_checks.cc).
void check_interfaces(const node::DeviceConfig& config, Findings& findings);
void check_state_directory(const node::DeviceConfig& config, Findings& findings);
// Another host to look at, by its name or address, and where its responder is.
struct PeerHost {
  std::string host;  // empty: this one
  std::uint16_t port = 0;
  std::string device;        // the device of ours that looks there; empty: all do
  bool must_answer = false;  // without its responder nothing there can be said to work
};
// Opens the device and probes a host on every plane. Whether that host told of its device.
bool check_device(const node::DeviceConfig& config, const PeerHost& peer, Findings& findings);

// Verbs (verbs_checks.cc).
void check_libraries(Findings& findings);
void check_real_devices(Findings& findings);

// All of the above, in the order in which people read it (examine.cc).
struct Examination {
  Findings findings;
  bool peer_told = false;  // the other host's responder answered
};
Examination examine(const PeerHost& peer);
nlohmann::ordered_json to_json(const Findings& findings);

// The whole of a small file under /proc or /sys, without the line end; empty when there is none.
std::string read_line(const std::string& path);

}  // namespace mrc::tool::doctor
