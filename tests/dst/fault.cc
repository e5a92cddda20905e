#include "dst/fault.h"

namespace mrc::dst {

const char* fault_name(Fault fault) {
  static constexpr const char* kNames[] = {
#define MRC_DST_FAULT(name, text) text,
#include "dst/faults.inc"
#undef MRC_DST_FAULT
  };
  static_assert(sizeof kNames / sizeof kNames[0] == kFaultCount);
  return kNames[static_cast<std::size_t>(fault)];
}

}  // namespace mrc::dst
