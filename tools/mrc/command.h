// A sub-command of `mrc`. To add one, write commands/<name>/<name>_command.cc with its make
// function, declare that below and list it in main.cc.
#pragma once

#include <memory>

#include "exit_code.h"

namespace CLI {
class App;
}

namespace mrc::tool {

// What somebody reads who asks for something that his build lacks (MRC_COMMANDS).
inline constexpr const char* kWhereEverythingIs =
    "one of everything has: make install PREFIX=$HOME/mrc";

class Command {
 public:
  virtual ~Command() = default;

  // Adds itself with its options to the program. Option values live in this object.
  virtual CLI::App* declare(CLI::App& program) = 0;
  // Called after the options have been read.
  virtual ExitCode run() = 0;
};

std::unique_ptr<Command> make_demo_command();
std::unique_ptr<Command> make_sim_command();
std::unique_ptr<Command> make_fabric_command();
std::unique_ptr<Command> make_plan_command();
std::unique_ptr<Command> make_lab_command();
std::unique_ptr<Command> make_run_command();
std::unique_ptr<Command> make_perf_command();
std::unique_ptr<Command> make_info_command();
std::unique_ptr<Command> make_doctor_command();
std::unique_ptr<Command> make_check_command();
std::unique_ptr<Command> make_ctl_command();
std::unique_ptr<Command> make_map_command();
std::unique_ptr<Command> make_ctld_command();
std::unique_ptr<Command> make_dialect_command();
std::unique_ptr<Command> make_key_command();
std::unique_ptr<Command> make_view_command();
std::unique_ptr<Command> make_stat_command();
std::unique_ptr<Command> make_top_command();
std::unique_ptr<Command> make_exporter_command();
std::unique_ptr<Command> make_twin_command();
std::unique_ptr<Command> make_manual_command();
std::unique_ptr<Command> make_drain_command();
std::unique_ptr<Command> make_undrain_command();

}  // namespace mrc::tool
