#include "nic/engine/qp_table.h"

#include "nic/queue_pair.h"

namespace mrc::nic {

// Numbers are drawn at random, so that packets for a queue pair of the past find none, or one that
// does not know their sender.
Result<QpNumber> QpTable::free_number(os::KernelRandom& random) const {
  const std::uint32_t high = std::uint32_t{process_} << 16;
  std::uint32_t low = random.next32() & kLowBits;
  for (std::uint32_t tries = 0; tries <= kLowBits; ++tries, low = (low + 1) & kLowBits) {
    const QpNumber number{high | low};
    if (number >= kFirstUsableQp && find(number) == nullptr) return number;
  }
  return Status{ErrorCode::kNoSpace, "all queue pair numbers are in use"};
}

void QpTable::reserve(QpNumber number) {
  auto& page = pages_[low_bits(number) / kPerPage];
  if (!page) page = std::make_unique<Page>();
}

void QpTable::add(QueuePairImpl& qp) {
  const std::uint32_t low = low_bits(qp.number());
  (*pages_[low / kPerPage])[low % kPerPage] = &qp;
}

void QpTable::remove(const QueuePairImpl& qp) {
  const std::uint32_t low = low_bits(qp.number());
  (*pages_[low / kPerPage])[low % kPerPage] = nullptr;
}

}  // namespace mrc::nic
