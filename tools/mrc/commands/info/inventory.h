// All there is to know about the devices of this host, as one JSON document.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace mrc::tool::info {

// `device`: only this one, empty for all. A device that cannot be opened is listed with its error.
nlohmann::ordered_json inventory(const std::string& device);

// The document for people.
void print_inventory(const nlohmann::ordered_json& document);

}  // namespace mrc::tool::info
