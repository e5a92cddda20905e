// mrc check: one gate before a job. Alone, with another host, or on many hosts over ssh.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "command.h"
#include "commands/check/fleet.h"
#include "commands/check/fleet_report.h"
#include "commands/check/gate.h"
#include "commands/check/serve.h"
#include "device_facts.h"
#include "fabric/input_error.h"
#include "failure.h"
#include "node/config.h"
#include "os/interrupt.h"
#include "quantity_option.h"

namespace mrc::tool {
namespace {

class CheckCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  void declare_peer(CLI::App& app);
  void declare_hosts(CLI::App& app);
  node::DeviceConfig device() const;
  ExitCode look();
  ExitCode look_at_hosts();

  check::TransferOptions transfer_{.port = check::kCheckPort};
  check::ServeOptions serve_;
  check::FleetOptions fleet_;
  check::Manner manner_;
  CLI::Option* timeout_ = nullptr;
  std::string hosts_;
  std::string ssh_ = "ssh -o BatchMode=yes";
  std::string program_ = "mrc";
  bool serves_ = false;
  bool json_ = false;
};

void CheckCommand::declare_peer(CLI::App& app) {
  const char* const group = "With another host";
  CLI::Option* const peer =
      app.add_option("--peer", transfer_.host,
                     "Look at the way to this host, too, which runs --serve, and transfer data")
          ->type_name("HOST")
          ->group(group);
  CLI::Option* const serve =
      app.add_flag("--serve", serves_, "Be the other end of --peer, until Ctrl-C")->group(group);
  serve->excludes(peer);
  app.add_flag("--once", serve_.once, "With --serve: until one transfer is done")
      ->needs(serve)
      ->group(group);
  app.add_option("--wait", serve_.wait_s, "With --serve: end when nobody comes for so long")
      ->type_name("TIME")
      ->transform(as_seconds({0, 86'400}))
      ->needs(serve)
      ->group(group);
  app.add_option("-p,--port", transfer_.port, "TCP port of --serve; 0: any that is free")
      ->check(as_port())
      ->capture_default_str()
      ->group(group);
  app.add_option("-D,--seconds", transfer_.seconds,
                 "How long data is transferred, both ways and verified; 0: not at all")
      ->type_name("TIME")
      ->transform(as_seconds({0, check::kMaxSeconds}))
      ->capture_default_str()
      ->group(group);
  app.add_option("-q,--qp", transfer_.qps, "Queue pairs of the transfer")
      ->check(CLI::Range(1U, check::kMaxQps))
      ->capture_default_str()
      ->group(group);
  app.add_option("--loss", transfer_.most_loss,
                 "Share of its packets that a queue pair may lose: 0.1%, 0.001")
      ->type_name("SHARE")
      ->transform(as_share())
      ->capture_default_str()
      ->group(group);
  timeout_ =
      app.add_option("--timeout", transfer_.timeout_s,
                     "Give up when nothing moves for so long; with --hosts, a host that does not "
                     "answer (60)")
          ->type_name("TIME")
          ->transform(as_seconds({0.1, 3'600}))
          ->capture_default_str()
          ->group(group);
}

void CheckCommand::declare_hosts(CLI::App& app) {
  const char* const group = "Many hosts";
  app.add_option("--hosts", hosts_,
                 "Look at these hosts, then at pairs of them around a ring: a file with a host a "
                 "line, or a,b,c")
      ->type_name("LIST")
      ->excludes("--peer")
      ->excludes("--serve")
      ->group(group);
  const auto more = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->needs("--hosts")->capture_default_str()->group(group);
  };
  more("--ssh", ssh_, "What goes to a host: words, with blanks between")->type_name("COMMAND");
  more("--mrc", program_, "What is `mrc` over there: words, with blanks between")
      ->type_name("COMMAND");
  more("--parallel", fleet_.parallel, "Most programs of --ssh at a time")
      ->check(CLI::Range(1, 1'024));
}

CLI::App* CheckCommand::declare(CLI::App& program) {
  CLI::App* app =
      program.add_subcommand("check", "Say whether a job may start: one gate, one verdict");
  app->add_option("-d,--device", transfer_.device, "The device for the other host (the first)");
  app->add_flag("--strict", manner_.strict, "What is slow is a problem, too");
  app->add_flag("-v,--verbose", manner_.verbose, "Show what is well, too");
  app->add_flag("--json", json_, "Print one JSON object");
  declare_peer(*app);
  declare_hosts(*app);
  app->footer(
      "Prints one line for each problem, with its remedy, and a verdict.\n"
      "  mrc check                                this host by itself\n"
      "  mrc check --serve --once                 on one host, and on another:\n"
      "  mrc check --peer node1 --seconds 60      with losses in the first minute\n"
      "  mrc check --hosts hosts.txt              over ssh, each host and pairs of them\n"
      "A line of hosts.txt is `name` or `name address`; comments begin with #.\n" +
      std::string(kExitCodesHelp));
  return app;
}

node::DeviceConfig CheckCommand::device() const {
  const std::optional<node::DeviceConfig> config = own_config(transfer_.device);
  if (config) return *config;
  const std::string error = node::load_config().error;
  if (error.empty())
    throw fabric::InputError(transfer_.device.empty() ? "this host has no device"
                                                      : "there is no device " + transfer_.device);
  throw Failure(error);
}

ExitCode CheckCommand::look() {
  doctor::PeerHost peer;
  if (!transfer_.host.empty()) {
    // A configuration that is wrong is one of the findings.
    const std::optional<node::DeviceConfig> config = own_config(transfer_.device);
    if (!config && node::load_config().error.empty()) device();
    transfer_.device = config ? config->name : transfer_.device;
    peer = {.host = transfer_.host,
            .port = transfer_.port,
            .device = transfer_.device,
            .must_answer = true};
  } else if (!transfer_.device.empty()) {
    throw fabric::InputError("--device says which device looks at another host: --peer or --serve");
  }
  doctor::Examination examination = doctor::examine(peer);
  std::optional<check::Transfer> transfer;
  ExitCode code = ExitCode::kOk;
  if (examination.peer_told && transfer_.seconds > 0)
    transfer = check::run_transfer(transfer_, examination.findings, code);
  return check::conclude(examination.findings, transfer, manner_, json_, code);
}

std::vector<std::string> words_of(const std::string& text, const char* option) {
  std::vector<std::string> words;
  std::stringstream rest(text);
  for (std::string word; rest >> word;)
    words.push_back(word);
  if (words.empty()) throw fabric::InputError(fmt::format("{} has no word", option));
  return words;
}

ExitCode CheckCommand::look_at_hosts() {
  if (!transfer_.device.empty() && !check::is_plain_word(transfer_.device))
    throw fabric::InputError("'" + transfer_.device + "' is no name of a device");
  fleet_.hosts = check::read_hosts(hosts_);
  fleet_.no_file = fleet_.hosts.size() == 1 && fleet_.hosts.front().name == hosts_;
  if (timeout_->count() > 0) fleet_.patience_s = transfer_.timeout_s;
  fleet_.ssh = words_of(ssh_, "--ssh");
  fleet_.program = words_of(program_, "--mrc");
  fleet_.transfer = transfer_;
  return check::conclude(check::check_fleet(fleet_), manner_, json_);
}

ExitCode CheckCommand::run() {
  const os::Interrupt interrupt;
  try {
    if (!hosts_.empty()) return look_at_hosts();
    if (!serves_) return look();
    serve_.port = transfer_.port;
    serve_.timeout_s = transfer_.timeout_s;
    serve_.json = json_;
    return check::serve(device(), serve_);
  } catch (const Failure& failure) {
    fmt::print(stderr, "mrc check: {}\n", failure.what());
    return exit_code_of(failure);
  }
}

}  // namespace

std::unique_ptr<Command> make_check_command() { return std::make_unique<CheckCommand>(); }

}  // namespace mrc::tool
