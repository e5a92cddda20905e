#include "commands/perf/collective_part.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <numeric>

#include "collective/placement_flags.h"
#include "failure.h"
#include "lab/directory.h"
#include "launch/attach.h"
#include "launch/lab_status.h"
#include "launch/rank_group.h"
#include "os/interrupt.h"
#include "quantity_option.h"
#include "spoken_dialect.h"

namespace mrc::tool::perf {
namespace {

constexpr int kPollMs = 200;

}  // namespace

struct CollectiveCommands::Given {
  CollectiveOptions options;
  collective::PlacementRequest place;
  std::string element = "float";
  std::string lab;
  std::string lab_base = lab::Directory::default_base();
  std::uint64_t ev_profile = 0;
  std::uint64_t cc_profile = 0;
  CLI::App* app = nullptr;
};

CollectiveCommands::CollectiveCommands() = default;
CollectiveCommands::~CollectiveCommands() = default;

void CollectiveCommands::declare_sizes(CLI::App& app, Given& given) {
  CollectiveOptions& options = given.options;
  app.add_option("-b,--minbytes", options.min_bytes, "Smallest buffer: 65536, 64K, 64KiB, 64kB ...")
      ->transform(as_bytes())
      ->capture_default_str();
  app.add_option("-e,--maxbytes", options.max_bytes, "Largest buffer")
      ->transform(as_bytes())
      ->capture_default_str();
  app.add_option("-f,--stepfactor", options.factor, "From one size to the next")
      ->capture_default_str();
  app.add_option("-n,--iters", options.iterations, "Rounds for each size")
      ->transform(as_count())
      ->capture_default_str();
  app.add_option("-w,--warmup_iters", options.warm_up, "Rounds before them")->capture_default_str();
  app.add_option("-D,--duration", options.seconds, "Run each size for this long instead")
      ->type_name("TIME")
      ->transform(as_seconds({0, 86'400}));
  app.add_option("-t,--datatype", given.element, "int32, int64, float or double")
      ->capture_default_str();
  app.add_flag("--verify,!--no-verify", options.verify,
               "Compare one more round of each size, or with -D every round; on by default");
  app.add_flag("--verify-all", options.verify_all, "Compare every round");
}

void CollectiveCommands::declare_place(CLI::App& app, Given& given) {
  CollectiveOptions& options = given.options;
  collective::declare_placement(app, given.place);
  app.add_option("--lab", given.lab, "Start all ranks ourselves, one in each host of this lab")
      ->group("Ranks");
  app.add_option("--lab-dir", given.lab_base, "Where labs keep their things")->group("Ranks");
  auto& communicator = options.communicator;
  app.add_option("-d,--ib-dev", communicator.device.name, "Device; the first one by default");
  app.add_option("-x,--gid-index", communicator.device.gid_index, "Which of its GIDs")
      ->capture_default_str();
  app.add_option("-m,--mtu", communicator.device.mtu, "Bytes of payload per packet");
  app.add_option("--ev-profile", given.ev_profile, "Paths from this EV profile (mrc ctl)")
      ->type_name("ID");
  app.add_option("--cc-profile", given.cc_profile, "Congestion control by this profile (mrc ctl)")
      ->type_name("ID");
  app.add_option("--chunk", communicator.shape.chunk_bytes, "Bytes that go on as one piece")
      ->transform(as_bytes())
      ->capture_default_str();
  app.add_option("--slots", communicator.shape.slots, "Most chunks under way to a rank")
      ->capture_default_str();
  app.add_option("--timeout", communicator.timeout_s, "Give up when nothing moves for so long")
      ->type_name("TIME")
      ->transform(as_seconds({0.1, 86'400}))
      ->capture_default_str();
  app.add_flag("--json", options.json, "One JSON object on stdout, the table on stderr")
      ->group("Output");
  app.add_option("--report-every", options.report_every_s,
                 "A line of JSON from every rank for each such interval, then the result as one")
      ->type_name("TIME")
      ->transform(as_seconds({0.02, 3'600}))
      ->group("Output");
}

void CollectiveCommands::declare_one(CLI::App& perf, Operation operation, const char* help) {
  given_.push_back(std::make_unique<Given>());
  Given& given = *given_.back();
  given.options.operation = operation;
  given.app = perf.add_subcommand(name_of(operation), help);
  declare_sizes(*given.app, given);
  declare_place(*given.app, given);
  given.app->footer(fmt::format(
      "One process is one rank. Examples:\n"
      "  mrc perf {0} --lab lab                               all hosts of a lab\n"
      "  mrc perf {0} --rank 0 --ranks 2 --root node1:18516   on node1; --rank 1 on the other\n"
      "  mrc perf {0} --hosts node1,node2,node3               the same line on every host\n"
      "  srun -n 4 mrc perf {0} --root node1                  also mpirun and torchrun",
      name_of(operation)));
}

void CollectiveCommands::declare(CLI::App& perf) {
  declare_one(perf, Operation::kAllReduce, "Ranks: the sum of all buffers, everywhere");
  declare_one(perf, Operation::kReduceScatter, "Ranks: the sum of all buffers, a part each");
  declare_one(perf, Operation::kAllGather, "Ranks: a part of each, everywhere");
  declare_one(perf, Operation::kAllToAll, "Ranks: a part from each to each");
}

bool CollectiveCommands::parsed() const {
  return std::any_of(given_.begin(), given_.end(),
                     [](const auto& given) { return given->app->parsed(); });
}

CollectiveOptions CollectiveCommands::options_of(const Given& given) {
  CollectiveOptions options = given.options;
  const auto element = collective::element_of(given.element);
  if (!element)
    throw Failure(
        fmt::format("--datatype {}: int32, int64, float and double are possible", given.element),
        FailureKind::kUsage);
  options.element = *element;
  if (given.app->count("--ev-profile") > 0) options.communicator.profiles.ev = given.ev_profile;
  if (given.app->count("--cc-profile") > 0) options.communicator.profiles.cc = given.cc_profile;
  const std::string problem = why_not(options);
  if (!problem.empty()) throw Failure(problem, FailureKind::kUsage);
  return options;
}

ExitCode CollectiveCommands::run_rank(const Given& given) {
  CollectiveOptions options = options_of(given);
  options.communicator.place = collective::resolve(given.place);
  options.communicator.device.dialect = spoken_dialect(options.communicator.device.name);
  CollectiveRun run(options);
  return run.run();
}

// The command line again, without what was meant for us.
std::vector<std::string> CollectiveCommands::words_for_ranks(const Given& given) {
  std::vector<std::string> words = {own_program(), "perf", name_of(given.options.operation)};
  for (const CLI::Option* option : given.app->get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || option->get_group() == "Ranks") continue;
    if (option->get_expected_max() == 0) {
      const bool on = option->as<bool>();
      words.push_back(on || name != "--verify" ? name : "--no-verify");
      continue;
    }
    words.push_back(name);
    words.push_back(option->as<std::string>());
  }
  return words;
}

ExitCode CollectiveCommands::run_in_lab(const Given& given) {
  options_of(given);
  const lab::Directory directory(given.lab_base, given.lab);
  lab::ControlClient client;
  lab_tool::attach(directory, client);
  RankGroupOptions options;
  options.hosts.resize(ask_status(client).hosts);
  std::iota(options.hosts.begin(), options.hosts.end(), 0U);
  options.command = words_for_ranks(given);
  options.shows_output = true;
  RankGroup ranks(directory, options);
  // Ctrl-C reaches the ranks as well; they end in order, and then we do.
  bool told = false;
  while (ranks.running()) {
    ranks.poll(kPollMs, {});
    if (os::Interrupt::raised() && !told) ranks.signal(SIGTERM);
    told = told || os::Interrupt::raised();
  }
  if (ranks.result() != 0 && ranks.result() != static_cast<int>(ExitCode::kWrongData) &&
      ranks.result() != static_cast<int>(ExitCode::kInterrupted))
    throw Failure(ranks.complaint(), static_cast<FailureKind>(ranks.result()));
  return static_cast<ExitCode>(ranks.result());
}

ExitCode CollectiveCommands::run() {
  for (const auto& given : given_) {
    if (!given->app->parsed()) continue;
    const os::Interrupt interrupt;
    try {
      return given->lab.empty() ? run_rank(*given) : run_in_lab(*given);
    } catch (const Failure& failure) {
      fmt::print(stderr, "mrc perf {}: {}\n", name_of(given->options.operation), failure.what());
      return exit_code_of(failure);
    }
  }
  return ExitCode::kUsage;
}

std::unique_ptr<Part> make_collective_part() { return std::make_unique<CollectiveCommands>(); }

}  // namespace mrc::tool::perf
