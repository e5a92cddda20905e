#include "sim/pcapng.h"

#include <string_view>

namespace mrc::sim {
namespace {

constexpr std::uint32_t kSectionHeader = 0x0A0D'0D0A;
constexpr std::uint32_t kInterfaceDescription = 1;
constexpr std::uint32_t kEnhancedPacket = 6;
constexpr std::uint32_t kByteOrderMagic = 0x1A2B'3C4D;
constexpr std::uint16_t kLinkTypeEthernet = 1;
constexpr std::uint16_t kOptionEnd = 0;
constexpr std::uint16_t kOptionInterfaceName = 2;
constexpr std::uint16_t kOptionTimeResolution = 9;
// Nanoseconds. Wireshark up to 4.0 turns ticks into nanoseconds in 64 bits, and finer ones overflow
// after 18 ms.
constexpr char kTicksExponent = 9;

// The file is little endian on every machine.
template <typename Number>
void put(std::string& to, Number value) {
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    to += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xFF);
}

void pad(std::string& to) { to.append((4 - to.size() % 4) % 4, '\0'); }

void put_option(std::string& to, std::uint16_t code, std::string_view value) {
  put<std::uint16_t>(to, code);
  put<std::uint16_t>(to, static_cast<std::uint16_t>(value.size()));
  to += value;
  pad(to);
}

}  // namespace

PcapngWriter::PcapngWriter(std::ostream& out) : out_(out) {
  std::string body;
  put<std::uint32_t>(body, kByteOrderMagic);
  put<std::uint16_t>(body, 1);  // version 1.0
  put<std::uint16_t>(body, 0);
  put<std::uint64_t>(body, ~std::uint64_t{0});  // length of the section: not said
  block(kSectionHeader, body);
}

std::uint32_t PcapngWriter::add_interface(const std::string& name, std::uint32_t snap_bytes) {
  std::string body;
  put<std::uint16_t>(body, kLinkTypeEthernet);
  put<std::uint16_t>(body, 0);
  put<std::uint32_t>(body, snap_bytes);
  put_option(body, kOptionInterfaceName, name);
  put_option(body, kOptionTimeResolution, std::string_view(&kTicksExponent, 1));
  put_option(body, kOptionEnd, {});
  block(kInterfaceDescription, body);
  return interfaces_++;
}

void PcapngWriter::add_packet(std::uint32_t interface, Time at, std::span<const std::byte> bytes,
                              std::uint32_t original_bytes) {
  const auto ticks = static_cast<std::uint64_t>(at / fabric::kPicosecondsPerNs);
  std::string body;
  body.reserve(bytes.size() + 24);
  put<std::uint32_t>(body, interface);
  put<std::uint32_t>(body, static_cast<std::uint32_t>(ticks >> 32));
  put<std::uint32_t>(body, static_cast<std::uint32_t>(ticks));
  put<std::uint32_t>(body, static_cast<std::uint32_t>(bytes.size()));
  put<std::uint32_t>(body, original_bytes);
  for (const std::byte b : bytes)
    body += static_cast<char>(b);
  pad(body);
  block(kEnhancedPacket, body);
}

void PcapngWriter::block(std::uint32_t type, const std::string& body) {
  std::string text;
  const auto length = static_cast<std::uint32_t>(body.size() + 12);
  put(text, type);
  put(text, length);
  text += body;
  put(text, length);
  out_.write(text.data(), static_cast<std::streamsize>(text.size()));
}

}  // namespace mrc::sim
