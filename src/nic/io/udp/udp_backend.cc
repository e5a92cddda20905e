#include "nic/io/udp/udp_backend.h"

#include <net/if.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/prng.h"
#include "nic/io/security.h"
#include "nic/io/traffic_class.h"
#include "nic/io/udp/udp_epoll.h"
#include "nic/io/udp/udp_neighbours.h"
#include "nic/io/udp/udp_receive.h"
#include "nic/io/udp/udp_transmit.h"
#include "node/plane_address.h"
#include "os/clock.h"
#include "os/interfaces.h"
#include "wire/codec.h"
#include "wire/ip_header.h"

namespace mrc::nic {
namespace {

constexpr unsigned kMaxProcesses = 256;
constexpr std::size_t kFlows = 512;
constexpr std::uint32_t kDefaultMaxMtu = 4'096;  // of a payload, unless configured
constexpr std::uint32_t kUnknownMtu = 1'500;
constexpr std::uint64_t kDefaultBitsPerSecond = 100'000'000'000;
constexpr unsigned kMaxSendSockets = 2'048;
constexpr unsigned kHandedOver = 31;  // above all planes: what neighbours have for us
constexpr std::uint32_t kHandedOverBit = 1U << kHandedOver;
constexpr unsigned kMaxTurns = 8;  // without a look at who has something, under load
static_assert(kHandedOver >= kMaxPorts);
// Headers of the longest write, in front of its payload.
constexpr std::uint32_t kWriteHeaders = wire::kBthLength + wire::kMethLength + wire::kTsethLength +
                                        wire::kRethLength + wire::kImmediateLength;

// A quarter of what the process may open, shared by the planes of all engines: the rest is the
// program's.
unsigned send_sockets_per_plane(const node::DeviceConfig& config) {
  const std::size_t planes = config.planes.size() * std::max(config.threads, 1U);
  rlimit limit{};
  rlim_t files = 1024;
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) files = limit.rlim_cur;
  const rlim_t share = std::min<rlim_t>(files / 4, kMaxSendSockets) / planes;
  return static_cast<unsigned>(std::max<rlim_t>(share, 4));
}

std::uint32_t mtu_of(const std::string& interface) {
  const std::uint32_t mtu = os::interface_mtu(interface);
  return mtu == 0 ? kUnknownMtu : mtu;
}

// Of a packet that fits the interface, behind all headers.
std::uint32_t room_for_payload(const std::string& interface, bool is_v4, std::size_t seal_bytes) {
  const std::uint32_t mtu = mtu_of(interface);
  const std::uint32_t headers =
      static_cast<std::uint32_t>(is_v4 ? wire::kIpv4HeaderLength : wire::kIpv6HeaderLength) +
      wire::kUdpHeaderLength + kWriteHeaders + static_cast<std::uint32_t>(seal_bytes);
  return mtu > headers ? (mtu - headers) / 4 * 4 : 0;
}

std::string plane_is_missing(const std::string& device, unsigned index,
                             const node::PlaneConfig& plane) {
  const char* const kind = plane.address.is_v4 ? "IPv4" : "IPv6";
  return device + ": port " + std::to_string(index + 1) + ": " +
         (os::interface_exists(plane.interface)
              ? "interface " + plane.interface + " has no " + kind + " address"
              : "there is no interface " + plane.interface) +
         "; going on without this plane until it comes";
}

// Where the system keeps the ports for those who have a right, nobody else takes over what is sent
// to a process that died (docs/adr/0011-process-numbers.md).
std::string bind_problem(int error) {
  if (error != EACCES) return std::strerror(error);
  return "the system reserves it (net.ipv4.ip_unprivileged_port_start), and the process has no "
         "CAP_NET_BIND_SERVICE";
}

class UdpBackend final : public Backend {
 public:
  explicit UdpBackend(const node::DeviceConfig& config);
  std::string open();

  ProcessNumber process_number() const override { return process_; }
  unsigned port_count() const override { return static_cast<unsigned>(planes_.size()); }
  std::uint32_t path_mtu() const override { return common_.path_mtu; }
  std::uint64_t port_bits_per_second() const override { return common_.bits_per_second; }
  std::uint64_t receive_buffer_bytes() const override;
  PortMask link_up() const override { return link_up_; }
  PortMask free_ports() const override;
  Result<std::uint32_t> prepare_path(PortId port, std::uint32_t entropy) override;
  void keep_paths(std::span<const core::EvEntry> needed) override;
  void send(const Route& route, core::TrafficClass traffic_class, const wire::Packet& packet,
            wire::PayloadPieces payload) override;
  void send_run(const Route& route, core::TrafficClass traffic_class, const wire::Packet& first,
                std::span<const std::byte> payload, unsigned count) override;
  void flush() override;
  unsigned burst_limit() const override;
  unsigned receive(Receiver& receiver, unsigned budget) override;
  int wait_descriptor() const override { return epoll_.get(); }
  void on_wake() override;
  const BackendCounters& counters() const override { return counters_; }
  seal::Stance stance() const override { return security_.stance(); }
  std::vector<std::string> take_notices() override;

 private:
  struct CachedFlow {
    bool valid = false;
    PeerName peer;
    PortId port = kNoPort;
    std::uint32_t entropy = 0;
    UdpFlow flow;
  };

  bool shares_port() const { return config_.dialect.processes == wire::Processes::kByQueuePair; }
  std::string bind_shared_port();
  std::string number_is_taken() const;
  std::string bind_process_number();
  int try_process_number(unsigned number);
  bool watch(int descriptor, EpollSource source, unsigned plane);
  void update_links();
  bool update_link(unsigned index, const os::InterfaceList& list);
  bool take_in(unsigned index, const os::InterfaceAddress& entry);
  void move_plane(unsigned index, const os::InterfaceAddress& to);
  std::string check_addresses() const;
  std::string measure_interfaces();
  void poll_sources();
  void send_hints();
  void forget_flows();
  CachedFlow* find_flow(const Route& route);
  bool fill_flow(const Route& route, CachedFlow& cached);
  std::uint8_t traffic_of(const Route& route, core::TrafficClass traffic_class) const;
  UdpPacketRules rules_for(const Route& route, const UdpFlow& flow, const wire::Packet& packet);

  node::DeviceConfig config_;
  PlaneMap map_;
  std::vector<UdpPlane> planes_;
  os::Descriptor epoll_;
  os::InterfaceWatch interfaces_;
  BackendCounters counters_;
  Security security_;
  UdpTransmitter transmitter_;
  UdpBatch batch_;
  UdpNeighbours neighbours_;
  std::unique_ptr<UdpReceiver> receiver_;
  std::unique_ptr<CachedFlow[]> flows_;
  UsedPorts used_ports_;
  ProcessNumber process_ = 0;
  struct {
    std::uint32_t path_mtu = 0;
    std::uint64_t bits_per_second = 0;
  } common_;  // what all planes can do
  PortMask link_up_;
  struct {
    std::uint32_t sources = 0;  // with something to receive, one bit each: planes, kHandedOver
    bool fresh = false;         // looked at since the last receive()
    unsigned turns = 0;         // without a look
  } ready_;
  bool links_changed_ = false;
  TimeNs next_look_ = 0;
  std::vector<std::string> notices_;
};

UdpBackend::UdpBackend(const node::DeviceConfig& config)
    : config_(config),
      map_(config),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      transmitter_(planes_, epoll_.get(), config.planes.size(), counters_,
                   traffic_byte(config.dscp, core::TrafficClass::kTrimmable)),
      batch_(config.dialect, config.security == node::SecurityMode::kSealed),
      flows_(std::make_unique<CachedFlow[]>(kFlows)) {}

// At the port of the process with that number, or with all others at the first one.
int UdpBackend::try_process_number(unsigned number) {
  planes_.clear();
  const auto first = config_.udp_port;
  for (const node::PlaneConfig& plane : config_.planes) {
    planes_.emplace_back(plane);
    // Link-local addresses cannot be bound without it.
    planes_.back().set_scope(::if_nametoindex(plane.interface.c_str()));
    const int error = planes_.back().open(
        {.receive_port = static_cast<std::uint16_t>(first + number),
         .shared = shares_port(),
         .first_reserved = first,
         .last_reserved = static_cast<std::uint16_t>(std::min(0xFFFFU, first + kMaxProcesses - 1)),
         .traffic_byte = traffic_byte(config_.dscp, core::TrafficClass::kTrimmable),
         .max_send_sockets = send_sockets_per_plane(config_)});
    if (error != 0) return error;
    planes_.back().segmentation = config_.segmentation;
  }
  return 0;
}

std::string UdpBackend::bind_shared_port() {
  const int number = neighbours_.claim(config_);
  if (number < 0) {
    const unsigned strangers = neighbours_.held_by_strangers();
    return config_.name + ": no process number is left at UDP port " +
           std::to_string(config_.udp_port) + "; 256 processes can share a device" +
           (strangers == 0
                ? ""
                : ", but programs of other users hold " + std::to_string(strangers) + " of them");
  }
  process_ = static_cast<ProcessNumber>(number);
  const int error = try_process_number(0);
  if (error == 0) return {};
  const auto text = wire::format_address(planes_.back().config().address);
  const std::string why =
      error == EADDRINUSE ? "somebody holds it who does not share it: a process of another user, "
                            "or one whose dialect is processes = \"udp_port\""
                          : bind_problem(error);
  return config_.name + ": cannot receive at " + std::string(text.view()) + " port " +
         std::to_string(config_.udp_port) + ": " + why;
}

std::string UdpBackend::number_is_taken() const {
  return config_.name + ": the first plane has moved to " +
         std::string(wire::format_address(config_.planes[0].address).view()) +
         ", where another process has our number " + std::to_string(process_) +
         " already: packets of both go astray; start one of them again";
}

std::vector<std::string> UdpBackend::take_notices() {
  std::vector<std::string> lines = security_.take_notices();
  for (std::string& line : std::exchange(notices_, {}))
    lines.push_back(std::move(line));
  return lines;
}

std::string UdpBackend::bind_process_number() {
  for (unsigned number = 0; number < kMaxProcesses; ++number) {
    if (config_.udp_port + number > 0xFFFF) break;
    const int error = try_process_number(number);
    if (error == 0) {
      process_ = static_cast<ProcessNumber>(number);
      return {};
    }
    if (error == EADDRINUSE) continue;
    const auto text = wire::format_address(planes_.back().config().address);
    return config_.name + ": cannot receive at " + std::string(text.view()) + " port " +
           std::to_string(config_.udp_port + number) + ": " + bind_problem(error);
  }
  return config_.name + ": every UDP port from " + std::to_string(config_.udp_port) +
         " on is taken; 256 processes can share a device";
}

bool UdpBackend::watch(int descriptor, EpollSource source, unsigned plane) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = epoll_tag(source, plane);
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

std::string UdpBackend::open() {
  if (!epoll_.valid()) return config_.name + ": epoll: " + std::strerror(errno);
  std::string error = security_.open(config_);
  if (error.empty()) error = shares_port() ? bind_shared_port() : bind_process_number();
  if (!error.empty()) return error;
  for (unsigned i = 0; i < planes_.size(); ++i) {
    if (!node::has_address(planes_[i].config())) {
      notices_.push_back(plane_is_missing(config_.name, i, planes_[i].config()));
    } else if (!watch(planes_[i].receive_socket(), EpollSource::kReceive, i)) {
      return config_.name + ": epoll: " + std::strerror(errno);
    }
  }
  if (interfaces_.works()) watch(interfaces_.descriptor(), EpollSource::kInterfaces, 0);
  if (shares_port() && !watch(neighbours_.descriptor(), EpollSource::kNeighbours, 0)) {
    return config_.name + ": epoll: " + std::strerror(errno);
  }
  const unsigned above = shares_port() ? 0 : process_;
  receiver_ =
      std::make_unique<UdpReceiver>(config_, static_cast<std::uint16_t>(config_.udp_port + above),
                                    shares_port() ? &neighbours_ : nullptr, security_, counters_);
  update_links();
  error = check_addresses();
  return error.empty() ? measure_interfaces() : error;
}

// A plane may be without its address for a while; without any there is no device.
std::string UdpBackend::check_addresses() const {
  const os::InterfaceList list = os::list_interfaces();
  std::string names;
  for (const UdpPlane& plane : planes_) {
    const node::PlaneConfig& config = plane.config();
    if (!list.known || find_interface(list, config.interface, config.address) != nullptr) return {};
    names += (names.empty() ? "" : ", ") + std::string(wire::format_address(config.address).view());
  }
  return config_.name + ": no interface of this machine has the address " + names;
}

void UdpBackend::update_links() {
  const os::InterfaceList list = os::list_interfaces();
  PortMask up;
  for (unsigned i = 0; i < planes_.size(); ++i) {
    if (update_link(i, list)) up = up.with(static_cast<PortId>(i + 1));
  }
  link_up_ = up;
  next_look_ = os::monotonic_now() + kSecondNs;
}

bool UdpBackend::update_link(unsigned index, const os::InterfaceList& list) {
  UdpPlane& plane = planes_[index];
  const node::PlaneConfig& config = plane.config();
  if (!list.known)
    return is_local_address(os::make_socket_address(config.address, 0, plane.scope()));
  const os::InterfaceAddress* entry = find_interface(list, config.interface, config.address);
  if (entry == nullptr && config.follow_interface) {
    const bool is_v4 = config.address.is_v4;
    entry = choose_address(list, config.interface, is_v4, !is_v4);
    if (entry != nullptr && !take_in(index, *entry)) return false;
  }
  if (entry == nullptr) return false;
  if (plane.receive_socket() < 0) move_plane(index, *entry);
  plane.set_scope(entry->index);
  return entry->up && plane.receive_socket() >= 0;
}

// Moves a plane to an address of its interface; false when it comes too late to carry our packets.
bool UdpBackend::take_in(unsigned index, const os::InterfaceAddress& entry) {
  const bool is_new = !node::has_address(planes_[index].config());
  const std::string port = config_.name + ": port " + std::to_string(index + 1) + ": " + entry.name;
  if (is_new && common_.path_mtu != 0 &&
      room_for_payload(entry.name, entry.address.is_v4, security_.added_bytes()) <
          common_.path_mtu) {
    if (!std::exchange(planes_[index].too_small, true)) {
      notices_.push_back(port + " has come, but its MTU does not fit packets of " +
                         std::to_string(common_.path_mtu) + " bytes: not used");
    }
    return false;
  }
  move_plane(index, entry);
  if (is_new) {
    notices_.push_back(port + " has come with " +
                       std::string(wire::format_address(entry.address).view()) +
                       ", the plane is in use");
  }
  return true;
}

// The interface has another address now; peers that follow the rule know it by the same host part.
void UdpBackend::move_plane(unsigned index, const os::InterfaceAddress& to) {
  UdpPlane& plane = planes_[index];
  transmitter_.drop_kept(index);
  plane.set_scope(to.index);
  const bool bound = plane.rebind(to.address, to.prefix_bits) == 0;
  if (bound) watch(plane.receive_socket(), EpollSource::kReceive, index);
  config_.planes[index] = plane.config();
  map_ = PlaneMap(config_);
  if (index == 0) {
    security_.rename(config_.planes[0].address);
    if (shares_port() && !neighbours_.follow(config_)) notices_.push_back(number_is_taken());
  }
  receiver_->forget_sources();
  forget_flows();
}

// What the planes have in common: the largest payload, the lowest rate. An error as text.
std::string UdpBackend::measure_interfaces() {
  const os::InterfaceList list = os::list_interfaces();
  std::uint32_t room = core::kMaxPathMtu;
  std::uint64_t rate = UINT64_MAX;
  for (const UdpPlane& plane : planes_) {
    const node::PlaneConfig& config = plane.config();
    const os::InterfaceAddress* const entry =
        find_interface(list, config.interface, config.address);
    const std::string name = entry == nullptr ? config.interface : entry->name;
    if (!node::has_address(config) && !os::interface_exists(name)) continue;
    const std::uint32_t fits =
        room_for_payload(name, config.address.is_v4, security_.added_bytes());
    const std::uint32_t wanted = std::max(config_.path_mtu, core::kMinPathMtu);
    if (fits < wanted) {
      return config_.name + ": packets of " + std::to_string(wanted) + " bytes do not fit " + name +
             ", whose MTU of " + std::to_string(mtu_of(name)) + " leaves " + std::to_string(fits);
    }
    room = std::min(room, fits);
    const std::uint64_t speed = os::interface_bits_per_second(name);
    if (speed != 0) rate = std::min(rate, speed);
  }
  common_.path_mtu = config_.path_mtu;
  if (common_.path_mtu == 0) common_.path_mtu = std::min(kDefaultMaxMtu, std::bit_floor(room));
  common_.bits_per_second = config_.port_bits_per_second;
  if (common_.bits_per_second == 0)
    common_.bits_per_second = rate == UINT64_MAX ? kDefaultBitsPerSecond : rate;
  return {};
}

std::uint64_t UdpBackend::receive_buffer_bytes() const {
  std::uint64_t total = 0;
  for (const UdpPlane& plane : planes_) {
    int bytes = 0;
    socklen_t length = sizeof(bytes);
    const int socket = plane.receive_socket();
    if (::getsockopt(socket, SOL_SOCKET, SO_RCVBUF, &bytes, &length) == 0 && bytes > 0)
      total += static_cast<unsigned>(bytes);
  }
  return total;
}

PortMask UdpBackend::free_ports() const {
  PortMask free = link_up_;
  for (unsigned i = 0; i < planes_.size(); ++i) {
    const auto port = static_cast<PortId>(i + 1);
    if (planes_[i].blocked) free = free.without(port);
  }
  return free;
}

Result<std::uint32_t> UdpBackend::prepare_path(PortId port, std::uint32_t entropy) {
  const std::size_t index = static_cast<std::size_t>(port) - 1;
  if (index >= planes_.size()) return Status(ErrorCode::kInvalidArgument, "no such port");
  return planes_[index].prepare_path(entropy, used_ports_);
}

// What waits for room on a plane is lost with its sockets, as on a wire.
void UdpBackend::keep_paths(std::span<const core::EvEntry> needed) {
  flush();
  bool closed = false;
  for (unsigned i = 0; i < planes_.size(); ++i) {
    std::set<std::uint32_t> carried;
    for (const core::EvEntry& path : needed) {
      if (path.port == static_cast<PortId>(i + 1)) carried.insert(path.entropy);
    }
    if (!planes_[i].keep_paths(carried)) continue;
    if (planes_[i].blocked) transmitter_.drop_kept(i);
    closed = true;
  }
  if (!closed) return;
  forget_flows();
  used_ports_.reset();
  for (UdpPlane& plane : planes_) {
    for (const UdpPlane::SendSocket& send : plane.send_sockets())
      used_ports_.set(send.source_port);
  }
}

void UdpBackend::forget_flows() {
  for (std::size_t i = 0; i < kFlows; ++i)
    flows_[i].valid = false;
}

bool UdpBackend::fill_flow(const Route& route, CachedFlow& cached) {
  const std::size_t index = static_cast<std::size_t>(route.port) - 1;
  if (index >= planes_.size()) return false;
  UdpPlane& plane = planes_[index];
  const auto address = map_.address_on(route.port, route.peer.gid);
  const unsigned udp_port = config_.udp_port + unsigned{route.peer.process};
  if (!address || address->is_v4 != plane.config().address.is_v4 || udp_port > 0xFFFF) return false;
  const int socket = plane.find_send_socket(route.entropy, used_ports_);
  if (socket < 0) return false;
  cached.peer = route.peer;
  cached.port = route.port;
  cached.entropy = route.entropy;
  UdpFlow& flow = cached.flow;
  flow.plane = static_cast<std::uint8_t>(index);
  flow.socket = static_cast<std::uint16_t>(socket);
  flow.to = os::make_socket_address(*address, static_cast<std::uint16_t>(udp_port), plane.scope());
  if (!address->is_v4) {
    const auto label = plane.flow_label(static_cast<unsigned>(socket), route.entropy);
    flow.to.value.v6.sin6_flowinfo = htonl(label);
  }
  flow.addresses = {.source = plane.config().address,
                    .destination = *address,
                    .source_port = plane.send_sockets()[flow.socket].source_port,
                    .destination_port = static_cast<std::uint16_t>(udp_port)};
  flow.prefixes.forget();
  flow.sealer = security_.sealer(route.peer);
  return true;
}

UdpBackend::CachedFlow* UdpBackend::find_flow(const Route& route) {
  std::array<std::uint64_t, 2> gid;
  std::memcpy(gid.data(), route.peer.gid.bytes.data(), sizeof(gid));
  const std::uint64_t path = std::uint64_t{route.entropy} << 16 |
                             std::uint64_t{route.peer.process} << 8 |
                             static_cast<std::uint64_t>(route.port);
  CachedFlow& cached = flows_[mix64(gid[0] ^ mix64(gid[1] ^ mix64(path))) % kFlows];
  if (cached.valid && cached.entropy == route.entropy && cached.port == route.port &&
      cached.peer == route.peer)
    return &cached;
  cached.valid = fill_flow(route, cached);
  return cached.valid ? &cached : nullptr;
}

std::uint8_t UdpBackend::traffic_of(const Route& route, core::TrafficClass traffic_class) const {
  return route.dscp ? traffic_byte(*route.dscp, ecn_of(traffic_class))
                    : traffic_byte(config_.dscp, traffic_class);
}

// Where processes share a port, a burst is for one of them.
UdpPacketRules UdpBackend::rules_for(const Route& route, const UdpFlow& flow,
                                     const wire::Packet& packet) {
  const bool headers_only = config_.payload_check == node::PayloadCheck::kHeaders;
  const ProcessNumber process = process_of(packet.bth.destination);
  const bool alone = shares_port() && !neighbours_.next_is_for(process);
  return {.may_join = planes_[flow.plane].segmentation && !alone,
          .header_check = headers_only && route.peer_takes_header_check,
          .takes_header_check = headers_only};
}

void UdpBackend::send(const Route& route, core::TrafficClass traffic_class,
                      const wire::Packet& packet, wire::PayloadPieces payload) {
  CachedFlow* const cached = find_flow(route);
  if (cached == nullptr) {
    ++counters_.send_refused;
    return;
  }
  const std::uint8_t traffic = traffic_of(route, traffic_class);
  const UdpPacketRules rules = rules_for(route, cached->flow, packet);
  if (batch_.append(cached->flow, traffic, packet, payload, rules)) return;
  flush();
  if (!batch_.append(cached->flow, traffic, packet, payload, rules)) ++counters_.send_refused;
}

void UdpBackend::send_run(const Route& route, core::TrafficClass traffic_class,
                          const wire::Packet& first, std::span<const std::byte> payload,
                          unsigned count) {
  CachedFlow* const cached = find_flow(route);
  if (cached == nullptr) {
    counters_.send_refused += count;
    return;
  }
  const std::uint8_t traffic = traffic_of(route, traffic_class);
  const UdpPacketRules rules = rules_for(route, cached->flow, first);
  const auto each = static_cast<std::uint32_t>(payload.size() / count);
  wire::Packet packet = first;
  while (count > 0) {
    unsigned fit = batch_.append_run(cached->flow, traffic, packet, payload, count, rules);
    if (fit < count) flush();
    if (fit == 0) fit = batch_.append_run(cached->flow, traffic, packet, payload, count, rules);
    if (fit == 0) {
      counters_.send_refused += count;
      return;
    }
    count -= fit;
    payload = payload.subspan(std::size_t{fit} * each);
    wire::move_on(packet, fit, each);
  }
}

void UdpBackend::flush() {
  if (!batch_.empty()) transmitter_.send_all(batch_);
}

unsigned UdpBackend::burst_limit() const {
  const bool segmentation = std::all_of(planes_.begin(), planes_.end(),
                                        [](const UdpPlane& plane) { return plane.segmentation; });
  if (!segmentation) return 1;
  const std::size_t datagram = common_.path_mtu + kWriteHeaders + security_.added_bytes();
  return static_cast<unsigned>(std::min<std::size_t>(kMaxSegments, kMaxBurstBytes / datagram));
}

// One call says which sockets have something.
void UdpBackend::poll_sources() {
  std::array<epoll_event, 2 * kMaxPorts + 2> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  ready_.sources = 0;
  ready_.turns = 0;
  for (int i = 0; i < count; ++i) {
    const std::uint32_t tag = events[static_cast<std::size_t>(i)].data.u32;
    const unsigned plane = epoll_plane(tag);
    switch (epoll_source(tag)) {
      case EpollSource::kReceive:
        ready_.sources |= 1U << plane;
        break;
      case EpollSource::kSend:
        transmitter_.on_writable(plane);
        break;
      case EpollSource::kNeighbours:
        ready_.sources |= kHandedOverBit;
        break;
      case EpollSource::kInterfaces:
        links_changed_ = true;
        break;
    }
  }
}

unsigned UdpBackend::receive(Receiver& receiver, unsigned budget) {
  const bool stale = ready_.sources == 0 || ++ready_.turns >= kMaxTurns;
  if (stale && !ready_.fresh) poll_sources();
  ready_.fresh = false;
  unsigned packets = 0;
  // First, and for a quarter of the turn at most: under load no plane is ever empty.
  if ((ready_.sources & kHandedOverBit) != 0) {
    const unsigned share = std::max(budget / 4, 1U);
    packets = receiver_->receive_handed(planes_, map_, receiver, share);
    if (packets < share) ready_.sources &= ~kHandedOverBit;
  }
  while ((ready_.sources & ~kHandedOverBit) != 0 && packets < budget) {
    const auto index = static_cast<unsigned>(std::countr_zero(ready_.sources));
    bool emptied = false;
    packets += receiver_->receive(planes_[index], static_cast<PortId>(index + 1), map_, receiver,
                                  budget - packets, emptied);
    if (emptied) ready_.sources &= ~(1U << index);
  }
  return packets;
}

void UdpBackend::on_wake() {
  poll_sources();
  ready_.fresh = true;
  const bool suspicion = transmitter_.take_suspicion();
  if (links_changed_ || suspicion || os::monotonic_now() >= next_look_) {
    links_changed_ = false;
    interfaces_.changed();
    update_links();
    security_.look_after_keys();
  }
  send_hints();
}

void UdpBackend::send_hints() {
  const std::vector<wire::IpAddress> unaware = security_.take_unaware();
  for (const wire::IpAddress& gid : unaware)
    send(hint_route(gid, link_up_), core::TrafficClass::kControl, hint_packet(), {});
  if (!unaware.empty()) flush();
}

}  // namespace

BackendResult open_udp_backend(const node::DeviceConfig& config) {
  return opened<UdpBackend>(config);
}

}  // namespace mrc::nic
