// mrc sim: the protocol on a simulated fabric.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "command.h"
#include "commands/sim/memory_need.h"
#include "commands/sim/run.h"
#include "commands/sim/run_options.h"
#include "fabric/input_error.h"
#include "sim/workload.h"
#include "terminal.h"

namespace mrc::tool {
namespace {

using simulator::Run;
using simulator::RunOptions;
using simulator::Setting;

const char* type_name(simulator::ValueKind kind) {
  switch (kind) {
    case simulator::ValueKind::kFlag:
      return "";
    case simulator::ValueKind::kCount:
      return "N";
    case simulator::ValueKind::kNumber:
      return "NUMBER";
    case simulator::ValueKind::kTime:
      return "TIME";
    case simulator::ValueKind::kBytes:
      return "BYTES";
    case simulator::ValueKind::kText:
      return "TEXT";
  }
  return "";
}

class SimCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  CLI::Option* declare_setting(CLI::App& app, const Setting& setting);
  template <typename Keys>
  void declare_topology(CLI::App& app, const Keys& keys, const char* type);
  RunOptions read_options() const;

  struct Given {
    const Setting* setting = nullptr;
    std::string text;
  };
  struct GivenTopology {
    std::string name;
    std::string text;
  };

  // In the order of the command line.
  std::vector<Given> given_;
  std::vector<GivenTopology> topology_given_;
  std::vector<std::string> config_files_;
};

CLI::Option* SimCommand::declare_setting(CLI::App& app, const Setting& setting) {
  const std::string flag = simulator::flag_of(setting.name);
  if (setting.kind == simulator::ValueKind::kFlag) {
    return app.add_flag_callback(
        flag,
        [this, &setting] {
          given_.push_back({&setting, "true"});
        },
        setting.help);
  }
  CLI::Option* option = app.add_option_function<std::vector<std::string>>(
      flag,
      [this, &setting](const std::vector<std::string>& values) {
        for (const std::string& value : values)
          given_.push_back({&setting, value});
      },
      setting.help);
  option->type_name(type_name(setting.kind))->expected(1)->allow_extra_args(false);
  option->multi_option_policy(setting.repeats ? CLI::MultiOptionPolicy::TakeAll
                                              : CLI::MultiOptionPolicy::Throw);
  return option;
}

template <typename Keys>
void SimCommand::declare_topology(CLI::App& app, const Keys& keys, const char* type) {
  for (const auto& key : keys) {
    app.add_option_function<std::string>(
           simulator::flag_of(key.name),
           [this, name = std::string(key.name)](const std::string& text) {
             topology_given_.push_back({name, text});
           },
           key.help)
        ->type_name(type)
        ->group("Topology");
  }
}

CLI::App* SimCommand::declare(CLI::App& program) {
  CLI::App* app = program.add_subcommand("sim", "Run the protocol on a simulated fabric");
  app->add_option("--config", config_files_, "Settings from a TOML file with these flags as keys")
      ->type_name("FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  declare_topology(*app, fabric::topology_count_keys(), "N");
  declare_topology(*app, fabric::topology_number_keys(), "NUMBER");
  for (const simulator::SettingGroup& group : simulator::setting_groups())
    for (const Setting& setting : group.settings)
      declare_setting(*app, setting)->group(group.name);
  std::string names;
  for (const std::string& name : sim::workload_names())
    names += " " + name;
  app->footer("Workloads:" + names + "\nSee docs/simulator.md for what is modelled and reported.");
  return app;
}

RunOptions SimCommand::read_options() const {
  RunOptions options;
  for (const std::string& path : config_files_)
    simulator::apply_file(path, options);
  const auto with_flag = [](std::string_view name, const auto& apply) {
    try {
      apply();
    } catch (const fabric::InputError& error) {
      throw fabric::InputError(simulator::flag_of(name) + ": " + error.what());
    }
  };
  for (const GivenTopology& given : topology_given_)
    with_flag(given.name, [&] { simulator::apply_topology_text(given.name, given.text, options); });
  for (const Given& given : given_)
    with_flag(given.setting->name,
              [&] { simulator::apply_text(*given.setting, given.text, options); });
  simulator::resolve(options);
  return options;
}

ExitCode exit_code(const std::vector<Run>& runs) {
  ExitCode worst = ExitCode::kOk;
  for (const Run& run : runs) {
    const sim::SimResult& r = run.report.result;
    if (r.bytes_wrong > 0) return ExitCode::kWrongData;
    if (r.failed > 0) worst = ExitCode::kFailed;
    if (!r.complete && r.failed == 0 && worst == ExitCode::kOk) worst = ExitCode::kTimeout;
  }
  return worst;
}

void write_files(const simulator::Outputs& outputs, const std::vector<Run>& runs) {
  if (!outputs.csv.empty()) simulator::write_flows_csv(outputs.csv, runs);
  if (!outputs.series.empty()) simulator::write_series_csv(outputs.series, runs);
  if (!outputs.report.empty()) simulator::write_html(outputs.report, runs);
}

ExitCode SimCommand::run() {
  const Terminal out(stdout);
  const Terminal err(stderr);
  const RunOptions options = read_options();
  simulator::check_memory(options.config);
  std::vector<Run> runs;
  for (const sim::Transport transport : options.transports)
    runs.push_back(simulator::run_once(options, transport, err));
  write_files(options.outputs, runs);
  if (options.outputs.json) {
    simulator::print_json(runs);
  } else {
    simulator::print_text(runs, out);
  }
  return exit_code(runs);
}

}  // namespace

std::unique_ptr<Command> make_sim_command() { return std::make_unique<SimCommand>(); }

}  // namespace mrc::tool
