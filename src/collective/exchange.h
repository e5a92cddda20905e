// The TCP connection on which processes agree before they move data: one JSON object per line.
//
// The peer is not trusted: lines are bounded, everything is checked before use, and every wait has
// an end (a time-out, the peer's hanging up, or Ctrl-C). All failures are thrown as Failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>

namespace mrc::collective {

class Exchange {
 public:
  static Exchange connect(const std::string& host, std::uint16_t port, double timeout_s);

  ~Exchange();
  Exchange(Exchange&& other) noexcept;
  Exchange& operator=(Exchange&&) = delete;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void send(const nlohmann::json& message);
  // The next message. `timeout_s` 0 = as long as the peer is there.
  nlohmann::json receive(double timeout_s);
  // The same without waiting; none when it has not come yet. Longer than `most_bytes` is a Failure.
  std::optional<nlohmann::json> receive_now(std::size_t most_bytes);
  // Whether receive() would find something: a message, or the end of the connection.
  bool readable() const;
  bool hung_up() const;

  int descriptor() const { return socket_; }
  // Who the other side is, in errors; its address unless somebody knows better.
  const std::string& peer() const { return peer_; }
  void name_peer(std::string name) { peer_ = std::move(name); }

 private:
  friend class Listener;
  Exchange(int socket, std::string peer);
  void wait(short events, double timeout_s) const;
  void take_bytes();
  bool take_line(std::string& line);
  nlohmann::json understand(const std::string& line) const;

  int socket_ = -1;
  std::string peer_;
  std::string received_;
};

// Where connections come in.
class Listener {
 public:
  explicit Listener(std::uint16_t port);
  // Takes over a socket that listens already, from whoever started this process.
  static Listener inherited(int socket);
  ~Listener();
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // `timeout_s` 0 = as long as it takes.
  Exchange accept(double timeout_s) const;
  std::uint16_t port() const;
  int descriptor() const { return socket_; }

 private:
  struct Adopt {
    int socket;
  };
  explicit Listener(Adopt adopt) : socket_(adopt.socket) {}

  int socket_;
};

}  // namespace mrc::collective
