#include "demo/frame_story.h"

#include <fmt/core.h>

#include "text.h"
#include "wire/codec.h"
#include "wire/frame.h"

namespace mrc::demo {
namespace {

std::string mac_text(const wire::MacAddress& mac) {
  std::string text;
  for (const std::uint8_t byte : mac)
    text += fmt::format("{}{:02x}", text.empty() ? "" : ":", byte);
  return text;
}

std::string addresses(const wire::IpAddress& from, const wire::IpAddress& to) {
  return fmt::format("{} > {}", wire::format_address(from).view(), wire::format_address(to).view());
}

const char* ecn_text(wire::Ecn ecn) {
  switch (ecn) {
    case wire::Ecn::kNotEct:
      return "no ECN";
    case wire::Ecn::kEct0:
      return "ECT(0)";
    case wire::Ecn::kEct1:
      return "ECT(1)";
    case wire::Ecn::kCe:
      return "CE";
  }
  return "";
}

// The hops a carrier names, by the uSID plan.
std::string route_text(const wire::IpAddress& carrier) {
  const wire::UsidPlan plan;
  const auto block = static_cast<std::uint32_t>(wire::carrier_block(carrier));
  std::string text = fmt::format("plane {}", block - plan.first_block + 1);
  for (unsigned i = 0; i < wire::usid_count(carrier); ++i) {
    const auto usid = static_cast<std::uint16_t>(wire::usid_at(carrier, i));
    const bool is_t0 = usid >= plan.t0.first && usid - plan.t0.first < plan.t0.count;
    const bool is_t1 = usid >= plan.t1.first && usid - plan.t1.first < plan.t1.count;
    const unsigned first = is_t0 ? plan.t0.first : is_t1 ? plan.t1.first : plan.host_port.first;
    text += fmt::format(", {} {}", is_t0 ? "T0" : is_t1 ? "T1" : "host port", usid - first);
  }
  return text;
}

std::uint32_t icrc_of(std::span<const std::byte> frame) {
  std::uint32_t value = 0;
  for (const std::byte b : frame.last(wire::kIcrcLength))
    value = value << 8 | std::to_integer<std::uint32_t>(b);
  return value;
}

}  // namespace

std::vector<HeaderLine> tell_frame(std::span<const std::byte> frame) {
  const wire::FrameFormat format;
  wire::FrameHeader header;
  wire::Packet packet;
  std::span<const std::byte> payload;
  if (wire::parse_frame(format, frame, header, packet, payload) != DropReason::kNone) return {};
  const auto* write = std::get_if<wire::Write>(&packet.body);
  if (write == nullptr) return {};
  const wire::Bth& bth = packet.bth;
  return {
      {"Ethernet",
       fmt::format("{} > {}", mac_text(header.source_mac), mac_text(header.destination_mac)), ""},
      {"IPv6", addresses(header.outer.source, header.outer.carrier),
       route_text(header.outer.carrier)},
      {"IPv6", addresses(header.source, header.destination),
       fmt::format("DSCP {}, {}", header.dscp, ecn_text(header.ecn))},
      {"UDP", fmt::format("{} > {}", header.entropy & 0xFFFF, format.udp_port),
       fmt::format("entropy value 0x{:08x}", header.entropy)},
      {"BTH",
       fmt::format("queue pair 0x{:06x}, PSN {}", static_cast<std::uint32_t>(bth.destination),
                   bth.psn.value()),
       fmt::format("opcode 0x{:02X}", static_cast<unsigned>(bth.opcode))},
      {"METH", fmt::format("message {}, receive {}", write->msn, write->receive_msn), ""},
      {"TSETH", fmt::format("sent at tick {}", write->timestamp.ticks), "a tick is 128 ns"},
      {"RETH",
       fmt::format("address 0x{:x}, key 0x{:08x}", write->address,
                   static_cast<std::uint32_t>(write->key)),
       fmt::format("message of {} bytes", tool::grouped(write->message_length))},
      {"payload", tool::grouped(payload.size()) + " bytes", ""},
      {"ICRC", fmt::format("{:08x}", icrc_of(frame)), "verified at the other end"},
  };
}

}  // namespace mrc::demo
