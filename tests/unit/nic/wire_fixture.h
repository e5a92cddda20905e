// Devices of the wire back end with cables between them, or with cables in the hands of the test.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>

#include "os/descriptor.h"
#include "unit/nic/backend_fixture.h"

namespace mrc::nic::test {

inline std::string cable_name(const char* test, unsigned plane) {
  return "@mrc_wire_test_" + std::to_string(::getpid()) + "_" + test + std::to_string(plane);
}

inline node::DeviceConfig wire_device(const char* test, unsigned planes, unsigned host,
                                      bool listens, bool is_v4 = false) {
  node::DeviceConfig config;
  config.backend = node::BackendKind::kWire;
  for (unsigned plane = 0; plane < planes; ++plane) {
    node::PlaneConfig end;
    end.address = is_v4 ? wire::ipv4_address(0x0A00'0000U + host)
                        : wire::ipv6_address(0xFC00'0000'0000'0000, host);
    end.prefix_bits = is_v4 ? 24 : 64;
    end.wire_path = (listens ? "listen:" : "") + cable_name(test, plane);
    config.planes.push_back(end);
  }
  return config;
}

// Lets both ends look until `done`; false after ten seconds.
template <typename Done>
bool settle(std::initializer_list<Backend*> ends, Done done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    for (Backend* const backend : ends) {
      pollfd descriptor{.fd = backend->wait_descriptor(), .events = POLLIN, .revents = 0};
      ::poll(&descriptor, 1, 5);
      Collector unused;
      backend->on_wake();
      backend->receive(unused, 16);
    }
  }
  return true;
}

struct Cabled : Ends {
  explicit Cabled(const char* test, unsigned planes = 2, bool is_v4 = false)
      : Ends(wire_device(test, planes, 1, true, is_v4),
             wire_device(test, planes, 2, false, is_v4)) {
    const PortMask all = PortMask::first(planes);
    EXPECT_TRUE(
        settle({a.get(), b.get()}, [&] { return a->link_up() == all && b->link_up() == all; }));
  }
};

// The far end of a cable, held by the test itself.
inline os::Descriptor plug_in(const std::string& name) {
  os::Descriptor far(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data() + 1, name.size() - 1);
  void* const untyped = &address;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  if (::connect(far.get(), static_cast<sockaddr*>(untyped), length) != 0) far.close();
  return far;
}

}  // namespace mrc::nic::test
