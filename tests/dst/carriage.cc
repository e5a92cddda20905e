#include "dst/carriage.h"

#include <array>

#include "dst/failure.h"
#include "dst/pattern.h"
#include "dst/random.h"
#include "wire/codec.h"
#include "wire/frame.h"

namespace mrc::dst {
namespace {

const wire::FrameFormat kFormat;

std::uint64_t load64(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i)
    value = (value << 8) | bytes[i];
  return value;
}

std::uint8_t dscp(core::TrafficClass traffic_class) {
  switch (traffic_class) {
    case core::TrafficClass::kControl:
      return kFormat.dscp.control;
    case core::TrafficClass::kTrimmable:
      return kFormat.dscp.trimmable;
    case core::TrafficClass::kTrimmableRetransmission:
      return kFormat.dscp.trimmable_retx;
    case core::TrafficClass::kNoTrim:
      return kFormat.dscp.no_trim;
  }
  return 0;
}

wire::FrameHeader frame_header(const Flight& flight) {
  wire::FrameHeader header;
  header.source = wire::ipv6_address(flight.source.high, flight.source.low);
  header.destination = wire::ipv6_address(0xFC00'0000'0000'0000, flight.to + 1);
  header.dscp = dscp(flight.traffic_class);
  header.ecn = wire::Ecn::kEct0;
  header.entropy = flight.entropy;
  return header;
}

core::TrimState trim_state(wire::TrimMark mark) {
  switch (mark) {
    case wire::TrimMark::kNone:
      return core::TrimState::kWhole;
    case wire::TrimMark::kTrimmed:
      return core::TrimState::kTrimmed;
    case wire::TrimMark::kTrimmedLastHop:
      return core::TrimState::kTrimmedLastHop;
  }
  return core::TrimState::kWhole;
}

}  // namespace

void fetch_payload(std::uint64_t seed, std::uint64_t address, std::span<std::byte> out) {
  fill_pattern(mix64(seed ^ (address >> 32)), address & 0xFFFF'FFFF, out);
}

void pack(Flight& flight, const Swarm& swarm) {
  std::array<std::byte, core::kMaxPathMtu> storage;
  const std::span<std::byte> payload = std::span(storage).first(flight.payload_length);
  fetch_payload(swarm.seed, flight.payload_address, payload);
  const std::span<const std::byte> pieces[] = {payload};
  const wire::FrameFormat format{.dialect = swarm.dialect};
  const wire::FrameHeader header = frame_header(flight);
  flight.frame.resize(wire::frame_length(format, header, flight.packet, payload.size()));
  const std::size_t length =
      wire::build_frame(format, header, flight.packet,
                        flight.payload_length == 0 ? wire::PayloadPieces() : pieces, flight.frame);
  MRC_CHECK(length == flight.frame.size(), "build_frame wrote %zu bytes instead of %zu", length,
            flight.frame.size());
}

bool trim(Flight& flight, core::TrimState how) {
  const bool last_hop = how == core::TrimState::kTrimmedLastHop;
  const std::size_t length = wire::trim_frame(kFormat, flight.frame, last_hop);
  if (length != 0) flight.frame.resize(length);
  return length != 0;
}

Unpacked unpack(const Flight& flight, const wire::Dialect& dialect) {
  const wire::FrameFormat format{.dialect = dialect};
  Unpacked result;
  wire::FrameHeader header;
  result.drop = wire::parse_frame(format, flight.frame, header, result.packet, result.payload);
  if (result.drop == DropReason::kBadIcrc) {
    const std::size_t overhead = wire::frame_overhead(kFormat, frame_header(flight));
    const auto transport = std::span<const std::byte>(flight.frame).subspan(overhead);
    const auto checked = transport.first(transport.size() - wire::kIcrcLength);
    result.corrupt =
        wire::parse_transport(checked, result.packet, result.payload, dialect) == DropReason::kNone;
    header.entropy = flight.entropy;
    header.source = wire::ipv6_address(flight.source.high, flight.source.low);
  }
  const auto address = std::span<const std::uint8_t>(header.source.bytes);
  result.arrival.source = {load64(address.first(8)), load64(address.subspan(8))};
  result.arrival.port = flight.port;
  result.arrival.entropy = header.entropy;
  result.arrival.congestion_experienced = flight.marked;
  result.arrival.trim = trim_state(header.trim);
  result.arrival.payload_length = static_cast<std::uint32_t>(result.payload.size());
  return result;
}

}  // namespace mrc::dst
