// One MRC queue pair with its completion queue, protection domain and a small ring of memory that
// the peer may write to. Both ends of a connection are built on it.
//
// Belongs to the thread that sends and receives on the connection; memory may be registered by
// another one meanwhile.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "adapter.h"
#include "agreement.h"
#include "messages.h"
#include "mrc.h"
#include "nccl_net.h"

namespace mrc::nccl {

struct QueuePairOptions {
  unsigned max_sends = 0;
  unsigned max_receives = 0;
  std::size_t ring_bytes = 0;     // the peer writes here
  std::size_t staging_bytes = 0;  // we send control data from here
  int traffic_class = kTrafficClassUndefined;
  mrc_qp_hint_attr hint{};
};

struct Write {
  std::uint64_t id = 0;
  const void* data = nullptr;
  std::uint32_t size = 0;
  std::uint32_t local_key = 0;
  std::uint64_t remote_address = 0;
  std::uint32_t remote_key = 0;
};

class QueuePair {
 public:
  // None: the reason has been logged.
  static std::unique_ptr<QueuePair> create(std::shared_ptr<Adapter> adapter,
                                           const QueuePairOptions& options);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  // What the peer must know; kind and cookie are the caller's.
  Message introduction() const;
  // Whether packets of the two are understood at the other end; where not, the log says why.
  // 0 or an errno.
  int compare(const Message& peer) const;
  // Makes it ready for use, receives posted. 0 or an errno.
  int connect(const Message& peer);

  // Both 0 or an errno. Completions come for every write, with its id, in the order of posting.
  int post_write(const Write& write);
  int post_write_with_immediate(const Write& write, std::uint32_t immediate);
  int post_receive();
  unsigned free_sends() const { return max_sends_ - sends_under_way_; }

  // How many completions there are, at most `out.size()`; negative: the queue is broken. An empty
  // queue lets the device do its work.
  int poll(std::span<ibv_wc> out);

  std::byte* ring() { return memory_.get(); }
  std::byte* staging() { return memory_.get() + ring_bytes_; }
  std::uint32_t staging_key() const { return own_memory_->lkey; }
  std::uint64_t remote_ring() const { return remote_ring_; }
  std::uint32_t remote_ring_key() const { return remote_ring_key_; }
  Adapter& adapter() { return *adapter_; }
  ibv_pd* domain() { return domain_; }

 private:
  QueuePair(std::shared_ptr<Adapter> adapter, const QueuePairOptions& options);
  int build();
  int to_init();
  int to_ready_to_receive(const Message& peer, const Agreement& agreed);
  int to_ready_to_send(const Agreement& agreed);
  int post(const Write& write, ibv_wr_opcode opcode, std::uint32_t immediate);

  std::shared_ptr<Adapter> adapter_;
  unsigned max_sends_;
  unsigned max_receives_;
  std::size_t ring_bytes_;
  std::size_t memory_bytes_;
  int traffic_class_;
  mrc_qp_hint_attr hint_attr_;

  std::unique_ptr<std::byte[]> memory_;  // NOLINT(modernize-avoid-c-arrays): ring, then staging
  ibv_pd* domain_ = nullptr;
  ibv_mr* own_memory_ = nullptr;
  mrc_cq* completions_ = nullptr;
  mrc_qp_hint* hint_ = nullptr;
  mrc_qp* pair_ = nullptr;
  std::uint32_t number_ = 0;
  std::uint32_t first_psn_ = 0;
  std::uint8_t window_ = 0;  // of the device, as long as nobody asks for another
  unsigned sends_under_way_ = 0;
  std::uint64_t remote_ring_ = 0;
  std::uint32_t remote_ring_key_ = 0;
};

}  // namespace mrc::nccl
