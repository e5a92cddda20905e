// What every link of a running lab carries, and what is wrong with it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fabric/link_condition.h"
#include "fabric/topology.h"
#include "lab/control.h"

namespace mrc::tool {

// What a lab says to the verb `links` (lab/daemon.h), over as many answers as it takes.
struct LabLinks {
  static constexpr std::uint32_t kMaxLinks = 1 << 22;

  struct Link {
    std::uint32_t number = 0;
    std::uint64_t bytes = 0;
    std::uint64_t queued = 0;
    fabric::LinkCondition condition;
  };
  struct Count {
    std::uint32_t number = 0;  // of the link
    std::uint64_t marks = 0;
    std::uint64_t trims = 0;
    std::uint64_t drops = 0;
  };
  std::int64_t time_ps = 0;
  std::optional<fabric::TopologySpec> fabric;
  std::set<std::string> faults;  // active ones
  std::vector<std::uint64_t> sums;
  std::vector<Link> links;
  std::vector<Count> counts;
  std::optional<std::uint32_t> next;

  // Adds an answer. Throws std::runtime_error when it is none.
  void parse_answer(const std::string& text);
};

// Throws std::runtime_error when the lab does not say it.
LabLinks ask_links(lab::ControlClient& client);

}  // namespace mrc::tool
