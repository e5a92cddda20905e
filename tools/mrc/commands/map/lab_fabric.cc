#include "commands/map/lab_fabric.h"

#include <sstream>
#include <stdexcept>
#include <string>

#include "lab/control.h"
#include "launch/attach.h"

namespace mrc::tool::map {

fabric::TopologySpec lab_fabric(const lab::Directory& directory) {
  lab::ControlClient client;
  lab_tool::attach(directory, client);
  const lab::Reply reply = client.ask({"status"});
  if (!reply.ok) throw std::runtime_error(reply.text);
  std::istringstream lines(reply.text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind != "fabric") continue;
    fabric::TopologySpec spec;
    std::uint64_t port_rate = 0;
    words >> spec.planes >> spec.hosts >> spec.t0 >> spec.t1 >> spec.t2 >> port_rate >> spec.pods >>
        spec.cables;
    if (words) return spec;
  }
  throw std::runtime_error(
      "lab '" + directory.name() +
      "' is of another version; `mrc lab down` and `mrc lab up` start it anew");
}

}  // namespace mrc::tool::map
