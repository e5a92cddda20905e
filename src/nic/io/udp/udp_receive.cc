#include "nic/io/udp/udp_receive.h"

#include <netinet/udp.h>

#include <cerrno>
#include <cstring>

#include "base/prng.h"
#include "nic/io/traffic_class.h"
#include "nic/io/udp/udp_flow_label.h"
#include "os/host_bug.h"
#include "wire/codec.h"

namespace mrc::nic {
namespace {

constexpr std::size_t kBufferBytes = 65'536;  // the longest datagram, and the longest GRO burst
constexpr std::size_t kSlots = 32;
// Long bursts are read few at a time, so that they are still in the cache when they are used.
constexpr unsigned kSlotsForBursts = 4;
constexpr std::size_t kBurstBytes = 8'192;
constexpr std::size_t kSources = 512;
// What was read for its checksum is still in the first cache when it is copied to its place.
constexpr unsigned kMostInRun = 8;

std::size_t source_slot(const os::SocketAddress& from, PortId port) {
  std::uint64_t key[2] = {0, 0};
  if (from.value.any.sa_family == AF_INET) {
    std::memcpy(&key[0], &from.value.v4.sin_addr, 4);
  } else {
    std::memcpy(key, &from.value.v6.sin6_addr, 16);
  }
  const std::uint64_t rest =
      std::uint64_t{os::udp_port_of(from)} << 8 | static_cast<unsigned>(port);
  return mix64(key[0] ^ mix64(key[1] ^ rest << 32)) % kSources;
}

// Datagrams of a message in their order, those that are a run as one.
class RunGatherer {
 public:
  explicit RunGatherer(Receiver& receiver) : receiver_(receiver) {}

  void add(const Received& next) {
    if (count_ > 0 && count_ < kMostInRun && continues(next)) {
      ++count_;
      last_ = next.transport;
      return;
    }
    hand_out();
    first_ = next;
    last_ = next.transport;
    count_ = 1;
  }
  void hand_out() {
    if (count_ == 0) return;
    first_.run = count_;
    receiver_.on_received(first_);
    count_ = 0;
  }

 private:
  bool continues(const Received& next) const {
    return first_.icrc_good && next.icrc_good && next.trim == core::TrimState::kWhole &&
           (wire::continues_run(last_, next.transport) || MRC_HOST_BUG(kLaterHeadersBelieved));
  }

  Receiver& receiver_;
  Received first_;
  std::span<const std::byte> last_;
  unsigned count_ = 0;
};

// What a cmsghdr carries, as far as it is there.
template <typename T>
T control_value(const cmsghdr& part) {
  T value{};
  if (part.cmsg_len >= CMSG_LEN(sizeof(T))) std::memcpy(&value, CMSG_DATA(&part), sizeof(T));
  return value;
}

}  // namespace

UdpReceiver::UdpReceiver(const node::DeviceConfig& config, std::uint16_t udp_port,
                         UdpNeighbours* neighbours, Security& security, BackendCounters& counters)
    : dscp_(config.dscp),
      takes_header_check_(config.payload_check == node::PayloadCheck::kHeaders),
      udp_port_(udp_port),
      neighbours_(neighbours),
      security_(security),
      counters_(counters),
      slots_in_use_(kSlots),
      buffers_(std::make_unique_for_overwrite<std::byte[]>(kSlots * kBufferBytes)),
      headers_(std::make_unique<mmsghdr[]>(kSlots)),
      pieces_(std::make_unique<iovec[]>(kSlots)),
      names_(std::make_unique<os::SocketAddress[]>(kSlots)),
      controls_(std::make_unique<Control[]>(kSlots)),
      sources_(std::make_unique<Source[]>(kSources)) {
  for (std::size_t i = 0; i < kSlots; ++i) {
    pieces_[i] = {.iov_base = buffers_.get() + i * kBufferBytes, .iov_len = kBufferBytes};
    reset_slot(i);
  }
}

void UdpReceiver::forget_sources() {
  for (std::size_t i = 0; i < kSources; ++i)
    sources_[i].from.length = 0;
}

void UdpReceiver::reset_slot(std::size_t index) {
  msghdr& header = headers_[index].msg_hdr;
  header.msg_name = &names_[index].value;
  header.msg_namelen = sizeof(names_[index].value);
  header.msg_iov = &pieces_[index];
  header.msg_iovlen = 1;
  header.msg_control = controls_[index].bytes.data();
  header.msg_controllen = controls_[index].bytes.size();
  header.msg_flags = 0;
}

UdpReceiver::Notes UdpReceiver::read_notes(msghdr& header) {
  Notes notes;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_TOS) {
      notes.traffic_byte = control_value<std::uint8_t>(*part);
    } else if (part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_TCLASS) {
      notes.traffic_byte = static_cast<std::uint8_t>(control_value<int>(*part));
    } else if (part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == kIpv6FlowInfo) {
      notes.flow_label = static_cast<std::uint16_t>(ntohl(control_value<std::uint32_t>(*part)));
    } else if (part->cmsg_level == SOL_UDP && part->cmsg_type == UDP_GRO) {
      notes.segment_bytes = static_cast<std::uint16_t>(control_value<int>(*part));
    } else if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SO_RXQ_OVFL) {
      notes.has_overflow = true;
      notes.overflow = control_value<std::uint32_t>(*part);
    }
  }
  return notes;
}

UdpReceiver::Source& UdpReceiver::find_source(UdpPlane& plane, PortId port, const PlaneMap& map,
                                              const os::SocketAddress& from) {
  Source& source = sources_[source_slot(from, port)];
  if (source.port == port && source.from.length == from.length &&
      std::memcmp(&source.from.value, &from.value, from.length) == 0) {
    return source;
  }
  source.from = from;
  source.port = port;
  source.addresses = {.source = os::address_of(from),
                      .destination = plane.config().address,
                      .source_port = os::udp_port_of(from),
                      .destination_port = udp_port_};
  source.prefixes.forget();
  const auto gid = map.gid_of(port, source.addresses.source);
  source.known = gid.has_value();
  if (source.known) source.gid = *gid;
  return source;
}

DropReason UdpReceiver::check(Source& source, const Notes& notes, std::span<std::byte> bytes,
                              Received& received) const {
  if (!source.known) return DropReason::kWrongSource;
  received.gid = source.gid;
  received.port = source.port;
  received.entropy = std::uint32_t{notes.flow_label} << 16 | source.addresses.source_port;
  received.congestion_experienced =
      static_cast<wire::Ecn>(notes.traffic_byte & 0x03) == wire::Ecn::kCe;
  received.trim =
      trim_state(wire::trim_mark(dscp_, static_cast<std::uint8_t>(notes.traffic_byte >> 2)));
  const DropReason drop = security_.take(source.gid, bytes, received.trim, received.transport);
  if (drop != DropReason::kNone || security_.seals()) return drop;
  if (received.trim != core::TrimState::kWhole) {
    received.transport = bytes;
    return DropReason::kNone;
  }
  if (bytes.size() < wire::kBthLength + wire::kIcrcLength) return DropReason::kTruncated;
  check_icrc(source, bytes, received);
  return DropReason::kNone;
}

void UdpReceiver::check_icrc(Source& source, std::span<const std::byte> bytes,
                             Received& received) const {
  received.transport = bytes.first(bytes.size() - wire::kIcrcLength);
  wire::Icrc icrc = source.prefixes.begin(source.addresses, received.transport.size());
  const std::uint32_t sent = wire::load_icrc(bytes.last(wire::kIcrcLength));
  if (takes_header_check_ && wire::is_header_check(icrc, received.transport, sent)) {
    ++counters_.header_checked;
  } else {
    icrc.add_transport(received.transport);
    received.icrc_good = icrc.value() == sent || MRC_HOST_BUG(kIcrcNotCompared);
  }
}

// Hands out the datagrams of one message and returns how many there were.
unsigned UdpReceiver::take_message(UdpPlane& plane, PortId port, const PlaneMap& map,
                                   Receiver& receiver, std::size_t index) {
  os::SocketAddress& from = names_[index];
  from.length = headers_[index].msg_hdr.msg_namelen;
  const std::size_t length = headers_[index].msg_len;
  const Notes notes = read_notes(headers_[index].msg_hdr);
  if (notes.has_overflow) {
    counters_.receive_overflow += notes.overflow - plane.overflow;
    plane.overflow = notes.overflow;
  }
  Source& source = find_source(plane, port, map, from);
  std::span<std::byte> rest(buffers_.get() + index * kBufferBytes, length);
  const std::size_t segment = notes.segment_bytes == 0 ? length : notes.segment_bytes;
  RunGatherer runs(receiver);
  unsigned count = 0;
  do {
    const auto datagram = rest.first(std::min(segment, rest.size()));
    rest = rest.subspan(datagram.size());
    ++count;
    if (neighbours_ != nullptr && source.known &&
        !neighbours_->keep({from, port, notes.traffic_byte, notes.flow_label}, datagram)) {
      runs.hand_out();
      continue;
    }
    Received received{.stride = segment};
    const DropReason drop = check(source, notes, datagram, received);
    if (drop == DropReason::kNone) {
      runs.add(received);
    } else {
      runs.hand_out();
      receiver.on_dropped(drop);
    }
  } while (!rest.empty());
  runs.hand_out();
  counters_.packets_received += count;
  return count;
}

unsigned UdpReceiver::receive(UdpPlane& plane, PortId port, const PlaneMap& map, Receiver& receiver,
                              unsigned budget, bool& emptied) {
  unsigned packets = 0;
  emptied = false;
  while (packets < budget && !emptied) {
    const unsigned asked = std::min(slots_in_use_, budget - packets);
    ++counters_.receive_calls;
    const int got =
        ::recvmmsg(plane.receive_socket(), headers_.get(), asked, MSG_DONTWAIT, nullptr);
    if (got < 0 && errno == EINTR) continue;
    emptied = got < static_cast<int>(asked);
    if (got <= 0) break;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i) {
      bytes += headers_[i].msg_len;
      packets += take_message(plane, port, map, receiver, i);
      reset_slot(i);
    }
    const bool bursts = bytes / static_cast<unsigned>(got) >= kBurstBytes;
    slots_in_use_ = bursts ? kSlotsForBursts : kSlots;
  }
  return packets;
}

unsigned UdpReceiver::receive_handed(std::span<UdpPlane> planes, const PlaneMap& map,
                                     Receiver& receiver, unsigned budget) {
  unsigned packets = 0;
  DatagramOrigin origin;
  while (packets < budget) {
    const std::span<std::byte> datagram = neighbours_->take(origin);
    if (datagram.empty()) break;
    ++packets;
    const auto index = static_cast<std::size_t>(origin.port) - 1;
    if (index >= planes.size()) continue;
    Source& source = find_source(planes[index], origin.port, map, origin.from);
    const Notes notes{.traffic_byte = origin.traffic_byte, .flow_label = origin.flow_label};
    Received received;
    const DropReason drop = check(source, notes, datagram, received);
    drop == DropReason::kNone ? receiver.on_received(received) : receiver.on_dropped(drop);
  }
  counters_.packets_received += packets;
  return packets;
}

}  // namespace mrc::nic
