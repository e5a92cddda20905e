// A device of the C API, open, and the steps every queue pair takes to reach its peer. Failures are
// thrown as Failure.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "mrc.h"

namespace mrc::collective {

using Gid = std::array<std::uint8_t, 16>;
// IPv4 in its usual form: "10.0.0.1", "fd00::1".
std::string gid_text(const Gid& gid);

struct HandleDeleter {
  void operator()(ibv_context* context) const { ibv_close_device(context); }
  void operator()(ibv_pd* pd) const { ibv_dealloc_pd(pd); }
  void operator()(ibv_mr* mr) const { ibv_dereg_mr(mr); }
  void operator()(mrc_context* context) const { mrc_destroy_context(context); }
  void operator()(mrc_comp_channel* channel) const { mrc_destroy_comp_channel(channel); }
  void operator()(mrc_cq* cq) const { mrc_destroy_cq(cq); }
  void operator()(mrc_qp* qp) const { mrc_destroy_qp(qp); }
};
template <typename T>
using Owned = std::unique_ptr<T, HandleDeleter>;

// Throws "WHAT: the error in words".
[[noreturn]] void refuse(const std::string& what, int error);
void expect_ok(const std::string& what, int error);

struct DeviceOptions {
  std::string name;  // empty = the first one
  int gid_index = 0;
  std::uint32_t mtu = 0;  // bytes of payload per packet; 0 = the port's
  std::string dialect;    // of the wire, for peers to compare; empty = not told
};

class Device {
 public:
  explicit Device(const DeviceOptions& options);

  const std::string& name() const { return name_; }
  const std::string& dialect() const { return dialect_; }
  // Whether packets are sealed and with which keys, for peers to compare (openmrc_security.h).
  std::uint64_t security() const;
  // Throws a Failure that names both modes and what to do when packets of the two would not open at
  // the other; 0: the peer said nothing.
  void check_security(std::uint64_t theirs, const std::string& peer) const;
  const Gid& gid() const { return gid_; }
  int gid_index() const { return gid_index_; }
  std::uint32_t mtu() const { return mtu_; }
  mrc_context* context() const { return context_.get(); }
  ibv_pd* pd() const { return pd_.get(); }

  enum class Access : std::uint8_t { kLocal, kPeersWrite };
  Owned<ibv_mr> register_memory(void* memory, std::size_t bytes, Access access) const;

 private:
  void open(const std::string& name);
  void find_port(const DeviceOptions& options);

  Owned<ibv_context> verbs_;
  Owned<mrc_context> context_;
  Owned<ibv_pd> pd_;
  std::string name_;
  std::string dialect_;
  Gid gid_ = {};
  int gid_index_;
  std::uint32_t mtu_ = 0;
};

struct QpProfileIds {
  std::optional<std::uint64_t> ev;
  std::optional<std::uint64_t> cc;
};
void to_init(mrc_qp* qp, const QpProfileIds& profiles);

struct QpConnection {
  Gid gid = {};  // of the peer
  std::uint32_t peer_qp = 0;
  std::uint32_t peer_psn = 0;
  std::uint32_t own_psn = 0;
  std::uint32_t mtu = 0;                // bytes
  bool waits_for_ever = false;          // silence of the peer is no error of the queue pair
  std::optional<std::uint8_t> timeout;  // 1.024 us * 2^timeout; otherwise the device's
};
// From INIT to where both directions work.
void to_ready(mrc_qp* qp, const Device& device, const QpConnection& connection);

// A first packet number nobody can guess.
std::uint32_t random_psn();

}  // namespace mrc::collective
