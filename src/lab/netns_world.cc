#include "lab/netns_world.h"

#include "lab/command.h"

namespace mrc::lab {

NetnsWorld::NetnsWorld(const fabric::Routing& routing, const std::string& prefix, SwitchKind kind)
    : prefix_(prefix), kind_(kind), plan_(routing, prefix, kind) {
  remove_namespaces(prefix_);
  try {
    build(routing);
  } catch (...) {
    remove_namespaces(prefix_);
    throw;
  }
}

NetnsWorld::~NetnsWorld() { remove_namespaces(prefix_); }

void NetnsWorld::ip(const std::string& name_space, const std::string& batch) {
  run_command({"ip", "-n", name_space, "-batch", "-"}, batch);
}

void NetnsWorld::tc(const std::string& name_space, const std::string& batch) {
  run_command({"tc", "-n", name_space, "-batch", "-"}, batch);
}

const NetNamespace& NetnsWorld::space(const std::string& name) {
  return spaces_.try_emplace(name, name).first->second;
}

void NetnsWorld::build(const fabric::Routing& routing) {
  const fabric::Topology& topology = routing.topology();
  run_command({"ip", "-batch", "-"}, plan_.creation());
  ip(plan_.management_space(), plan_.management_setup());
  run_command({"ip", "netns", "exec", plan_.management_space(), "sh"},
              "echo 1 >/proc/sys/net/ipv4/ip_forward");
  for (unsigned host = 0; host < topology.hosts(); ++host)
    ip(plan_.host_space(host), plan_.host_setup(host));
  if (kind_ == SwitchKind::kNamespace) {
    ip(plan_.switch_space({}), plan_.our_switches_setup());
  } else {
    for (const fabric::Node& node : fabric::all_switches(topology))
      run_command({"ip", "netns", "exec", plan_.switch_space(node), "sh"},
                  plan_.switch_script(node));
  }
  set_rates(topology);
}

// Our switches have rates of their own; hosts need theirs in any case.
void NetnsWorld::set_rates(const fabric::Topology& topology) const {
  std::map<std::string, std::string> batches;
  for (std::uint32_t i = 0; i < topology.link_count(); ++i) {
    const fabric::LinkId link{i};
    const bool of_host = topology.describe(link).from.kind == fabric::NodeKind::kHost;
    if (kind_ == SwitchKind::kKernel || of_host)
      batches[plan_.sending_end(link).name_space] += plan_.rate_setup(link, 1);
  }
  for (const auto& [name, batch] : batches)
    tc(name, batch);
}

}  // namespace mrc::lab
