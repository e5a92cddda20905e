// Bytes to structs and back, and checksums.
#include <benchmark/benchmark.h>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "samples.h"
#include "wire/codec.h"
#include "wire/frame.h"
#include "wire/icrc.h"

#ifdef MRC_BENCH_LIBDEFLATE
#include <libdeflate.h>
#endif
#ifdef MRC_BENCH_ZLIB
#include <zlib.h>
#endif

namespace mrc::bench {
namespace {

constexpr std::size_t kPayload = 4096;

void parse(benchmark::State& state, const wire::Packet& packet, std::size_t payload_length) {
  const std::vector<std::byte> bytes = to_bytes(packet, payload_length);
  wire::Packet out;
  std::span<const std::byte> payload;
  for (auto _ : state) {
    DropReason drop = wire::parse_transport(bytes, out, payload);
    if (drop != DropReason::kNone) state.SkipWithError("the sample was refused");
    benchmark::DoNotOptimize(out);
  }
  state.SetItemsProcessed(state.iterations());
}

void build(benchmark::State& state, const wire::Packet& packet) {
  std::array<std::byte, wire::kMaxTransportHeader> bytes;
  for (auto _ : state) {
    std::size_t length = wire::build_transport(packet, bytes);
    if (length == 0) state.SkipWithError("the sample was refused");
    benchmark::DoNotOptimize(bytes);
  }
  state.SetItemsProcessed(state.iterations());
}

void parse_write(benchmark::State& state) { parse(state, sample_write(), kPayload); }
void parse_sack(benchmark::State& state) { parse(state, sample_sack(), 0); }
void build_write(benchmark::State& state) { build(state, sample_write()); }
void build_sack(benchmark::State& state) { build(state, sample_sack()); }
BENCHMARK(parse_write);
BENCHMARK(parse_sack);
BENCHMARK(build_write);
BENCHMARK(build_sack);

// --- Checksums ---

std::vector<std::byte> checksum_input(const benchmark::State& state) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(0)));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(i * 131 + 7);
  return bytes;
}

void icrc(benchmark::State& state) {
  const std::vector<std::byte> bytes = checksum_input(state);
  for (auto _ : state) {
    wire::Icrc crc;
    crc.add(bytes);
    std::uint32_t value = crc.value();
    benchmark::DoNotOptimize(value);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

// One way to compute it, where this machine can.
void icrc_by(benchmark::State& state, wire::CrcMethod method) {
  if (!wire::crc_method_available(method)) return state.SkipWithError("not on this machine");
  const std::vector<std::byte> bytes = checksum_input(state);
  for (auto _ : state) {
    std::uint32_t value = wire::crc32_update(0, bytes, method);
    benchmark::DoNotOptimize(value);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(icrc)->Arg(12)->Arg(256)->Arg(4096)->Arg(8192);
BENCHMARK_CAPTURE(icrc_by, table, wire::CrcMethod::kTable)->Arg(12)->Arg(4096);
#if defined(__x86_64__)
BENCHMARK_CAPTURE(icrc_by, four_lanes, wire::CrcMethod::kX86Folded)->Arg(256)->Arg(4096);
BENCHMARK_CAPTURE(icrc_by, sixteen_lanes, wire::CrcMethod::kX86Wide)->Arg(256)->Arg(4096);
#endif

// Other implementations of the same polynomial, where they are installed.
template <typename Checksum>
void checksum_peer(benchmark::State& state, Checksum checksum) {
  const std::vector<std::byte> bytes = checksum_input(state);
  for (auto _ : state) {
    auto value = checksum(bytes);
    benchmark::DoNotOptimize(value);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

#ifdef MRC_BENCH_LIBDEFLATE
void peer_libdeflate(benchmark::State& state) {
  checksum_peer(state, [](std::span<const std::byte> bytes) {
    return libdeflate_crc32(0, bytes.data(), bytes.size());
  });
}
BENCHMARK(peer_libdeflate)->Arg(256)->Arg(4096)->Arg(8192);
#endif

#ifdef MRC_BENCH_ZLIB
void peer_zlib(benchmark::State& state) {
  checksum_peer(state, [](std::span<const std::byte> bytes) {
    return crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  });
}
BENCHMARK(peer_zlib)->Arg(256)->Arg(4096)->Arg(8192);
#endif

}  // namespace
}  // namespace mrc::bench
