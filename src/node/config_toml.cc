#include "node/config_toml.h"

// NOLINTBEGIN(readability-identifier-naming): the names are the library's.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
// Some of the parser's assertions are about its input ("[=" is one); the lines behind them report
// the error as they should.
#define TOML_ASSERT(condition) static_cast<void>(0)
// NOLINTEND(readability-identifier-naming)
#include <toml++/toml.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/one_line.h"
#include "base/quantity.h"
#include "base/toml_text.h"

namespace mrc::node {
namespace {

// One key at a time: what it is, what it must look like, and where the first error is.
class Reader {
 public:
  explicit Reader(const std::string& file_name) : file_name_(file_name) {}

  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }

  std::string place(const toml::source_region& source) const {
    return file_name_ + ":" + std::to_string(source.begin.line) + ":" +
           std::to_string(source.begin.column) + ": ";
  }

  void fail(const toml::source_region& source, std::string_view what) {
    if (!failed()) error_ = one_line(place(source) + std::string(what));
  }

  // Values. Each reports a wrong type or range and leaves `out` alone then.
  template <typename T>
  void number(const toml::key& key, const toml::node& node, std::int64_t min, std::int64_t max,
              T& out) {
    const auto value = node.value_exact<std::int64_t>();
    if (value && *value >= min && *value <= max) {
      out = static_cast<T>(*value);
    } else {
      fail(node.source(), std::string(key.str()) + " must be a whole number from " +
                              std::to_string(min) + " to " + std::to_string(max));
    }
  }
  void text(const toml::key& key, const toml::node& node, std::string& out) {
    const auto value = node.value_exact<std::string>();
    if (value && !value->empty() && value->find('\0') == std::string::npos) {
      out = *value;
    } else {
      fail(node.source(), std::string(key.str()) + " must be a text in quotes, not empty");
    }
  }
  void boolean(const toml::key& key, const toml::node& node, bool& out) {
    const auto value = node.value_exact<bool>();
    if (value) {
      out = *value;
    } else {
      fail(node.source(), std::string(key.str()) + " must be true or false");
    }
  }
  // One of `choices` in order.
  template <typename T>
  void choice(const toml::key& key, const toml::node& node,
              std::initializer_list<std::pair<std::string_view, T>> choices, T& out) {
    const auto value = node.value_exact<std::string>();
    std::string list;
    for (const auto& [name, meaning] : choices) {
      if (value && *value == name) {
        out = meaning;
        return;
      }
      list += (list.empty() ? "\"" : " or \"") + std::string(name) + "\"";
    }
    fail(node.source(), std::string(key.str()) + " must be " + list);
  }
  void address(const toml::key& key, const toml::node& node, wire::IpAddress& out) {
    const auto value = node.value_exact<std::string>();
    const auto parsed = wire::parse_address(value.value_or(""));
    if (parsed.ok()) {
      out = parsed.value();
    } else {
      fail(node.source(), std::string(key.str()) + " must be an IP address in quotes");
    }
  }
  void unknown(const toml::key& key, std::string_view known) {
    fail(key.source(),
         "unknown key '" + std::string(key.str()) + "'; known are " + std::string(known));
  }

 private:
  const std::string& file_name_;
  std::string error_;
};

void read_plane(Reader& reader, const toml::table& table, PlaneDraft& plane) {
  for (const auto& [key, node] : table) {
    if (key == "interface") {
      reader.text(key, node, plane.interface);
    } else if (key == "address") {
      const auto value = node.value_exact<std::string>();
      if (!parse_plane_address(value.value_or(""), plane)) {
        reader.fail(node.source(), "address must be an IP address, as in \"10.0.1.5/24\"");
      }
    } else if (key == "prefix") {
      unsigned bits = 0;
      reader.number(key, node, 0, 128, bits);
      if (plane.prefix_bits) reader.fail(key.source(), "the address has its prefix length already");
      plane.prefix_bits = bits;
    } else if (key == "wire") {
      reader.text(key, node, plane.wire_path);
    } else if (key == "next_hop_mac") {
      if (!parse_mac(node.value_exact<std::string>().value_or(""), plane.next_hop_mac)) {
        reader.fail(node.source(), "next_hop_mac must be as in \"02:00:5e:10:00:01\"");
      }
    } else if (key == "usid_block") {
      if (!parse_usid_block(node.value_exact<std::string>().value_or(""), plane.usid_block)) {
        reader.fail(node.source(), "usid_block must be as in \"fc00:1::/32\"");
      }
    } else {
      reader.unknown(key, "interface, address, prefix, wire, next_hop_mac, usid_block");
    }
    if (reader.failed()) return;
  }
}

void read_planes(Reader& reader, const toml::key& key, const toml::node& node,
                 std::vector<PlaneDraft>& planes) {
  const toml::array* const list = node.as_array();
  if (list == nullptr || list->empty()) {
    return reader.fail(node.source(),
                       std::string(key.str()) + " must be a list with at least one entry");
  }
  for (const toml::node& element : *list) {
    PlaneDraft plane;
    plane.origin = reader.place(element.source());
    if (key == "interfaces") {
      reader.text(key, element, plane.interface);
    } else if (const toml::table* const table = element.as_table()) {
      read_plane(reader, *table, plane);
    } else {
      reader.fail(element.source(), "a plane must be a table");
    }
    if (reader.failed()) return;
    planes.push_back(std::move(plane));
  }
}

void read_peer(Reader& reader, const toml::table& table, PeerEntry& peer) {
  for (const auto& [key, node] : table) {
    if (key == "gid") {
      reader.address(key, node, peer.gid);
    } else if (key == "planes") {
      const toml::array* const list = node.as_array();
      if (list == nullptr) return reader.fail(node.source(), "planes must be a list of addresses");
      for (const toml::node& element : *list) {
        reader.address(key, element, peer.planes.emplace_back());
      }
    } else {
      reader.unknown(key, "gid, planes");
    }
    if (reader.failed()) return;
  }
  if (!table.contains("gid")) reader.fail(table.source(), "a peer needs its gid");
}

void read_peers(Reader& reader, const toml::node& node, std::vector<PeerEntry>& peers) {
  const toml::array* const list = node.as_array();
  if (list == nullptr || list->size() > kMaxPeers) {
    return reader.fail(node.source(), "peer must be a list of at most 65536 tables");
  }
  peers.clear();
  for (const toml::node& element : *list) {
    const toml::table* const table = element.as_table();
    if (table == nullptr) return reader.fail(element.source(), "a peer must be a table");
    read_peer(reader, *table, peers.emplace_back());
    if (reader.failed()) return;
  }
}

void read_route(Reader& reader, const toml::table& table, Srv6Route& route) {
  for (const auto& [key, node] : table) {
    const std::string value = node.value_exact<std::string>().value_or("");
    if (key == "to") {
      PlaneDraft prefix;
      if (!parse_plane_address(value, prefix) || !prefix.prefix_bits || prefix.address->is_v4) {
        return reader.fail(node.source(), "to must be an IPv6 prefix, as in \"fd00:1::2/128\"");
      }
      route.destination = *prefix.address;
      route.prefix_bits = *prefix.prefix_bits;
    } else if (key == "usids") {
      if (!parse_usids(value, route)) {
        return reader.fail(node.source(),
                           "usids must be up to six in hexadecimal, one of them with *CHOICES, as "
                           "in \"1000:8000*4:1001:100\"");
      }
    } else {
      return reader.unknown(key, "to, usids");
    }
  }
  if (!table.contains("to") || !table.contains("usids"))
    reader.fail(table.source(), "an srv6_route needs to and usids");
}

void read_routes(Reader& reader, const toml::node& node, std::vector<Srv6Route>& routes) {
  const toml::array* const list = node.as_array();
  if (list == nullptr || list->size() > kMaxSrv6Routes) {
    return reader.fail(node.source(), "srv6_route must be a list of at most 65536 tables");
  }
  routes.clear();
  for (const toml::node& element : *list) {
    const toml::table* const table = element.as_table();
    if (table == nullptr) return reader.fail(element.source(), "an srv6_route must be a table");
    read_route(reader, *table, routes.emplace_back());
    if (reader.failed()) return;
  }
}

void read_dscp(Reader& reader, const toml::table& table, wire::DscpMap& map) {
  struct Known {
    std::string_view name;
    std::uint8_t wire::DscpMap::*member;
  };
  static constexpr Known kKnown[] = {{"control", &wire::DscpMap::control},
                                     {"trimmed", &wire::DscpMap::trimmed},
                                     {"trimmed_last_hop", &wire::DscpMap::trimmed_last_hop},
                                     {"trimmable", &wire::DscpMap::trimmable},
                                     {"trimmable_retx", &wire::DscpMap::trimmable_retx},
                                     {"no_trim", &wire::DscpMap::no_trim}};
  for (const auto& [key, node] : table) {
    const auto* const found =
        std::find_if(std::begin(kKnown), std::end(kKnown),
                     [&key = key](const Known& known) { return known.name == key.str(); });
    if (found == std::end(kKnown)) {
      return reader.unknown(
          key, "control, trimmed, trimmed_last_hop, trimmable, trimmable_retx, no_trim");
    }
    reader.number(key, node, 0, 63, map.*(found->member));
  }
}

// A key of the table: the name of a dialect, or a field with its value.
void read_dialect_key(Reader& reader, const toml::key& key, const toml::node& node,
                      DialectDraft& draft) {
  const auto number = node.value_exact<std::int64_t>();
  const std::string text =
      number ? std::to_string(*number) : node.value_exact<std::string>().value_or("");
  if (key == "name") {
    const wire::Dialect* const named = wire::find_dialect(text);
    if (named == nullptr) {
      return reader.fail(node.source(), "name must be \"openmrc\" or \"card\"");
    }
    draft.base = named;
    return;
  }
  const wire::DialectField* const field = wire::find_dialect_field(key.str());
  if (field == nullptr) {
    std::string known = "name";
    for (const wire::DialectField& each : wire::dialect_fields())
      known += ", " + std::string(each.name);
    return reader.unknown(key, known);
  }
  wire::Dialect read;
  const bool right_type = field->choices.empty() == number.has_value();
  if (!right_type || !wire::set_dialect_field(read, *field, text)) {
    return reader.fail(node.source(), std::string(field->name) + " must be " +
                                          std::string(wire::dialect_rule(*field).view()));
  }
  draft.fields[field->name] = field->get(read);
}

void read_retry(Reader& reader, const toml::table& table, core::QpReadyToSend& retry) {
  for (const auto& [key, node] : table) {
    if (key == "timeout") {
      reader.number(key, node, 1, core::kMaxTimeout, retry.timeout);
    } else if (key == "linear") {
      reader.number(key, node, 0, core::kMaxLinearRetries, retry.linear_retries);
    } else if (key == "exponential") {
      reader.number(key, node, 0, core::kMaxExponentialRetries, retry.exponential_retries);
    } else {
      reader.unknown(key, "timeout, linear, exponential");
    }
  }
}

void read_rate(Reader& reader, const toml::node& node, std::uint64_t& out) {
  const auto number = node.value_exact<std::int64_t>();
  const auto words = node.value_exact<std::string>();
  std::optional<std::uint64_t> rate;
  if (number && *number >= 0) rate = static_cast<std::uint64_t>(*number);
  if (words) rate = parse_rate(*words);
  if (!rate || (*rate < kMinRate && number != 0) || *rate > kMaxRate) {
    return reader.fail(
        node.source(),
        "port_rate must be bits per second from 1M to 10T, as in \"25G\" or \"25Gb/s\"");
  }
  out = *rate;
}

// Keys whose value is one number, text or word. False when the key is none of them.
bool read_simple_key(Reader& reader, const toml::key& key, const toml::node& node,
                     DeviceDraft& draft) {
  DeviceConfig& config = draft.config;
  if (key == "backend") {
    reader.choice<BackendKind>(
        key, node, {{"udp", BackendKind::kUdp}, {"wire", BackendKind::kWire}}, config.backend);
  } else if (key == "ip") {
    reader.choice<IpVersion>(key, node, {{"ipv4", IpVersion::kV4}, {"ipv6", IpVersion::kV6}},
                             draft.ip_version);
  } else if (key == "loopback_planes") {
    draft.loopback_planes = 0;
    draft.loopback_origin = reader.place(key.source());
    reader.number(key, node, 1, kMaxPorts, *draft.loopback_planes);
  } else if (key == "udp_port") {
    reader.number(key, node, 1, kMaxUdpPort, config.udp_port);
  } else if (key == "path_mtu") {
    std::uint32_t bytes = 1;
    reader.number(key, node, 0, core::kMaxPathMtu, bytes);
    if (bytes != 0 && !core::is_path_mtu(bytes)) {
      reader.fail(node.source(), "path_mtu must be 0 or a multiple of 4 from 256 to 8192");
    }
    config.path_mtu = bytes;
  } else if (key == "evs_per_port") {
    draft.evs_origin = reader.place(node.source());
    reader.number(key, node, 1, kMaxEvsPerQp, config.evs_per_port);
  } else if (key == "active_evs_per_port") {
    reader.number(key, node, 0, kMaxEvsPerQp, config.active_evs_per_port);
  } else if (key == "port_rate") {
    read_rate(reader, node, config.port_bits_per_second);
  } else if (key == "spray_quantum") {
    reader.number(key, node, 0, kMaxSprayQuantum, config.spray_quantum);
  } else if (key == "threads") {
    reader.number(key, node, 0, kMaxThreads, config.threads);
  } else if (key == "payload_check") {
    reader.choice<PayloadCheck>(
        key, node, {{"full", PayloadCheck::kFull}, {"headers", PayloadCheck::kHeaders}},
        config.payload_check);
  } else if (key == "security") {
    reader.choice<SecurityMode>(key, node,
                                {{"off", SecurityMode::kOff}, {"sealed", SecurityMode::kSealed}},
                                config.security);
  } else if (key == "key_file") {
    reader.text(key, node, config.key_file);
    if (!config.key_file.starts_with('/')) {
      reader.fail(node.source(), "key_file must be an absolute path");
    }
  } else if (key == "trimming") {
    reader.boolean(key, node, config.trimming);
  } else if (key == "segmentation") {
    reader.boolean(key, node, config.segmentation);
  } else if (key == "telemetry") {
    reader.boolean(key, node, draft.telemetry);
  } else if (key == "telemetry_group") {
    reader.text(key, node, config.telemetry.group);
  } else if (key == "directory") {
    reader.text(key, node, config.directory);
    if (!config.directory.starts_with('/')) {
      reader.fail(node.source(), "directory must be an absolute path");
    }
  } else {
    return false;
  }
  return true;
}

void read_device(Reader& reader, const toml::table& table, DeviceDraft& draft) {
  draft.origin = reader.place(table.source());
  if (table.contains("interfaces") && table.contains("plane")) {
    return reader.fail(table.source(), "interfaces and plane both say what the planes are");
  }
  for (const auto& [key, node] : table) {
    const toml::table* const part = node.as_table();
    if (key == "interfaces" || key == "plane") {
      draft.planes.clear();
      draft.planes_origin = reader.place(key.source());
      read_planes(reader, key, node, draft.planes);
    } else if (key == "peer") {
      draft.peers_origin = reader.place(key.source());
      read_peers(reader, node, draft.config.peers);
    } else if (key == "srv6_route") {
      draft.routes_origin = reader.place(key.source());
      read_routes(reader, node, draft.config.srv6_routes);
    } else if (key == "dscp" && part != nullptr) {
      draft.dscp_origin = reader.place(key.source());
      read_dscp(reader, *part, draft.config.dscp);
    } else if (key == "retry" && part != nullptr) {
      read_retry(reader, *part, draft.config.retry);
    } else if (key == "dialect" && part != nullptr) {
      for (const auto& [field, value] : *part)
        read_dialect_key(reader, field, value, draft.dialect);
    } else if (key == "dscp" || key == "retry" || key == "dialect") {
      reader.fail(node.source(), std::string(key.str()) + " must be a table");
    } else if (!read_simple_key(reader, key, node, draft)) {
      reader.unknown(
          key,
          "backend, interfaces, plane, ip, loopback_planes, peer, srv6_route, udp_port, path_mtu, "
          "evs_per_port, active_evs_per_port, port_rate, spray_quantum, threads, payload_check, "
          "security, key_file, trimming, segmentation, dscp, dialect, retry, directory, telemetry, "
          "telemetry_group");
    }
    if (reader.failed()) return;
  }
}

void read_devices(Reader& reader, const toml::table& devices, DeviceDrafts& drafts) {
  for (const auto& [key, node] : devices) {
    const toml::table* const table = node.as_table();
    if (table == nullptr) return reader.fail(node.source(), "a device must be a table");
    const std::string name(key.str());
    if (!is_device_name(name)) {
      return reader.fail(key.source(),
                         "a device's name has 1 to 60 letters, digits, '_', '-' and '.'");
    }
    DeviceDraft& draft = drafts[name];
    draft.config.name = name;
    read_device(reader, *table, draft);
    if (reader.failed()) return;
  }
}

}  // namespace

std::string read_toml(const std::string& text, const std::string& file_name, DeviceDrafts& drafts) {
  Reader reader(file_name);
  if (const std::optional<TextPosition> at = beyond_ascii(text)) {
    toml::source_region source;
    source.begin = {.line = at->line, .column = at->column};
    reader.fail(source, kBeyondAscii);
    return reader.error();
  }
  const toml::parse_result result = toml::parse(std::string_view(text));
  if (!result) {
    reader.fail(result.error().source(), result.error().description());
    return reader.error();
  }
  for (const auto& [key, node] : result.table()) {
    const toml::table* const devices = node.as_table();
    if (key != "device") {
      reader.unknown(key, "device");
    } else if (devices == nullptr) {
      reader.fail(node.source(), "device must be a table of devices, as in [device.mrc0]");
    } else {
      read_devices(reader, *devices, drafts);
    }
    if (reader.failed()) break;
  }
  return reader.error();
}

}  // namespace mrc::node
