// Types that cross every module boundary. Ids are distinct types; times and sizes carry their unit.
#pragma once

#include <bit>
#include <compare>
#include <cstdint>
#include <limits>

namespace mrc {

// A point in virtual or real time and a span of it, in nanoseconds. The caller owns the clock;
// zero is wherever the caller puts it, and time never runs backwards between two calls.
using TimeNs = std::int64_t;
using DurationNs = std::int64_t;
inline constexpr TimeNs kNever = std::numeric_limits<TimeNs>::max();

inline constexpr DurationNs kMicrosecondNs = 1'000;
inline constexpr DurationNs kMillisecondNs = 1'000'000;
inline constexpr DurationNs kSecondNs = 1'000'000'000;

// A queue pair number, 24 bits. 0, 1 and 2 are reserved; 2 addresses the endpoint itself.
enum class QpNumber : std::uint32_t {};
inline constexpr std::uint32_t kQpNumberMask = 0xFF'FFFF;
inline constexpr QpNumber kEndpointQp{2};
inline constexpr QpNumber kFirstUsableQp{3};

// The key a peer must present to write into a registered region.
enum class Rkey : std::uint32_t {};

// Regions and queue pairs of different domains never meet.
enum class ProtectionDomain : std::uint32_t {};

// A physical port, which is also a network plane. Numbered from 1 as in the OCP API.
enum class PortId : std::uint8_t {};
inline constexpr unsigned kMaxPorts = 16;
inline constexpr PortId kNoPort{0};

// A set of ports; bit n-1 stands for port n. `for (PortId port : mask)` visits them from the lowest
// number on.
class PortMask {
 public:
  class Iterator {
   public:
    constexpr explicit Iterator(std::uint32_t bits) : bits_(bits) {}
    constexpr PortId operator*() const {
      return PortId{static_cast<std::uint8_t>(std::countr_zero(bits_) + 1)};
    }
    constexpr Iterator& operator++() {
      bits_ &= bits_ - 1;
      return *this;
    }
    friend constexpr bool operator==(Iterator, Iterator) = default;

   private:
    std::uint32_t bits_;
  };

  constexpr PortMask() = default;
  constexpr explicit PortMask(std::uint32_t bits) : bits_(bits) {}
  static constexpr PortMask first(unsigned count) {
    return PortMask(static_cast<std::uint32_t>((std::uint64_t{1} << count) - 1));
  }
  static constexpr PortMask of(PortId port) {
    return PortMask(std::uint32_t{1} << (static_cast<unsigned>(port) - 1));
  }

  constexpr std::uint32_t bits() const { return bits_; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr unsigned count() const { return static_cast<unsigned>(std::popcount(bits_)); }
  constexpr Iterator begin() const { return Iterator(bits_); }
  constexpr Iterator end() const { return Iterator(0); }
  // The port with the lowest number; of a set that is not empty.
  constexpr PortId lowest() const { return *begin(); }
  constexpr bool contains(PortId port) const { return (bits_ & of(port).bits_) != 0; }
  constexpr PortMask with(PortId port) const { return PortMask(bits_ | of(port).bits_); }
  constexpr PortMask without(PortId port) const { return PortMask(bits_ & ~of(port).bits_); }
  friend constexpr PortMask operator&(PortMask a, PortMask b) {
    return PortMask(a.bits_ & b.bits_);
  }
  friend constexpr PortMask operator|(PortMask a, PortMask b) {
    return PortMask(a.bits_ | b.bits_);
  }
  // The ports of `a` that are not in `b`.
  friend constexpr PortMask operator-(PortMask a, PortMask b) {
    return PortMask(a.bits_ & ~b.bits_);
  }
  // The ports that are in one of them only.
  friend constexpr PortMask operator^(PortMask a, PortMask b) {
    return PortMask(a.bits_ ^ b.bits_);
  }
  friend constexpr bool operator==(PortMask, PortMask) = default;

 private:
  std::uint32_t bits_ = 0;
};

// The position of an entropy value in its profile, which names one path of a queue pair.
enum class EvIndex : std::uint16_t {};
inline constexpr EvIndex kNoEv{0xFFFF};
inline constexpr unsigned kMaxEvsPerQp = 1024;

// A 24-bit packet sequence number as it stands on the wire. Differences wrap.
class Psn {
 public:
  static constexpr std::uint32_t kMask = 0xFF'FFFF;

  constexpr Psn() = default;
  constexpr explicit Psn(std::uint32_t value) : value_(value & kMask) {}

  constexpr std::uint32_t value() const { return value_; }
  constexpr Psn operator+(std::uint32_t n) const { return Psn(value_ + n); }
  constexpr Psn operator-(std::uint32_t n) const { return Psn(value_ - n); }
  // The signed distance from `other` to this, in [-2^23, 2^23).
  constexpr std::int32_t distance_from(Psn other) const {
    const std::uint32_t forward = (value_ - other.value_) & kMask;
    return forward < 0x80'0000 ? static_cast<std::int32_t>(forward)
                               : static_cast<std::int32_t>(forward) - 0x100'0000;
  }
  friend constexpr bool operator==(Psn, Psn) = default;

 private:
  std::uint32_t value_ = 0;
};

// A peer's address (GID). The core compares it and hands it back, nothing more; callers with one IP
// address per port map them all to the address the queue pair was connected with.
struct Address {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend constexpr auto operator<=>(const Address&, const Address&) = default;
};

}  // namespace mrc
