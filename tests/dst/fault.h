// The catalogue of faults. Each kind is counted, and each is switched and tuned per seed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace mrc::dst {

enum class Fault : std::uint8_t {
#define MRC_DST_FAULT(name, text) name,
#include "dst/faults.inc"
#undef MRC_DST_FAULT
  kCount,
};
inline constexpr std::size_t kFaultCount = static_cast<std::size_t>(Fault::kCount);

// "loss", "path blackhole", ...; stable, used in results and logs.
const char* fault_name(Fault fault);

// How often a kind of fault strikes in one seed. The rate is a chance per million packets for what
// befalls single packets, and a number of episodes for everything else.
struct Knob {
  bool on = false;
  std::uint32_t rate = 0;
};

template <typename T>
class PerFault {
 public:
  T& operator[](Fault fault) { return items_[static_cast<std::size_t>(fault)]; }
  const T& operator[](Fault fault) const { return items_[static_cast<std::size_t>(fault)]; }

 private:
  std::array<T, kFaultCount> items_{};
};

using FaultCounts = PerFault<std::uint64_t>;

}  // namespace mrc::dst
