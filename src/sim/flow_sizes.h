// How long the flows of a load are: a distribution by its cumulative shares.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mrc::sim {

class FlowSizes {
 public:
  struct Point {
    double bytes = 0;
    double share = 0;  // of the flows that are not longer
  };

  // Between two points lengths are uniform. Throws InputError unless there are two points at least,
  // bytes and shares rise, and the shares end with 1.
  explicit FlowSizes(std::vector<Point> points);
  static FlowSizes fixed(std::uint64_t bytes);
  // "websearch", or a file. Throws InputError.
  static FlowSizes named(const std::string& name);

  double mean() const;
  // `share` from 0 to below 1. At least one byte.
  std::uint64_t at(double share) const;

 private:
  std::vector<Point> points_;
};

// A file with "bytes percent" in each line. Throws InputError.
std::vector<FlowSizes::Point> read_flow_sizes(const std::string& path);

}  // namespace mrc::sim
