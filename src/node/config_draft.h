// A device while its configuration is being put together from several sources, and the checks at
// the end.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "node/config.h"

namespace mrc::node {

inline constexpr unsigned kDefaultLoopbackPlanes = 4;
inline constexpr std::uint32_t kMaxUdpPort = 0xFFFF - 255;  // 256 processes above it
inline constexpr std::uint32_t kMaxSprayQuantum = 64;
inline constexpr unsigned kMaxPeers = 65'536;
inline constexpr unsigned kMaxSrv6Routes = 65'536;

// A plane as given: by interface, by address, or both.
struct PlaneDraft {
  std::string origin;  // where it was said, as the beginning of an error: "file:1:2: "
  std::string interface;
  std::optional<wire::IpAddress> address;
  std::optional<unsigned> prefix_bits;
  std::string wire_path;
  wire::MacAddress next_hop_mac{};
  wire::UsidBlock usid_block{};
};

// A dialect as given: a named one, and fields that differ from it.
struct DialectDraft {
  const wire::Dialect* base = &wire::kOpenMrc;
  std::map<std::string_view, std::uint16_t> fields;  // by name of wire::dialect_fields()
};

enum class IpVersion : std::uint8_t { kAny, kV4, kV6 };

struct DeviceDraft {
  DeviceConfig config;  // all that needs no second thought
  std::string origin;
  std::vector<PlaneDraft> planes;
  std::string planes_origin;
  std::optional<unsigned> loopback_planes;
  std::string loopback_origin;
  IpVersion ip_version = IpVersion::kAny;
  std::string peers_origin;
  std::string routes_origin;
  std::string dscp_origin;
  DialectDraft dialect;
  std::string evs_origin;
  bool telemetry = true;
};
using DeviceDrafts = std::map<std::string, DeviceDraft>;

// Fills in addresses and directory and checks everything against everything. The text of an error,
// empty when there is none.
std::string finish_device(DeviceDraft& draft, const std::string& state_directory);

// A name that can be a device's and a folder's.
bool is_device_name(std::string_view name);

// "10.0.0.1/24" or "10.0.0.1"; false when it is neither.
bool parse_plane_address(std::string_view text, PlaneDraft& plane);

// "02:00:5e:10:00:01"; false when it is none.
bool parse_mac(std::string_view text, wire::MacAddress& mac);
// "fc00:1::/32".
bool parse_usid_block(std::string_view text, wire::UsidBlock& block);
// "1000:8000*4:1001:100": up to six uSIDs in the order of the hops; "*4" behind one makes it a
// choice of four in a row, "/2" behind a later one the choice modulo two of those in a row.
bool parse_usids(std::string_view text, Srv6Route& route);

// Of a port, in bits per second.
inline constexpr std::uint64_t kMinRate = 1'000'000;
inline constexpr std::uint64_t kMaxRate = 10'000'000'000'000;

// A whole number within limits, from a variable.
std::optional<std::uint32_t> parse_count(std::string_view text, std::uint32_t min,
                                         std::uint32_t max);

}  // namespace mrc::node
