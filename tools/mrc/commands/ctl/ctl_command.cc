// mrc ctl: what a controller does, by hand.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "commands/ctl/probe.h"
#include "commands/ctl/show.h"
#include "controller/apply.h"
#include "controller/profiles.h"
#include "controller/setup_file.h"
#include "controller/words.h"
#include "quantity_option.h"

namespace mrc::tool {
namespace {

using controller::Kind;
using controller::Session;

class CtlCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  using Action = std::function<ExitCode(const Session&)>;

  CLI::App* add(CLI::App* parent, const char* name, const char* what, const Action& action);
  void declare_show(CLI::App* app);
  void declare_ports(CLI::App* app);
  void declare_formats(CLI::App* app);
  void declare_ev_profiles(CLI::App* app);
  void declare_ev_states(CLI::App* ev);
  void declare_cc_profiles(CLI::App* app);
  void declare_life(CLI::App* parent, Kind kind);
  void declare_file(CLI::App* app);
  void declare_probe(CLI::App* app);
  void declare_watch(CLI::App* app);
  ExitCode show(const Session& session) const;
  ExitCode create_format(const Session& session) const;
  ExitCode create_ev_profile(const Session& session);
  ExitCode create_cc_profile(const Session& session) const;
  ExitCode change_evs(const Session& session, mrc_ctl_ev_state state) const;
  ExitCode apply(const Session& session) const;

  std::string device_;
  bool json_ = false;
  bool with_evs_ = false;
  std::uint64_t id_ = 0;
  CLI::Option* show_id_ = nullptr;
  std::vector<unsigned> ports_;
  std::string mode_;
  std::string widths_;
  CLI::Option* format_given_ = nullptr;
  controller::EvSpec ev_;
  std::string events_ = "good,bad";
  std::vector<std::string> fields_;
  std::vector<std::string> words_;
  std::string algorithm_ = "nscc";
  std::string trimming_ = "device";
  std::vector<std::string> settings_;
  std::string file_;
  ctl::ProbeOptions probe_;
  ctl::WatchOptions watch_;
  std::vector<std::pair<CLI::App*, Action>> actions_;
};

CLI::App* CtlCommand::add(CLI::App* parent, const char* name, const char* what,
                          const Action& action) {
  CLI::App* app = parent->add_subcommand(name, what);
  actions_.emplace_back(app, action);
  return app;
}

CLI::App* CtlCommand::declare(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "ctl", "Control the devices of this host: ports, profiles, EV states, probes, events");
  app->add_option("-d,--device", device_, "Which device (default: the first)");
  app->require_subcommand(1);
  declare_show(app);
  declare_ports(app);
  declare_formats(app);
  declare_ev_profiles(app);
  declare_cc_profiles(app);
  declare_file(app);
  declare_probe(app);
  declare_watch(app);
  app->footer(
      "What is set belongs to the node: every process sees it, and it stays until it is changed.\n"
      "Changes take the owner of the device's directory or CAP_NET_ADMIN. See "
      "docs/controller.md.\n"
      "Examples:\n"
      "  mrc ctl show\n"
      "  mrc ctl port disable 3\n"
      "  mrc ctl format create 1 --mode stev --widths 16,16\n"
      "  mrc ctl ev create 7 --mode generated --format 1 --count 64 --field 16:0xC000:0x3FFF \\\n"
      "      --field 16:0xC000:0x3FFF\n"
      "  mrc ctl ev deny 7 0-15\n"
      "  mrc ctl probe 127.0.0.1 --count 10");
  return app;
}

void CtlCommand::declare_show(CLI::App* app) {
  CLI::App* show = add(app, "show", "Show limits, ports and profiles; or one EV profile",
                       [this](const Session& session) { return this->show(session); });
  show_id_ = show->add_option("id", id_, "Only this EV profile, with all its EVs");
  show->add_flag("--evs", with_evs_, "List the EVs of all profiles");
  show->add_flag("--json", json_, "Print one JSON object");
}

void CtlCommand::declare_ports(CLI::App* app) {
  CLI::App* port = app->add_subcommand("port", "Enable or disable ports");
  port->require_subcommand(1);
  for (const bool enable : {true, false}) {
    CLI::App* verb = add(port, enable ? "enable" : "disable",
                         enable ? "Let ports be used" : "Keep ports from being used",
                         [this, enable](const Session& session) {
                           for (const unsigned number : ports_)
                             controller::set_port(session, number, enable);
                           return ExitCode::kOk;
                         });
    verb->add_option("ports", ports_, "Ports, counted from 1")->required();
  }
}

void CtlCommand::declare_life(CLI::App* parent, Kind kind) {
  const auto step = [&](const char* name, const char* what, const Action& action) {
    add(parent, name, what, action)->add_option("id", id_, "Which profile")->required();
  };
  step("online", "Make it usable", [this, kind](const Session& session) {
    controller::set_state(session, kind, id_, MRC_CTL_PROFILE_ONLINE);
    return ExitCode::kOk;
  });
  step("offline", "Make it unusable; refused while it is in use",
       [this, kind](const Session& session) {
         controller::set_state(session, kind, id_, MRC_CTL_PROFILE_OFFLINE);
         return ExitCode::kOk;
       });
  step("delete", "Remove it; refused while it is in use", [this, kind](const Session& session) {
    controller::remove(session, kind, id_);
    return ExitCode::kOk;
  });
}

void CtlCommand::declare_formats(CLI::App* app) {
  CLI::App* format = app->add_subcommand("format", "EV formats: how an EV stands in a packet");
  format->require_subcommand(1);
  CLI::App* create = add(format, "create", "Create an EV format and take it online",
                         [this](const Session& session) { return create_format(session); });
  create->add_option("id", id_, "A number of your choice")->required();
  create->add_option("--mode", mode_, "stev, srv6 or udp")->required();
  create->add_option("--widths", widths_, "Bits of each field, as in 32,16,16")->required();
  declare_life(format, Kind::kFormat);
}

void CtlCommand::declare_ev_profiles(CLI::App* app) {
  CLI::App* ev = app->add_subcommand("ev", "EV profiles: the paths queue pairs may use");
  ev->require_subcommand(1);
  CLI::App* create = add(ev, "create", "Create an EV profile and take it online",
                         [this](const Session& session) { return create_ev_profile(session); });
  create->add_option("id", ev_.id, "A number of your choice")->required();
  create->add_option("--mode", mode_, "auto, explicit or generated")->required();
  format_given_ = create->add_option("--format", ev_.format, "Which EV format");
  create->add_option("--count", ev_.count, "How many EVs (explicit: as many as are listed)");
  create->add_option("--min-active", ev_.min_active, "As many stay in use whatever happens");
  create->add_option("--events", events_, "Events for EVs that turn good, bad, or none")
      ->capture_default_str();
  create->add_option("--field", fields_, "WIDTH:INIT[:MASK[:MIN-MAX]], one for each field");
  create->add_option("--ev", words_, "PORT:HEX or PORT:ADDRESS[+SEGMENT], one for each EV");
  declare_life(ev, Kind::kEv);
  declare_ev_states(ev);
}

void CtlCommand::declare_ev_states(CLI::App* ev) {
  for (const bool deny : {true, false}) {
    CLI::App* verb =
        add(ev, deny ? "deny" : "allow", deny ? "Take EVs out of use" : "Let EVs be used again",
            [this, deny](const Session& session) {
              return change_evs(session, deny ? MRC_CTL_EV_DENIED : MRC_CTL_EV_GOOD);
            });
    verb->add_option("id", id_, "Which profile")->required();
    verb->add_option("evs", words_, "all, a position, FROM-TO, port=N, or PORT:VALUE")->required();
  }
}

void CtlCommand::declare_cc_profiles(CLI::App* app) {
  CLI::App* cc = app->add_subcommand("cc", "Congestion control profiles");
  cc->require_subcommand(1);
  CLI::App* create = add(cc, "create", "Create a CC profile and take it online",
                         [this](const Session& session) { return create_cc_profile(session); });
  create->add_option("id", id_, "A number of your choice")->required();
  create->add_option("--algorithm", algorithm_, "nscc or none")->capture_default_str();
  create
      ->add_option("--trimming", trimming_,
                   "whether switches trim: device (as it is configured), on or off")
      ->capture_default_str();
  create->add_option("--set", settings_, "NAME=VALUE, as in base_rtt=12000; times in ns");
  declare_life(cc, Kind::kCc);
}

void CtlCommand::declare_file(CLI::App* app) {
  CLI::App* apply = add(app, "apply", "Set up everything that a TOML file lists",
                        [this](const Session& session) { return this->apply(session); });
  apply->add_option("file", file_, "The file")->required();
  apply->footer(
      "The file:\n"
      "  disabled_ports = [4]\n"
      "  [[format]]\n"
      "  id = 1\n"
      "  mode = \"stev\"            # srv6, udp\n"
      "  widths = [16, 16]\n"
      "  [[ev_profile]]\n"
      "  id = 7\n"
      "  mode = \"generated\"       # auto, explicit\n"
      "  format = 1\n"
      "  count = 64\n"
      "  min_active = 8\n"
      "  events = \"good,bad\"\n"
      "  fields = [\"16:0xC000:0x3FFF\", \"16:0xC000:0x3FFF\"]\n"
      "  evs = [\"1:0001c350\"]     # explicit profiles\n"
      "  [[deny]]                 # EVs out of use\n"
      "  profile = 7\n"
      "  evs = [\"0-3\", \"port=2\"]  # as for `mrc ctl ev deny`\n"
      "  [[cc_profile]]\n"
      "  id = 2\n"
      "  algorithm = \"nscc\"       # none\n"
      "  base_rtt = 12000         # and the other settings by name");
}

void CtlCommand::declare_probe(CLI::App* app) {
  CLI::App* probe = add(app, "probe", "Ask a peer's device for an answer on each port",
                        [this](const Session& session) { return ctl::probe(session, probe_); });
  probe->add_option("gid", probe_.probe.peer, "The peer's address")->required();
  probe->add_option("--port", probe_.probe.port, "Only this port (default: all)");
  probe->add_option("--count", probe_.count, "How many times")
      ->capture_default_str()
      ->check(CLI::Range(1U, 1'000'000U));
  probe->add_option("--interval", probe_.interval_s, "Seconds between them")
      ->capture_default_str()
      ->transform(as_seconds({0, 3'600}));
  probe->add_option("--timeout", probe_.probe.timeout_s, "Seconds to wait for an answer")
      ->capture_default_str()
      ->transform(as_seconds({0, 3'600}));
  probe->add_option("--ev", probe_.probe.ev, "The path, as PORT:HEX or PORT:ADDRESS[+SEGMENT]");
  probe->add_flag("--json", probe_.json, "Print one JSON object");
  probe->footer("Exit code 4 when an answer is missing.");
}

void CtlCommand::declare_watch(CLI::App* app) {
  CLI::App* watch = add(app, "watch", "Print EV events as they happen",
                        [this](const Session& session) { return ctl::watch(session, watch_); });
  watch->add_option("--count", watch_.count, "End after so many (default: no end)");
  watch->add_option("--seconds", watch_.seconds, "End after so long (default: no end)")
      ->transform(as_seconds({.most = 1e6}));
  watch->add_flag("--json", watch_.json, "One JSON object per line");
}

ExitCode CtlCommand::show(const Session& session) const {
  const bool one = show_id_->count() > 0;
  const nlohmann::ordered_json document =
      one ? ctl::describe_ev_profile(session, id_, true) : ctl::describe(session, with_evs_);
  if (json_) {
    fmt::print("{}\n", document.dump(2));
  } else {
    one ? ctl::print_ev_profile(document) : ctl::print_description(document);
  }
  return ExitCode::kOk;
}

ExitCode CtlCommand::create_format(const Session& session) const {
  controller::create(session, controller::FormatSpec{.id = id_,
                                                     .mode = controller::parse_format_mode(mode_),
                                                     .widths = controller::parse_widths(widths_)});
  return ExitCode::kOk;
}

ExitCode CtlCommand::create_ev_profile(const Session& session) {
  ev_.mode = controller::parse_ev_mode(mode_);
  ev_.has_format = format_given_->count() > 0;
  ev_.event_mask = controller::parse_event_mask(events_);
  for (const std::string& field : fields_)
    ev_.fields.push_back(controller::parse_field(field));
  for (const std::string& word : words_)
    ev_.evs.push_back(controller::parse_ev(word));
  controller::create(session, ev_);
  return ExitCode::kOk;
}

ExitCode CtlCommand::create_cc_profile(const Session& session) const {
  controller::CcSpec spec{.id = id_,
                          .algorithm = controller::parse_algorithm(algorithm_),
                          .trimming = controller::parse_trimming(trimming_)};
  for (const std::string& setting : settings_)
    controller::parse_cc_setting(setting, spec.config);
  controller::create(session, spec);
  return ExitCode::kOk;
}

ExitCode CtlCommand::change_evs(const Session& session, mrc_ctl_ev_state state) const {
  const auto chosen = controller::select_evs(controller::read_evs(session, id_), words_);
  controller::set_ev_states(session, id_, chosen, state);
  return ExitCode::kOk;
}

ExitCode CtlCommand::apply(const Session& session) const {
  controller::apply_setup(session, {}, controller::read_setup(file_));
  return ExitCode::kOk;
}

ExitCode CtlCommand::run() {
  for (const auto& [app, action] : actions_) {
    if (!app->parsed()) continue;
    try {
      return action(Session(device_));
    } catch (const controller::CtlError& error) {
      fmt::print(stderr, "mrc ctl: {}\n", error.what());
      return ExitCode::kFailed;
    }
  }
  return ExitCode::kUsage;
}

}  // namespace

std::unique_ptr<Command> make_ctl_command() { return std::make_unique<CtlCommand>(); }

}  // namespace mrc::tool
