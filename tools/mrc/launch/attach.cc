#include "launch/attach.h"

#include <cstdio>
#include <stdexcept>

namespace mrc::tool::lab_tool {

void attach(const lab::Directory& directory, lab::ControlClient& client) {
  const lab::Directory::State state = directory.state();
  client.when_slow([name = directory.name()] {
    std::fprintf(stderr, "lab '%s' is slow to answer; waiting\n", name.c_str());
  });
  if (state == lab::Directory::State::kUp && client.connect(directory.control_path())) return;
  const std::string name = "lab '" + directory.name() + "'";
  if (state == lab::Directory::State::kUp)
    throw std::runtime_error(name + " does not answer; `mrc lab down` ends it");
  if (state == lab::Directory::State::kLeftover) {
    throw std::runtime_error(name +
                             " is dead, its process is gone; `mrc lab down` removes what "
                             "it left, `mrc lab up` starts anew");
  }
  throw std::runtime_error("there is no " + name + " in " + directory.path() +
                           "; `mrc lab up` starts one");
}

}  // namespace mrc::tool::lab_tool
