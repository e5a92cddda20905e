// What `mrc dialect detect` found in a capture, as text, as JSON and as a configuration.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "capture/dialect_finder.h"

namespace mrc::tool::dialect {

struct Detection {
  std::string file;
  std::string damage;  // where the file is cut or broken; empty when it is not
  capture::Traffic traffic;
  std::optional<std::uint16_t> udp_port;
  std::vector<capture::Finding> findings;
};

// Reads the file. Throws Failure when it cannot be read or is no capture at all.
Detection detect(const std::string& path);

void print(const Detection& detection);
nlohmann::ordered_json to_json(const Detection& detection);
// The dialect section of a device: what was found, and as comments what was not.
std::string to_config(const Detection& detection, const std::string& device);

}  // namespace mrc::tool::dialect
