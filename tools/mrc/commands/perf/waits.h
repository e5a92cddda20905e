// What the queue pairs of a sender wait for, found by looking at them a thousand times a second.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "openmrc_counters.h"

namespace mrc::tool::perf {

enum class Wait : std::uint8_t {
  kProgram,  // nothing is posted
  kPath,     // no path is good
  kResend,   // packets are lost and not yet sent again
  kWindow,   // the congestion window has no room for a packet
  kNothing   // none of these: processors, the port, the answer to the last packets
};
inline constexpr unsigned kWaits = 5;
const char* name_of(Wait wait);   // for keys
const char* describe(Wait wait);  // for people

// What one look finds.
Wait wait_of(const openmrc_qp_counters& counters, std::uint32_t mtu);

// The account of a measurement.
struct Waits {
  std::uint64_t looks = 0;
  std::array<std::uint64_t, kWaits> found{};
  double round_trip_us = 0;  // mean of the looks that knew one
  double most_round_trip_us = 0;
  std::uint32_t paths = 0;  // of one queue pair
  std::uint32_t most_bad_paths = 0;
  openmrc_qp_counters sums{};  // counted since the first look, over all queue pairs
  std::vector<openmrc_qp_counters> queue_pairs;  // the same of each, with its paths at the end

  double share(Wait wait) const {
    return looks == 0 ? 0
                      : static_cast<double>(found[static_cast<std::size_t>(wait)]) /
                            static_cast<double>(looks);
  }
};

class WaitSampler {
 public:
  using Query = std::function<openmrc_qp_counters(unsigned qp)>;
  WaitSampler(unsigned qps, std::uint32_t mtu, Query query);

  // To be called all the time: looks when it is time to, at a few queue pairs, which take turns.
  void look(std::int64_t now_ns);
  Waits take();

 private:
  void look_at(unsigned qp);

  Query query_;
  std::uint32_t mtu_;
  std::vector<openmrc_qp_counters> first_;  // by queue pair
  std::int64_t next_ns_ = 0;
  unsigned next_qp_ = 0;
  std::uint64_t round_trips_ = 0;
  double round_trip_sum_us_ = 0;
  Waits waits_;
};

}  // namespace mrc::tool::perf
