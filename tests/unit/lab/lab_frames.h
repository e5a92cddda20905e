// Frames as hosts of a lab send them, and what came out of a network.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fabric/host_address.h"
#include "fabric/routing.h"
#include "lab/network.h"
#include "wire/frame.h"

namespace mrc::lab::test {

inline constexpr std::uint8_t kControlDscp = 46;
inline constexpr std::uint8_t kTrimmableDscp = 4;
inline constexpr std::uint8_t kNoTrimDscp = 0;

struct FrameSpec {
  unsigned source = 0;
  unsigned destination = 0;
  fabric::Path path;
  bool srv6 = true;
  std::uint8_t dscp = kTrimmableDscp;
  std::size_t payload = 1'024;
  std::uint32_t psn = 0;
  std::uint32_t entropy = 0x0001'C123;
  std::uint16_t udp_port = wire::kDefaultUdpPort;
};

inline wire::FrameHeader header_of(const fabric::Routing& routing, const FrameSpec& spec) {
  wire::FrameHeader header;
  header.source = fabric::host_address(0, spec.source);
  header.destination = fabric::host_address(0, spec.destination);
  header.dscp = spec.dscp;
  header.ecn = wire::Ecn::kEct0;
  header.entropy = spec.entropy;
  header.srv6 = spec.srv6;
  if (spec.srv6) {
    header.outer.source = header.source;
    header.outer.carrier = routing.carrier(spec.source, spec.destination, spec.path);
  }
  return header;
}

inline std::vector<std::byte> make_frame(const wire::FrameHeader& header, const FrameSpec& spec) {
  wire::Packet packet;
  packet.bth.opcode = wire::Opcode::kWriteOnly;
  packet.bth.destination = QpNumber{0x123};
  packet.bth.psn = Psn(spec.psn);
  wire::Write write;
  write.message_length = static_cast<std::uint32_t>(spec.payload);
  packet.body = write;
  const std::vector<std::byte> payload(spec.payload, std::byte{0x5A});
  const std::span<const std::byte> piece(payload);
  std::vector<std::byte> frame(FramePool::kMaxFrameBytes);
  wire::FrameFormat format;
  format.udp_port = spec.udp_port;
  frame.resize(wire::build_frame(format, header, packet, {&piece, 1}, frame));
  EXPECT_FALSE(frame.empty());
  return frame;
}
inline std::vector<std::byte> make_frame(const fabric::Routing& routing, const FrameSpec& spec) {
  return make_frame(header_of(routing, spec), spec);
}

inline FrameId put(FramePool& pool, const std::vector<std::byte>& frame) {
  const FrameId id = pool.take();
  EXPECT_NE(id, kNoFrame);
  std::copy(frame.begin(), frame.end(), pool.room(id).begin());
  pool.set_length(id, frame.size());
  return id;
}

struct Parsed {
  DropReason reason = DropReason::kNone;
  wire::FrameHeader header;
  wire::Packet packet;
};
inline Parsed parse(std::span<const std::byte> frame,
                    std::uint16_t udp_port = wire::kDefaultUdpPort) {
  Parsed parsed;
  wire::FrameFormat format;
  format.udp_port = udp_port;
  std::span<const std::byte> payload;
  parsed.reason = wire::parse_frame(format, frame, parsed.header, parsed.packet, payload);
  return parsed;
}

inline std::string carrier_text(std::span<const std::byte> frame) {
  wire::IpAddress address;
  for (std::size_t i = 0; i < address.bytes.size(); ++i)
    address.bytes[i] = static_cast<std::uint8_t>(frame[38 + i]);
  return std::string(wire::format_address(address).view());
}

// Remembers what reached the hosts.
class Arrivals final : public HostSide {
 public:
  explicit Arrivals(FramePool& pool) : pool_(&pool) {}
  bool deliver(unsigned plane, unsigned host, FrameId frame) override {
    const auto bytes = pool_->bytes(frame);
    frames.push_back({plane, host, {bytes.begin(), bytes.end()}});
    pool_->give_back(frame);
    return true;
  }
  struct Frame {
    unsigned plane = 0;
    unsigned host = 0;
    std::vector<std::byte> bytes;
  };
  std::vector<Frame> frames;

 private:
  FramePool* pool_;
};

inline constexpr Picoseconds kDelayPs = 1'000;
// Two planes of 2 T0 and 4 T1 with 8 hosts, 100 Mb/s everywhere, short cables.
inline fabric::TopologySpec small_fabric() {
  fabric::TopologySpec spec;
  spec.planes = 2;
  spec.hosts = 8;
  spec.t0 = 2;
  spec.t1 = 4;
  for (fabric::LinkClass* link : {&spec.host_link, &spec.t0_t1_link, &spec.t1_t2_link})
    *link = {.bits_per_second = 100'000'000, .delay_ps = kDelayPs};
  return spec;
}

}  // namespace mrc::lab::test
