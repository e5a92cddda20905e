// The TCP connection on which client and server of `mrc perf` agree: one JSON object per line.
//
// The peer is not trusted: lines are bounded, everything is checked before use, and every wait has
// an end (a time-out, the peer's hanging up, or Ctrl-C). All failures are thrown as Failure.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace mrc::tool::perf {

class Exchange {
 public:
  // Waits for one client, as long as it takes.
  static Exchange serve(std::uint16_t port);
  static Exchange connect(const std::string& host, std::uint16_t port, double timeout_s);

  ~Exchange();
  Exchange(Exchange&& other) noexcept;
  Exchange& operator=(Exchange&&) = delete;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void send(const nlohmann::json& message);
  // The next message. `timeout_s` 0 = as long as the peer is there.
  nlohmann::json receive(double timeout_s);
  // Whether receive() would find something: a message, or the end of the connection.
  bool readable() const;
  bool hung_up() const;

  const std::string& peer() const { return peer_; }  // address of the other side

 private:
  Exchange(int socket, std::string peer);
  void wait(short events, double timeout_s) const;
  bool take_line(std::string& line);

  int socket_ = -1;
  std::string peer_;
  std::string received_;
};

}  // namespace mrc::tool::perf
