// One rank of a test; nccl_test.py starts several with the same scenario and looks at how they end.
//
// Usage: nccl_rank PLUGIN VERSION SCENARIO RANK RANKS DIRECTORY
#include <cstdlib>
#include <map>
#include <string>

#include "scenarios.h"

int main(int argc, char** argv) {
  using mrc::test::Setting;
  if (argc != 7) mrc::test::die("usage: nccl_rank PLUGIN VERSION SCENARIO RANK RANKS DIRECTORY");
  const Setting setting{.plugin = argv[1],
                        .version = std::atoi(argv[2]),
                        .rank = std::atoi(argv[4]),
                        .ranks = std::atoi(argv[5]),
                        .directory = argv[6]};
  const std::map<std::string, void (*)(const Setting&)> scenarios{
      {"sizes", mrc::test::all_sizes},
      {"groups", mrc::test::groups},
      {"threads", mrc::test::many_threads},
      {"abort", mrc::test::abort_in_flight},
      {"killed", mrc::test::peer_killed},
      {"too_long", mrc::test::too_long},
      {"ring", mrc::test::ring},
      {"bad_input", mrc::test::bad_input},
      {"no_device", mrc::test::no_device},
      {"misspelt", mrc::test::no_device},
      {"other_dialect", mrc::test::refused_peer},
      {"sealed_and_plain", mrc::test::refused_peer},
      {"plain_and_sealed", mrc::test::refused_peer},
      {"other_secret", mrc::test::refused_peer},
      {"other_key", mrc::test::refused_peer},
      {"old_name", mrc::test::old_name},
      {"reload", mrc::test::reload},
      {"fork", mrc::test::after_fork},
      {"close_early", mrc::test::close_early},
      {"bandwidth", mrc::test::bandwidth},
      {"ports", mrc::test::ports},
  };
  const auto found = scenarios.find(argv[3]);
  if (found == scenarios.end()) mrc::test::die("no such scenario: %s", argv[3]);
  found->second(setting);
  return 0;
}
