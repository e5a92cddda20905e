// mrc fabric: what a fabric looks like, its paths, and its tables for real switches.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "command.h"
#include "commands/fabric/path_list.h"
#include "commands/fabric/show.h"
#include "fabric/export.h"
#include "fabric/input_error.h"
#include "file_set.h"
#include "terminal.h"
#include "text.h"
#include "topology_flags.h"

namespace mrc::tool {
namespace {

using fabric::ExportFormat;

const std::map<std::string, ExportFormat> kFormats = {{"linux", ExportFormat::kLinux},
                                                      {"tc", ExportFormat::kTc},
                                                      {"frr", ExportFormat::kFrr},
                                                      {"frr8", ExportFormat::kFrr8},
                                                      {"sonic", ExportFormat::kSonic}};

class FabricCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  void declare_show(CLI::App& app);
  void declare_path(CLI::App& app);
  void declare_export(CLI::App& app);
  ExitCode run_export(const fabric::Routing& routing);
  ExitCode export_all(const fabric::Routing& routing, const fabric::ExportOptions& options);

  CLI::App* presets_ = nullptr;
  CLI::App* show_ = nullptr;
  CLI::App* path_ = nullptr;
  CLI::App* export_ = nullptr;
  TopologyFlags topology_;
  fabric_view::PathQuery query_;
  bool json_ = false;
  std::string switch_;
  bool all_ = false;
  std::string out_;
  std::string format_ = "linux";
  std::string sid_device_;
  bool no_trim_ = false;
  std::optional<std::string> port_prefix_;
  std::optional<unsigned> first_port_;
  std::optional<unsigned> port_step_;
};

CLI::App* FabricCommand::declare(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "fabric", "Show a fabric, list its paths, export its tables for real switches");
  app->require_subcommand(1);
  app->footer(
      "Examples:\n"
      "  mrc fabric show --topology paper-131072\n"
      "  mrc fabric path --topology tiny --from 0 --to 9\n"
      "  mrc fabric export --topology tiny --format frr --switch t0:3/plane:0\n"
      "  mrc fabric export --topology lab.toml --format linux --all --out tables");
  presets_ = app->add_subcommand("presets", "List the fabrics that have a name");
  declare_show(*app);
  declare_path(*app);
  declare_export(*app);
  return app;
}

void FabricCommand::declare_show(CLI::App& app) {
  show_ = app.add_subcommand("show", "Print a summary, or the static table of one switch");
  show_->add_option("--switch", switch_, "This switch's table, for example t0:3/plane:0");
  show_->add_flag("--json", json_, "Print JSON");
  topology_.declare(*show_);
}

void FabricCommand::declare_path(CLI::App& app) {
  path_ = app.add_subcommand("path", "Print paths with their entropy values and carriers");
  path_->add_option("--from", query_.from, "Sending host");
  path_->add_option("--to", query_.to, "Receiving host");
  path_->add_option("--plane", query_.plane, "Only paths of this plane, counted from 0");
  path_->add_option("--via-t1", query_.t1, "Only paths across this T1, counted within its pod");
  path_->add_option("--via-t2", query_.t2, "Only paths across this T2, counted within its group");
  path_->add_option("--ev", query_.entropy, "The path of this entropy value");
  path_->add_option("--carrier", query_.carrier, "The path of this carrier address");
  path_->add_flag("--json", query_.json, "Print JSON");
  topology_.declare(*path_);
}

void FabricCommand::declare_export(CLI::App& app) {
  export_ =
      app.add_subcommand("export", "Print tables and queues of switches for Linux, FRR or SONiC");
  export_
      ->add_option("--format", format_,
                   "linux, tc (queues of Linux), frr (10.3), frr8 (8.4) or sonic")
      ->check(CLI::IsMember(&kFormats))
      ->capture_default_str();
  export_->add_option("--switch", switch_, "This switch, for example t0:3/plane:0");
  export_->add_flag("--all", all_, "Every switch, one file each; needs --out");
  export_->add_option("--out", out_, "Folder for --all");
  export_->add_option("--port-prefix", port_prefix_,
                      "Ports are called so (default: swp, for sonic Ethernet)");
  export_->add_option("--first-port", first_port_,
                      "Number of the first port (default: 1, for sonic 0)");
  export_->add_option("--port-step", port_step_, "From one port number to the next (default: 1)");
  export_->add_option(
      "--sid-device", sid_device_,
      "linux, frr8: dummy device for the switch's own uSID (default: its first port)");
  export_->add_flag("--no-trim", no_trim_, "sonic: the switch drops where it could trim");
  topology_.declare(*export_);
}

ExitCode FabricCommand::run() {
  if (presets_->parsed()) {
    fabric_view::print_presets();
    return ExitCode::kOk;
  }
  const fabric::Topology topology(topology_.spec());
  const fabric::Routing routing(topology);
  if (path_->parsed()) {
    fabric_view::print_paths(routing, query_);
    return ExitCode::kOk;
  }
  if (export_->parsed()) return run_export(routing);
  if (switch_.empty()) {
    json_ ? fabric_view::print_summary_json(routing) : fabric_view::print_summary(routing);
    return ExitCode::kOk;
  }
  const fabric::Node at = fabric::parse_switch(switch_, topology);
  json_ ? fabric_view::print_table_json(routing, at) : fabric_view::print_table(routing, at);
  return ExitCode::kOk;
}

ExitCode FabricCommand::run_export(const fabric::Routing& routing) {
  if (switch_.empty() != all_) throw fabric::InputError("give either --switch NAME or --all");
  if (out_.empty() == all_) throw fabric::InputError("--all and --out DIR belong together");
  fabric::ExportOptions options;
  options.format = kFormats.at(format_);
  options.ports = fabric::default_port_names(options.format);
  options.ports.prefix = port_prefix_.value_or(options.ports.prefix);
  options.ports.first = first_port_.value_or(options.ports.first);
  options.ports.step = port_step_.value_or(options.ports.step);
  options.sid_device = sid_device_;
  options.trims = !no_trim_;
  fabric::check_export(options);
  if (all_) return export_all(routing, options);
  const fabric::Node at = fabric::parse_switch(switch_, routing.topology());
  fmt::print("{}", fabric::export_switch(routing, at, options));
  return ExitCode::kOk;
}

ExitCode FabricCommand::export_all(const fabric::Routing& routing,
                                   const fabric::ExportOptions& options) {
  const LongWait wait("writing " + out_);
  FileSet written(out_);
  std::uint64_t files = 0;
  for (const fabric::Node& at : fabric::all_switches(routing.topology())) {
    written.write(export_file_name(at, options.format),
                  [&](std::ostream& file) { file << export_switch(routing, at, options); });
    ++files;
  }
  written.keep();
  fmt::print("{} written to {}\n", counted(files, "file", "files"), out_);
  return ExitCode::kOk;
}

}  // namespace

std::unique_ptr<Command> make_fabric_command() { return std::make_unique<FabricCommand>(); }

}  // namespace mrc::tool
