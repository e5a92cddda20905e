#include "nic/io/udp/udp_transmit.h"

#include <netinet/udp.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "nic/io/udp/udp_epoll.h"

namespace mrc::nic {
namespace {

constexpr std::size_t kMaxRun = 64;
// What a blocked plane keeps at most; a caller that heeds free_ports() stays far below. Pages of it
// that are never used cost nothing.
constexpr std::size_t kMaxKept = 64;
constexpr std::size_t kMaxKeptBytes = 1 << 20;
static_assert(kMaxKeptBytes >= kMaxBurstBytes);

template <typename T>
void add_control(msghdr& header, std::byte* at, int level, int type, T value) {
  cmsghdr part{};
  part.cmsg_len = CMSG_LEN(sizeof(value));
  part.cmsg_level = level;
  part.cmsg_type = type;
  std::memcpy(at, &part, sizeof(part));
  std::memcpy(at + CMSG_LEN(0), &value, sizeof(value));
  header.msg_controllen += CMSG_SPACE(sizeof(value));
}

bool no_room(int error) { return error == EAGAIN; }

// The kernel or the device cannot cut the message into datagrams.
bool cannot_segment(int error) { return error == EIO || error == EINVAL || error == EOPNOTSUPP; }

bool looks_like_lost_link(int error) {
  return error == ENETDOWN || error == ENETUNREACH || error == EHOSTUNREACH || error == ENODEV ||
         error == EADDRNOTAVAIL || error == EINVAL;
}

// Cuts the bytes [from, from + length) out of a list of pieces, into `out`, which holds as many.
std::span<iovec> cut_pieces(std::span<const iovec> pieces, std::size_t from, std::size_t length,
                            iovec* out) {
  std::size_t count = 0;
  for (const iovec& piece : pieces) {
    if (length == 0) break;
    if (from >= piece.iov_len) {
      from -= piece.iov_len;
      continue;
    }
    const std::size_t part = std::min(piece.iov_len - from, length);
    out[count++] = {.iov_base = static_cast<std::byte*>(piece.iov_base) + from, .iov_len = part};
    length -= part;
    from = 0;
  }
  return {out, count};
}

}  // namespace

UdpTransmitter::KeptOfPlane::KeptOfPlane()
    : messages(kMaxKept), bytes(std::make_unique_for_overwrite<std::byte[]>(kMaxKeptBytes)) {}

UdpTransmitter::UdpTransmitter(std::vector<UdpPlane>& planes, int epoll, std::size_t plane_count,
                               BackendCounters& counters, std::uint8_t default_traffic_byte)
    : planes_(planes),
      epoll_(epoll),
      counters_(counters),
      default_traffic_byte_(default_traffic_byte),
      kept_(plane_count),
      cut_(std::make_unique<iovec[]>(kMaxMessagePieces)),
      headers_(std::make_unique<mmsghdr[]>(kMaxRun)),
      controls_(std::make_unique<Control[]>(kMaxRun)) {}

bool UdpTransmitter::take_suspicion() { return std::exchange(suspicion_, false); }

void UdpTransmitter::fill_header(const UdpMessage& message, std::span<iovec> pieces,
                                 Control& control, msghdr& header) const {
  header = msghdr{};
  header.msg_name = const_cast<sockaddr*>(&message.to.value.any);  // NOLINT: not written
  header.msg_namelen = message.to.length;
  header.msg_iov = pieces.data();
  header.msg_iovlen = pieces.size();
  std::byte* at = control.bytes.data();
  if (message.traffic_byte != default_traffic_byte_) {
    const bool is_v4 = message.to.value.any.sa_family == AF_INET;
    add_control(header, at, is_v4 ? IPPROTO_IP : IPPROTO_IPV6, is_v4 ? IP_TOS : IPV6_TCLASS,
                int{message.traffic_byte});
    at += CMSG_SPACE(sizeof(int));
  }
  if (message.segments > 1) {
    add_control(header, at, SOL_UDP, UDP_SEGMENT,
                static_cast<std::uint16_t>(message.segment_bytes));
  }
  if (header.msg_controllen > 0) header.msg_control = control.bytes.data();
}

// errno, 0 when the kernel took it.
int UdpTransmitter::send_one(const UdpMessage& message, std::span<iovec> pieces) {
  const int socket = planes_[message.plane].send_sockets()[message.socket].socket.get();
  msghdr header;
  Control control;
  fill_header(message, pieces, control, header);
  ssize_t sent = -1;
  do {
    ++counters_.send_calls;
    sent = ::sendmsg(socket, &header, MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? errno : 0;
}

// Every segment as a message of its own. Stops at the first that is refused, having counted those
// that were not.
int UdpTransmitter::send_split(const UdpMessage& message, std::span<iovec> pieces) {
  UdpMessage single = message;
  single.segments = 1;
  int error = 0;
  for (unsigned i = 0; i < message.segments && error == 0; ++i) {
    const std::size_t at = std::size_t{i} * message.segment_bytes;
    const std::size_t length =
        std::min<std::size_t>(message.segment_bytes, message.total_bytes - at);
    error = send_one(single, cut_pieces(pieces, at, length, cut_.get()));
    if (error == 0) ++counters_.packets_sent;
    if (error != 0) counters_.send_refused += message.segments - i;
  }
  return error;
}

int UdpTransmitter::send_with_fallback(const UdpMessage& message, std::span<iovec> pieces) {
  const int error = send_one(message, pieces);
  if (error == 0) {
    counters_.packets_sent += message.segments;
    return 0;
  }
  if (message.segments == 1 || !cannot_segment(error)) return error;
  if (send_split(message, pieces) == 0) planes_[message.plane].segmentation = false;
  return 0;
}

void UdpTransmitter::count_refused(const UdpMessage& message, int error) {
  counters_.send_refused += message.segments;
  if (looks_like_lost_link(error)) suspicion_ = true;
}

void UdpTransmitter::keep(const UdpMessage& message, std::span<const iovec> pieces) {
  KeptOfPlane& kept = kept_[message.plane];
  if (kept.messages.empty()) kept.used = 0;
  if (kept.messages.full() || kMaxKeptBytes - kept.used < message.total_bytes) {
    counters_.send_refused += message.segments;
    return;
  }
  kept.messages.push_back({.message = message, .at = kept.used});
  for (const iovec& piece : pieces) {
    std::memcpy(kept.bytes.get() + kept.used, piece.iov_base, piece.iov_len);
    kept.used += piece.iov_len;
  }
}

void UdpTransmitter::watch_writable(unsigned plane, unsigned socket) {
  UdpPlane::SendSocket& send = planes_[plane].send_sockets()[socket];
  epoll_event event{};
  event.events = EPOLLOUT | EPOLLONESHOT;
  event.data.u32 = epoll_tag(EpollSource::kSend, plane);
  const int operation = send.watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (::epoll_ctl(epoll_, operation, send.socket.get(), &event) == 0) send.watched = true;
}

void UdpTransmitter::send_or_settle(UdpBatch& batch, const UdpMessage& message) {
  UdpPlane& plane = planes_[message.plane];
  if (plane.blocked) {
    keep(message, batch.pieces(message));
    return;
  }
  const int error = send_with_fallback(message, batch.pieces(message));
  if (error == 0) return;
  if (no_room(error)) {
    plane.blocked = true;
    keep(message, batch.pieces(message));
    watch_writable(message.plane, message.socket);
    return;
  }
  count_refused(message, error);
}

// Sends messages of one socket with one call; returns how many the kernel took.
std::size_t UdpTransmitter::send_run(UdpBatch& batch, std::span<const UdpMessage> run) {
  for (std::size_t i = 0; i < run.size(); ++i) {
    fill_header(run[i], batch.pieces(run[i]), controls_[i], headers_[i].msg_hdr);
  }
  const UdpMessage& first = run.front();
  const int socket = planes_[first.plane].send_sockets()[first.socket].socket.get();
  ++counters_.send_calls;
  const int sent =
      ::sendmmsg(socket, headers_.get(), static_cast<unsigned>(run.size()), MSG_DONTWAIT);
  if (sent <= 0) return 0;
  const auto taken = static_cast<std::size_t>(sent);
  for (const UdpMessage& message : run.first(taken))
    counters_.packets_sent += message.segments;
  return taken;
}

void UdpTransmitter::send_all(UdpBatch& batch) {
  auto rest = batch.messages();
  while (!rest.empty()) {
    const UdpMessage& first = rest.front();
    std::size_t length = 1;
    while (length < rest.size() && length < kMaxRun && rest[length].socket == first.socket &&
           rest[length].plane == first.plane)
      ++length;
    std::size_t done = 0;
    if (length > 1 && !planes_[first.plane].blocked) done = send_run(batch, rest.first(length));
    // Alone, or the one at which a run stopped: its error decides.
    if (done < length) send_or_settle(batch, rest[done++]);
    rest = rest.subspan(done);
  }
  batch.clear();
}

void UdpTransmitter::on_writable(unsigned plane) {
  planes_[plane].blocked = false;
  KeptOfPlane& kept = kept_[plane];
  while (!kept.messages.empty()) {
    const Kept& first = kept.messages.front();
    iovec piece{.iov_base = kept.bytes.get() + first.at, .iov_len = first.message.total_bytes};
    const int error = send_with_fallback(first.message, {&piece, 1});
    if (no_room(error)) {
      planes_[plane].blocked = true;
      watch_writable(plane, first.message.socket);
      return;
    }
    if (error != 0) count_refused(first.message, error);
    kept.messages.pop_front();
  }
}

void UdpTransmitter::drop_kept(unsigned plane) {
  Ring<Kept>& messages = kept_[plane].messages;
  for (; !messages.empty(); messages.pop_front())
    counters_.send_refused += messages.front().message.segments;
  planes_[plane].blocked = false;
}

}  // namespace mrc::nic
