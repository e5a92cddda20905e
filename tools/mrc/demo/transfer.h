// The workload: an all-to-all of RDMA writes with immediates. Every host sends its share to each
// other host in messages of equal length, the last one shorter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "demo/topology.h"

namespace mrc::demo {

inline constexpr std::uint32_t kMessageBytes = 64 * 1024;

class TransferPlan {
 public:
  TransferPlan(unsigned hosts, std::uint64_t bytes_per_host)
      : hosts_(hosts), flow_bytes_(bytes_per_host / (hosts - 1)) {}

  unsigned hosts() const { return hosts_; }
  unsigned flows() const { return hosts_ * (hosts_ - 1); }
  std::uint64_t flow_bytes() const { return flow_bytes_; }
  std::uint64_t total_bytes() const { return flow_bytes_ * flows(); }
  std::uint32_t messages_per_flow() const {
    return static_cast<std::uint32_t>((flow_bytes_ + kMessageBytes - 1) / kMessageBytes);
  }
  std::uint64_t total_messages() const { return std::uint64_t{messages_per_flow()} * flows(); }
  std::uint64_t offset(std::uint32_t message) const {
    return std::uint64_t{message} * kMessageBytes;
  }
  std::uint32_t length(std::uint32_t message) const {
    const std::uint64_t left = flow_bytes_ - offset(message);
    return static_cast<std::uint32_t>(left < kMessageBytes ? left : kMessageBytes);
  }

 private:
  unsigned hosts_;
  std::uint64_t flow_bytes_;
};

// The memory of one host: for each other host what goes there, and an area for what comes from
// there with untouchable bytes in front and behind.
class HostMemory {
 public:
  HostMemory(const TransferPlan& plan, unsigned self, std::uint64_t seed);

  // Addresses as work requests and packets name them.
  static std::uint64_t send_address(unsigned peer, std::uint64_t offset);
  static std::uint64_t receive_address(unsigned peer, std::uint64_t offset);

  std::span<const std::byte> outgoing(unsigned peer) const { return outgoing_[peer]; }
  std::span<const std::byte> payload(std::uint64_t address, std::uint32_t length) const;
  void place(std::uint64_t address, std::span<const std::byte> bytes);

  // How many bytes of this range of `peer`'s area differ from what that peer sends.
  std::uint64_t wrong_bytes(unsigned peer, std::uint64_t offset,
                            std::span<const std::byte> expected) const;
  // How many of the untouchable bytes were touched.
  std::uint64_t damaged_guards() const;

 private:
  std::vector<std::vector<std::byte>> outgoing_;
  std::vector<std::vector<std::byte>> incoming_;
};

}  // namespace mrc::demo
