#include "lab/testbed.h"

#include <utility>

#include "fabric/input_error.h"
#include "os/clock.h"

namespace mrc::lab {

Testbed::Testbed(const fabric::TopologySpec& topology)
    : topology_(topology), routing_(topology_), start_ns_(os::monotonic_now()) {}

Picoseconds Testbed::now() const {
  return (os::monotonic_now() - start_ns_) * fabric::kPicosecondsPerNs;
}

void Testbed::add_fault(const std::string& text) {
  fabric::Fault fault = fabric::parse_fault(text, topology_);
  check(fault);
  faults_.add(std::move(fault), now());
}

std::vector<LinkId> Testbed::resolve(const std::string& target) const {
  if (target == "all") {
    std::vector<LinkId> links;
    for (std::uint32_t i = 0; i < topology_.link_count(); ++i)
      links.push_back(LinkId{i});
    return links;
  }
  if (target.find_first_of(" \t\n") != std::string::npos)
    throw fabric::InputError("'" + target + "' is no name of a link, a switch or a host port");
  return fabric::parse_fault(target + " down @0", topology_).links;
}

unsigned Testbed::heal(const std::string& target) {
  std::vector<fabric::FaultAction> actions;
  const unsigned count = faults_.heal(resolve(target), now(), actions);
  apply(actions);
  return count;
}

}  // namespace mrc::lab
