#include "sim/flow_sizes.h"

#include <algorithm>
#include <cmath>

#include "fabric/input_error.h"

namespace mrc::sim {
namespace {

using fabric::InputError;

constexpr double kMaxBytes = 0x1p36;

// Web search of the DCTCP paper (Alizadeh et al., SIGCOMM 2010, figure 4), in the rounded form in
// which simulators of later papers (HPCC, SIGCOMM 2019) use it. Mean 1.7 MB.
std::vector<FlowSizes::Point> websearch() {
  return {{0, 0},       {10e3, 0.15}, {20e3, 0.20}, {30e3, 0.30}, {50e3, 0.40}, {80e3, 0.53},
          {200e3, 0.6}, {1e6, 0.7},   {2e6, 0.8},   {5e6, 0.9},   {10e6, 0.97}, {30e6, 1}};
}

}  // namespace

FlowSizes::FlowSizes(std::vector<Point> points) : points_(std::move(points)) {
  bool rises = points_.size() >= 2 && points_.front().bytes >= 0 && points_.front().share >= 0 &&
               points_.back().bytes < kMaxBytes && std::abs(points_.back().share - 1) < 1e-9;
  for (std::size_t i = 1; i < points_.size(); ++i)
    rises = rises && points_[i].bytes >= points_[i - 1].bytes &&
            points_[i].share >= points_[i - 1].share;
  if (!rises)
    throw InputError(
        "flow sizes: two points at least, bytes and percents that rise, and 100 % at the end");
}

FlowSizes FlowSizes::fixed(std::uint64_t bytes) {
  const auto b = static_cast<double>(bytes);
  return FlowSizes({{b, 0}, {b, 1}});
}

FlowSizes FlowSizes::named(const std::string& name) {
  return FlowSizes(name == "websearch" ? websearch() : read_flow_sizes(name));
}

double FlowSizes::mean() const {
  double mean = points_.front().bytes * points_.front().share;
  for (std::size_t i = 1; i < points_.size(); ++i)
    mean +=
        (points_[i].share - points_[i - 1].share) * (points_[i].bytes + points_[i - 1].bytes) / 2;
  return mean;
}

std::uint64_t FlowSizes::at(double share) const {
  const auto above = std::upper_bound(points_.begin(), points_.end(), share,
                                      [](double s, const Point& p) { return s < p.share; });
  double bytes = points_.back().bytes;
  if (above == points_.begin()) {
    bytes = above->bytes;
  } else if (above != points_.end()) {
    const Point& low = *(above - 1);
    bytes =
        low.bytes + (above->bytes - low.bytes) * (share - low.share) / (above->share - low.share);
  }
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(bytes)));
}

}  // namespace mrc::sim
