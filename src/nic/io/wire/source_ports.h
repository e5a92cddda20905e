// Which UDP source port stands for an EV where the network has no flow label to carry its other
// half (IPv4): its low half, or, where another EV has that already, one that is free. So EVs that
// differ in any bit stay different paths; only with more than 65,536 of them do some share.
#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <set>

#include "base/prng.h"

namespace mrc::nic {

class SourcePorts {
 public:
  std::uint16_t of(std::uint32_t ev) {
    const auto known = ports_.find(ev);
    if (known != ports_.end()) return known->second;
    auto port = static_cast<std::uint16_t>(ev & 0xFFFF);
    if (taken_.test(port)) port = next_free(static_cast<std::uint16_t>(mix64(ev)));
    taken_.set(port);
    ports_[ev] = port;
    return port;
  }

  // The others may stand for other EVs from now on.
  void keep(const std::set<std::uint16_t>& needed) {
    std::erase_if(ports_, [&](const auto& entry) { return !needed.contains(entry.second); });
    taken_.reset();
    for (const auto& [ev, port] : ports_)
      taken_.set(port);
  }

 private:
  std::uint16_t next_free(std::uint16_t from) const {
    std::uint16_t port = from;
    do {
      if (!taken_.test(port)) return port;
    } while (++port != from);
    return from;
  }

  std::map<std::uint32_t, std::uint16_t> ports_;
  std::bitset<65'536> taken_;
};

}  // namespace mrc::nic
