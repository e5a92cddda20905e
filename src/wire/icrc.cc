#include "wire/icrc.h"

#include <array>
#include <atomic>
#include <cstring>

#include "base/assert.h"
#include "wire/codec.h"
#include "wire/crc32.h"

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace mrc::wire {
namespace {

using UpdateFunction = std::uint32_t (*)(std::uint32_t, std::span<const std::byte>);

constexpr std::byte kOnes{0xFF};
constexpr std::size_t kIpv4Length = 20;
constexpr std::size_t kIpv6Length = 40;
constexpr std::size_t kUdpLength = 8;

// Bits of AT_HWCAP, as the Linux ABI fixes them.
#if defined(__aarch64__) && defined(__linux__)
bool cpu_has(unsigned long bits) { return (getauxval(AT_HWCAP) & bits) == bits; }
constexpr unsigned long kCapPmull = 1UL << 4;
constexpr unsigned long kCapCrc32 = 1UL << 7;
#endif

UpdateFunction function_of(CrcMethod method) {
  switch (method) {
    case CrcMethod::kTable:
      return crc32::update_table;
#if defined(__aarch64__)
    case CrcMethod::kArmCrc:
      return crc32::update_arm;
    case CrcMethod::kArmCrcFolded:
      return crc32::update_arm_folded;
#elif defined(__x86_64__)
    case CrcMethod::kX86Folded:
      return crc32::update_x86_folded;
    case CrcMethod::kX86Wide:
      return crc32::update_x86_wide;
#endif
    default:
      return nullptr;
  }
}

std::uint32_t choose_and_update(std::uint32_t state, std::span<const std::byte> bytes);

// Starts with the function that finds the best one and puts it here. Any thread may do so; all find
// the same.
std::atomic<UpdateFunction> chosen_update{&choose_and_update};

std::uint32_t choose_and_update(std::uint32_t state, std::span<const std::byte> bytes) {
  const UpdateFunction best = function_of(best_crc_method());
  chosen_update.store(best, std::memory_order_relaxed);
  return best(state, bytes);
}

// The register after the eight bytes of ones that stand for the local route header.
constexpr std::uint32_t start_state() {
  std::uint32_t state = 0xFFFF'FFFF;
  for (int byte = 0; byte < 8; ++byte) {
    state ^= 0xFF;
    for (int bit = 0; bit < 8; ++bit) {
      state = crc32::times_x(state);
    }
  }
  return state;
}

}  // namespace

bool crc_method_available(CrcMethod method) {
  switch (method) {
    case CrcMethod::kTable:
      return true;
#if defined(__aarch64__) && defined(__linux__)
    case CrcMethod::kArmCrc:
      return cpu_has(kCapCrc32);
    case CrcMethod::kArmCrcFolded:
      return cpu_has(kCapCrc32 | kCapPmull);
#elif defined(__x86_64__)
    case CrcMethod::kX86Folded:
      return __builtin_cpu_supports("pclmul") != 0;
    case CrcMethod::kX86Wide:
      return __builtin_cpu_supports("pclmul") != 0 && __builtin_cpu_supports("avx512f") != 0 &&
             __builtin_cpu_supports("vpclmulqdq") != 0;
#endif
    default:
      return false;
  }
}

CrcMethod best_crc_method() {
  for (const CrcMethod method :
       {CrcMethod::kX86Wide, CrcMethod::kX86Folded, CrcMethod::kArmCrcFolded, CrcMethod::kArmCrc}) {
    if (crc_method_available(method)) return method;
  }
  return CrcMethod::kTable;
}

std::uint32_t crc32_update(std::uint32_t state, std::span<const std::byte> bytes) {
  return chosen_update.load(std::memory_order_relaxed)(state, bytes);
}

std::uint32_t crc32_update(std::uint32_t state, std::span<const std::byte> bytes,
                           CrcMethod method) {
  MRC_ASSERT(crc_method_available(method));
  return function_of(method)(state, bytes);
}

void store_icrc(std::uint32_t value, std::span<std::byte> out) {
  for (std::size_t i = 0; i < 4; ++i) {
    out[i] = static_cast<std::byte>(value >> (8 * i) & 0xFF);
  }
}

std::uint32_t load_icrc(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) {
    value = value << 8 | std::to_integer<std::uint32_t>(bytes[i]);
  }
  return value;
}

Icrc::Icrc() : state_(start_state()) {}

std::uint32_t Icrc::header_check() const {
  static constexpr std::array<std::byte, 4> kNoPayload = {std::byte{0x48}, std::byte{0x44},
                                                          std::byte{0x52}, std::byte{0x53}};
  return ~crc32_update(state_, kNoPayload);
}

void Icrc::add_ip_header(std::span<const std::byte> header) {
  std::array<std::byte, kIpv6Length> masked;
  if (header.size() == kIpv4Length) {
    std::memcpy(masked.data(), header.data(), kIpv4Length);
    masked[1] = kOnes;   // type of service
    masked[8] = kOnes;   // time to live
    masked[10] = kOnes;  // header checksum
    masked[11] = kOnes;
  } else {
    MRC_ASSERT(header.size() == kIpv6Length);
    std::memcpy(masked.data(), header.data(), kIpv6Length);
    masked[0] |= std::byte{0x0F};  // traffic class and flow label share the first word
    masked[1] = masked[2] = masked[3] = kOnes;
    masked[7] = kOnes;  // hop limit
  }
  add(std::span(masked).first(header.size()));
}

void Icrc::add_udp_header(std::span<const std::byte> header) {
  MRC_ASSERT(header.size() == kUdpLength);
  std::array<std::byte, kUdpLength> masked;
  std::memcpy(masked.data(), header.data(), kUdpLength);
  masked[6] = masked[7] = kOnes;  // checksum
  add(masked);
}

void Icrc::add_transport(std::span<const std::byte> headers) {
  MRC_ASSERT(headers.size() >= kBthLength);
  std::array<std::byte, kBthLength> masked;
  std::memcpy(masked.data(), headers.data(), kBthLength);
  masked[4] = kOnes;  // where InfiniBand keeps its congestion bits
  add(masked);
  add(headers.subspan(kBthLength));
}

void Icrc::add(std::span<const std::byte> bytes) { state_ = crc32_update(state_, bytes); }

}  // namespace mrc::wire
