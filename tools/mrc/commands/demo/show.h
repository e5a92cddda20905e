// What a demo shows while it runs: a page on a terminal, lines elsewhere.
#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "terminal.h"

namespace mrc::tool::demo {

struct Snapshot {
  std::vector<double> plane_bits_per_second;  // as hosts see it
  double plane_full_bits_per_second = 0;      // all ports of a plane together
  double goodput_bits_per_second = 0;         // of the all-reduce, all ranks
  std::uint64_t paths_good = 0;
  std::uint64_t paths_skipped = 0;
  std::uint64_t paths_bad = 0;
  std::uint64_t retransmitted = 0;
  std::uint64_t rounds = 0;
  std::uint64_t checked_bytes = 0;
  std::uint64_t wrong = 0;
  std::uint64_t step = 0;
  std::uint64_t steps = 0;
  double loss = 0;
};

class Show {
 public:
  explicit Show(std::FILE* out);

  // A new part of the demo.
  void chapter(const std::string& title);
  // Where the network of this part is drawn while it runs.
  void address(const std::string& url);
  // Something happened, `at_s` seconds into the chapter.
  void event(double at_s, const std::string& what);
  // How things stand; drawn as often as people can read it.
  void update(double at_s, const Snapshot& snapshot);
  // The page stays as it is; what comes next is printed below it.
  void leave_page();

 private:
  std::vector<std::string> page(double at_s, const Snapshot& snapshot) const;
  void draw(const std::vector<std::string>& lines);

  Terminal terminal_;
  std::string title_;
  std::deque<std::string> events_;
  std::deque<double> history_;  // goodput
  std::size_t drawn_ = 0;       // lines of the page that stand on the terminal
  double next_update_s_ = 0;
};

}  // namespace mrc::tool::demo
