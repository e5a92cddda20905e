// One rank of a ring of processes that exchange as NCCL's proxies do; run.py starts them.
//
// Usage: mrc_nccl_bench PATTERN BYTES SECONDS RANK RANKS DIRECTORY [PLUGIN]
//
// allreduce: 2 (n - 1) steps of BYTES / n, each to the next rank and from the one before, in pieces
// of at most 512 KiB, eight at a time; a step begins when the one before is over. Nothing is added
// up: this measures the network's part. oneway: even ranks send BYTES to the next one, again and
// again. Every rank prints what it measured as a line of JSON.
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "transport.h"

namespace mrc::bench {
namespace {

constexpr std::size_t kPiece = 512 << 10;
constexpr std::size_t kAtATime = 8;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Sends and receives so much, piece by piece; whoever has nothing to do gives the processor away,
// as NCCL's proxy thread does.
class Exchange {
 public:
  Exchange(Transport& transport, std::span<std::byte> out, std::span<std::byte> in)
      : transport_(transport), out_(out), in_(in) {}

  void run(std::size_t send_bytes, std::size_t receive_bytes) {
    Side sends{out_.first(send_bytes), {}};
    Side receives{in_.first(receive_bytes), {}};
    while (!sends.done() || !receives.done()) {
      const bool moved = step(receives, false) | step(sends, true);
      if (!moved) sched_yield();
    }
  }

 private:
  struct Side {
    std::span<std::byte> rest;
    std::deque<void*> requests;
    bool done() const { return rest.empty() && requests.empty(); }
  };

  bool step(Side& side, bool sends) {
    bool moved = false;
    while (!side.rest.empty() && side.requests.size() < kAtATime) {
      const auto piece = side.rest.first(std::min(kPiece, side.rest.size()));
      void* const request = sends ? transport_.send(piece) : transport_.receive(piece);
      if (request == nullptr) break;
      side.requests.push_back(request);
      side.rest = side.rest.subspan(piece.size());
      moved = true;
    }
    while (!side.requests.empty() && transport_.test(side.requests.front())) {
      side.requests.pop_front();
      moved = true;
    }
    return moved;
  }

  Transport& transport_;
  std::span<std::byte> out_;
  std::span<std::byte> in_;
};

class Rank {
 public:
  Rank(const RankSetting& setting, const test::Meeting& meeting, std::size_t bytes)
      : setting_(setting),
        meeting_(meeting),
        out_(bytes, static_cast<std::byte>(setting.rank + 1)),
        in_(bytes),
        transport_(setting.plugin.empty() ? open_tcp(setting, meeting)
                                          : open_plugin(setting, meeting)),
        exchange_(*transport_, out_, in_) {
    transport_->use(out_, in_);
  }

  // Prints the figures of this rank.
  void measure(bool allreduce, double seconds) {
    const unsigned count = agree_on_count(allreduce, seconds);
    meeting_.barrier("start", setting_.ranks);
    const double used_before = processor_seconds();
    const double begin = seconds_now();
    repeat(allreduce, count);
    const double taken = seconds_now() - begin;
    meeting_.barrier("end", setting_.ranks);
    const double used = processor_seconds() - used_before;
    std::printf("{\"operations\": %u, \"seconds\": %.6f, \"cpu_s\": %.6f, \"sent_bytes\": %.0f}\n",
                count, taken, used, static_cast<double>(sent_per_operation(allreduce)) * count);
    const auto expected = static_cast<std::byte>(setting_.previous() + 1);
    if (in_.front() != expected && (allreduce || !sends_one_way())) test::die("wrong bytes");
  }

 private:
  static constexpr unsigned kWarmUp = 3;
  static constexpr unsigned kMost = 200'000;

  bool sends_one_way() const { return setting_.rank % 2 == 0; }
  std::size_t steps() const { return 2 * (static_cast<std::size_t>(setting_.ranks) - 1); }
  std::size_t part() const {
    return std::max<std::size_t>(out_.size() / static_cast<std::size_t>(setting_.ranks), 1);
  }
  std::size_t sent_per_operation(bool allreduce) const {
    if (!allreduce) return sends_one_way() ? out_.size() : 0;
    return steps() * part();
  }

  void repeat(bool allreduce, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      if (!allreduce) {
        exchange_.run(sends_one_way() ? out_.size() : 0, sends_one_way() ? 0 : in_.size());
        continue;
      }
      for (std::size_t step = 0; step < steps(); ++step)
        exchange_.run(part(), part());
    }
  }

  // Rank 0 tries how long an operation takes and says how many fill the time.
  unsigned agree_on_count(bool allreduce, double seconds) {
    meeting_.barrier("ready", setting_.ranks);
    repeat(allreduce, 1);
    const double begin = seconds_now();
    repeat(allreduce, kWarmUp);
    const double each = (seconds_now() - begin) / kWarmUp;
    if (setting_.rank == 0) {
      const auto count = static_cast<unsigned>(std::clamp(seconds / each, 3.0, double{kMost}));
      meeting_.put("count", std::as_bytes(std::span(&count, 1)));
    }
    const auto told = meeting_.get("count");
    unsigned count = 0;
    MRC_CHECK(told.size() == sizeof(count));
    std::memcpy(&count, told.data(), sizeof(count));
    return count;
  }

  const RankSetting& setting_;
  const test::Meeting& meeting_;
  std::vector<std::byte> out_;
  std::vector<std::byte> in_;
  std::unique_ptr<Transport> transport_;
  Exchange exchange_;
};

}  // namespace
}  // namespace mrc::bench

int main(int argc, char** argv) {
  using namespace mrc::bench;
  const std::string pattern = argc > 1 ? argv[1] : "";
  if ((argc != 7 && argc != 8) || (pattern != "allreduce" && pattern != "oneway")) {
    mrc::test::die(
        "usage: mrc_nccl_bench allreduce|oneway BYTES SECONDS RANK RANKS DIRECTORY [PLUGIN]");
  }
  const RankSetting setting{.rank = std::atoi(argv[4]),
                            .ranks = std::atoi(argv[5]),
                            .directory = argv[6],
                            .plugin = argc > 7 ? argv[7] : ""};
  const std::size_t bytes = std::strtoull(argv[2], nullptr, 10);
  const bool fits = setting.ranks >= 2 && setting.rank >= 0 && setting.rank < setting.ranks;
  if (!fits || bytes == 0) mrc::test::die("a ring has two ranks or more, a message some bytes");
  const mrc::test::Meeting meeting(setting.directory, setting.rank);
  Rank(setting, meeting, bytes).measure(pattern == "allreduce", std::atof(argv[3]));
  return 0;
}
