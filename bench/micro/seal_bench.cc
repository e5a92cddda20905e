// What sealing costs a packet, on the way out and on the way in, and what a stranger's costs us.
#include <benchmark/benchmark.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "samples.h"
#include "seal/opener.h"
#include "seal/sealer.h"
#include "wire/codec.h"
#include "wire/ip_address.h"

namespace mrc::bench {
namespace {

using seal::Extent;
using seal::OpenResult;
using seal::Suite;

seal::KeyRingRef ring_of(unsigned salt) {
  const auto crypto = seal::Crypto::load();
  if (!crypto.ok()) return nullptr;
  seal::ClusterKey key;
  key.secret.bytes.fill(static_cast<std::byte>(salt));
  return std::make_shared<const seal::KeyRing>(*crypto.value(), seal::ClusterKeys{key});
}

seal::Flow sample_flow() {
  return {seal::gid_of(wire::ipv4_address(0x0A00'0001)),
          seal::gid_of(wire::ipv4_address(0x0A00'0002))};
}

// A write of so many bytes, and where it is sealed to.
struct Work {
  explicit Work(std::size_t payload_length)
      : payload(payload_length), sealed(payload_length + 256) {
    header_length = wire::build_transport(sample_write(), header);
  }
  std::size_t seal_with(seal::Sealer& sealer) {
    const std::span<const std::byte> piece(payload);
    return sealer.seal(std::span(header).first(header_length), {&piece, 1}, 0, sealed);
  }

  std::array<std::byte, wire::kMaxTransportHeader> header{};
  std::size_t header_length = 0;
  std::vector<std::byte> payload;
  std::vector<std::byte> sealed;
};

void seal_write(benchmark::State& state, Suite suite) {
  const seal::KeyRingRef ring = ring_of(1);
  if (ring == nullptr) return state.SkipWithError("libcrypto.so.3 does not load");
  seal::Sealer sealer(ring, sample_flow(), {.suite = suite});
  Work work(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    std::size_t length = work.seal_with(sealer);
    benchmark::DoNotOptimize(length);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

// Sealing what is opened is not counted.
void open_write(benchmark::State& state, Suite suite) {
  constexpr std::size_t kBatch = 256;
  const seal::KeyRingRef ring = ring_of(1);
  if (ring == nullptr) return state.SkipWithError("libcrypto.so.3 does not load");
  seal::Sealer sealer(ring, sample_flow(), {.suite = suite});
  seal::Opener opener(ring, sample_flow().destination);
  Work work(static_cast<std::size_t>(state.range(0)));
  std::vector<std::vector<std::byte>> batch(kBatch);
  std::size_t left = 0;
  std::span<std::byte> transport;
  for (auto _ : state) {
    if (left == 0) {
      state.PauseTiming();
      for (auto& datagram : batch) {
        const std::size_t length = work.seal_with(sealer);
        datagram.assign(work.sealed.begin(),
                        work.sealed.begin() + static_cast<std::ptrdiff_t>(length));
      }
      left = kBatch;
      state.ResumeTiming();
    }
    auto& datagram = batch[kBatch - left--];
    if (opener.open(sample_flow().source, datagram, Extent::kWhole, transport) !=
        OpenResult::kOpened) {
      state.SkipWithError("a sample was refused");
    }
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void refuse_stranger(benchmark::State& state) {
  const seal::KeyRingRef ring = ring_of(1);
  if (ring == nullptr) return state.SkipWithError("libcrypto.so.3 does not load");
  seal::Sealer stranger(ring_of(2), sample_flow());
  seal::Opener opener(ring, sample_flow().destination);
  Work work(4096);
  const std::size_t length = work.seal_with(stranger);
  std::span<std::byte> transport;
  for (auto _ : state) {
    OpenResult result = opener.open(sample_flow().source, std::span(work.sealed).first(length),
                                    Extent::kWhole, transport);
    if (result != OpenResult::kBadHeaderTag) state.SkipWithError("a stranger came in");
  }
}

void seal_aes(benchmark::State& state) { seal_write(state, Suite::kAes128Gcm); }
void open_aes(benchmark::State& state) { open_write(state, Suite::kAes128Gcm); }
void seal_chacha(benchmark::State& state) { seal_write(state, Suite::kChaCha20Poly1305); }
void open_chacha(benchmark::State& state) { open_write(state, Suite::kChaCha20Poly1305); }
BENCHMARK(seal_aes)->Arg(64)->Arg(4096);
BENCHMARK(open_aes)->Arg(64)->Arg(4096);
BENCHMARK(seal_chacha)->Arg(64)->Arg(4096);
BENCHMARK(open_chacha)->Arg(64)->Arg(4096);
BENCHMARK(refuse_stranger);

}  // namespace
}  // namespace mrc::bench
