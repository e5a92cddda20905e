// mrc_callgrind: a fixed amount of each kind of work with collection switched on around it. Run by
// callgrind.sh, which turns the counts into instructions per packet.
//
// Each operation prints one line "name packets" and leaves one dump with its name.
#include <valgrind/callgrind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "paths.h"
#include "samples.h"
#include "wire/codec.h"
#include "wire/icrc.h"
#include "world.h"

namespace mrc::bench {
namespace {

constexpr unsigned kBatch = 128;
constexpr WorldOptions kLong{.delay_steps = kBatch};
constexpr unsigned kRounds = 60;
constexpr unsigned kWarmUpRounds = 40;
constexpr unsigned kRepeats = 4096;

// Keeps the compiler from dropping work whose result nobody reads.
template <typename T>
void keep(T& value) {
  asm volatile("" : : "r,m"(&value) : "memory");
}

void report(const char* name, std::uint64_t packets) {
  CALLGRIND_DUMP_STATS_AT(name);
  std::printf("%s %llu\n", name, static_cast<unsigned long long>(packets));
}

template <typename Work>
std::uint64_t counted(Work work) {
  CALLGRIND_TOGGLE_COLLECT;
  const std::uint64_t packets = work();
  CALLGRIND_TOGGLE_COLLECT;
  return packets;
}

template <typename Work>
void repeat(const char* name, Work work) {
  work();
  CALLGRIND_ZERO_STATS;
  report(name, counted([&work] {
           for (unsigned i = 0; i < kRepeats; ++i)
             work();
           return kRepeats;
         }));
}

enum class Part { kSend, kReceive, kSettle };

void engine_part(const char* name, const WorldOptions& options, Part part) {
  World world(options);
  std::uint64_t packets = 0;
  for (unsigned round = 0; round < kWarmUpRounds + kRounds; ++round) {
    if (round == kWarmUpRounds) CALLGRIND_ZERO_STATS;
    const bool count = round >= kWarmUpRounds;
    const auto run = [&](Part current, auto work) {
      if (!count || current != part) {
        work();
      } else {
        packets += counted(work);
      }
    };
    run(Part::kSend, [&world] { return world.send(kBatch); });
    world.order_data();
    run(Part::kReceive, [&world] { return world.receive(); });
    world.order_answers();
    run(Part::kSettle, [&world] { return world.settle(); });
  }
  report(name, packets);
  if (!world.healthy()) std::abort();
}

void end_to_end(const char* name, const WorldOptions& options) {
  World world(options);
  world.run_steps(6'000);
  CALLGRIND_ZERO_STATS;
  report(name, counted([&world] { return world.run_steps(8'000); }));
  if (!world.healthy()) std::abort();
}

void choice(const char* name, unsigned evs) {
  Paths paths(evs);
  repeat(name, [&paths] {
    EvIndex ev = paths.set().choose(Paths::ports(), kNoEv);
    keep(ev);
  });
}

void codec(const char* parse_name, const char* build_name, const wire::Packet& packet,
           std::size_t payload_length) {
  const std::vector<std::byte> bytes = to_bytes(packet, payload_length);
  repeat(parse_name, [&bytes] {
    wire::Packet out;
    std::span<const std::byte> payload;
    if (wire::parse_transport(bytes, out, payload) != DropReason::kNone) std::abort();
    keep(out);
  });
  repeat(build_name, [&packet] {
    std::array<std::byte, wire::kMaxTransportHeader> out;
    if (wire::build_transport(packet, out) == 0) std::abort();
    keep(out);
  });
}

void checksum(const char* name, wire::CrcMethod method) {
  const std::vector<std::byte> bytes(4096, std::byte{0x5A});
  repeat(name, [&bytes, method] {
    std::uint32_t crc = wire::crc32_update(0, bytes, method);
    keep(crc);
  });
}

void run(bool table_checksum) {
  engine_part("send", kLong, Part::kSend);
  engine_part("receive_in_order", {.delay_steps = kBatch, .sprayed = false}, Part::kReceive);
  engine_part("receive_sprayed", kLong, Part::kReceive);
  engine_part("sack", kLong, Part::kSettle);
  choice("ev_choice_128", 128);
  choice("ev_choice_1024", 1024);
  codec("parse_write", "build_write", sample_write(), 4096);
  codec("parse_sack", "build_sack", sample_sack(), 0);
  if (!table_checksum) checksum("icrc_4096", wire::best_crc_method());
  checksum("icrc_4096_table", wire::CrcMethod::kTable);
  end_to_end("end_to_end", {});
  end_to_end("end_to_end_4_kib_messages", {.message_bytes = 4096});
}

}  // namespace
}  // namespace mrc::bench

int main(int argc, char** argv) {
  const bool table = argc > 1 && std::strcmp(argv[1], "--table-checksum") == 0;
  if (argc > 1 && !table) {
    std::fprintf(stderr, "usage: mrc_callgrind [--table-checksum]\n");
    return 2;
  }
  mrc::bench::run(table);
  return 0;
}
