// One side of a measurement: a device of the C API with its memory, completion queues and queue
// pairs. Owns all of it. Failures are thrown as Failure.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collective/device.h"
#include "commands/perf/plan.h"
#include "device_facts.h"
#include "mrc.h"
#include "openmrc_counters.h"

namespace mrc::tool::perf {

// What the other side must know of us.
struct Address {
  collective::Gid gid = {};
  std::vector<std::uint32_t> qps;  // numbers
  std::uint32_t psn = 0;           // first one of every queue pair
  std::uint32_t mtu = 0;           // bytes
  std::uint64_t memory = 0;        // where we may be written to
  std::uint64_t memory_bytes = 0;
  std::uint32_t rkey = 0;
  std::string dialect;                // of the wire; see collective/dialect_check.h
  std::uint64_t security = 0;         // see openmrc_security.h; 0: from a version that does not say
  std::optional<DeviceFacts> device;  // as the configuration has it; nothing: it does not say
};

struct EndpointOptions {
  collective::DeviceOptions device;
  unsigned qps = 1;
  unsigned send_depth = 128;
  unsigned receive_depth = 1;
  collective::QpProfileIds profiles;
};

// A write as the measurements need it.
struct Write {
  std::uint64_t message = 0;  // number, comes back in the completion
  std::span<const std::byte> bytes;
  std::uint64_t remote_address = 0;
  bool signaled = true;
  std::optional<std::uint32_t> immediate;
};

class Endpoint {
 public:
  // Memory is allocated and registered later, when its size is known.
  explicit Endpoint(const EndpointOptions& options);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // The peer writes into `target`; our own writes come from `source`. Both stay until the end.
  void register_memory(std::span<std::byte> target, std::span<std::byte> source);
  Address address() const;
  // Throws a Failure when the peer would not understand our packets, or we not theirs.
  void check_peer(const Address& theirs, const std::string& name) const;
  void connect(const Address& peer);
  const Address& peer() const { return peer_; }
  // What speaks against the two devices, by what they say of themselves; empty: nothing. `name` is
  // the peer's.
  std::string suspicion(const std::string& name) const;

  void post(unsigned qp, std::span<const Write> writes);
  void post_receives(unsigned qp, unsigned count);
  // Completions of sends or receives; an error completion is thrown as a Failure that says which
  // peer and queue pair. An empty result has moved the device on.
  std::span<const ibv_wc> poll_sends() { return poll(send_cq_.get()); }
  std::span<const ibv_wc> poll_receives() { return poll(receive_cq_.get()); }
  static unsigned qp_of(const ibv_wc& wc) { return static_cast<unsigned>(wc.wr_id >> kQpShift); }
  static std::uint64_t message_of(const ibv_wc& wc) { return wc.wr_id & kMessageMask; }

  const std::string& device_name() const { return device_.name(); }
  std::uint32_t mtu() const { return mtu_; }
  openmrc_qp_counters counters(unsigned qp) const;
  std::uint64_t qp_memory_bytes() const { return qp_memory_bytes_; }  // of all, by resident size

 private:
  static constexpr unsigned kQpShift = 48;  // of the index in a request's id
  static constexpr std::uint64_t kMessageMask = (std::uint64_t{1} << kQpShift) - 1;

  void create_qps(const EndpointOptions& options);
  std::span<const ibv_wc> poll(mrc_cq* cq);
  [[noreturn]] void fail(const ibv_wc& wc) const;

  collective::Device device_;
  collective::Owned<ibv_mr> target_;
  collective::Owned<ibv_mr> source_;
  collective::Owned<mrc_cq> send_cq_;
  collective::Owned<mrc_cq> receive_cq_;
  std::vector<collective::Owned<mrc_qp>> qps_;
  std::vector<std::uint32_t> numbers_;
  std::uint32_t psn_ = 0;
  std::uint32_t mtu_ = 0;
  std::uint64_t qp_memory_bytes_ = 0;
  Address peer_;
  std::vector<ibv_send_wr> requests_;
  std::vector<ibv_sge> pieces_;
  std::array<ibv_wc, 64> completions_ = {};
};

}  // namespace mrc::tool::perf
