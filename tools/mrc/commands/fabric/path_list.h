// What `mrc fabric path` prints: paths between two hosts, with entropy values and carriers.
#pragma once

#include <optional>
#include <string>

#include "fabric/routing.h"

namespace mrc::tool::fabric_view {

// Which paths: all that agree with what is given.
struct PathQuery {
  std::optional<unsigned> from;
  std::optional<unsigned> to;
  std::optional<unsigned> plane;
  std::optional<unsigned> t1;  // within the pod
  std::optional<unsigned> t2;  // within the group of the T1
  std::string entropy;         // decimal or 0x...
  std::string carrier;         // instead of everything else
  bool json = false;
};

// Throws InputError when the query names nothing.
void print_paths(const fabric::Routing& routing, const PathQuery& query);

}  // namespace mrc::tool::fabric_view
