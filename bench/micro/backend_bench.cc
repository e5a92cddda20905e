// The UDP back end on loopback, one thread that sends and receives: packets and bytes per second.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "nic/io/backend.h"
#include "node/config.h"
#include "wire/codec.h"

namespace mrc {
namespace {

class Counter : public nic::Receiver {
 public:
  void on_received(const nic::Received& received) override {
    good += received.icrc_good ? 1 : 0;
    bytes += received.transport.size();
  }
  void on_dropped(DropReason /*reason*/) override {}
  std::uint64_t good = 0;
  std::uint64_t bytes = 0;
};

struct Ends {
  Ends() : config(node::default_device()) {
    config.udp_port = 21'000;
    a = nic::open_backend(config).backend;
    b = nic::open_backend(config).backend;
    if (a == nullptr || b == nullptr) {
      std::fputs("no loopback device\n", stderr);
      std::exit(1);
    }
  }
  node::DeviceConfig config;
  std::unique_ptr<nic::Backend> a;
  std::unique_ptr<nic::Backend> b;
};

wire::Packet write_packet(std::size_t length) {
  wire::Packet packet;
  packet.bth.opcode = wire::Opcode::kWriteOnly;
  packet.bth.destination = QpNumber{3};
  wire::Write write;
  write.message_length = static_cast<std::uint32_t>(length);
  packet.body = write;
  return packet;
}

// `payload` bytes each, `burst` packets in a row on one path, paths on all four planes in turn.
void bm_loopback(benchmark::State& state) {
  Ends ends;
  const auto payload = static_cast<std::size_t>(state.range(0));
  const auto burst = static_cast<std::size_t>(state.range(1));
  std::vector<nic::Route> routes;
  for (unsigned i = 0; i < 32; ++i) {
    const auto port = static_cast<PortId>(i % 4 + 1);
    routes.push_back(
        {.peer = {.gid = ends.config.planes[0].address, .process = ends.b->process_number()},
         .port = port,
         .entropy = ends.a->prepare_path(port, 0xC000 + i).value()});
  }
  const std::vector<std::byte> memory(1 << 20, std::byte{7});
  const wire::Packet packet = write_packet(payload);
  Counter counter;
  std::uint64_t sent = 0;
  std::size_t path = 0;
  std::size_t at = 0;
  for (auto _ : state) {
    const nic::Route& route = routes[path++ % routes.size()];
    for (std::size_t i = 0; i < burst; ++i) {
      if (at + payload > memory.size()) at = 0;
      const auto piece = std::span(memory).subspan(at, payload);
      at += payload;
      ends.a->send(route, core::TrafficClass::kTrimmable, packet, {&piece, 1});
    }
    ends.a->flush();
    sent += burst;
    while (counter.good < sent)
      ends.b->receive(counter, 64);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(sent));
  state.SetBytesProcessed(static_cast<std::int64_t>(sent * payload));
}
BENCHMARK(bm_loopback)
    ->ArgNames({"payload", "burst"})
    ->Args({64, 1})
    ->Args({64, 16})
    ->Args({1024, 1})
    ->Args({1024, 16})
    ->Args({4096, 1})
    ->Args({4096, 4})
    ->Args({4096, 15})
    ->Args({8192, 7});

// What an idle poller pays per look.
void bm_nothing_to_receive(benchmark::State& state) {
  Ends ends;
  Counter counter;
  for (auto _ : state)
    benchmark::DoNotOptimize(ends.b->receive(counter, 64));
}
BENCHMARK(bm_nothing_to_receive);

}  // namespace
}  // namespace mrc

BENCHMARK_MAIN();
