// A virtual cable: a unix socket (SOCK_SEQPACKET) that comes back by itself.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <string>

#include "nic/io/wire/wire_cable.h"
#include "os/descriptor.h"

namespace mrc::nic {

class WireUnixCable final : public WireCable {
 public:
  ~WireUnixCable() override;

  // `path` names the far end's socket; "listen:PATH" waits there for the far end instead. A name
  // that begins with '@' is abstract. The text of an error, empty when there is none.
  // At most about `send_buffer_bytes` wait in the socket.
  std::string open(const std::string& path, std::uint32_t send_buffer_bytes);

  bool advance(TimeNs now) override;
  bool connected() const override { return connection_.valid(); }
  bool lost() override { return false; }  // its end is read from the connection
  TimeNs next_attempt() const override { return next_attempt_; }
  int connection() const override { return connection_.get(); }
  int listener() const override { return listener_.get(); }

 private:
  bool try_connect(TimeNs now);
  void take_down(TimeNs now) override;
  void limit_sending() const;

  sockaddr_un address_{};
  socklen_t address_length_ = 0;
  int send_buffer_bytes_ = 0;
  bool listens_ = false;
  bool unlinks_ = false;
  os::Descriptor listener_;
  os::Descriptor connection_;
  TimeNs next_attempt_ = 0;
  DurationNs back_off_ns_ = 0;
};

}  // namespace mrc::nic
