// The tests of `mrc perf` between two processes: how fast writes are, over the C API.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "commands/perf/parts.h"
#include "commands/perf/plan.h"
#include "commands/perf/report.h"
#include "commands/perf/session.h"
#include "failure.h"
#include "os/interrupt.h"
#include "quantity_option.h"

namespace mrc::tool::perf {
namespace {

constexpr std::uint64_t kDefaultBandwidthBytes = 65'536;
constexpr std::uint64_t kDefaultLatencyBytes = 2;
constexpr std::uint64_t kDefaultBandwidthIterations = 5'000;
constexpr std::uint64_t kDefaultLatencyIterations = 1'000;
constexpr unsigned kLargestPower = 23;  // -a ends at 8 MiB

class WriteTests final : public Part {
 public:
  void declare(CLI::App& perf) override;
  bool parsed() const override;
  ExitCode run() override;

 private:
  // Values as they stand on the command line of one test.
  struct Given {
    Options options;
    std::uint64_t size = 0;
    bool all_sizes = false;
    bool out_json = false;
    bool cpu_freq = false;
    std::string out_json_file = "perftest_out.json";
    std::uint64_t ev_profile = 0;
    std::uint64_t cc_profile = 0;
    CLI::App* app = nullptr;
  };

  void declare_test(CLI::App& app, Test test, const char* help);
  static void declare_traffic(CLI::App& app, Given& given);
  static void declare_device(CLI::App& app, Given& given);
  static void declare_output(CLI::App& app, Given& given);
  static Options options_of(const Given& given);

  std::vector<std::unique_ptr<Given>> given_;
};

void WriteTests::declare_traffic(CLI::App& app, Given& given) {
  Plan& plan = given.options.plan;
  app.add_option("-s,--size", given.size, "Bytes of a message: 65536, 64K, 64KiB, 64kB ...")
      ->transform(as_bytes());
  app.add_flag("-a,--all", given.all_sizes, "All sizes from 2 bytes to 8 MiB, doubling");
  app.add_option("-n,--iters", plan.iterations, "Messages per queue pair and size")
      ->transform(as_count());
  app.add_option("-D,--duration", plan.seconds,
                 "Run for this long instead; a tenth of it first, "
                 "to warm up")
      ->type_name("TIME")
      ->transform(as_seconds({0, kMaxSeconds}));
  app.add_option("-t,--tx-depth", plan.depth,
                 "Most messages in flight of a queue pair; large ones are limited to 4 MiB")
      ->capture_default_str();
  app.add_option("-Q,--cq-mod", given.options.signal_every,
                 "Ask for a completion of every n-th message only; 0 chooses")
      ->capture_default_str();
  if (plan.test != Test::kWriteLatency)
    app.add_option("-q,--qp", plan.qps, "Queue pairs")->capture_default_str();
  if (plan.test == Test::kWriteBandwidth)
    app.add_flag("-b,--bidirectional", plan.both_ways, "Both sides write");
  if (plan.test == Test::kWriteLatency)
    app.add_flag("--spin", plan.spin,
                 "Watch memory without polling in between, as programs for cards may; messages of "
                 "one packet");
  app.add_flag("--verify,!--no-verify", plan.verify,
               "Compare what arrived with what was sent; on unless switched off");
  if (plan.test == Test::kWriteImmediate)
    app.add_flag("--verify-all", plan.verify_all,
                 "Compare every byte of every message, at the cost of speed");
}

void WriteTests::declare_device(CLI::App& app, Given& given) {
  Options& options = given.options;
  app.add_option("host", options.host, "Server to measure against; without it, be the server");
  app.add_option("-d,--ib-dev", options.device, "Device; the first one by default");
  app.add_option("-x,--gid-index", options.gid_index, "Which of its GIDs")->capture_default_str();
  app.add_option("-p,--port", options.tcp_port, "TCP port on which the two sides agree")
      ->check(as_port())
      ->capture_default_str();
  app.add_option("-m,--mtu", options.mtu, "Bytes of payload per packet; the port's by default");
  app.add_option("--ev-profile", given.ev_profile, "Paths from this EV profile (mrc ctl)")
      ->type_name("ID");
  app.add_option("--cc-profile", given.cc_profile, "Congestion control by this profile (mrc ctl)")
      ->type_name("ID");
  app.add_option("--timeout", options.timeout_s, "Give up when nothing moves for so long")
      ->type_name("TIME")
      ->transform(as_seconds({0.1, 86'400}))
      ->capture_default_str();
  app.add_flag("-F,--CPU-freq", given.cpu_freq, "Accepted for the sake of perftest; no effect");
}

void WriteTests::declare_output(CLI::App& app, Given& given) {
  Options& options = given.options;
  if (options.plan.test != Test::kWriteLatency)
    app.add_flag("--explain", options.explain,
                 "Tell what the client's queue pairs waited for, and why packets were sent again")
        ->group("Output");
  app.add_flag("--report_gbits", options.gbits, "Gb/s instead of MiB/s")->group("Output");
  app.add_flag("--json", options.json, "One JSON object on stdout, the table on stderr")
      ->group("Output");
  app.add_option("--report-every", options.report_every_s,
                 "A line of JSON on stdout for each such interval, then the result as one line")
      ->type_name("TIME")
      ->transform(as_seconds({0.001, 3'600}))
      ->group("Output");
  app.add_flag("--out_json", given.out_json, "Write the JSON object to a file as well")
      ->group("Output");
  app.add_option("--out_json_file", given.out_json_file, "Its name")
      ->type_name("FILE")
      ->capture_default_str()
      ->group("Output");
}

void WriteTests::declare_test(CLI::App& app, Test test, const char* help) {
  given_.push_back(std::make_unique<Given>());
  Given& given = *given_.back();
  const bool latency = test == Test::kWriteLatency;
  given.options.plan.test = test;
  given.size = latency ? kDefaultLatencyBytes : kDefaultBandwidthBytes;
  given.options.plan.iterations = latency ? kDefaultLatencyIterations : kDefaultBandwidthIterations;
  given.app = app.add_subcommand(name_of(test), help);
  declare_traffic(*given.app, given);
  declare_device(*given.app, given);
  declare_output(*given.app, given);
}

void WriteTests::declare(CLI::App& perf) {
  declare_test(perf, Test::kWriteBandwidth, "Bandwidth and message rate of RDMA writes");
  declare_test(perf, Test::kWriteLatency, "Time of a write from memory to memory, one way");
  declare_test(perf, Test::kWriteImmediate, "Bandwidth of writes with immediate data");
}

bool WriteTests::parsed() const {
  return std::any_of(given_.begin(), given_.end(),
                     [](const auto& given) { return given->app->parsed(); });
}

Options WriteTests::options_of(const Given& given) {
  Options options = given.options;
  if (given.app->count("--ev-profile") > 0) options.ev_profile = given.ev_profile;
  if (given.app->count("--cc-profile") > 0) options.cc_profile = given.cc_profile;
  if (given.out_json || given.app->count("--out_json_file") > 0)
    options.json_file = given.out_json_file;
  options.plan.sizes = {given.size};
  if (!given.all_sizes) return options;
  options.plan.sizes.clear();
  for (unsigned power = 1; power <= kLargestPower; ++power)
    options.plan.sizes.push_back(std::uint64_t{1} << power);
  return options;
}

ExitCode WriteTests::run() {
  for (const auto& given : given_) {
    if (!given->app->parsed()) continue;
    const Options options = options_of(*given);
    const os::Interrupt interrupt;
    Report report(options);
    ExitCode code = ExitCode::kUsage;
    std::string problem = why_not(options.plan);
    if (problem.empty()) {
      try {
        Session session(options, report);
        code = session.run();
      } catch (const Failure& failure) {
        problem = failure.what();
        code = exit_code_of(failure);
      }
      report.end(problem);
    }
    if (!problem.empty())
      fmt::print(stderr, "mrc perf {}: {}\n", name_of(options.plan.test), problem);
    return code;
  }
  return ExitCode::kUsage;
}

}  // namespace

std::unique_ptr<Part> make_write_part() { return std::make_unique<WriteTests>(); }

}  // namespace mrc::tool::perf
