// Devices on loopback addresses that no other test uses, and a receiver that remembers everything.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nic/io/backend.h"
#include "node/config.h"
#include "wire/codec.h"

namespace mrc::nic::test {

struct Arrived {
  wire::IpAddress gid;
  PortId port{};
  std::uint32_t entropy = 0;
  bool congestion_experienced = false;
  core::TrimState trim{};
  bool icrc_good = true;
  std::vector<std::byte> transport;
};

class Collector : public Receiver {
 public:
  void on_received(const Received& received) override {
    runs.push_back(received.run);
    for (unsigned i = 0; i < received.run; ++i) {
      const std::byte* const start = received.transport.data() + i * received.stride;
      arrived.push_back({received.gid,
                         received.port,
                         received.entropy,
                         received.congestion_experienced,
                         received.trim,
                         received.icrc_good,
                         {start, start + received.transport.size()}});
    }
  }
  void on_dropped(DropReason reason) override { dropped.push_back(reason); }

  std::size_t total() const { return arrived.size() + dropped.size(); }

  std::vector<Arrived> arrived;
  std::vector<unsigned> runs;  // how many of them were handed out together
  std::vector<DropReason> dropped;
};

// Address `host` of plane `plane` in a network of 28 bits that belongs to this test program alone.
inline wire::IpAddress private_address(unsigned plane, unsigned host) {
  const auto pid = static_cast<std::uint32_t>(::getpid());
  const std::uint32_t network = 0x7F00'0000U | (64U + (pid >> 8) % 128U) << 16 | (pid & 0xFF) << 8;
  return wire::ipv4_address(network | plane << 4 | host);
}

inline node::DeviceConfig private_device(unsigned planes, unsigned host = 1) {
  node::DeviceConfig config;
  for (unsigned plane = 0; plane < planes; ++plane) {
    config.planes.push_back({.interface = {},
                             .address = private_address(plane, host),
                             .prefix_bits = 28,
                             .wire_path = {}});
  }
  return config;
}

inline std::unique_ptr<Backend> must_open(const node::DeviceConfig& config) {
  BackendResult result = open_backend(config);
  EXPECT_EQ(result.error, "");
  EXPECT_NE(result.backend, nullptr);
  return std::move(result.backend);
}

// Receives until `count` packets have come, for at most ten seconds.
inline bool collect(Backend& backend, Collector& collector, std::size_t count) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (collector.total() < count) {
    if (std::chrono::steady_clock::now() > end) return false;
    if (backend.receive(collector, 64) > 0) continue;
    pollfd descriptor{.fd = backend.wait_descriptor(), .events = POLLIN, .revents = 0};
    ::poll(&descriptor, 1, 100);
    backend.on_wake();
  }
  return true;
}

// Bytes that differ by position.
inline std::vector<std::byte> pattern(std::size_t length, unsigned seed = 1) {
  std::vector<std::byte> bytes(length);
  std::uint32_t state = seed;
  for (std::byte& byte : bytes) {
    state = state * 1'664'525 + 1'013'904'223;
    byte = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

inline wire::Packet write_packet(std::uint32_t psn, std::size_t length) {
  wire::Packet packet;
  packet.bth.opcode = wire::Opcode::kWriteOnly;
  packet.bth.destination = QpNumber{0x123};
  packet.bth.psn = Psn(psn);
  wire::Write write;
  write.address = 0x1000;
  write.message_length = static_cast<std::uint32_t>(length);
  packet.body = write;
  return packet;
}

inline Route route_to(const Backend& peer, const wire::IpAddress& gid, unsigned port,
                      std::uint32_t entropy) {
  return {.peer = {.gid = gid, .process = peer.process_number()},
          .port = static_cast<PortId>(port),
          .entropy = entropy};
}

inline void send_bytes(Backend& from, const Route& route, const wire::Packet& packet,
                       std::span<const std::byte> payload,
                       core::TrafficClass traffic_class = core::TrafficClass::kTrimmable) {
  from.send(route, traffic_class, packet, {&payload, 1});
}

// Two devices and their back ends.
struct Ends {
  Ends(node::DeviceConfig first, node::DeviceConfig second)
      : one(std::move(first)), two(std::move(second)), a(must_open(one)), b(must_open(two)) {}
  Route to_b(unsigned port, std::uint32_t entropy) const {
    return route_to(*b, two.planes[0].address, port, entropy);
  }

  node::DeviceConfig one;
  node::DeviceConfig two;
  std::unique_ptr<Backend> a;
  std::unique_ptr<Backend> b;
};

}  // namespace mrc::nic::test
