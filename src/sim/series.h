// Bytes delivered over time, per plane (or per flow), in bins that widen when the run gets long.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/event_queue.h"

namespace mrc::sim {

class Series {
 public:
  static constexpr std::size_t kMaxBins = 1 << 14;

  Series() = default;
  Series(unsigned planes, Time bin_ps) : bin_ps_(bin_ps), bytes_(planes), totals_(planes) {}

  void add(Time now, unsigned plane, std::uint32_t bytes) {
    auto bin = static_cast<std::size_t>(now / bin_ps_);
    while (bin >= kMaxBins) {
      widen();
      bin = static_cast<std::size_t>(now / bin_ps_);
    }
    std::vector<std::uint64_t>& b = bytes_[plane];
    if (bin >= b.size()) b.resize(bin + 1);
    b[bin] += bytes;
    totals_[plane] += bytes;
  }

  Time bin_ps() const { return bin_ps_; }
  unsigned planes() const { return static_cast<unsigned>(bytes_.size()); }
  std::size_t bins() const {
    std::size_t n = 0;
    for (const auto& b : bytes_)
      n = b.size() > n ? b.size() : n;
    return n;
  }
  std::uint64_t bytes(unsigned plane, std::size_t bin) const {
    return bin < bytes_[plane].size() ? bytes_[plane][bin] : 0;
  }
  std::uint64_t total(unsigned plane) const { return totals_[plane]; }
  std::uint64_t bytes(std::size_t bin) const {
    std::uint64_t sum = 0;
    for (unsigned p = 0; p < planes(); ++p)
      sum += bytes(p, bin);
    return sum;
  }

 private:
  void widen() {
    bin_ps_ *= 2;
    for (std::vector<std::uint64_t>& b : bytes_) {
      for (std::size_t i = 0; i < b.size(); i += 2)
        b[i / 2] = b[i] + (i + 1 < b.size() ? b[i + 1] : 0);
      b.resize((b.size() + 1) / 2);
    }
  }

  Time bin_ps_ = 1'000'000;
  std::vector<std::vector<std::uint64_t>> bytes_;  // by plane, then by bin
  std::vector<std::uint64_t> totals_;              // by plane
};

}  // namespace mrc::sim
