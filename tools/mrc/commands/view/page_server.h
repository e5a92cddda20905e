// Serves the page and its stream to browsers on this machine: one thread, a bounded number of
// connections, requests of a few kB, nothing read from the disk.
//
// The address holds a random token; requests without it, from pages of other origins, or for other
// names than this machine's addresses are refused (view::Gate). A viewer that does not keep up
// loses its connection when it is further behind than the log remembers, and its browser comes
// again. When all places or all descriptors are taken, whoever has been there longest without
// showing the token makes room.
#pragma once

#include <netinet/in.h>
#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>

#include "commands/view/line_log.h"
#include "os/descriptor.h"
#include "view/http_request.h"

namespace mrc::tool::view_tool {

struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any
  std::string token;
};

class PageServer {
 public:
  static constexpr std::size_t kMaxConnections = 64;
  static constexpr int kPatienceMs = 10'000;  // for a request, and for its answer to be taken
  static constexpr int kDeedMs = 5'000;       // for a deed to be done

  // What was done about a deed, or why not.
  struct Outcome {
    bool ok = false;
    std::string text;
  };
  // Returns at once; the future becomes ready when it is done.
  using DeedFunction = std::function<std::future<Outcome>(const view::Deed&)>;

  // Listens. Throws std::runtime_error, one line, when it cannot. `act` may be empty.
  PageServer(const ServerOptions& options, const LineLog& log, DeedFunction act);

  // "http://127.0.0.1:PORT/TOKEN/".
  std::string url() const;
  std::uint16_t port() const { return gate_.port; }
  // Answers whoever waits, and sends what is new to the viewers; returns after `wait_ms` at most.
  void poll(int wait_ms);
  std::size_t viewers() const { return viewers_; }

 private:
  struct Connection {
    os::Descriptor socket;
    std::string in;
    std::shared_ptr<const std::string> out;  // under way
    std::size_t sent = 0;                    // of it
    std::uint64_t next_line = 0;             // of a viewer
    bool streams = false;
    bool waits_for_room = false;
    bool known = false;            // has shown the token
    bool said_all = false;         // its end of the connection is closed for writing
    std::future<Outcome> outcome;  // of its deed, while that is under way
    std::uint64_t number = 0;      // of all that came
    std::int64_t until_ms = 0;     // patience ends; of a viewer only while it takes nothing
  };

  void accept_all();
  void take_in(os::Descriptor socket);
  // False: everybody who is there may stay.
  bool make_room();
  void listen_again(bool listens);
  void look_at(const epoll_event& event);
  // False: the connection is over.
  bool receive(Connection& connection);
  bool send_on(Connection& connection);
  bool next_line(Connection& connection);
  void answer(Connection& connection, const view::HttpRequest& request);
  void act(Connection& connection, const std::string& body);
  void take_outcome(Connection& connection);
  void refuse(Connection& connection, unsigned status);
  void reply(Connection& connection, unsigned status, std::string_view type, std::string_view body);
  void watch(int number, const Connection& connection);
  void sweep();

  const LineLog& log_;
  DeedFunction act_;
  view::Gate gate_;
  std::string address_;
  os::Descriptor epoll_;
  os::Descriptor listener_;
  std::map<int, Connection> connections_;  // by descriptor
  std::size_t viewers_ = 0;
  std::uint64_t came_ = 0;
  std::int64_t deaf_until_ms_ = 0;  // 0: listens
};

}  // namespace mrc::tool::view_tool
