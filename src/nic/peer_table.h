// Names of peers and the opaque addresses by which the protocol engine knows them.
//
// A peer with queue pairs keeps its address as long as it has users. Whoever else sends an endpoint
// request gets an address that lives until kTransient others have been given one: long enough to
// answer, and a flood of made-up senders takes no memory.
//
// Not thread safe: belongs to whoever holds the engine lock.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "nic/io/backend.h"

namespace mrc::nic {

class PeerTable {
 public:
  static constexpr unsigned kTransient = 256;

  explicit PeerTable(unsigned capacity) : capacity_(capacity) {}

  // Takes a reference; kNoSpace when `capacity` peers have users.
  Result<Address> acquire(const PeerName& name);
  void release(const Address& address);

  // The address of a peer with users, otherwise a passing one.
  Address find_or_lend(const PeerName& name);

  // The peer with users on that host; Address{} where there is none or more than one.
  Address only_one_of(const wire::IpAddress& gid) const;

  // None for an address never given out or forgotten since.
  const PeerName* name_of(const Address& address) const;

  unsigned size() const { return static_cast<unsigned>(index_.size()); }

 private:
  struct Entry {
    PeerName name;
    std::uint32_t users = 0;
  };
  struct Guest {
    PeerName name;
    std::uint64_t serial = 0;  // 0 = never used
  };

  unsigned capacity_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_;
  std::map<PeerName, std::uint32_t> index_;
  std::array<Guest, kTransient> guests_;
  std::uint64_t next_serial_ = 1;
};

}  // namespace mrc::nic
