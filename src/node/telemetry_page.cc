#include "node/telemetry_page.h"

#include <algorithm>

#include "core/config.h"

namespace mrc::node {
namespace {

// Terminals obey control characters.
template <std::size_t kBytes>
void make_showable(TelemetryText<kBytes>& text) {
  text.bytes.back() = '\0';
  for (char& c : text.bytes) {
    const bool showable = c == '\0' || (c >= ' ' && c <= '~');
    if (!showable) c = '?';
  }
}

bool is_port(std::uint32_t port) { return port >= 1 && port <= kMaxPorts; }

bool is_sane(const TelemetryBody& body) {
  if (body.engine_count > kTelemetryEngines || body.plane_count > kMaxPorts) return false;
  if (body.listed_queue_pairs > kTelemetryQueuePairs || body.listed_paths > kTelemetryPaths)
    return false;
  for (std::size_t i = 0; i < body.plane_count; ++i)
    if (body.planes[i].port != i + 1) return false;
  const auto known_state = [](const TelemetryQueuePair& pair) {
    return pair.state <= static_cast<std::uint32_t>(core::QpState::kError);
  };
  const auto known_path = [](const TelemetryPath& path) {
    return path.state < core::kEvStateCount && is_port(path.port);
  };
  return std::all_of(body.list.begin(), body.list.begin() + body.listed_queue_pairs, known_state) &&
         std::all_of(body.paths.begin(), body.paths.begin() + body.listed_paths, known_path);
}

}  // namespace

Status decode_telemetry(std::span<const std::byte> page, TelemetryBody& out) {
  TelemetryHeader header;
  if (page.size() < sizeof header) return {ErrorCode::kInvalidArgument, "too short"};
  std::memcpy(&header, page.data(), sizeof header);
  if (header.magic != TelemetryHeader::kMagic)
    return {ErrorCode::kInvalidArgument, "not a telemetry page"};
  if (header.layout != kTelemetryLayout || header.body_bytes != sizeof(TelemetryBody))
    return {ErrorCode::kUnsupported, "written by another version of OpenMRC"};
  if (page.size() != kTelemetryPageBytes) return {ErrorCode::kInvalidArgument, "of a wrong size"};
  if (header.version == 0) return {ErrorCode::kBusy, "nothing has been written yet"};
  std::memcpy(&out, page.data() + telemetry_body_at(header.version), sizeof out);
  if (!is_sane(out)) return {ErrorCode::kInvalidArgument, "holds values that cannot be"};
  make_showable(out.process.name);
  make_showable(out.device);
  for (TelemetryPlane& plane : out.planes)
    make_showable(plane.interface);
  return {};
}

}  // namespace mrc::node
