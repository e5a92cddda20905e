// How large a packet gets through from one address to another, found out with datagrams that no
// router may cut in pieces (DF).
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/descriptor.h"
#include "wire/ip_address.h"

namespace mrc::tool::doctor {

// Of IP packets, as an MTU counts them.
constexpr unsigned kLargestPacket = 9'216;

class SizeEcho {
 public:
  // Bound to an address of ours, at a port that the system chooses. `token` is what questions must
  // begin with.
  SizeEcho(const wire::IpAddress& address, std::uint64_t token);
  bool works() const { return socket_.valid(); }
  std::uint16_t port() const;
  int descriptor() const { return socket_.get(); }
  // Answers what waits, a bounded number of datagrams.
  void answer();

 private:
  os::Descriptor socket_;
  std::uint64_t token_;
};

class SizeProbe {
 public:
  SizeProbe(const wire::IpAddress& from, const wire::IpAddress& to, std::uint16_t port,
            std::uint64_t token);
  // Whether an IP packet of that many bytes goes there and comes back; asks up to three times.
  bool passes(unsigned packet_bytes);
  // The largest of the usual sizes below `packet_bytes` that passes; 0: none does.
  unsigned largest_below(unsigned packet_bytes);

 private:
  bool ask(std::size_t payload_bytes, std::uint64_t number);

  os::Descriptor socket_;
  std::uint64_t token_;
  std::uint64_t asked_ = 0;
  unsigned headers_;
};

}  // namespace mrc::tool::doctor
