// What `config` and `qp` lines may set, with the defaults scripts run under, and the core's structs
// made from them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/config.h"
#include "core/ev_profile.h"
#include "script/values.h"

namespace mrc::script {

// Named numbers; only names that exist from the start can be assigned.
class Settings {
 public:
  explicit Settings(std::map<std::string, std::uint64_t> defaults) : values_(std::move(defaults)) {}

  // Throws std::invalid_argument for an unknown name.
  void assign(const Assignment& field, const Variables& variables);
  std::uint64_t operator[](const char* name) const { return values_.at(name); }
  template <typename T>
  T get(const char* name) const {
    return static_cast<T>(values_.at(name));
  }

 private:
  std::map<std::string, std::uint64_t> values_;
};

Settings endpoint_settings();
Settings qp_settings();

// The script's peers have small numbers; the engine itself is number 0x100.
Address address_of(std::uint64_t number);

core::EndpointConfig make_endpoint_config(const Settings& settings);
core::QpConfig make_qp_config(QpNumber number, const Settings& settings);
core::QpInit make_init(const Settings& settings, const core::EvProfile* profile);
core::QpReadyToReceive make_ready_to_receive(const Settings& settings);
core::QpReadyToSend make_ready_to_send(const Settings& settings);

// EV i has entropy 0x1000 + `from` + i; the EVs go round the ports 1..ports.
Result<core::EvProfile> make_profile(const Settings& qp, unsigned ports, std::uint32_t from = 0);

}  // namespace mrc::script
