#include "node/config.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "node/config_draft.h"
#include "node/config_toml.h"
#include "node/known_variables.h"
#include "os/descriptor.h"
#include "os/environment.h"

namespace mrc::node {
namespace {

constexpr std::size_t kMaxFileBytes = 16 << 20;
constexpr const char* kSystemFile = "/etc/mrc/mrc.toml";

std::string read_whole(int file, std::string& text) {
  std::array<char, 16'384> part;
  for (;;) {
    const ssize_t got = ::read(file, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::strerror(errno);
    if (got == 0) return {};
    text.append(part.data(), static_cast<std::size_t>(got));
    if (text.size() > kMaxFileBytes) return "larger than 16 MiB";
  }
}

// Adds a file to the drafts. A file that need not be there may be missing.
std::string add_file(const std::string& path, bool required, DeviceDrafts& drafts) {
  const os::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    const int error = errno;
    if (!required && (error == ENOENT || error == ENOTDIR)) return {};
    // A home that is closed to us, as that of somebody else is under sudo, has no file for us.
    if (!required && error == EACCES && ::access(path.c_str(), F_OK) != 0) return {};
    errno = error;
    return path + ": " + std::strerror(errno);
  }
  std::string text;
  const std::string error = read_whole(file.get(), text);
  return error.empty() ? read_toml(text, path, drafts) : path + ": " + error;
}

// The MRC_* variables, and which of them were used.
class Environment {
 public:
  explicit Environment(std::vector<std::string>& used) : used_(used) {}

  // Null when not set or empty.
  const char* get(const char* name) {
    const char* const value = os::environment(name);
    if (value == nullptr || value[0] == '\0') return nullptr;
    used_.push_back(std::string(name) + " set by environment to " + value);
    return value;
  }
  std::optional<std::uint32_t> number(const char* name, std::uint32_t min, std::uint32_t max) {
    const char* const text = get(name);
    if (text == nullptr) return std::nullopt;
    const auto value = parse_count(text, min, max);
    if (!value) {
      fail(name, "must be a whole number from " + std::to_string(min) + " to " +
                     std::to_string(max) + ", not '" + text + "'");
    }
    return value;
  }
  void fail(const char* name, const std::string& what) {
    if (error_.empty()) error_ = "environment: " + std::string(name) + " " + what;
  }
  const std::string& error() const { return error_; }

 private:
  std::vector<std::string>& used_;
  std::string error_;
};

std::vector<PlaneDraft> planes_of_list(const std::string& list) {
  std::vector<PlaneDraft> planes;
  std::size_t from = 0;
  while (from <= list.size()) {
    const std::size_t comma = std::min(list.find(',', from), list.size());
    PlaneDraft plane;
    plane.origin = "environment: MRC_IFACES: ";
    plane.interface = list.substr(from, comma - from);
    planes.push_back(std::move(plane));
    from = comma + 1;
  }
  return planes;
}

std::optional<PayloadCheck> parse_payload_check(std::string_view text) {
  if (text == "full") return PayloadCheck::kFull;
  if (text == "headers") return PayloadCheck::kHeaders;
  return std::nullopt;
}

std::optional<SecurityMode> read_security(Environment& environment) {
  const char* const text = environment.get("MRC_SECURITY");
  if (text == nullptr) return std::nullopt;
  const std::string_view mode = text;
  if (mode == "sealed") return SecurityMode::kSealed;
  if (mode != "off") environment.fail("MRC_SECURITY", "must be off or sealed");
  return SecurityMode::kOff;
}

std::optional<bool> read_telemetry_switch(Environment& environment) {
  const char* const text = environment.get("MRC_TELEMETRY");
  if (text == nullptr) return std::nullopt;
  const std::string_view word = text;
  if (word != "on" && word != "off") environment.fail("MRC_TELEMETRY", "must be on or off");
  return word == "on";
}

const char* read_key_file(Environment& environment) {
  const char* const path = environment.get("MRC_KEY_FILE");
  if (path != nullptr && path[0] != '/') {
    environment.fail("MRC_KEY_FILE", "must be an absolute path");
  }
  return path;
}

// Planes from the environment replace those of the first device; the other variables go to all.
void apply_planes(Environment& environment, DeviceDraft& draft) {
  const char* const interfaces = environment.get("MRC_IFACES");
  const auto count = environment.number("MRC_PLANES", 1, kMaxPorts);
  if (interfaces != nullptr && count) {
    environment.fail("MRC_IFACES", "contradicts MRC_PLANES: set one of them");
  }
  if (interfaces == nullptr && !count) return;
  draft.config.backend = BackendKind::kUdp;
  draft.loopback_planes = count;
  draft.planes.clear();
  draft.planes_origin = "environment: MRC_IFACES: ";
  draft.loopback_origin = "environment: MRC_PLANES: ";
  if (interfaces != nullptr) draft.planes = planes_of_list(interfaces);
}

// The whole of a dialect, as in "card,first_msn=1", in place of what files say.
std::optional<DialectDraft> read_dialect(Environment& environment) {
  const char* const text = environment.get("MRC_DIALECT");
  if (text == nullptr) return std::nullopt;
  const wire::DialectParse parsed = wire::parse_dialect(text);
  if (!parsed.ok()) environment.fail("MRC_DIALECT:", std::string(parsed.error.view()));
  DialectDraft draft;
  for (const wire::DialectField& field : wire::dialect_fields())
    draft.fields[field.name] = field.get(parsed.dialect);
  return draft;
}

std::string apply_environment(ConfigResult& result, DeviceDrafts& drafts, std::string& directory) {
  Environment environment(result.environment);
  apply_planes(environment, drafts.begin()->second);
  const auto mtu = environment.number("MRC_MTU", 0, core::kMaxPathMtu);
  const auto port = environment.number("MRC_PORT", 1, kMaxUdpPort);
  const auto evs = environment.number("MRC_EVS", 1, kMaxEvsPerQp);
  const auto quantum = environment.number("MRC_SPRAY_QUANTUM", 0, kMaxSprayQuantum);
  const auto threads = environment.number("MRC_THREADS", 0, kMaxThreads);
  const char* const check = environment.get("MRC_PAYLOAD_CHECK");
  const auto payload_check = check == nullptr ? std::nullopt : parse_payload_check(check);
  if (check != nullptr && !payload_check) {
    environment.fail("MRC_PAYLOAD_CHECK", "must be full or headers");
  }
  const auto security = read_security(environment);
  const char* const key_file = read_key_file(environment);
  const auto telemetry = read_telemetry_switch(environment);
  const char* const telemetry_group = environment.get("MRC_TELEMETRY_GROUP");
  const auto dialect = read_dialect(environment);
  const char* const state = environment.get("MRC_STATE_DIR");
  if (state != nullptr) directory = state;
  if (state != nullptr && state[0] != '/') {
    environment.fail("MRC_STATE_DIR", "must be an absolute path");
  }
  if (mtu && *mtu != 0 && !core::is_path_mtu(*mtu)) {
    environment.fail("MRC_MTU", "must be 0 or a multiple of 4 from 256 to 8192");
  }
  for (auto& [name, draft] : drafts) {
    if (mtu) draft.config.path_mtu = *mtu;
    if (port) draft.config.udp_port = static_cast<std::uint16_t>(*port);
    if (evs) draft.config.evs_per_port = *evs;
    if (evs) draft.evs_origin = "environment: MRC_EVS: ";
    if (quantum) draft.config.spray_quantum = *quantum;
    if (threads) draft.config.threads = *threads;
    if (dialect) draft.dialect = *dialect;
    if (payload_check) draft.config.payload_check = *payload_check;
    if (security) draft.config.security = *security;
    if (key_file != nullptr) draft.config.key_file = key_file;
    if (telemetry) draft.telemetry = *telemetry;
    if (telemetry_group != nullptr) draft.config.telemetry.group = telemetry_group;
  }
  return environment.error();
}

// With no device in any file there is the default one.
void add_default(DeviceDrafts& drafts) {
  if (drafts.empty()) drafts.emplace(DeviceConfig{}.name, DeviceDraft{});
}

void finish(DeviceDrafts& drafts, const std::string& directory, ConfigResult& result) {
  for (auto& [name, draft] : drafts) {
    result.error = finish_device(draft, directory);
    if (!result.error.empty()) {
      result.devices.clear();
      return;
    }
    result.devices.push_back(std::move(draft.config));
  }
}

std::string add_files(Environment& environment, DeviceDrafts& drafts) {
  const char* const only = environment.get("MRC_CONFIG");
  if (only != nullptr) return add_file(only, true, drafts);
  std::string error = add_file(kSystemFile, false, drafts);
  if (!error.empty()) return error;
  const char* const config_home = os::environment("XDG_CONFIG_HOME");
  const char* const home = os::environment("HOME");
  if (config_home != nullptr && config_home[0] == '/') {
    return add_file(std::string(config_home) + "/mrc/mrc.toml", false, drafts);
  }
  if (home == nullptr || home[0] != '/') return {};
  return add_file(std::string(home) + "/.config/mrc/mrc.toml", false, drafts);
}

}  // namespace

ConfigResult load_config() {
  ConfigResult result;
  DeviceDrafts drafts;
  Environment environment(result.environment);
  result.error = add_files(environment, drafts);
  if (!result.error.empty()) return result;
  add_default(drafts);
  std::string directory;
  result.error = apply_environment(result, drafts, directory);
  if (result.error.empty()) result.error = misspelt_variable();
  if (result.error.empty()) finish(drafts, directory, result);
  return result;
}

ConfigResult parse_config(const std::string& text, const std::string& file_name) {
  ConfigResult result;
  DeviceDrafts drafts;
  result.error = read_toml(text, file_name, drafts);
  if (!result.error.empty()) return result;
  add_default(drafts);
  finish(drafts, {}, result);
  return result;
}

DeviceConfig default_device() {
  DeviceDraft draft;
  finish_device(draft, {});
  return std::move(draft.config);
}

}  // namespace mrc::node
