// mrc_bench: the micro benchmarks. Without arguments each runs several times and a table shows the
// best and the median; with any argument of Google Benchmark its own reports are shown.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

namespace {

// What a benchmark must reach; see docs/performance.md.
struct Bar {
  const char* name;
  double max_ns;               // 0 = none
  double min_giga_per_second;  // bytes; 0 = none
};
constexpr Bar kBars[] = {
    {"end_to_end/messages_of_1_mib", 400, 0},
    {"icrc/4096", 0, 8},
    {"icrc/8192", 0, 8},
};

class TableReporter final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override {
    std::printf("%-36s %10s %10s %9s\n", "", "best ns", "median ns", "GB/s");
    return true;
  }

  // All repetitions of one benchmark.
  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<double> times;
    double bytes_per_second = 0;
    std::string name;
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;
      name = run.run_name.function_name;
      if (!run.run_name.args.empty()) name += "/" + run.run_name.args;
      if (run.error_occurred) {
        std::printf("%-36s %s\n", name.c_str(), run.error_message.c_str());
        failed_ = true;
        return;
      }
      const bool manual = !run.run_name.time_type.empty();
      times.push_back(manual ? run.GetAdjustedRealTime() : run.GetAdjustedCPUTime());
      const auto bytes = run.counters.find("bytes_per_second");
      if (bytes != run.counters.end()) {
        bytes_per_second = std::max(bytes_per_second, bytes->second.value);
      }
    }
    if (times.empty()) return;
    std::sort(times.begin(), times.end());
    print(name, times[0], times[times.size() / 2], bytes_per_second / 1e9);
  }

  bool failed() const { return failed_; }

 private:
  static void print(const std::string& name, double best_ns, double median_ns, double giga) {
    std::printf("%-36s %10.1f %10.1f", name.c_str(), best_ns, median_ns);
    if (giga > 0) {
      std::printf(" %9.2f", giga);
    } else {
      std::printf(" %9s", "");
    }
    for (const Bar& bar : kBars) {
      if (name != bar.name) continue;
      const bool met = bar.max_ns > 0 ? best_ns <= bar.max_ns : giga >= bar.min_giga_per_second;
      if (bar.max_ns > 0) std::printf("   bar %.0f ns", bar.max_ns);
      if (bar.min_giga_per_second > 0) std::printf("   bar %.0f GB/s", bar.min_giga_per_second);
      std::printf(": %s", met ? "met" : "NOT MET");
    }
    std::printf("\n");
    std::fflush(stdout);
  }

  bool failed_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    return 0;
  }
  char repetitions[] = "--benchmark_repetitions=7";
  char shorter[] = "--benchmark_min_time=0.1";
  char* defaults[] = {argv[0], repetitions, shorter, nullptr};
  int count = static_cast<int>(std::size(defaults)) - 1;
  benchmark::Initialize(&count, defaults);
  TableReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  return reporter.failed() ? 1 : 0;
}
