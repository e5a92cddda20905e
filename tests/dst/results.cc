#include "dst/results.h"

namespace mrc::dst {

test::ResultLines result_lines(const Totals& totals) {
  test::ResultLines lines = {
      {"seeds", totals.seeds},
      {"seeds run twice", totals.rerun},
      {"packets", totals.packets},
      {"data packets", totals.data_packets},
      {"retransmissions", totals.retransmissions},
      {"payload bytes", totals.payload_bytes},
      {"completions", totals.completions},
      {"immediates", totals.immediates},
      {"virtual microseconds", totals.virtual_ns / 1'000},
      {"longest drain, permille of its bound", totals.drain_permille},
      {"faults", totals.fault_count()},
  };
  for (std::size_t i = 0; i < kFaultCount; ++i) {
    const auto fault = static_cast<Fault>(i);
    lines.emplace_back(std::string("fault ") + fault_name(fault), totals.faults[fault]);
  }
  for (std::size_t i = 0; i < kAttackCount; ++i) {
    if (totals.attacks[i] != 0) {
      lines.emplace_back(std::string("attack ") + kAttacks[i].text, totals.attacks[i]);
    }
  }
  return lines;
}

}  // namespace mrc::dst
