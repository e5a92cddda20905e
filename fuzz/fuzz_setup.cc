// What a controller is told to set on a node, as a TOML file.
#include <set>

#include "controller/setup_file.h"
#include "fabric/input_error.h"
#include "fuzz/text_support.h"

using mrc::fuzz::require;
namespace controller = mrc::controller;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto setup = controller::parse_setup(mrc::fuzz::text_of(data, size), "setup.toml");
    std::set<std::uint64_t> ids;
    for (const controller::EvSpec& profile : setup.ev_profiles)
      require(ids.insert(profile.id).second);
    for (const controller::DenySpec& deny : setup.denies)
      require(ids.count(deny.profile) == 1);
  } catch (const mrc::fabric::InputError& error) {
    mrc::fuzz::require_one_line(error.what());
  }
  return 0;
}
