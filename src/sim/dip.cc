#include "sim/dip.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace mrc::sim {
namespace {

// A mean over this many bytes changes by less than 2 % with one full-size packet more or less.
constexpr double kSmoothBytes = 64 * 4096;
constexpr double kSettled = 0.95;
// A fabric that has lost one plane of four runs at 75 % and just below, never above.
constexpr double kThreeQuarters = 0.75 * 0.97;

double mean(const std::vector<double>& values, std::size_t first, std::size_t last) {
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
  const auto end = values.begin() + static_cast<std::ptrdiff_t>(last);
  return std::accumulate(begin, end, 0.0) / static_cast<double>(last - first);
}

// Each value becomes the mean of itself and those before it.
std::vector<double> smoothed(const std::vector<double>& values, std::size_t width) {
  std::vector<double> result(values.size());
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += values[i];
    if (i >= width) sum -= values[i - width];
    result[i] = sum / static_cast<double>(std::min(i + 1, width));
  }
  return result;
}

// Bins from `first` on until the level is at `threshold` for good.
std::size_t bins_below(const std::vector<double>& level, std::size_t first, double threshold) {
  std::size_t last = level.size();
  while (last > first && level[last - 1] >= threshold)
    --last;
  return last - first;
}

}  // namespace

Dip measure_dip(const Series& series, const DipSpan& span) {
  Dip dip;
  const auto fault = static_cast<std::size_t>(span.fault_at / series.bin_ps());
  const Time busy_until = std::max<Time>(span.busy_until, 0);
  const std::size_t end =
      std::min(series.bins(), static_cast<std::size_t>(busy_until / series.bin_ps()));
  std::vector<double> bytes(std::max(end, fault));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<double>(series.bytes(i));
  std::size_t begin = 0;
  while (begin < fault && bytes[begin] == 0)
    ++begin;
  ++begin;  // The first bin with data is not full.
  if (begin >= fault || fault + 1 >= end) return dip;

  // The first half of that time may be the start of the flows.
  const double before = mean(bytes, (begin + fault) / 2, fault);
  const auto width = static_cast<std::size_t>(std::max(1.0, kSmoothBytes / before));
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(begin));
  const std::size_t first = fault - begin;
  const std::vector<double> level = smoothed(bytes, width);
  const double settled = mean(bytes, (first + bytes.size()) / 2, bytes.size());
  const double lowest =
      *std::min_element(level.begin() + static_cast<std::ptrdiff_t>(first), level.end());

  const double bin_us = static_cast<double>(series.bin_ps()) / 1e6;
  const double to_gbps = 8 / (bin_us * 1e3);
  dip.valid = true;
  dip.before_gbps = before * to_gbps;
  dip.lowest_gbps = lowest * to_gbps;
  dip.depth = std::max(0.0, 1 - lowest / before);
  dip.length_us = static_cast<double>(bins_below(level, first, kSettled * settled)) * bin_us;
  const std::size_t missing = bins_below(level, first, kThreeQuarters * before);
  dip.back_to_75_us = missing == level.size() - first ? -1 : static_cast<double>(missing) * bin_us;
  return dip;
}

}  // namespace mrc::sim
