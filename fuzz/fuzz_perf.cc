// Strangers at the TCP port of `mrc perf`, and peers that answer oddly: lines over a connection,
// each read as every message there is. What is refused is refused in one line, which can be sent
// back.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>

#include "collective/exchange.h"
#include "commands/perf/losses.h"
#include "commands/perf/protocol.h"
#include "failure.h"
#include "fuzz/text_support.h"

using mrc::fuzz::require;
using nlohmann::json;
namespace collective = mrc::collective;
namespace perf = mrc::tool::perf;

namespace {

constexpr double kPatienceS = 10;
constexpr const char* kPeer = "the peer";

// Somebody who says all he has to say, and listens until the end.
class Caller {
 public:
  Caller(std::uint16_t port, std::string_view words) {
    sockaddr_in6 place{};
    place.sin6_family = AF_INET6;
    place.sin6_port = htons(port);
    place.sin6_addr = in6addr_loopback;
    require(::connect(socket_, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0);
    const linger at_once{1, 0};  // leaves no closed connection behind, of which there may be 28,000
    require(::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    if (!words.empty()) require(::send(socket_, words.data(), words.size(), MSG_NOSIGNAL) > 0);
    require(::shutdown(socket_, SHUT_WR) == 0);
  }
  ~Caller() { ::close(socket_); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

 private:
  int socket_ = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

// Whether `read` takes the message; if not, `why` is one line.
template <typename Read>
bool takes(Read read, std::string& why) {
  try {
    read();
    return true;
  } catch (const mrc::tool::Failure& failure) {
    why = failure.what();
    mrc::fuzz::require_one_line(why);
    return false;
  }
}

void check(const json& message) {
  std::string why;
  const auto takes = [&](auto read) { return ::takes(read, why); };
  perf::Hello hello;
  if (takes([&] { hello = perf::parse_hello(message, kPeer); })) {
    require(perf::why_not(hello.plan).empty() && hello.address.qps.size() == hello.plan.qps);
    const json said = perf::to_json(hello);
    require(perf::to_json(perf::parse_hello(said, kPeer)) == said);
  } else {
    hello.plan.qps = 2;
  }
  perf::Address address;
  if (takes([&] { address = perf::parse_answer(message, hello.plan, kPeer); }))
    require(address.qps.size() == hello.plan.qps);
  perf::Result result;
  if (takes([&] { result = perf::parse_result(message, kPeer); })) require(result.seconds >= 0);
  takes([&] {
    require(perf::parse_losses(message, hello.plan, kPeer).queue_pairs.size() <= hello.plan.qps);
  });
  takes([&] { require(perf::parse_counts(message, hello.plan, kPeer).size() == hello.plan.qps); });
  std::string wrong;
  if (takes([&] { wrong = perf::read_text(message, "wrong", kPeer); }) && !wrong.empty())
    mrc::fuzz::require_one_line(wrong);
  takes([&] { perf::read_real(message, "cpu_s", kPeer); });
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const collective::Listener listener(0);
  const Caller caller(listener.port(),
                      mrc::fuzz::text_of(data, std::min<std::size_t>(size, 16'384)));
  collective::Exchange exchange = listener.accept(kPatienceS);
  exchange.name_peer(kPeer);
  json message;
  std::string why;
  while (takes([&] { message = exchange.receive(kPatienceS); }, why))
    check(message);
  // As a session ends: the peer is told.
  takes([&] { exchange.send({{"error", why}}); }, why);
  return 0;
}
