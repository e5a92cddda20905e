// Which losses speak against their path: those beyond what all paths lose.
//
// What arrives on a path earns it credit, at twice the rate at which the paths in use lose packets.
// A loss that finds credit for it uses it up and is excused. So a path is left when it loses more
// than twice as often as all of them do. Where every path loses one packet in twenty, leaving each
// for every loss kept 70 % of them out of use; where nothing is lost nobody has credit, and the
// first loss counts. Two losses in a row always do: a path on which nothing arrives is dead.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/fixed_array.h"
#include "base/types.h"

namespace mrc::core {

class LossCredit {
 public:
  explicit LossCredit(unsigned evs) : rows_(evs) {}

  // Of packets on EVs in use.
  void on_arrival(EvIndex ev) {
    Row& row = rows_[index(ev)];
    row.lost_last = false;
    count(0);
    if (lost_ == 0) return;
    const std::uint32_t credit = row.credit + kPerLoss * lost_ / std::max(packets_, kFewest);
    row.credit = static_cast<std::uint16_t>(std::min(credit, kMost)) & kCreditMask;
  }
  // True when this loss is excused.
  bool on_loss(EvIndex ev) {
    Row& row = rows_[index(ev)];
    count(1);
    const bool again = row.lost_last;
    row.lost_last = true;
    if (again || row.credit < kOneLoss) return false;
    row.credit = (row.credit - kOneLoss) & kCreditMask;
    return true;
  }
  // It is out of use.
  void forget(EvIndex ev) { rows_[index(ev)] = {}; }

  std::size_t memory_bytes() const { return rows_.memory_bytes(); }  // of what it owns

 private:
  static constexpr std::uint32_t kOneLoss = 1U << 13;
  static constexpr std::uint32_t kPerLoss = 2 * kOneLoss;  // to all that arrives
  static constexpr std::uint32_t kMost = 2 * kOneLoss;
  static constexpr std::uint32_t kCreditMask = (1U << 15) - 1;
  // The rate is that of the last thousand packets or so, and no more than they say: of the first
  // few one loss proves little.
  static constexpr std::uint32_t kMostPackets = 1024;
  static constexpr std::uint32_t kFewest = 256;

  struct Row {
    std::uint16_t credit : 15 = 0;
    bool lost_last : 1 = false;
  };
  static_assert(sizeof(Row) == 2 && kMost <= kCreditMask);

  static constexpr std::size_t index(EvIndex ev) { return static_cast<std::size_t>(ev); }

  void count(std::uint32_t lost) {
    lost_ += lost;
    if (++packets_ < kMostPackets) return;
    packets_ /= 2;
    lost_ /= 2;
  }

  FixedArray<Row> rows_;
  std::uint32_t packets_ = 0;  // lately, on all EVs in use
  std::uint32_t lost_ = 0;     // of these
};

}  // namespace mrc::core
