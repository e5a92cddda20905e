// How much a job received over time, and what a fault did to it.
#pragma once

#include <cstdint>
#include <vector>

namespace mrc::tool::demo {

// Counts of bytes as the ranks report them. Times are seconds of one clock and grow per rank.
class Goodput {
 public:
  explicit Goodput(unsigned ranks) : ranks_(ranks) {}

  void add(unsigned rank, double at_s, std::uint64_t bytes);
  // Mean bytes per second of all ranks together between two times.
  double rate(double from_s, double to_s) const;
  std::uint64_t bytes() const;

 private:
  struct Point {
    double at_s = 0;
    double bytes = 0;
  };

  double bytes_until(double at_s) const;

  std::vector<std::vector<Point>> ranks_;
};

struct FaultWindow {
  double start_s = 0;     // of the fault
  double end_s = 0;       // the next one begins, or the drill ends
  double share_left = 1;  // of the bandwidth, while the fault lasts
};

struct FaultEffect {
  double before = 0;      // bytes per second in the stretch before
  double worst = 0;       // lowest rate, as a share of that
  double stall_s = 0;     // longest time with next to nothing
  double recovery_s = 0;  // from the fault until the rate was what the fault leaves, 0 = no dip
  bool recovered = false;
};

// Rates are looked at in steps of a tenth of a second, over two tenths.
FaultEffect effect_of(const Goodput& goodput, const FaultWindow& window);

}  // namespace mrc::tool::demo
