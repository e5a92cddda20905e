// A back end inside one process, for tests of the engine: every packet is built and parsed as on a
// wire, and a test decides which ones get lost.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "nic/io/backend.h"
#include "wire/codec.h"

namespace mrc::nic::test {

struct LoopPacket {
  wire::IpAddress source;
  PortId port{1};
  std::uint32_t entropy = 0;
  std::vector<std::byte> transport;
  core::TrafficClass traffic_class{};
  std::optional<std::uint8_t> dscp;
};

// Carries packets between the back ends that joined it. Any thread.
class LoopNet {
 public:
  // Asked for every packet; true: it gets lost.
  using Filter = std::function<bool(const wire::Packet&, PortId, std::uint32_t entropy)>;
  // The filter holds as long as this, so that what it refers to outlives it: devices go on sending
  // until they are closed.
  class FilterScope {
   public:
    FilterScope(LoopNet& net, Filter filter) : net_(net) { net_.set_filter(std::move(filter)); }
    ~FilterScope() { end(); }
    FilterScope(const FilterScope&) = delete;
    FilterScope& operator=(const FilterScope&) = delete;
    void end() { net_.set_filter({}); }

   private:
    LoopNet& net_;
  };

  struct Box {
    std::deque<LoopPacket> packets;
    int signal = -1;
    std::size_t room = SIZE_MAX;  // packets
    std::uint64_t overflow = 0;
  };

  void join(const wire::IpAddress& gid, int signal) {
    const std::lock_guard lock(mutex_);
    boxes_[gid].signal = signal;
  }
  void leave(const wire::IpAddress& gid) {
    const std::lock_guard lock(mutex_);
    boxes_.erase(gid);
  }
  void deliver(const wire::IpAddress& to, const wire::Packet& packet, LoopPacket bytes) {
    const std::lock_guard lock(mutex_);
    const auto box = boxes_.find(to);
    if (box == boxes_.end()) return;
    if (filter_ && filter_(packet, bytes.port, bytes.entropy)) return;
    if (box->second.packets.size() >= box->second.room) {
      ++box->second.overflow;
      return;
    }
    if (bytes.traffic_class == core::TrafficClass::kTrimmable) ++trimmable_;
    if (bytes.traffic_class != core::TrafficClass::kControl) data_dscp_ = bytes.dscp;
    box->second.packets.push_back(std::move(bytes));
    if (box->second.packets.size() == 1) eventfd_write(box->second.signal, 1);
  }
  // Like a socket's buffer: what finds no room is dropped and counted.
  void set_room(const wire::IpAddress& gid, std::size_t packets) {
    const std::lock_guard lock(mutex_);
    boxes_[gid].room = packets;
  }
  std::uint64_t overflow(const wire::IpAddress& gid) {
    const std::lock_guard lock(mutex_);
    return boxes_[gid].overflow;
  }
  // What the last data packet was to carry instead of the device's code point.
  std::optional<std::uint8_t> data_dscp() {
    const std::lock_guard lock(mutex_);
    return data_dscp_;
  }
  unsigned trimmable() {  // packets so far
    const std::lock_guard lock(mutex_);
    return trimmable_;
  }
  bool take(const wire::IpAddress& gid, LoopPacket& out) {
    const std::lock_guard lock(mutex_);
    Box& box = boxes_[gid];
    if (box.packets.empty()) return false;
    out = std::move(box.packets.front());
    box.packets.pop_front();
    if (box.packets.empty()) {
      eventfd_t count = 0;
      eventfd_read(box.signal, &count);
    }
    return true;
  }

 private:
  void set_filter(Filter filter) {
    const std::lock_guard lock(mutex_);
    filter_ = std::move(filter);
  }

  std::mutex mutex_;
  std::map<wire::IpAddress, Box> boxes_;
  unsigned trimmable_ = 0;
  std::optional<std::uint8_t> data_dscp_;
  Filter filter_;
};

class LoopBackend final : public Backend {
 public:
  LoopBackend(std::shared_ptr<LoopNet> net, const wire::IpAddress& gid, unsigned ports,
              unsigned burst = 1)
      : net_(std::move(net)),
        gid_(gid),
        ports_(ports),
        burst_(burst),
        signal_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    net_->join(gid_, signal_);
  }
  ~LoopBackend() override {
    net_->leave(gid_);
    close(signal_);
  }

  ProcessNumber process_number() const override { return 0; }
  unsigned port_count() const override { return ports_; }
  std::uint32_t path_mtu() const override { return 4096; }
  std::uint64_t port_bits_per_second() const override { return 10'000'000'000; }
  PortMask link_up() const override { return PortMask::first(ports_); }
  PortMask free_ports() const override { return PortMask::first(ports_); }
  Result<std::uint32_t> prepare_path(PortId, std::uint32_t entropy) override { return entropy; }
  std::uint64_t receive_buffer_bytes() const override { return 0; }
  unsigned burst_limit() const override { return burst_; }
  int wait_descriptor() const override { return signal_; }
  void on_wake() override {}
  const BackendCounters& counters() const override { return counters_; }
  void flush() override {}

  void send(const Route& route, core::TrafficClass traffic_class, const wire::Packet& packet,
            wire::PayloadPieces payload) override {
    std::size_t length = 0;
    for (const auto& piece : payload)
      length += piece.size();
    std::array<std::byte, wire::kMaxTransportHeader> header;
    const std::size_t head = wire::build_transport(packet, header);
    LoopPacket bytes{.source = gid_,
                     .port = route.port,
                     .entropy = route.entropy,
                     .transport = {},
                     .traffic_class = traffic_class,
                     .dscp = route.dscp};
    bytes.transport.reserve(head + length + 3);
    bytes.transport.assign(header.begin(), header.begin() + static_cast<std::ptrdiff_t>(head));
    for (const auto& piece : payload)
      bytes.transport.insert(bytes.transport.end(), piece.begin(), piece.end());
    bytes.transport.resize(bytes.transport.size() + wire::pad_length(length));
    ++counters_.packets_sent;
    net_->deliver(route.peer.gid, packet, std::move(bytes));
  }

  unsigned receive(Receiver& receiver, unsigned budget) override {
    LoopPacket packet;
    unsigned count = 0;
    for (; count < budget && net_->take(gid_, packet); ++count) {
      ++counters_.packets_received;
      receiver.on_received({.gid = packet.source,
                            .port = packet.port,
                            .entropy = packet.entropy,
                            .transport = packet.transport});
    }
    counters_.receive_overflow = net_->overflow(gid_);
    return count;
  }

 private:
  std::shared_ptr<LoopNet> net_;
  wire::IpAddress gid_;
  unsigned ports_;
  unsigned burst_;
  int signal_;
  BackendCounters counters_;
};

}  // namespace mrc::nic::test
