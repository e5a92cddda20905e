// mrc view: a live page of a fabric, served to browsers on this machine.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "command.h"
#include "commands/sim/memory_need.h"
#include "commands/sim/run.h"
#include "commands/sim/sim_flags.h"
#include "commands/view/assets.h"
#include "commands/view/host_source.h"
#include "commands/view/lab_watch.h"
#include "commands/view/page_server.h"
#include "commands/view/serve.h"
#include "commands/view/token_file.h"
#include "fabric/input_error.h"
#include "file_bytes.h"
#include "lab/directory.h"
#include "node/telemetry_reader.h"
#include "os/interrupt.h"
#include "quantity_option.h"
#include "sim/simulation.h"

namespace mrc::tool {
namespace {

using fabric::InputError;
using view_tool::HostSource;
using view_tool::LabWatch;
using view_tool::LineLog;
using view_tool::PageServer;

constexpr const char* kUsualLab = "lab";  // of mrc lab up

class ViewCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  ExitCode show_recording();
  ExitCode show_simulation();
  ExitCode show_lab(const std::string& name);
  ExitCode show_host();
  ExitCode show_what_runs();
  ExitCode serve(const LineLog& log, const PageServer::DeedFunction& act,
                 const std::function<bool()>& look);

  CLI::App* app_ = nullptr;
  simulator::SimFlags sim_flags_;
  std::string file_;
  std::string lab_;
  bool host_ = false;
  std::string lab_base_ = lab::Directory::default_base();
  std::string address_ = "127.0.0.1";
  std::uint16_t port_ = 0;
  std::string token_file_;
};

CLI::App* ViewCommand::declare(CLI::App& program) {
  app_ = program.add_subcommand("view", "Show a fabric on a page in the browser");
  app_->add_option("FILE", file_, "A recording of mrc sim --record");
  app_->add_option("--lab", lab_, "A running lab, by its name ('lab' unless mrc lab up said so)");
  app_->add_flag("--host", host_, "The processes of this host that have MRC devices (mrc stat)");
  app_->add_option("--dir", lab_base_, "Where labs keep their things")->capture_default_str();
  app_->add_option("--port", port_, "Where browsers find the page; any free one unless given")
      ->check(as_port());
  app_->add_option("--address", address_,
                   "Address to listen at; others than this machine's own "
                   "let everybody with the token in")
      ->capture_default_str();
  app_->add_option("--token-file", token_file_,
                   "Keep the token of the address in this file, so that open pages find a server "
                   "that was started again");
  CLI::App* sim =
      app_->add_subcommand("sim", "A simulation, shown while it runs; flags of mrc sim");
  sim_flags_.declare(*sim);
  app_->footer(
      "Examples:\n"
      "  mrc view run.mrcview                          what mrc sim --record run.mrcview wrote\n"
      "  mrc view --lab lab                            a lab, to be broken by clicks\n"
      "  mrc view --host                               the processes of this host\n"
      "  mrc view sim --topology anchor-128 --bytes 2MB\n"
      "Without any of these: the lab 'lab' if it runs, otherwise the processes of this host.\n"
      "Prints the address to open and opens nothing by itself. See docs/view.md.");
  return app_;
}

ExitCode ViewCommand::serve(const LineLog& log, const PageServer::DeedFunction& act,
                            const std::function<bool()>& look) {
  const std::string token =
      token_file_.empty() ? view_tool::fresh_token() : view_tool::kept_token(token_file_);
  PageServer server({.address = address_, .port = port_, .token = token}, log, act);
  fmt::print("{}\n", server.url());
  std::fflush(stdout);
  const os::Interrupt interrupt;
  view_tool::serve(server, look);
  return ExitCode::kOk;
}

ExitCode ViewCommand::show_recording() {
  std::string text;
  for (const std::byte byte : read_file(file_, view::kMaxRecordingBytes))
    text += static_cast<char>(byte);
  const view::RecordingCheck check = view::parse_recording(text);
  if (!check.ok()) throw InputError(file_ + " " + check.problem);
  LineLog log(view::kMaxRecordingBytes * 2);
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = text.find('\n', from);
    log.add(text.substr(from, end - from));
    from = end + 1;
  }
  text = {};
  return serve(log, {}, {});
}

// The simulation runs beside the server; it can be ended only as a whole.
ExitCode ViewCommand::show_simulation() {
  const simulator::RunOptions options = sim_flags_.read();
  if (options.transports.size() > 1) throw InputError("sim: one transport at a time");
  simulator::check_memory(options.config);
  sim::SimConfig config = options.config;
  config.transport = options.transports.front();
  LineLog log(view::kMaxRecordingBytes * 2);
  sim::Simulation simulation(config);
  view::SimSourceOptions wanted = simulator::recording_options(options, config.transport);
  wanted.live = true;
  view::SimSource source(simulation, std::move(wanted),
                         [&](std::string line) { log.add(std::move(line)); });
  std::thread runner([&] { source.finish(simulation.run()); });
  ExitCode code = ExitCode::kFailed;
  try {
    code = serve(log, {}, {});
  } catch (...) {
    simulation.stop();
    runner.join();
    throw;
  }
  simulation.stop();
  runner.join();
  return code;
}

ExitCode ViewCommand::show_lab(const std::string& name) {
  LineLog log(LineLog::kLiveBytes);
  LabWatch watch(lab::Directory(lab_base_, name),
                 [&](std::string line) { log.add(std::move(line)); });
  return serve(log, [&](const view::Deed& deed) { return watch.act(deed); }, {});
}

ExitCode ViewCommand::show_host() {
  LineLog log(LineLog::kLiveBytes);
  HostSource source(node::telemetry_directory(),
                    [&](std::string line) { log.add(std::move(line)); });
  return serve(log, {}, [&] {
    source.look();
    return true;
  });
}

ExitCode ViewCommand::show_what_runs() {
  const lab::Directory usual(lab_base_, kUsualLab);
  return usual.state() == lab::Directory::State::kUp ? show_lab(kUsualLab) : show_host();
}

ExitCode ViewCommand::run() {
  const bool simulates = !app_->get_subcommands().empty();
  if ((file_.empty() ? 0 : 1) + (lab_.empty() ? 0 : 1) + (host_ ? 1 : 0) + (simulates ? 1 : 0) > 1)
    throw InputError("give one of: a recording, --lab NAME, --host, or sim and its flags");
  if (!view_tool::has_page()) {
    fmt::print(stderr,
               "mrc view: this build has no page, since tsc was missing; install node-typescript "
               "and build again\n");
    return ExitCode::kFailed;
  }
  if (simulates) return show_simulation();
  if (!file_.empty()) return show_recording();
  if (!lab_.empty()) return show_lab(lab_);
  return host_ ? show_host() : show_what_runs();
}

}  // namespace

std::unique_ptr<Command> make_view_command() { return std::make_unique<ViewCommand>(); }

}  // namespace mrc::tool
