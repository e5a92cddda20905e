#include "capture/capture_file.h"

#include <algorithm>

namespace mrc::capture {
namespace {

constexpr std::uint32_t kSectionHeader = 0x0A0D'0D0A;
constexpr std::uint32_t kInterface = 1;
constexpr std::uint32_t kSimplePacket = 3;
constexpr std::uint32_t kEnhancedPacket = 6;
constexpr std::uint32_t kOrderMagic = 0x1A2B'3C4D;
constexpr std::uint32_t kOrderMagicTurned = 0x4D3C'2B1A;
constexpr std::uint32_t kPcapMicroseconds = 0xA1B2'C3D4;
constexpr std::uint32_t kPcapNanoseconds = 0xA1B2'3C4D;
constexpr std::size_t kPcapHeader = 24;
constexpr std::size_t kPcapRecord = 16;
constexpr std::size_t kBlockOverhead = 12;  // type and the length, twice
constexpr std::size_t kMaxInterfaces = 65'536;

std::uint32_t turned(std::uint32_t value) { return __builtin_bswap32(value); }

}  // namespace

CaptureFile::CaptureFile(std::span<const std::byte> file) : file_(file) {
  if (file_.size() < kPcapHeader) {
    fail("no capture: shorter than the header of one");
    return;
  }
  const std::uint32_t magic = u32(0);
  if (magic == kSectionHeader) {
    kind_ = Kind::kPcapng;
    return;
  }
  for (const std::uint32_t known : {kPcapMicroseconds, kPcapNanoseconds}) {
    if (magic != known && magic != turned(known)) continue;
    big_endian_ = magic != known;
    kind_ = Kind::kPcap;
    pcap_link_ = static_cast<std::uint16_t>(u32(20));
    at_ = kPcapHeader;
    return;
  }
  fail("no capture: begins like neither pcapng nor pcap");
}

std::uint32_t CaptureFile::u32(std::size_t at) const {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const unsigned shift = static_cast<unsigned>(big_endian_ ? 24 - 8 * i : 8 * i);
    value |= std::to_integer<std::uint32_t>(file_[at + i]) << shift;
  }
  return value;
}

std::uint16_t CaptureFile::u16(std::size_t at) const {
  const auto first = std::to_integer<unsigned>(file_[at]);
  const auto second = std::to_integer<unsigned>(file_[at + 1]);
  return static_cast<std::uint16_t>(big_endian_ ? first << 8 | second : second << 8 | first);
}

bool CaptureFile::fail(const char* what) {
  problem_ = std::string(what) + ", at byte " + std::to_string(at_);
  kind_ = Kind::kNone;
  return false;
}

bool CaptureFile::next(CapturedFrame& frame) {
  if (kind_ == Kind::kPcap) return next_in_pcap(frame);
  return kind_ == Kind::kPcapng && next_in_pcapng(frame);
}

bool CaptureFile::next_in_pcap(CapturedFrame& frame) {
  if (left() == 0) return false;
  if (left() < kPcapRecord) return fail("cut in the header of a frame");
  const std::uint32_t length = u32(at_ + 8);
  const std::uint32_t original = u32(at_ + 12);
  if (length > left() - kPcapRecord) return fail("cut in a frame, or its length is wrong");
  frame = {.link = pcap_link_,
           .whole = length >= original,
           .bytes = file_.subspan(at_ + kPcapRecord, length)};
  at_ += kPcapRecord + length;
  return true;
}

// A section says its byte order, and its interfaces begin anew.
bool CaptureFile::begin_section() {
  if (left() < kBlockOverhead) return fail("cut in the header of a section");
  big_endian_ = false;
  const std::uint32_t order = u32(at_ + 8);
  if (order != kOrderMagic && order != kOrderMagicTurned) return fail("a section of no byte order");
  big_endian_ = order == kOrderMagicTurned;
  links_.clear();
  return true;
}

bool CaptureFile::next_in_pcapng(CapturedFrame& frame) {
  while (left() != 0) {
    if (left() < kBlockOverhead) return fail("cut in the header of a block");
    const std::uint32_t type = u32(at_);
    if (type == kSectionHeader && !begin_section()) return false;
    const std::size_t length = u32(at_ + 4);
    if (length < kBlockOverhead || length % 4 != 0 || length > left()) {
      return fail("cut in a block, or its length is wrong");
    }
    if (u32(at_ + length - 4) != length) return fail("a block whose lengths differ");
    const std::size_t body = at_ + 8;
    const std::size_t body_length = length - kBlockOverhead;
    at_ += length;
    if (type == kInterface && body_length >= 8) {
      if (links_.size() == kMaxInterfaces) return fail("more interfaces than anybody has");
      links_.push_back(u16(body));
    }
    if (type == kEnhancedPacket && read_enhanced(body, body_length, frame)) return true;
    if (type == kSimplePacket && read_simple(body, body_length, frame)) return true;
  }
  return false;
}

// A packet that contradicts itself is left out; its block has an end all the same.
bool CaptureFile::read_enhanced(std::size_t body, std::size_t length, CapturedFrame& frame) {
  constexpr std::size_t kFields = 20;
  if (length < kFields) return false;
  const std::uint32_t interface = u32(body);
  const std::uint32_t captured = u32(body + 12);
  if (interface >= links_.size() || captured > length - kFields) return false;
  frame = {.link = links_[interface],
           .whole = captured >= u32(body + 16),
           .bytes = file_.subspan(body + kFields, captured)};
  return true;
}

bool CaptureFile::read_simple(std::size_t body, std::size_t length, CapturedFrame& frame) {
  constexpr std::size_t kFields = 4;
  if (length < kFields || links_.empty()) return false;
  const std::uint32_t original = u32(body);
  const std::size_t captured = std::min<std::size_t>(original, length - kFields);
  frame = {.link = links_[0],
           .whole = captured == original,
           .bytes = file_.subspan(body + kFields, captured)};
  return true;
}

}  // namespace mrc::capture
