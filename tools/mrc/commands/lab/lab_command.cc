// mrc lab: a cluster of real processes and real frames on one machine, to be broken on purpose.
#include <fmt/core.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "command.h"
#include "commands/lab/execute.h"
#include "commands/lab/start.h"
#include "commands/lab/status_view.h"
#include "fabric/fault_plan.h"
#include "fabric/input_error.h"
#include "lab/cluster.h"
#include "launch/attach.h"
#include "os/descriptor.h"
#include "quantity_option.h"
#include "text.h"
#include "topology_flags.h"

namespace mrc::tool {
namespace {

using fabric::InputError;

constexpr double kDefaultMbps = 100;
constexpr double kMaxMbps = 400'000;

// Four planes of 2 T0 and 4 T1 with 8 hosts, where nobody says otherwise.
fabric::TopologySpec default_fabric() {
  fabric::TopologySpec spec;
  spec.planes = 4;
  spec.hosts = 8;
  spec.t0 = 2;
  spec.t1 = 4;
  return spec;
}

class LabCommand final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override;
  ExitCode run() override;

 private:
  CLI::App* add(CLI::App& app, const char* name, const char* help);
  CLI::App* add_fault(CLI::App& app, const char* name, const char* help, bool is_switch = false);
  void declare_up(CLI::App& app);
  void declare_faults(CLI::App& app);
  lab::Directory directory() const;
  lab::SwitchKind switch_kind() const;
  ExitCode up();
  ExitCode status();
  ExitCode exec();
  ExitCode capture();
  ExitCode break_something(const CLI::App& verb);
  ExitCode heal();
  std::string fault_text(const std::string& verb) const;
  lab::Reply ask(const std::vector<std::string>& words) const;

  CLI::App* app_ = nullptr;
  TopologyFlags topology_;
  std::string base_ = lab::Directory::default_base();
  std::string name_ = "lab";
  double mbps_ = kDefaultMbps;
  std::vector<std::string> faults_;
  std::vector<std::string> fault_files_;
  bool no_trim_ = false;
  bool foreground_ = false;
  bool netns_ = false;
  std::string switches_ = "mrc";
  bool json_ = false;
  bool all_ = false;
  std::string target_;
  std::string value_;
  std::string duration_;
  std::string file_;
  double seconds_ = 0;
  unsigned snap_ = 0;
};

CLI::App* LabCommand::add(CLI::App& app, const char* name, const char* help) {
  CLI::App* verb = app.add_subcommand(name, help);
  verb->add_option("--name", name_, "Which lab")->capture_default_str();
  verb->add_option("--dir", base_, "Where labs keep their things")->capture_default_str();
  return verb;
}

CLI::App* LabCommand::add_fault(CLI::App& app, const char* name, const char* help, bool is_switch) {
  CLI::App* verb = add(app, name, help);
  verb->add_option(is_switch ? "SWITCH" : "LINK", target_,
                   is_switch ? "Such as t1:2/plane:0"
                             : "Such as t0:0/t1:2/plane:0, host:3/plane:1 or t1:2/plane:*")
      ->required();
  return verb;
}

CLI::App* LabCommand::declare(CLI::App& program) {
  app_ = program.add_subcommand(
      "lab", "A cluster of real processes and real frames on this machine, to be broken");
  app_->require_subcommand(1);
  app_->footer(
      "Examples:\n"
      "  mrc lab up --hosts 4 --planes 2 --mbps 100\n"
      "  mrc lab exec 0 mrc perf write_bw &  sleep 1;  mrc lab exec 2 mrc perf write_bw 127.0.0.1\n"
      "  mrc lab cut t0:0/t1:2/plane:1;  mrc lab heal all\n"
      "  mrc lab down\n"
      "See docs/lab.md.");
  declare_up(*app_);
  add(*app_, "down", "End a lab, alive or dead, and remove everything of it");
  CLI::App* status = add(*app_, "status", "Show traffic, faults, ports and programs");
  status->add_flag("--json", json_, "Print JSON");
  status->add_flag("--all", all_, "One line for each lab under --dir");
  CLI::App* exec = add(*app_, "exec", "Run a program in a host: HOST CMD [ARGUMENTS...]");
  exec->prefix_command();
  declare_faults(*app_);
  CLI::App* capture = add_fault(*app_, "capture", "Write the frames of a link to a pcapng file");
  capture->add_option("FILE", file_, "For Wireshark and tshark")->required();
  capture->add_option("--seconds", seconds_, "End after this time; otherwise with Ctrl-C")
      ->transform(as_seconds({.most = 1e6}));
  capture->add_option("--snap", snap_, "Bytes kept of each frame; 0 keeps all");
  return app_;
}

void LabCommand::declare_up(CLI::App& app) {
  CLI::App* up = add(app, "up", "Start a lab");
  up->add_option("--mbps", mbps_,
                 "Rate of a host port; other links keep their ratio to it in the topology")
      ->transform(as_mbps())
      ->capture_default_str();
  up->add_option("--fail", faults_, "A fault, times from the start of the lab (repeats)");
  up->add_option("--fail-file", fault_files_, "Faults from a file, one per line (repeats)");
  up->add_flag("--no-trim", no_trim_, "Switches drop instead of trimming");
  up->add_flag("--netns", netns_,
               "Hosts are network namespaces, cables are veth pairs; needs root");
  up->add_option("--switch", switches_,
                 "Whose switches: mrc (ours), or with --netns kernel (Linux SRv6)")
      ->check(CLI::IsMember({"mrc", "kernel"}))
      ->capture_default_str();
  up->add_flag("--foreground", foreground_, "Stay in the foreground until Ctrl-C or down");
  topology_.declare(*up);
}

void LabCommand::declare_faults(CLI::App& app) {
  add_fault(app, "cut", "Cut a cable, or unplug a NIC port");
  add_fault(app, "heal", "End all faults on a link, switch or NIC port, or on 'all'");
  add_fault(app, "kill", "Take a switch down", true);
  CLI::App* reboot = add_fault(app, "reboot", "Take a switch down for a while", true);
  reboot->add_option("--for", duration_, "How long, such as 500ms (2s)")
      ->transform(as_seconds({.most = 86'400}));
  CLI::App* flap = add_fault(app, "flap", "A cable that goes down and up again and again");
  flap->add_option("TIMES", value_, "Time down / time up, such as 50ms/200ms (100ms/400ms)");
  CLI::App* degrade = add_fault(app, "degrade", "A cable that carries less than it should");
  degrade->add_option("RATE", value_, "Share of its rate, such as 25%")->required();
  CLI::App* loss = add_fault(app, "loss", "A cable that loses frames at random");
  loss->add_option("P", value_, "Share of frames, such as 1%")->required();
  CLI::App* fault = add(app, "fault", "Any fault in the words of a fault plan (docs/fabric.md)");
  fault->add_option("TEXT", target_, "Such as 't0:0/plane:1 blackhole t1:2 @0 for 5s'")->required();
}

lab::Directory LabCommand::directory() const { return lab::Directory(base_, name_); }

lab::Reply LabCommand::ask(const std::vector<std::string>& words) const {
  lab::ControlClient client;
  lab_tool::attach(directory(), client);
  lab::Reply reply = client.ask(words);
  if (!reply.ok) throw InputError(reply.text);
  return reply;
}

lab::SwitchKind LabCommand::switch_kind() const {
  const bool kernel = switches_ == "kernel";
  if (kernel && !netns_) throw InputError("--switch kernel goes with --netns");
  if (netns_ && ::geteuid() != 0) {
    throw InputError(
        "--netns makes network namespaces, which takes root; without it a lab needs no rights");
  }
  if (kernel && no_trim_)
    throw InputError("--no-trim is for our switches; the kernel's never trim");
  if (!netns_) return lab::SwitchKind::kProcess;
  return kernel ? lab::SwitchKind::kKernel : lab::SwitchKind::kNamespace;
}

ExitCode LabCommand::up() {
  if (!(mbps_ >= 1 && mbps_ <= kMaxMbps))
    throw InputError(fmt::format("--mbps is from 1 to {:g} Mb/s, not {:g}", kMaxMbps, mbps_));
  lab::ClusterOptions options;
  options.switches = switch_kind();
  options.topology =
      lab::scale_rates(topology_.spec(default_fabric()), static_cast<std::uint64_t>(mbps_ * 1e6));
  options.network.trims = !no_trim_;
  const fabric::Topology topology(options.topology);
  const fabric::Routing routing(topology);
  if (netns_) lab::NetnsPlan(routing, "", options.switches);  // refuses what it cannot build
  if (topology.planes() > kMaxPorts) {
    throw InputError("a device has at most 16 ports, not " + std::to_string(topology.planes()));
  }
  for (const std::string& text : faults_)
    options.fault_plan.push_back(fabric::parse_fault(text, topology).text);
  for (const std::string& path : fault_files_) {
    std::ifstream file(path);
    if (!file) throw InputError(path + ": cannot be read");
    std::stringstream text;
    text << file.rdbuf();
    for (const fabric::Fault& fault : fabric::parse_fault_file(text.str(), path, topology))
      options.fault_plan.push_back(fault.text);
  }
  lab::Directory place = directory();
  const ExitCode result = lab_tool::start_lab(place, options, foreground_);
  if (result == ExitCode::kOk && !foreground_) {
    const fabric::TopologySpec& spec = options.topology;
    fmt::print("lab {} is up: {}, {} of {}, {:g} Mb/s per port\n", name_,
               counted(spec.hosts, "host", "hosts"), counted(spec.planes, "plane", "planes"),
               counted(spec.t0 + spec.t1 + spec.t2, "switch", "switches"), mbps_);
  }
  return result;
}

ExitCode LabCommand::status() {
  if (!all_) {
    lab_tool::print_status(ask({"status"}).text, json_);
    return ExitCode::kOk;
  }
  for (const std::string& name : lab::list_labs(base_)) {
    const lab::Directory place(base_, name);
    const bool up = place.state() == lab::Directory::State::kUp;
    fmt::print("{}\t{}\n", name, up ? fmt::format("up, process {}", place.holder()) : "dead");
  }
  return ExitCode::kOk;
}

ExitCode LabCommand::exec() {
  std::vector<std::string> words = app_->get_subcommand("exec")->remaining();
  if (words.size() < 2) throw InputError("give a host and a command");
  const std::string host = words.front();
  words.erase(words.begin());
  if (words.front() == "--") words.erase(words.begin());
  if (words.empty()) throw InputError("give a command");
  return lab_tool::execute(directory(), host, words);
}

// The words of a fault plan for a verb of the command line.
std::string LabCommand::fault_text(const std::string& verb) const {
  if (verb == "fault") return target_;
  if (target_.find_first_of(" \t\n") != std::string::npos)
    throw InputError("'" + target_ + "' is no name of a link or switch");
  const bool is_switch = target_.starts_with("t") && target_.find('>') == std::string::npos &&
                         target_.find("/t") == std::string::npos &&
                         target_.find("/host") == std::string::npos;
  if ((verb == "kill" || verb == "reboot") && !is_switch)
    throw InputError("'" + target_ + "' is no switch; write t1:2/plane:0");
  if (verb == "reboot")
    return target_ + " down @0 for " + (duration_.empty() ? "2" : duration_) + "s";
  if (verb == "flap") return target_ + " flap " + (value_.empty() ? "100ms/400ms" : value_) + " @0";
  if (verb == "degrade") return target_ + " rate " + value_ + " @0";
  if (verb == "loss") return target_ + " loss " + value_ + " @0";
  return target_ + " down @0";
}

ExitCode LabCommand::break_something(const CLI::App& verb) {
  ask({"fault", fault_text(verb.get_name())});
  return ExitCode::kOk;
}

ExitCode LabCommand::heal() {
  const std::string count = ask({"heal", target_}).text;
  fmt::print("{} ended\n", counted(std::stoull(count), "fault", "faults"));
  return ExitCode::kOk;
}

ExitCode LabCommand::capture() {
  if (file_ == "-")
    throw InputError(
        "'-' is no file: the lab itself writes captures; give a file, and read it "
        "while it grows with `tail -f -c +1 FILE | tshark -r -`");
  lab::ControlClient client;
  lab_tool::attach(directory(), client);
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  const os::Descriptor stop(::signalfd(-1, &signals, SFD_CLOEXEC));
  const std::string file = std::filesystem::absolute(file_);
  lab::Reply reply = client.ask({"capture", target_, file, std::to_string(snap_)});
  if (!reply.ok && reply.text.starts_with(file + ": ")) throw std::runtime_error(reply.text);
  if (!reply.ok) throw InputError(reply.text);
  pollfd descriptors[] = {{stop.get(), POLLIN, 0}, {client.descriptor(), POLLIN, 0}};
  const int wait_ms = seconds_ > 0 ? static_cast<int>(std::min(seconds_, 1e6) * 1e3) : -1;
  ::poll(descriptors, 2, wait_ms);
  reply = client.ask({"frames"});
  if (!reply.ok) {
    fmt::print(stderr, "mrc lab: {}\n", reply.text);
    return ExitCode::kFailed;
  }
  fmt::print("{} in {}\n", counted(std::stoull(reply.text), "frame", "frames"), file_);
  return ExitCode::kOk;
}

ExitCode LabCommand::run() {
  const CLI::App& verb = *app_->get_subcommands().front();
  const std::string& name = verb.get_name();
  if (name == "up") return up();
  if (name == "status") return status();
  if (name == "exec") return exec();
  if (name == "capture") return capture();
  if (name == "heal") return heal();
  if (name != "down") return break_something(verb);
  lab::Directory place = directory();
  return lab_tool::end_lab(place);
}

}  // namespace

std::unique_ptr<Command> make_lab_command() { return std::make_unique<LabCommand>(); }

}  // namespace mrc::tool
