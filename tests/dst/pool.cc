#include "dst/pool.h"

#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/planted_bug.h"

namespace mrc::dst {
namespace {

constexpr std::size_t kMaxFailures = 256;
constexpr std::size_t kMaxJobs = 256;
constexpr std::size_t kReasonBytes = 512;
constexpr std::size_t kIdle = ~std::size_t{0};

struct FailureNote {
  std::uint64_t seed;
  char reason[kReasonBytes];
};

// Lives in memory that parent and workers share.
struct Board {
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> done{0};
  std::atomic<std::size_t> failed{0};
  FailureNote failures[kMaxFailures]{};
  std::atomic<std::size_t> current[kMaxJobs]{};  // position each worker is at
  Totals totals[kMaxJobs]{};
};

void note_failure(Board& board, std::uint64_t seed, const char* reason) {
  const std::size_t slot = board.failed.fetch_add(1);
  if (slot >= kMaxFailures) return;
  board.failures[slot].seed = seed;
  std::snprintf(board.failures[slot].reason, kReasonBytes, "%s", reason);
}

// Ends the process by SIGPROF after so much time on a processor; 0: no longer.
void limit_processor_time(unsigned seconds) {
  const itimerval limit{.it_interval = {}, .it_value = {.tv_sec = seconds, .tv_usec = 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
}

[[noreturn]] void work(Board& board, std::size_t worker, const std::vector<std::uint64_t>& seeds,
                       const PoolOptions& options) {
#ifdef MRC_PLANTED_BUGS
  active_planted_bug = static_cast<PlantedBug>(options.planted_bug);
#endif
  while (board.failed.load() < options.failures) {
    const std::size_t position = board.next.fetch_add(1);
    if (position >= seeds.size()) break;
    board.current[worker] = position;
    limit_processor_time(options.seconds_per_seed);
    const SeedResult result = run_seed_checked(seeds[position]);
    limit_processor_time(0);
    board.totals[worker].add(result.totals);
    if (!result.ok) note_failure(board, seeds[position], result.reason.c_str());
    board.current[worker] = kIdle;
    board.done.fetch_add(1);
  }
  std::_Exit(0);
}

class Pool {
 public:
  Pool(const std::vector<std::uint64_t>& seeds, const PoolOptions& options)
      : seeds_(seeds), options_(options), workers_(std::min<std::size_t>(options.jobs, kMaxJobs)) {
    void* memory =
        mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    board_ = new (memory) Board;
  }
  ~Pool() { munmap(board_, sizeof(Board)); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  PoolResult run() {
    for (std::size_t i = 0; i < workers_.size(); ++i)
      start(i);
    std::size_t running = workers_.size();
    while (running != 0) {
      int status = 0;
      const pid_t pid = waitpid(-1, &status, WNOHANG);
      if (pid == 0) {
        usleep(20'000);
        show_progress();
        continue;
      }
      if (pid < 0 && errno == EINTR) continue;
      if (pid < 0) break;
      const auto entry = std::find(workers_.begin(), workers_.end(), pid);
      if (entry == workers_.end()) continue;
      const auto worker = static_cast<std::size_t>(entry - workers_.begin());
      if (on_exit(worker, status)) {
        start(worker);
      } else {
        --running;
      }
    }
    if (shown_) std::fputc('\n', stderr);
    return collect();
  }

 private:
  void start(std::size_t worker) {
    board_->current[worker] = kIdle;
    const pid_t pid = fork();
    if (pid < 0) std::abort();
    if (pid == 0) work(*board_, worker, seeds_, options_);
    workers_[worker] = pid;
  }

  // True when the worker died of its seed and another one has to take over.
  bool on_exit(std::size_t worker, int status) {
    const std::size_t position = board_->current[worker];
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && position == kIdle) return false;
    if (position == kIdle) return false;
    char reason[96];
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF) {
      std::snprintf(reason, sizeof reason, "not done after %u s of processor time",
                    options_.seconds_per_seed);
    } else if (WIFSIGNALED(status)) {
      std::snprintf(reason, sizeof reason, "the engine died: %s", strsignal(WTERMSIG(status)));
    } else {
      std::snprintf(reason, sizeof reason, "the worker ended with status %d", WEXITSTATUS(status));
    }
    note_failure(*board_, seeds_[position], reason);
    board_->done.fetch_add(1);
    return true;
  }

  void show_progress() {
    if (!options_.progress) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_shown_ < std::chrono::seconds(2)) return;
    last_shown_ = now;
    shown_ = true;
    std::fprintf(stderr, "\r%zu of %zu seeds, %zu failed ", board_->done.load(), seeds_.size(),
                 board_->failed.load());
  }

  PoolResult collect() const {
    PoolResult result;
    for (std::size_t i = 0; i < workers_.size(); ++i)
      result.totals.add(board_->totals[i]);
    const std::size_t count = std::min(board_->failed.load(), kMaxFailures);
    for (std::size_t i = 0; i < count; ++i) {
      result.failures.push_back({board_->failures[i].seed, board_->failures[i].reason});
    }
    std::sort(result.failures.begin(), result.failures.end(),
              [](const Failure& a, const Failure& b) { return a.seed < b.seed; });
    return result;
  }

  const std::vector<std::uint64_t>& seeds_;
  PoolOptions options_;
  std::vector<pid_t> workers_;
  Board* board_ = nullptr;
  std::chrono::steady_clock::time_point last_shown_ = std::chrono::steady_clock::now();
  bool shown_ = false;
};

}  // namespace

PoolResult run_pool(const std::vector<std::uint64_t>& seeds, const PoolOptions& options) {
  return Pool(seeds, options).run();
}

}  // namespace mrc::dst
