// What `mrc doctor` looks at. Each check says what it found, how bad that is and what to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "node/config.h"

namespace mrc::tool::doctor {

enum class Verdict : std::uint8_t { kOk, kSlow, kBroken };
const char* name_of(Verdict verdict);

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
// Opens the device and probes a host on every plane: `peer`, or this one when it is empty.
void check_device(const node::DeviceConfig& config, const std::string& peer, Findings& findings);

// Verbs (verbs_checks.cc).
void check_libraries(Findings& findings);
void check_real_devices(Findings& findings);

// The whole of a small file under /proc or /sys, without the line end; empty when there is none.
std::string read_line(const std::string& path);

}  // namespace mrc::tool::doctor
