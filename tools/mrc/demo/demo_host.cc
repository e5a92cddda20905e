#include "demo/demo_host.h"

#include <algorithm>
#include <stdexcept>

#include "wire/frame.h"

namespace mrc::demo {
namespace {

constexpr std::uint32_t kSendDepth = 64;
constexpr std::uint32_t kReceiveDepth = 128;
constexpr std::uint32_t kQpNumbers = 0xFF'0000;  // how many there are to draw from
constexpr std::uint64_t kKeySalt = 0x6B65'7973;

std::uint8_t dscp_of(const wire::DscpMap& dscp, core::TrafficClass traffic_class) {
  switch (traffic_class) {
    case core::TrafficClass::kControl:
      return dscp.control;
    case core::TrafficClass::kTrimmable:
      return dscp.trimmable;
    case core::TrafficClass::kTrimmableRetransmission:
      return dscp.trimmable_retx;
    case core::TrafficClass::kNoTrim:
      return dscp.no_trim;
  }
  return dscp.no_trim;
}

core::TrimState trim_state(wire::TrimMark mark) {
  switch (mark) {
    case wire::TrimMark::kNone:
      return core::TrimState::kWhole;
    case wire::TrimMark::kTrimmed:
      return core::TrimState::kTrimmed;
    case wire::TrimMark::kTrimmedLastHop:
      return core::TrimState::kTrimmedLastHop;
  }
  return core::TrimState::kWhole;
}

FrameKind kind_of(wire::Opcode opcode) {
  if (wire::is_write(opcode)) return FrameKind::kData;
  return opcode == wire::Opcode::kProbe ? FrameKind::kProbe : FrameKind::kControl;
}

// Locally administered: one range for hosts, one for the switches they are plugged into.
wire::MacAddress host_mac(unsigned host, PortId port) {
  return {0x02, 0, 0, 0, static_cast<std::uint8_t>(host + 1), static_cast<std::uint8_t>(port)};
}
wire::MacAddress leaf_mac(unsigned leaf, PortId plane) {
  return {0x02, 0, 0, 0xF0, static_cast<std::uint8_t>(leaf + 1), static_cast<std::uint8_t>(plane)};
}

unsigned host_of(const Address& address) { return static_cast<unsigned>(address.low) - 1; }

}  // namespace

// --- Set-up

DemoHost::DemoHost(const World& world, unsigned number, std::uint64_t seed)
    : world_(world),
      number_(number),
      memory_(world.transfer, number, seed),
      connections_(world.topology.hosts()),
      sources_(world.topology.hosts()) {
  const unsigned hosts = world.topology.hosts();
  endpoint_ = core::Endpoint::create({.address = endpoint_address(host_address(number)),
                                      .port_count = world.topology.planes(),
                                      .port_bits_per_second = kPortBitsPerSecond,
                                      .seed = seed,
                                      .max_qps = hosts,
                                      .max_peers = hosts,
                                      .max_regions = hosts})
                  .value();
  Prng prng(seed);
  KeySource keys(seed ^ kKeySalt);
  for (unsigned peer = 0; peer < hosts; ++peer) {
    if (peer != number) open_connection(peer, prng, keys);
  }
}

void DemoHost::open_connection(unsigned peer, Prng& prng, KeySource& keys) {
  Connection& connection = connections_[peer];
  const core::MemoryRegion region{.address = HostMemory::receive_address(peer, 0),
                                  .length = world_.transfer.flow_bytes(),
                                  .remote_write = true};
  connection.self.key = endpoint_->register_memory(region, keys).value();
  connection.self.first_psn = Psn(prng.next32());
  core::QpConfig config{.max_sends = kSendDepth, .max_receives = kReceiveDepth};
  Status created;
  do {
    config.number = QpNumber{static_cast<std::uint32_t>(kFirstUsableQp) + prng.below(kQpNumbers)};
    created = endpoint_->create_qp(config);
  } while (created.code() == ErrorCode::kAlreadyExists);
  must(created);
  connection.self.qp = config.number;
  const unsigned others = world_.topology.hosts() - 1;
  must(endpoint_->init_qp(
      config.number,
      {.ev_profile = &world_.profile,
       .hints = {.qps_per_peer = 1, .send_peers = others, .remote_recv_peers = others}}));
}

void DemoHost::connect(unsigned peer, const Introduction& remote) {
  Connection& connection = connections_[peer];
  const QpNumber qp = connection.self.qp;
  connection.remote = remote;
  must(endpoint_->ready_to_receive(qp, {.remote = endpoint_address(host_address(peer)),
                                        .remote_qp = remote.qp,
                                        .first_psn = remote.first_psn,
                                        .path_mtu = kPathMtu}));
  must(endpoint_->ready_to_send(0, qp, {.first_psn = connection.self.first_psn}));
  for (std::uint32_t i = 0; i < kReceiveDepth; ++i)
    must(endpoint_->post_receive(qp, {.id = i}));
}

void DemoHost::must(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.what());
}

// --- The program

void DemoHost::start(TimeNs now) {
  for (unsigned peer = 0; peer < connections_.size(); ++peer) {
    if (peer != number_) post_sends(now, peer);
  }
  pump(now);
}

void DemoHost::post_sends(TimeNs now, unsigned peer) {
  const TransferPlan& plan = world_.transfer;
  Connection& connection = connections_[peer];
  while (connection.posted < plan.messages_per_flow() &&
         connection.posted - connection.completed < kSendDepth) {
    const std::uint32_t message = connection.posted++;
    must(endpoint_->post_send(
        now, connection.self.qp,
        {.id = message,
         .local_address = HostMemory::send_address(peer, plan.offset(message)),
         .length = plan.length(message),
         .remote_address = HostMemory::receive_address(number_, plan.offset(message)),
         .remote_key = connection.remote.key,
         .with_immediate = true,
         .immediate = message}));
  }
}

bool DemoHost::take_completions(TimeNs now) {
  core::Completion completion;
  bool any = false;
  while (endpoint_->next_completion(completion)) {
    any = true;
    const unsigned peer = peer_of(completion.qp);
    if (completion.status != core::CompletionStatus::kSuccess) {
      if (counters_.failures++ == 0) {
        counters_.first_failure = core::completion_status_name(completion.status);
      }
      continue;
    }
    if (completion.kind == core::CompletionKind::kReceive) {
      take_receive(peer, completion);
      continue;
    }
    ++counters_.sends_completed;
    ++connections_[peer].completed;
    post_sends(now, peer);
  }
  return any;
}

// The immediate says that its message is in place, so the bytes are compared here and now.
void DemoHost::take_receive(unsigned peer, const core::Completion& completion) {
  const TransferPlan& plan = world_.transfer;
  Connection& connection = connections_[peer];
  const std::uint32_t expected = connection.received++;
  ++counters_.receives_completed;
  must(endpoint_->post_receive(connection.self.qp, {.id = completion.id}));
  if (completion.immediate != expected || completion.length != plan.length(expected)) {
    ++counters_.immediates_out_of_order;
    return;
  }
  const std::uint64_t offset = plan.offset(expected);
  const auto sent = sources_[peer]->outgoing(number_).subspan(offset, plan.length(expected));
  counters_.early_wrong_bytes += memory_.wrong_bytes(peer, offset, sent);
}

void DemoHost::take_events() {
  core::Event event;
  while (endpoint_->next_event(event)) {
    const bool about_path = event.kind == core::EventKind::kEvState;
    const unsigned peer = about_path ? peer_of(event.qp) : number_;
    world_.measurements.on_event(event, {number_, peer});
  }
}

bool DemoHost::done() const {
  for (unsigned peer = 0; peer < connections_.size(); ++peer) {
    if (peer == number_) continue;
    const Connection& connection = connections_[peer];
    const std::uint32_t all = world_.transfer.messages_per_flow();
    if (connection.completed < all || connection.received < all) return false;
  }
  return true;
}

unsigned DemoHost::peer_of(QpNumber qp) const {
  for (unsigned peer = 0; peer < connections_.size(); ++peer) {
    if (peer != number_ && connections_[peer].self.qp == qp) return peer;
  }
  throw std::logic_error("a completion names a queue pair that does not exist");
}

// --- Packets and time

void DemoHost::on_frame(TimeNs now, const Delivery& delivery) {
  const Frame& frame = world_.network.frames()[delivery.frame];
  wire::FrameHeader header;
  wire::Packet packet;
  std::span<const std::byte> payload;
  const DropReason reason =
      wire::parse_frame(world_.network.format(), frame.bytes(), header, packet, payload);
  if (reason != DropReason::kNone) {
    ++counters_.unreadable_frames;
    endpoint_->count_drop(reason);
    return;
  }
  const core::Arrival arrival{.source = endpoint_address(header.source),
                              .port = delivery.port,
                              .entropy = header.entropy,
                              .congestion_experienced = header.ecn == wire::Ecn::kCe,
                              .trim = trim_state(header.trim),
                              .payload_length = static_cast<std::uint32_t>(payload.size())};
  const core::RxResult result = endpoint_->on_packet(now, arrival, packet);
  if (result.placement.length > 0) {
    memory_.place(result.placement.address, payload.first(result.placement.length));
    world_.measurements.on_placed(now, delivery.port, result.placement.length);
  }
  pump(now);
}

void DemoHost::on_wake(TimeNs now) {
  if (endpoint_->next_deadline() <= now) endpoint_->on_timer(now);
  pump(now);
}

void DemoHost::set_port_up(TimeNs now, PortId port, bool up) {
  must(endpoint_->set_port_up(now, port, up));
  pump(now);
}

PortMask DemoHost::free_ports(TimeNs now) const {
  PortMask ports;
  for (unsigned i = 0; i < world_.topology.planes(); ++i) {
    if (busy_until_[i] <= now) ports = ports.with(static_cast<PortId>(i + 1));
  }
  return ports;
}

// Sends what the engine has for the free ports, takes what it has to say, and asks when to be
// called again.
void DemoHost::pump(TimeNs now) {
  core::TxPacket packet;
  do {
    for (PortMask free = free_ports(now);
         !free.empty() && endpoint_->next_packet(now, free, packet); free = free_ports(now)) {
      transmit(now, packet);
    }
  } while (take_completions(now));
  take_events();
  wake_at_ = endpoint_->next_deadline();
  for (unsigned i = 0; i < world_.topology.planes(); ++i) {
    if (busy_until_[i] > now) wake_at_ = std::min(wake_at_, busy_until_[i]);
  }
}

wire::FrameHeader DemoHost::frame_header(const core::TxPacket& packet) const {
  const unsigned destination = host_of(packet.destination);
  // Packets outside any queue pair bring a port and an entropy value, which is as good as a path.
  const Path path = packet.ev != kNoEv
                        ? world_.topology.path(packet.ev)
                        : Path{packet.port, packet.entropy % world_.topology.spines()};
  wire::FrameHeader header;
  header.source_mac = host_mac(number_, packet.port);
  header.destination_mac = leaf_mac(world_.topology.leaf_of(number_), packet.port);
  header.source = host_address(number_);
  header.destination = host_address(destination);
  header.dscp = dscp_of(world_.network.format().dscp, packet.traffic_class);
  if (packet.traffic_class != core::TrafficClass::kControl) header.ecn = wire::Ecn::kEct0;
  header.entropy = packet.entropy;
  header.srv6 = true;
  header.outer.source = header.source;
  header.outer.carrier = world_.topology.carrier({number_, destination}, path);
  return header;
}

void DemoHost::transmit(TimeNs now, const core::TxPacket& packet) {
  const FrameId id = world_.network.frames().take();
  Frame& frame = world_.network.frames()[id];
  const std::span<const std::byte> payload =
      memory_.payload(packet.local_address, packet.payload_length);
  frame.length = wire::build_frame(world_.network.format(), frame_header(packet), packet.packet,
                                   std::span(&payload, 1), frame.buffer);
  if (frame.length == 0) throw std::logic_error("a packet does not fit its frame");
  frame.kind = kind_of(packet.packet.bth.opcode);
  frame.flow = {number_, host_of(packet.destination)};
  frame.sent_at = now;
  if (frame.kind == FrameKind::kData) world_.measurements.on_data_frame(frame.bytes());
  const auto port = static_cast<std::size_t>(packet.port) - 1;
  busy_until_[port] = world_.network.send(now, number_, packet.port, id);
}

}  // namespace mrc::demo
