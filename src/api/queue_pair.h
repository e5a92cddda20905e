// A queue pair as programs see it: attributes, states and the rules for changing them, over the
// NIC's queue pair. The MRC functions and the verbs shim share it.
//
// Any thread; changes take turns. A refused change has changed nothing.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "mrc.h"
#include "nic/device.h"
#include "os/host_bug.h"

namespace mrc::api {

// Whose rules hold. An MRC program may leave out nearly everything; a verbs program must name its
// peer when it goes to RTR, and gets operations that MRC does not have.
enum class Dialect : std::uint8_t { kMrc, kVerbs };

struct QpChange {
  const ibv_qp_attr* verbs = nullptr;
  int verbs_mask = 0;
  const mrc_qp_attr* mrc = nullptr;
  int mrc_mask = 0;
  core::QpHints hints;  // the values of mrc->qp_hint
};

class QueuePair {
 public:
  QueuePair() = default;
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  // `setup` comes back with what was granted.
  int create(std::shared_ptr<nic::Device> device, Dialect dialect, nic::QpSetup& setup);

  nic::QueuePair& nic() const { return *address_; }
  Dialect dialect() const { return dialect_; }
  std::uint32_t number() const { return static_cast<std::uint32_t>(address_->number()); }
  ibv_qp_state state() const;

  int modify(const QpChange& change);
  void query(ibv_qp_attr& verbs, mrc_qp_attr& mrc);

  // True once after each time the queue pair was set up: for whoever explains a failure.
  bool first_failure() { return !failure_told_.exchange(true); }

  // Ends the queue pair; waits until its asynchronous events are acknowledged, for which nic()
  // still names it.
  void destroy() { pair_.reset(); }

 private:
  struct Attributes {
    ibv_qp_attr verbs{};
    mrc_qp_attr mrc{};
    core::QpHints hints;
    bool has_peer = false;
    bool has_access_flags = false;
    // A queue pair that was never told may be written to, as in the published walk-through.
    bool allows_writes() const {
      if (MRC_HOST_BUG(kAccessFlagsIgnored)) return true;
      return !has_access_flags || (verbs.qp_access_flags & IBV_ACCESS_REMOTE_WRITE) != 0;
    }
    int mrc_given = 0;  // which MRC attributes the program has set
  };

  int check_masks(const QpChange& change, ibv_qp_state from, ibv_qp_state to) const;
  int merge(const QpChange& change, Attributes& into) const;
  static void merge_timers(const QpChange& change, Attributes& into);
  int merge_verbs(const QpChange& change, Attributes& into) const;
  int merge_mrc(const QpChange& change, Attributes& into) const;
  int apply(const Attributes& wanted, ibv_qp_state from, ibv_qp_state to);
  int explain_profiles(const nic::QpProfiles& profiles) const;
  int to_init(const Attributes& wanted);
  int to_rtr(const Attributes& wanted);
  int to_rts(const Attributes& wanted);
  void set_defaults(Attributes& attributes) const;

  std::shared_ptr<nic::Device> device_;
  Dialect dialect_ = Dialect::kMrc;
  std::unique_ptr<nic::QueuePair> pair_;
  nic::QueuePair* address_ = nullptr;  // of *pair_
  std::mutex mutex_;
  Attributes attributes_;
  std::atomic<bool> failure_told_{false};
};

// Between GIDs and addresses: IPv4 addresses are the mapped ones of IPv6.
wire::IpAddress address_of(const ibv_gid& gid);
ibv_gid gid_of(const wire::IpAddress& address);

// Payload bytes of a verbs MTU, and the largest MTU that fits.
std::uint32_t mtu_bytes(ibv_mtu mtu);
ibv_mtu mtu_within(std::uint32_t bytes);

inline constexpr int kGidCount = 4;  // all the same

}  // namespace mrc::api
