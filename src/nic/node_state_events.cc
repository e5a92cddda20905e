#include "nic/node_state_events.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "wire/reader.h"
#include "wire/writer.h"

namespace mrc::nic {
namespace {

using node_files::Descriptor;

constexpr std::size_t kMaxListeners = 64;
constexpr std::size_t kMaxSenders = 4'096;          // whose sequence a listener follows
constexpr std::uint32_t kEventMagic = 0x4D45'5631;  // "MEV1"
constexpr std::size_t kEventBytes = 4 + 8 + 8 + 8 + 2 * wire::kEvBytes + 3 + 4;
constexpr int kReceiveBufferBytes = 1 << 20;

using Datagram = std::array<std::byte, kEventBytes>;

constexpr std::uint8_t kEvDenied = 1;
constexpr std::uint8_t kEvPopulated = 2;

Datagram make_datagram(std::uint64_t sender, std::uint64_t sequence, const NodeEvEvent& event) {
  Datagram datagram{};
  wire::ByteWriter out(datagram);
  out.u32(kEventMagic);
  out.u64(sender);
  out.u64(sequence);
  out.u64(event.profile_id);
  out.copy_from(std::span<const std::uint8_t, wire::kEvBytes>(event.ev.value.bytes));
  out.copy_from(std::span<const std::uint8_t, wire::kEvBytes>(event.ev.compact.bytes));
  out.u8(static_cast<std::uint8_t>(event.ev.port));
  out.u8(static_cast<std::uint8_t>((event.ev.denied ? kEvDenied : 0) |
                                   (event.ev.populated ? kEvPopulated : 0)));
  out.u8(static_cast<std::uint8_t>(event.state));
  out.u32(event.drop_count);
  return datagram;
}

struct Arrival {
  std::uint64_t sender = 0;
  std::uint64_t sequence = 0;
  NodeEvEvent event;
};

bool read_datagram(std::span<const std::byte> bytes, Arrival& out) {
  wire::ByteReader in(bytes);
  if (bytes.size() != kEventBytes || in.u32() != kEventMagic) return false;
  out.sender = in.u64();
  out.sequence = in.u64();
  out.event.profile_id = in.u64();
  in.copy_to(std::span(out.event.ev.value.bytes));
  in.copy_to(std::span(out.event.ev.compact.bytes));
  const std::uint8_t port = in.u8();
  const std::uint8_t flags = in.u8();
  const std::uint8_t state = in.u8();
  out.event.drop_count = in.u32();
  out.event.ev.port = PortId{port};
  out.event.ev.denied = (flags & kEvDenied) != 0;
  out.event.ev.populated = (flags & kEvPopulated) != 0;
  out.event.state = static_cast<core::EvState>(state);
  return port <= kMaxPorts && state <= static_cast<std::uint8_t>(core::EvState::kDenied);
}

// A socket address holds about 100 characters; a longer path goes by way of an open directory,
// which must stay open while the address is used.
struct SocketName {
  Descriptor directory;
  sockaddr_un address{};
};

bool name_socket(const std::string& directory, const std::string& name, SocketName& out) {
  out.address.sun_family = AF_UNIX;
  std::string path = directory + "/" + name;
  if (path.size() >= sizeof out.address.sun_path) {
    out.directory.reset(open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!out.directory) return false;
    path = "/proc/self/fd/" + std::to_string(out.directory.get()) + "/" + name;
    if (path.size() >= sizeof out.address.sun_path) {
      errno = ENAMETOOLONG;
      return false;
    }
  }
  std::memcpy(static_cast<char*>(out.address.sun_path), path.c_str(), path.size() + 1);
  return true;
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);  // as the socket calls want it
}

class SocketListener final : public NodeState::Listener {
 public:
  SocketListener(Descriptor socket, std::string path)
      : socket_(std::move(socket)), path_(std::move(path)), owner_(getpid()) {}
  ~SocketListener() override {
    if (owner_ == getpid()) unlink(path_.c_str());
  }
  SocketListener(const SocketListener&) = delete;
  SocketListener& operator=(const SocketListener&) = delete;

  int descriptor() const override { return socket_.get(); }
  std::uint64_t missed() const override { return missed_; }

  bool next(NodeEvEvent& event) override {
    std::array<std::byte, kEventBytes + 1> buffer;
    while (true) {
      const ssize_t length = recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (length < 0 && errno == EINTR) continue;
      if (length < 0) return false;
      Arrival arrival;
      if (!read_datagram(std::span(buffer).first(static_cast<std::size_t>(length)), arrival))
        continue;
      follow(arrival);
      event = arrival.event;
      return true;
    }
  }

 private:
  // Everybody may send here; numbers that go back or leap tell nothing.
  void follow(const Arrival& arrival) {
    auto last = last_.find(arrival.sender);
    if (last == last_.end()) {
      if (last_.size() == kMaxSenders) last_.clear();
      last = last_.emplace(arrival.sender, 0).first;
    }
    if (arrival.sequence > last->second) missed_ += arrival.sequence - last->second - 1;
    last->second = arrival.sequence;
  }

  node_files::LifeDescriptor socket_;
  std::string path_;
  pid_t owner_;
  std::uint64_t missed_ = 0;
  std::map<std::uint64_t, std::uint64_t> last_;
};

}  // namespace

EventSender::EventSender(std::string directory)
    : directory_(std::move(directory)), id_(node_files::random_number()) {}

void EventSender::send(const NodeEvEvent& event) {
  const std::vector<std::string> listeners = node_files::list_directory(directory_, kMaxListeners);
  if (listeners.empty()) return;
  const std::lock_guard lock(mutex_);
  if (!socket_) socket_.reset(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (sequence_.size() > 2 * kMaxListeners) sequence_.clear();
  for (const std::string& listener : listeners) {
    SocketName name;
    if (!socket_ || !name_socket(directory_, listener, name)) continue;
    const Datagram datagram = make_datagram(id_, ++sequence_[listener], event);
    const ssize_t sent =
        sendto(socket_.get(), datagram.data(), datagram.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
               generic(name.address), sizeof name.address);
    if (sent < 0 && errno == ECONNREFUSED) {  // its listener died
      unlink((directory_ + "/" + listener).c_str());
      sequence_.erase(listener);
    }
  }
}

std::unique_ptr<NodeState::Listener> open_listener(const std::string& directory) {
  Descriptor fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return nullptr;
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &kReceiveBufferBytes, sizeof kReceiveBufferBytes);
  const std::string unique = node_files::unique_name();
  SocketName name;
  if (!name_socket(directory, unique, name)) return nullptr;
  if (bind(fd.get(), generic(name.address), sizeof name.address) != 0) {
    if (errno == EACCES) errno = EPERM;
    return nullptr;
  }
  const std::string path = directory + "/" + unique;
  if (chmod(path.c_str(), 0666) != 0) {
    unlink(path.c_str());
    return nullptr;
  }
  return std::make_unique<SocketListener>(std::move(fd), path);
}

}  // namespace mrc::nic
