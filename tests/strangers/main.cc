// strangers: packets by the million from somebody who may know all but one thing, or repeat all he
// has seen, against engines in virtual time. Nothing of them lands, no queue pair ends, and every
// message of the stream beside them arrives once and whole. See docs/testing.md.
#include <malloc.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "strangers/datagrams.h"
#include "strangers/keys.h"
#include "strangers/lies.h"
#include "strangers/stream.h"
#include "support/results.h"

namespace mrc::strangers {
namespace {

constexpr unsigned kVolley = 512;
constexpr unsigned kBetweenAnswers = 32;
constexpr DurationNs kBetweenVolleysNs = 200;
constexpr unsigned kVolleysPerConnection = 400;
constexpr unsigned kSettled = 2;  // connections, after which memory is what it will be
constexpr std::uint64_t kMostGrowth = 1 << 20;  // of packets that are kept for later, too

struct Options {
  std::uint64_t forged = 1'000'000;
  std::uint64_t replayed = 1'000'000;
  std::uint64_t keys = 1'000'000;
  std::uint64_t damaged = 1'000'000;  // frames, and as many sealed datagrams
  std::uint64_t seed = 1;
  std::string results;
};

std::uint64_t seed_in_use = 0;

// Lines about long work, every five seconds, where somebody looks.
class Progress {
 public:
  Progress(const char* what, std::uint64_t all) : what_(what), all_(all) {}
  void at(std::uint64_t done) {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + std::chrono::seconds(5);
    std::fprintf(stderr, "strangers: %s, %llu of %llu\n", what_,
                 static_cast<unsigned long long>(done), static_cast<unsigned long long>(all_));
  }

 private:
  const char* what_;
  std::uint64_t all_;
  std::chrono::steady_clock::time_point next_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(5);
};

// What this process has allocated and not given back.
std::uint64_t bytes_in_use() {
  const struct mallinfo2 heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

// Where a connection begins: anywhere, and far from those before it.
Psn first_psn(std::uint64_t seed, std::uint64_t connection) {
  return Psn(static_cast<std::uint32_t>(mix64(seed) + connection * 0x35'0000) & 0xFF'FFFF);
}

// Calls `volley(stream)`, which says how many packets it handed over, until there were so many.
template <typename Volley>
void beside_streams(const char* what, std::uint64_t packets, const Options& options, Tally& tally,
                    Volley&& volley) {
  Progress progress(what, packets);
  std::uint64_t handed = 0;
  std::uint64_t settled = 0;
  for (std::uint64_t connection = 0; handed < packets; ++connection) {
    if (connection == kSettled) settled = bytes_in_use();
    Stream stream(options.seed + connection, first_psn(options.seed, connection));
    stream.advance(50 * kMicrosecondNs);
    volley.begin(stream, options.seed + connection);
    for (unsigned i = 0; i < kVolleysPerConnection && handed < packets; ++i) {
      handed += volley.strike(stream, static_cast<int>(i % 2));
      stream.advance(kBetweenVolleysNs);
      progress.at(handed);
    }
    stream.finish();
    tally.genuine += stream.genuine();
    tally.messages += stream.messages();
  }
  const std::uint64_t after = bytes_in_use();
  if (settled != 0 && after > settled + kMostGrowth) {
    broken(std::string(what) + ": memory grew by " + std::to_string(after - settled) + " bytes");
  }
}

class Forgery {
 public:
  void begin(Stream& stream, std::uint64_t seed) { liar_ = std::make_unique<Liar>(stream, seed); }
  std::uint64_t strike(Stream& stream, int victim) {
    liar_->look(victim);
    core::Arrival arrival;
    wire::Packet packet;
    for (unsigned i = 0; i < kVolley; ++i) {
      const auto lie = static_cast<Lie>(i % kLieCount);
      liar_->make(lie, arrival, packet);
      const DropReason drop = stream.hand(victim, arrival, packet);
      if (drop == DropReason::kNone) broken(std::string("taken: ") + name(lie));
      ++told_[i % kLieCount];
      if (drop == kLies[i % kLieCount].stop) ++stopped_[i % kLieCount];
      if (i % kBetweenAnswers == kBetweenAnswers - 1) stream.settle(victim);
    }
    return kVolley;
  }
  // Each check was reached: it stopped half of what was meant for it at least.
  void finish(Tally& tally) const {
    for (std::size_t i = 0; i < kLieCount; ++i) {
      if (stopped_[i] * 2 < told_[i]) {
        broken(std::string(kLies[i].text) + ": only " + std::to_string(stopped_[i]) + " of " +
               std::to_string(told_[i]) + " were " + drop_reason_name(kLies[i].stop));
      }
      tally.rows.push_back({kLies[i].text, told_[i]});
    }
  }

 private:
  static const char* name(Lie lie) { return kLies[static_cast<std::size_t>(lie)].text; }
  std::unique_ptr<Liar> liar_;
  std::array<std::uint64_t, kLieCount> told_{};
  std::array<std::uint64_t, kLieCount> stopped_{};
};

// Packets of this connection, at once and late, and those of the one before it, which had the same
// queue pair numbers and keys.
class Replay {
 public:
  void begin(Stream& /*stream*/, std::uint64_t seed) {
    prng_ = Prng(seed);
    before_.swap(now_);
    now_.clear();
  }
  std::uint64_t strike(Stream& stream, int victim) {
    std::uint64_t handed = 0;
    for (unsigned i = 0; i < kVolley; ++i) {
      const bool of_before = !before_.empty() && prng_.below(4) == 0;
      const Stream::Seen* seen =
          of_before ? &before_[prng_.below(static_cast<std::uint32_t>(before_.size()))]
                    : stream.old_packet(prng_);
      if (seen == nullptr) continue;
      if (!of_before && now_.size() < kKept && prng_.below(64) == 0) now_.push_back(*seen);
      stream.hand(seen->to, seen->arrival, seen->packet);
      ++handed;
      ++(of_before ? of_dead_ : of_live_);
      if (i % kBetweenAnswers == kBetweenAnswers - 1) {
        stream.settle(victim);
        stream.settle(1 - victim);
      }
    }
    return handed;
  }
  void finish(Tally& tally) const {
    tally.rows.push_back({"repeated, of this connection", of_live_});
    tally.rows.push_back({"repeated, of one before with the same numbers", of_dead_});
  }

 private:
  static constexpr std::size_t kKept = 4096;
  Prng prng_{1};
  std::vector<Stream::Seen> before_;
  std::vector<Stream::Seen> now_;
  std::uint64_t of_live_ = 0;
  std::uint64_t of_dead_ = 0;
};

[[noreturn]] void usage(const char* complaint) {
  std::fprintf(stderr,
               "strangers: %s\n"
               "Usage: strangers [--forged N] [--replayed N] [--keys N] [--damaged N] [--seed N]\n"
               "                 [--results FILE]\n",
               complaint);
  std::exit(2);
}

std::uint64_t number(const char* option, const char* text) {
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text, &end, 10);
  if (end == text || *end != '\0') usage((std::string(option) + " takes a number").c_str());
  return value;
}

Options read_options(int argc, char** argv) {
  Options options;
  const std::pair<const char*, std::uint64_t*> numbers[] = {{"--forged", &options.forged},
                                                            {"--replayed", &options.replayed},
                                                            {"--keys", &options.keys},
                                                            {"--damaged", &options.damaged},
                                                            {"--seed", &options.seed}};
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) usage("each option takes a value");
    if (std::strcmp(argv[i], "--results") == 0) {
      options.results = argv[i + 1];
      continue;
    }
    std::uint64_t* target = nullptr;
    for (const auto& [name, value] : numbers)
      if (std::strcmp(argv[i], name) == 0) target = value;
    if (target == nullptr) usage((std::string("no option ") + argv[i]).c_str());
    *target = number(argv[i], argv[i + 1]);
  }
  return options;
}

int run(const Options& options) {
  seed_in_use = options.seed;
  Tally tally;
  Forgery forgery;
  beside_streams("forged", options.forged, options, tally, forgery);
  if (options.forged > 0) forgery.finish(tally);
  Replay replay;
  beside_streams("repeated", options.replayed, options, tally, replay);
  replay.finish(tally);
  try_keys(options.keys, options.seed, tally);
  damage_frames(options.damaged, options.seed, tally);
  damage_sealed(options.damaged, options.seed, tally);

  for (const Row& row : tally.rows)
    std::printf("%-52s %15llu\n", row.kind.c_str(), static_cast<unsigned long long>(row.packets));
  std::printf("%-52s %15llu\n", "packets of the streams beside them",
              static_cast<unsigned long long>(tally.genuine));
  std::printf("%-52s %15llu\n", "messages compared",
              static_cast<unsigned long long>(tally.messages));
  if (options.results.empty()) return 0;
  test::ResultLines lines = {{"packets forged", options.forged + 2 * options.damaged},
                             {"packets repeated", options.replayed},
                             {"keys tried", options.keys}};
  for (const Row& row : tally.rows)
    lines.emplace_back(row.kind, row.packets);
  if (test::write_results(options.results, "strangers", lines)) return 0;
  std::fprintf(stderr, "strangers: %s cannot be written\n", options.results.c_str());
  return 1;
}

}  // namespace

void broken(const std::string& what) {
  std::fprintf(stderr, "strangers: %s (--seed %llu)\n", what.c_str(),
               static_cast<unsigned long long>(seed_in_use));
  std::exit(1);
}

}  // namespace mrc::strangers

int main(int argc, char** argv) {
  return mrc::strangers::run(mrc::strangers::read_options(argc, argv));
}
