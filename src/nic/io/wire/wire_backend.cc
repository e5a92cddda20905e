#include "nic/io/wire/wire_backend.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <set>
#include <vector>

#include "nic/io/security.h"
#include "nic/io/traffic_class.h"
#include "nic/io/wire/source_ports.h"
#include "nic/io/wire/wire_cable.h"
#include "nic/io/wire/wire_interface_cable.h"
#include "nic/io/wire/wire_process.h"
#include "nic/io/wire/wire_tunnel.h"
#include "nic/io/wire/wire_unix_cable.h"
#include "os/clock.h"
#include "os/interfaces.h"
#include "wire/codec.h"
#include "wire/datagram_frame.h"
#include "wire/reader.h"

namespace mrc::nic {
namespace {

constexpr std::uint32_t kDefaultPathMtu = 4'096;
constexpr std::uint64_t kDefaultBitsPerSecond = 100'000'000'000;
constexpr std::size_t kReceiveSlots = 32;
// In front of a payload at most: a tunnel with a routing header, IPv6, UDP, the headers of a write.
constexpr std::uint32_t kMostHeaders = 40 + 24 + 40 + 8 + 40;
static_assert(wire::kEthernetHeaderLength + kMostHeaders + core::kMaxPathMtu +
                  seal::kSealOverhead <=
              kMaxFrameBytes);
constexpr std::uint32_t kTimerTag = 0xFFFF;
constexpr std::uint32_t kInterfacesTag = 0xFFFE;
// What a cable may hold back of ours: long enough for the engine to be away, short enough for
// control packets behind it, and because what waits there cannot take another path any more.
constexpr std::uint64_t kSendBufferPerSecond = 500;  // 2 ms
constexpr std::uint64_t kMinSendBufferBytes = 64 << 10;
constexpr std::uint64_t kMaxSendBufferBytes = 4 << 20;

bool is_lack_of_room(int error) { return error == EAGAIN || error == ENOBUFS || error == ENOMEM; }

// Locally administered, and different for every host and plane; switches go by IP addresses.
wire::MacAddress mac_of(const wire::IpAddress& address, PortId port) {
  wire::MacAddress mac{0x02, static_cast<std::uint8_t>(port)};
  const std::size_t end = address.is_v4 ? 4 : 16;
  std::copy_n(address.bytes.begin() + static_cast<std::ptrdiff_t>(end - 4), 4, mac.begin() + 2);
  return mac;
}

std::uint32_t send_buffer_bytes(std::uint64_t bits_per_second) {
  return static_cast<std::uint32_t>(std::clamp(bits_per_second / 8 / kSendBufferPerSecond,
                                               kMinSendBufferBytes, kMaxSendBufferBytes));
}

class WireBackend final : public Backend {
 public:
  explicit WireBackend(const node::DeviceConfig& config);
  std::string open();

  ProcessNumber process_number() const override { return process_.number(); }
  unsigned port_count() const override { return static_cast<unsigned>(cables_.size()); }
  std::uint32_t path_mtu() const override { return path_mtu_; }
  std::uint64_t port_bits_per_second() const override {
    return config_.port_bits_per_second == 0 ? kDefaultBitsPerSecond : config_.port_bits_per_second;
  }
  PortMask link_up() const override { return link_up_; }
  PortMask free_ports() const override;
  Result<std::uint32_t> prepare_path(PortId port, std::uint32_t entropy) override;
  void keep_paths(std::span<const core::EvEntry> needed) override;
  std::optional<wire::IpAddress> carrier_of(PortId port, const wire::IpAddress& gid,
                                            std::uint32_t entropy) const override;
  void send(const Route& route, core::TrafficClass traffic_class, const wire::Packet& packet,
            wire::PayloadPieces payload) override;
  void flush() override;
  // Of each cable's own making.
  std::uint64_t receive_buffer_bytes() const override { return 0; }
  unsigned burst_limit() const override { return 1; }  // frames of any path share a call
  unsigned receive(Receiver& receiver, unsigned budget) override;
  int wait_descriptor() const override { return epoll_.get(); }
  void on_wake() override;
  const BackendCounters& counters() const override { return counters_; }
  seal::Stance stance() const override { return security_.stance(); }
  std::vector<std::string> take_notices() override { return security_.take_notices(); }

 private:
  bool shares_port() const { return config_.dialect.processes == wire::Processes::kByQueuePair; }
  bool is_ours(std::span<const std::byte> transport) const;
  std::uint16_t receive_port_number() const {
    return static_cast<std::uint16_t>(config_.udp_port + (shares_port() ? 0 : process_number()));
  }
  std::string open_cable(unsigned index);
  std::string measure_interfaces();
  wire::FrameHeader header_for(const Route& route, core::TrafficClass traffic_class) const;
  void watch(int descriptor, std::uint32_t events, std::uint32_t tag);
  void send_waiting(unsigned index);
  void disconnect(unsigned index);
  void advance_cables();
  void check_interfaces();
  void look_after_security();
  void arm_timer();
  unsigned receive_port(unsigned index, Receiver& receiver, unsigned budget);
  wire::FrameFormat format_for(std::uint16_t udp_port) const;
  std::size_t build(const Route& route, core::TrafficClass traffic_class,
                    const wire::Packet& packet, wire::PayloadPieces payload,
                    std::span<std::byte> room);
  DropReason open_plain(std::span<std::byte> frame, wire::FrameHeader& header, Received& received);
  DropReason open_sealed(std::span<std::byte> frame, wire::FrameHeader& header, Received& received);
  void take_frame(unsigned index, std::span<std::byte> frame, Receiver& receiver);

  node::DeviceConfig config_;
  wire::IpAddress gid_;
  os::Descriptor epoll_;
  os::Descriptor timer_;
  WireProcess process_;
  Security security_;
  TimeNs next_look_ = 0;  // at the keys
  WireTunnel tunnel_;
  SourcePorts source_ports_;  // of IPv4
  os::InterfaceWatch interfaces_;
  bool has_interfaces_ = false;
  std::uint32_t path_mtu_ = kDefaultPathMtu;
  std::vector<std::unique_ptr<WireCable>> cables_;
  BackendCounters counters_;
  PortMask link_up_;
  PortMask blocked_;
  std::unique_ptr<std::byte[]> buffers_;
};

WireBackend::WireBackend(const node::DeviceConfig& config)
    : config_(config),
      gid_(config.planes[0].address),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      tunnel_(config),
      buffers_(std::make_unique_for_overwrite<std::byte[]>(kReceiveSlots * kMaxFrameBytes)) {}

std::string WireBackend::open() {
  if (!epoll_.valid() || !timer_.valid()) return config_.name + ": " + std::strerror(errno);
  if (config_.payload_check != node::PayloadCheck::kFull) {
    return config_.name +
           ": payload_check = headers needs the udp back end: frames of this one "
           "have no checksum but the ICRC";
  }
  std::string trouble = security_.open(config_);
  if (!trouble.empty()) return trouble;
  if (!process_.take(config_)) {
    return config_.name + ": 256 processes use this cable already, which is the limit";
  }
  watch(timer_.get(), EPOLLIN, kTimerTag);
  for (unsigned i = 0; i < config_.planes.size(); ++i) {
    const std::string error = open_cable(i);
    if (!error.empty()) return config_.name + ": " + error;
  }
  if (has_interfaces_ && interfaces_.works())
    watch(interfaces_.descriptor(), EPOLLIN, kInterfacesTag);
  advance_cables();
  return measure_interfaces();
}

// Sockets take what we send; interfaces have a limit.
std::string WireBackend::measure_interfaces() {
  const std::uint32_t wanted = config_.path_mtu == 0 ? core::kMinPathMtu : config_.path_mtu;
  path_mtu_ = config_.path_mtu == 0 ? kDefaultPathMtu : config_.path_mtu;
  for (const node::PlaneConfig& plane : config_.planes) {
    const std::uint32_t mtu = plane.wire_path.empty() ? os::interface_mtu(plane.interface) : 0;
    if (mtu == 0) continue;
    const std::uint32_t others = kMostHeaders + static_cast<std::uint32_t>(security_.added_bytes());
    const std::uint32_t fits = mtu > others ? (mtu - others) / 4 * 4 : 0;
    if (fits < wanted) {
      return config_.name + ": packets of " + std::to_string(wanted) + " bytes do not fit " +
             plane.interface + ", whose MTU of " + std::to_string(mtu) + " leaves " +
             std::to_string(fits);
    }
    if (config_.path_mtu == 0) path_mtu_ = std::min(path_mtu_, std::bit_floor(fits));
  }
  return {};
}

std::string WireBackend::open_cable(unsigned index) {
  const node::PlaneConfig& plane = config_.planes[index];
  if (plane.wire_path.empty()) {
    has_interfaces_ = true;
    auto cable = std::make_unique<WireInterfaceCable>();
    std::string error = cable->open({.interface = plane.interface,
                                     .is_v4 = gid_.is_v4,
                                     .udp_port = receive_port_number(),
                                     .send_buffer_bytes = static_cast<std::uint32_t>(std::clamp(
                                         port_bits_per_second() / 8 / kSendBufferPerSecond,
                                         kMinSendBufferBytes, kMaxSendBufferBytes))});
    cables_.push_back(std::move(cable));
    return error;
  }
  auto cable = std::make_unique<WireUnixCable>();
  std::string error = cable->open(plane.wire_path, send_buffer_bytes(port_bits_per_second()));
  if (cable->listener() >= 0) watch(cable->listener(), EPOLLIN, index);
  cables_.push_back(std::move(cable));
  return error;
}

void WireBackend::watch(int descriptor, std::uint32_t events, std::uint32_t tag) {
  epoll_event event{};
  event.events = events;
  event.data.u32 = tag;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0 && errno == EEXIST) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event);
  }
}

// Connects what is due, and sees to it that on_wake() comes in time for the rest. A listener that
// has its connection is not asked again until that is gone, so a second one must not keep it awake.
void WireBackend::advance_cables() {
  const TimeNs now = os::monotonic_now();
  for (unsigned i = 0; i < cables_.size(); ++i) {
    WireCable& cable = *cables_[i];
    if (!cable.advance(now)) continue;
    watch(cable.connection(), EPOLLIN, i);
    if (cable.listener() >= 0) watch(cable.listener(), 0, i);
    link_up_ = link_up_.with(static_cast<PortId>(i + 1));
  }
  arm_timer();
}

void WireBackend::check_interfaces() {
  interfaces_.changed();
  for (unsigned i = 0; i < cables_.size(); ++i) {
    if (cables_[i]->lost()) disconnect(i);
  }
  advance_cables();
}

void WireBackend::arm_timer() {
  TimeNs next = kNever;
  for (const auto& cable : cables_) {
    if (!cable->connected()) next = std::min(next, cable->next_attempt());
  }
  itimerspec when{};
  if (next != kNever) {
    next = std::max<TimeNs>(next, 1);
    when.it_value = {.tv_sec = next / kSecondNs, .tv_nsec = next % kSecondNs};
  }
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void WireBackend::disconnect(unsigned index) {
  const auto port = static_cast<PortId>(index + 1);
  counters_.send_refused += cables_[index]->disconnect(os::monotonic_now());
  link_up_ = link_up_.without(port);
  blocked_ = blocked_.without(port);
  if (cables_[index]->listener() >= 0) watch(cables_[index]->listener(), EPOLLIN, index);
  // A socket that outlives its link has nothing to say until the link is back.
  if (cables_[index]->connection() >= 0) watch(cables_[index]->connection(), 0, index);
  arm_timer();
}

PortMask WireBackend::free_ports() const { return link_up_ - blocked_; }

Result<std::uint32_t> WireBackend::prepare_path(PortId port, std::uint32_t entropy) {
  if (static_cast<std::size_t>(port) - 1 >= cables_.size()) {
    return Status(ErrorCode::kInvalidArgument, "no such port");
  }
  if (gid_.is_v4) return std::uint32_t{source_ports_.of(entropy)};
  tunnel_.prepare(port, entropy);
  return entropy;
}

void WireBackend::keep_paths(std::span<const core::EvEntry> needed) {
  std::set<std::uint16_t> ports;
  for (const core::EvEntry& path : needed)
    ports.insert(static_cast<std::uint16_t>(path.entropy & 0xFFFF));
  source_ports_.keep(ports);
}

std::optional<wire::IpAddress> WireBackend::carrier_of(PortId port, const wire::IpAddress& gid,
                                                       std::uint32_t entropy) const {
  wire::IpAddress carrier;
  if (!tunnel_.find_carrier(port, gid, entropy, carrier)) return std::nullopt;
  return carrier;
}

wire::FrameHeader WireBackend::header_for(const Route& route,
                                          core::TrafficClass traffic_class) const {
  wire::FrameHeader header;
  const wire::MacAddress& next_hop =
      config_.planes[static_cast<std::size_t>(route.port) - 1].next_hop_mac;
  header.destination_mac =
      next_hop == wire::MacAddress{} ? mac_of(route.peer.gid, route.port) : next_hop;
  header.source_mac = mac_of(gid_, route.port);
  header.source = gid_;
  header.destination = route.peer.gid;
  header.dscp = route.dscp.value_or(dscp_of(config_.dscp, traffic_class));
  header.ecn = ecn_of(traffic_class);
  header.entropy = route.entropy;
  header.outer.source = gid_;
  if (route.srv6 == nullptr) {
    header.srv6 =
        tunnel_.find_carrier(route.port, route.peer.gid, route.entropy, header.outer.carrier);
    return header;
  }
  header.srv6 = true;
  header.outer.carrier = wire::ev_carrier(*route.srv6);
  const wire::IpAddress segment = wire::ev_segment(*route.srv6);
  header.outer.has_segment = segment != wire::IpAddress{};
  if (header.outer.has_segment) header.outer.segment = {.address = segment, .left = 1};
  return header;
}

void WireBackend::send(const Route& route, core::TrafficClass traffic_class,
                       const wire::Packet& packet, wire::PayloadPieces payload) {
  const std::size_t index = static_cast<std::size_t>(route.port) - 1;
  const bool fits = index < cables_.size() && route.peer.gid.is_v4 == gid_.is_v4 &&
                    (route.srv6 == nullptr || !gid_.is_v4) &&
                    config_.udp_port + unsigned{route.peer.process} <= 0xFFFF;
  std::span<std::byte> room;
  if (fits) {
    room = cables_[index]->claim();
    if (room.empty()) send_waiting(static_cast<unsigned>(index));
    if (room.empty()) room = cables_[index]->claim();
  }
  const std::size_t length = room.empty() ? 0 : build(route, traffic_class, packet, payload, room);
  if (length == 0) {
    ++counters_.send_refused;
    return;
  }
  cables_[index]->commit(length);
}

wire::FrameFormat WireBackend::format_for(std::uint16_t udp_port) const {
  wire::FrameFormat format;
  format.dscp = config_.dscp;
  format.dialect = config_.dialect;
  format.udp_port = udp_port;
  return format;
}

// Writes the whole frame; 0 if that cannot be.
std::size_t WireBackend::build(const Route& route, core::TrafficClass traffic_class,
                               const wire::Packet& packet, wire::PayloadPieces payload,
                               std::span<std::byte> room) {
  const wire::FrameFormat format =
      format_for(static_cast<std::uint16_t>(config_.udp_port + route.peer.process));
  const wire::FrameHeader header = header_for(route, traffic_class);
  seal::Sealer* const sealer = security_.sealer(route.peer);
  if (sealer == nullptr) return wire::build_frame(format, header, packet, payload, room);
  const std::size_t datagram = sealed_bytes(packet, wire::payload_bytes(payload));
  const std::size_t before = wire::build_frame_headers(format, header, datagram, room);
  if (before == 0) return 0;
  const auto place = room.subspan(before, datagram);
  const bool sealed = seal_packet(*sealer, config_.dialect, packet, payload, place) == datagram;
  return sealed ? before + datagram : 0;
}

void WireBackend::send_waiting(unsigned index) {
  WireCable& cable = *cables_[index];
  if (cable.waiting() == 0) return;
  const WireCable::SendResult result = cable.send_waiting();
  counters_.send_calls += result.calls;
  counters_.packets_sent += result.frames;
  if (result.error != 0 && !is_lack_of_room(result.error)) return disconnect(index);
  const auto port = static_cast<PortId>(index + 1);
  const bool blocked = cable.waiting() > 0;
  if (blocked != blocked_.contains(port)) {
    watch(cable.connection(), blocked ? EPOLLIN | EPOLLOUT : EPOLLIN, index);
  }
  blocked_ = blocked ? blocked_.with(port) : blocked_.without(port);
}

void WireBackend::flush() {
  for (unsigned i = 0; i < cables_.size(); ++i)
    send_waiting(i);
}

// Every process at a cable gets every frame. Endpoint packets are for all of them.
bool WireBackend::is_ours(std::span<const std::byte> transport) const {
  if (transport.size() < wire::kBthLength) return true;  // for the parser to refuse
  const std::uint32_t destination = wire::ByteReader(transport.subspan(5, 3)).u24();
  return QpNumber{destination} == kEndpointQp ||
         process_of(QpNumber{destination}) == process_number();
}

DropReason WireBackend::open_plain(std::span<std::byte> frame, wire::FrameHeader& header,
                                   Received& received) {
  wire::OpenedFrame opened;
  const DropReason reason = wire::open_frame(format_for(receive_port_number()), frame, opened);
  header = opened.header;
  received.transport = opened.transport;
  received.icrc_good = opened.icrc_good;
  return reason;
}

DropReason WireBackend::open_sealed(std::span<std::byte> frame, wire::FrameHeader& header,
                                    Received& received) {
  return wire::find_datagram(format_for(receive_port_number()), frame, header, received.transport);
}

void WireBackend::take_frame(unsigned index, std::span<std::byte> frame, Receiver& receiver) {
  Received received;
  wire::FrameHeader header;
  DropReason reason = security_.seals() ? open_sealed(frame, header, received)
                                        : open_plain(frame, header, received);
  if (reason == DropReason::kBadUdpPort) return;  // for another process of this host
  if (reason != DropReason::kNone) return receiver.on_dropped(reason);
  // Of a sealed packet the BTH is in the clear.
  if (shares_port() && !is_ours(received.transport)) return;
  if (header.destination != gid_) return receiver.on_dropped(DropReason::kBadIpHeader);
  received.gid = header.source;
  received.port = static_cast<PortId>(index + 1);
  received.entropy = header.entropy;
  received.congestion_experienced = header.ecn == wire::Ecn::kCe;
  received.trim = trim_state(header.trim);
  const std::size_t at = static_cast<std::size_t>(received.transport.data() - frame.data());
  const auto datagram = frame.subspan(at, received.transport.size());
  reason = security_.take(received.gid, datagram, received.trim, received.transport);
  if (reason != DropReason::kNone) return receiver.on_dropped(reason);
  receiver.on_received(received);
}

unsigned WireBackend::receive_port(unsigned index, Receiver& receiver, unsigned budget) {
  std::array<mmsghdr, kReceiveSlots> headers{};
  std::array<iovec, kReceiveSlots> pieces;
  const auto asked = std::min<unsigned>(budget, kReceiveSlots);
  for (unsigned i = 0; i < asked; ++i) {
    pieces[i] = {.iov_base = buffers_.get() + i * kMaxFrameBytes, .iov_len = kMaxFrameBytes};
    headers[i].msg_hdr.msg_iov = &pieces[i];
    headers[i].msg_hdr.msg_iovlen = 1;
  }
  ++counters_.receive_calls;
  const int got =
      ::recvmmsg(cables_[index]->connection(), headers.data(), asked, MSG_DONTWAIT, nullptr);
  if (got < 0) {
    if (errno != EAGAIN && errno != EINTR) disconnect(index);
    return 0;
  }
  unsigned frames = 0;
  for (unsigned i = 0; i < static_cast<unsigned>(got); ++i) {
    // A message of no bytes is the end of the connection.
    if (headers[i].msg_len == 0) {
      disconnect(index);
      break;
    }
    ++frames;
    if ((headers[i].msg_hdr.msg_flags & MSG_TRUNC) != 0) {
      receiver.on_dropped(DropReason::kTruncated);
      continue;
    }
    const std::span<std::byte> frame(buffers_.get() + i * kMaxFrameBytes, headers[i].msg_len);
    take_frame(index, frame, receiver);
  }
  counters_.packets_received += frames;
  return frames;
}

unsigned WireBackend::receive(Receiver& receiver, unsigned budget) {
  std::array<epoll_event, 2 * kMaxPorts + 2> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  unsigned frames = 0;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    const std::uint32_t index = event.data.u32;
    if (index == kInterfacesTag) {
      check_interfaces();
      continue;
    }
    if (index == kTimerTag || !cables_[index]->connected()) {
      advance_cables();
      continue;
    }
    if ((event.events & EPOLLOUT) != 0) send_waiting(index);
    if ((event.events & ~std::uint32_t{EPOLLOUT}) != 0 && frames < budget &&
        cables_[index]->connected()) {
      frames += receive_port(index, receiver, budget - frames);
    }
  }
  return frames;
}

void WireBackend::look_after_security() {
  const TimeNs now = os::monotonic_now();
  if (now >= next_look_) {
    next_look_ = now + kSecondNs;
    security_.look_after_keys();
  }
  const std::vector<wire::IpAddress> unaware = security_.take_unaware();
  for (const wire::IpAddress& gid : unaware)
    send(hint_route(gid, link_up_), core::TrafficClass::kControl, hint_packet(), {});
  if (!unaware.empty()) flush();
}

void WireBackend::on_wake() {
  for (unsigned i = 0; i < cables_.size(); ++i) {
    if (blocked_.contains(static_cast<PortId>(i + 1))) send_waiting(i);
  }
  look_after_security();
  if (has_interfaces_) return check_interfaces();
  advance_cables();
}

}  // namespace

BackendResult open_wire_backend(const node::DeviceConfig& config) {
  return opened<WireBackend>(config);
}

}  // namespace mrc::nic
