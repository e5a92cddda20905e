// The queue pairs of an engine by number, for look-ups once per packet. Under the engine lock.
//
// The process number of the engine is the top byte of all its numbers; the 16 bits below choose a
// page of 256 and a place in it. Pages are made when the first number on them is reserved, so a
// process with a dozen queue pairs has a dozen pages of 2 KiB.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "base/types.h"
#include "nic/io/backend.h"
#include "os/kernel_random.h"

namespace mrc::nic {

class QueuePairImpl;

class QpTable {
 public:
  explicit QpTable(ProcessNumber process) : process_(process) {}

  Result<QpNumber> free_number(os::KernelRandom& random) const;
  // Takes the memory that add() needs.
  void reserve(QpNumber number);
  void add(QueuePairImpl& qp);
  void remove(const QueuePairImpl& qp);

  QueuePairImpl* find(QpNumber number) const {
    if (process_of(number) != process_) return nullptr;
    const std::uint32_t low = low_bits(number);
    const Page* page = pages_[low / kPerPage].get();
    return page == nullptr ? nullptr : (*page)[low % kPerPage];
  }

  template <typename Visit>
  void for_each(Visit visit) const {
    for (unsigned page = 0; page < kPages; ++page)
      for_each_on_page(page, visit);
  }
  // For those who give up the lock between pages, of which there are kPages.
  template <typename Visit>
  void for_each_on_page(unsigned page, Visit visit) const {
    if (!pages_[page]) return;
    for (QueuePairImpl* qp : *pages_[page])
      if (qp != nullptr) visit(*qp);
  }

 private:
  static constexpr std::uint32_t kLowBits = 0xFFFF;
  static constexpr unsigned kPerPage = 256;

 public:
  static constexpr unsigned kPages = (kLowBits + 1) / kPerPage;

 private:
  using Page = std::array<QueuePairImpl*, kPerPage>;

  static std::uint32_t low_bits(QpNumber number) {
    return static_cast<std::uint32_t>(number) & kLowBits;
  }

  ProcessNumber process_;
  std::array<std::unique_ptr<Page>, kPages> pages_;
};

}  // namespace mrc::nic
