// Answers HTTP requests one by one in the thread that calls it: for a page that is fetched every
// few seconds. One request for each connection; so many connections at a time, each for so long, so
// that nobody who connects and says nothing keeps others out for longer than that.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/types.h"
#include "commands/exporter/http_request.h"
#include "os/descriptor.h"

namespace mrc::tool::exporter {

class HttpServer {
 public:
  static constexpr std::size_t kConnections = 64;
  static constexpr DurationNs kPatienceNs = 5 * kSecondNs;  // for a request and its answer

  using Page = std::function<HttpAnswer(const HttpRequest& request)>;
  explicit HttpServer(Page page) : page_(std::move(page)) {}

  // 0 or an errno; port 0 is any that is free.
  int listen(const std::string& address, int port);
  int port() const { return port_; }
  // Waits for at most so long, and does what there is to do.
  void step(int milliseconds);

 private:
  struct Connection {
    os::Descriptor socket;
    TimeNs until = 0;
    std::string received;
    std::string to_send;
    std::size_t sent = 0;
    bool done = false;
  };

  void accept_all(TimeNs now);
  void receive(Connection& connection);
  void answer(Connection& connection, int refusal);
  static void send(Connection& connection);

  Page page_;
  os::Descriptor listener_;
  int port_ = 0;
  std::vector<Connection> connections_;
};

}  // namespace mrc::tool::exporter
