// One side of a measurement: a device of the C API with its memory, completion queues and queue
// pairs. Owns all of it. Failures are thrown as Failure.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mrc.h"
#include "perf/options.h"

namespace mrc::tool::perf {

using Gid = std::array<std::uint8_t, 16>;

// What the other side must know of us.
struct Address {
  Gid gid = {};
  std::vector<std::uint32_t> qps;  // numbers
  std::uint32_t psn = 0;           // first one of every queue pair
  std::uint32_t mtu = 0;           // bytes
  std::uint64_t memory = 0;        // where we may be written to
  std::uint64_t memory_bytes = 0;
  std::uint32_t rkey = 0;
};

struct EndpointOptions {
  std::string device;
  int gid_index = 0;
  std::uint32_t mtu = 0;
  unsigned qps = 1;
  unsigned send_depth = 128;
  unsigned receive_depth = 1;
  std::optional<std::uint64_t> ev_profile;
  std::optional<std::uint64_t> cc_profile;
};

struct Deleter {
  void operator()(ibv_context* context) const { ibv_close_device(context); }
  void operator()(ibv_pd* pd) const { ibv_dealloc_pd(pd); }
  void operator()(ibv_mr* mr) const { ibv_dereg_mr(mr); }
  void operator()(mrc_context* context) const { mrc_destroy_context(context); }
  void operator()(mrc_cq* cq) const { mrc_destroy_cq(cq); }
  void operator()(mrc_qp* qp) const { mrc_destroy_qp(qp); }
};
template <typename T>
using Owned = std::unique_ptr<T, Deleter>;

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
  void connect(const Address& peer);
  const Address& peer() const { return peer_; }

  void post(unsigned qp, std::span<const Write> writes);
  void post_receives(unsigned qp, unsigned count);
  // Completions of sends or receives; an error completion is thrown as a Failure that says which
  // peer and queue pair. An empty result has moved the device on.
  std::span<const ibv_wc> poll_sends() { return poll(send_cq_.get()); }
  std::span<const ibv_wc> poll_receives() { return poll(receive_cq_.get()); }
  static unsigned qp_of(const ibv_wc& wc) { return static_cast<unsigned>(wc.wr_id >> kQpShift); }
  static std::uint64_t message_of(const ibv_wc& wc) { return wc.wr_id & kMessageMask; }

  const std::string& device_name() const { return device_name_; }
  std::uint32_t mtu() const { return mtu_; }
  std::uint64_t qp_memory_bytes() const { return qp_memory_bytes_; }  // of all, by resident size

 private:
  static constexpr unsigned kQpShift = 48;  // of the index in a request's id
  static constexpr std::uint64_t kMessageMask = (std::uint64_t{1} << kQpShift) - 1;

  void open_device(const std::string& name);
  void find_port(const EndpointOptions& options);
  void create_qps(const EndpointOptions& options);
  void to_init(mrc_qp* qp, const EndpointOptions& options) const;
  void to_ready(unsigned index, const Address& peer) const;
  std::span<const ibv_wc> poll(mrc_cq* cq);
  [[noreturn]] void fail(const ibv_wc& wc) const;

  Owned<ibv_context> verbs_;
  Owned<mrc_context> context_;
  Owned<ibv_pd> pd_;
  Owned<ibv_mr> target_;
  Owned<ibv_mr> source_;
  Owned<mrc_cq> send_cq_;
  Owned<mrc_cq> receive_cq_;
  std::vector<Owned<mrc_qp>> qps_;
  std::vector<std::uint32_t> numbers_;
  std::string device_name_;
  Gid gid_ = {};
  int gid_index_ = 0;
  std::uint32_t psn_ = 0;
  std::uint32_t mtu_ = 0;
  std::uint64_t qp_memory_bytes_ = 0;
  Address peer_;
  std::vector<ibv_send_wr> requests_;
  std::vector<ibv_sge> pieces_;
  std::array<ibv_wc, 64> completions_ = {};
};

}  // namespace mrc::tool::perf
