// One TCP connection to each neighbour on loopback, non-blocking, driven by the thread that asks:
// what a program does that knows of nothing better.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <deque>

#include "transport.h"

namespace mrc::bench {
namespace {

struct Request {
  std::span<std::byte> rest;
  bool used = false;
};

// One direction of one connection: requests in order, the first one under way.
class Stream {
 public:
  void open(int socket) {
    socket_ = socket;
    const int one = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    MRC_CHECK(::fcntl(socket, F_SETFL, O_NONBLOCK) == 0);
  }
  ~Stream() {
    if (socket_ >= 0) ::close(socket_);
  }
  void* post(std::span<std::byte> bytes) {
    for (Request& request : requests_) {
      if (request.used) continue;
      request = {bytes, true};
      waiting_.push_back(&request);
      return &request;
    }
    return nullptr;
  }
  template <typename Move>
  void progress(Move move) {
    while (!waiting_.empty()) {
      std::span<std::byte>& rest = waiting_.front()->rest;
      const ssize_t moved = move(socket_, rest);
      if (moved < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (moved <= 0) test::die("a neighbour has gone: %s", std::strerror(errno));
      rest = rest.subspan(static_cast<std::size_t>(moved));
      if (!rest.empty()) return;
      waiting_.pop_front();
    }
  }
  bool owns(const void* request) const {
    return request >= requests_.data() && request < requests_.data() + requests_.size();
  }

 private:
  int socket_ = -1;
  std::array<Request, nccl::kMaxRequests> requests_;
  std::deque<Request*> waiting_;
};

class TcpTransport final : public Transport {
 public:
  TcpTransport(const RankSetting& setting, const test::Meeting& meeting) {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(at);
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    MRC_CHECK(::bind(listener, address, sizeof(at)) == 0 && ::listen(listener, 1) == 0);
    MRC_CHECK(::getsockname(listener, address, &length) == 0);
    meeting.put("tcp." + std::to_string(setting.rank), std::as_bytes(std::span(&at, 1)));
    const auto theirs = meeting.get("tcp." + std::to_string(setting.next()));
    MRC_CHECK(theirs.size() == sizeof(at));
    std::memcpy(&at, theirs.data(), sizeof(at));
    const int out = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    MRC_CHECK(::connect(out, address, sizeof(at)) == 0);
    out_.open(out);
    const int in = ::accept(listener, nullptr, nullptr);
    MRC_CHECK(in >= 0);
    in_.open(in);
    ::close(listener);
  }

  void use(std::span<std::byte> /*out*/, std::span<std::byte> /*in*/) override {}
  void* send(std::span<std::byte> bytes) override { return out_.post(bytes); }
  void* receive(std::span<std::byte> bytes) override { return in_.post(bytes); }
  bool test(void* request) override {
    if (out_.owns(request)) {
      out_.progress([](int socket, std::span<const std::byte> bytes) {
        return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      });
    } else {
      in_.progress([](int socket, std::span<std::byte> bytes) {
        return ::recv(socket, bytes.data(), bytes.size(), 0);
      });
    }
    auto& tested = *static_cast<Request*>(request);
    if (!tested.rest.empty()) return false;
    tested.used = false;
    return true;
  }

 private:
  Stream out_;
  Stream in_;
};

}  // namespace

std::unique_ptr<Transport> open_tcp(const RankSetting& setting, const test::Meeting& meeting) {
  return std::make_unique<TcpTransport>(setting, meeting);
}

}  // namespace mrc::bench
