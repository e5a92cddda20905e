// Chunks to and from one other rank, in order, over one queue pair.
//
// The receiver owns a ring of slots. A chunk is one WRITE_WITH_IMM into the next slot; its number
// is the immediate. When slots have been emptied the receiver says so with an immediate of its own
// (a credit), so that a slot is never written before it is free, and an immediate never comes
// without a receive. Bytes leave from the sender's registered memory, which must not change until
// completed() says that they arrived.
//
// Not thread safe. Completions are handed in by the communicator, which owns the completion queue.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "collective/device.h"

namespace mrc::collective {

struct ChannelShape {
  std::uint32_t chunk_bytes = 65'536;
  unsigned slots = 16;

  // Work requests that may be under way in each direction: chunks and, beside them, credits.
  unsigned depth() const { return 2 * slots + kForCredits; }
  static constexpr unsigned kForCredits = 4;
};

class Channel {
 public:
  // `index` comes back in completions (see channel_of).
  Channel(const Device& device, mrc_cq* cq, unsigned index, const ChannelShape& shape,
          const QpProfileIds& profiles);

  // What the rank at the other end must know.
  nlohmann::json address() const;
  // Throws Failure when `peer` is no such address or has another shape; `name` is for errors.
  void connect(const nlohmann::json& peer, const std::string& name);
  const std::string& peer() const { return peer_; }
  mrc_qp* queue_pair() const { return qp_.get(); }

  bool can_send() const {
    return sent_ < granted_ && under_way_ + ChannelShape::kForCredits < shape_.depth();
  }
  void send(std::span<const std::byte> chunk, std::uint32_t key);
  // Chunks posted, and of these arrived in the peer's memory.
  std::uint64_t sent() const { return sent_; }
  std::uint64_t completed() const { return completed_; }

  // Whether the next chunk is here, and the chunk; it must have `bytes` bytes.
  bool has_chunk() const { return taken_ < arrived_; }
  std::span<const std::byte> chunk(std::size_t bytes) const;
  // The slot is free again.
  void release();

  void on_completion(const ibv_wc& wc);
  static unsigned channel_of(const ibv_wc& wc) { return static_cast<unsigned>(wc.wr_id >> 2); }
  std::uint64_t bytes_received() const { return bytes_received_; }

 private:
  enum class Work : std::uint64_t { kChunk, kCredit, kReceive };

  std::uint64_t id_of(Work work) const {
    return std::uint64_t{index_} << 2 | static_cast<std::uint64_t>(work);
  }
  std::span<const std::byte> slot(std::uint64_t number) const;
  void post_receives(unsigned count);
  void on_receive(const ibv_wc& wc);
  void give_credit();
  [[noreturn]] void fail(const ibv_wc& wc) const;

  const Device& device_;
  unsigned index_;
  ChannelShape shape_;
  std::vector<std::byte> slots_;
  std::vector<std::uint32_t> lengths_;  // of the chunks in the slots
  Owned<ibv_mr> region_;
  Owned<mrc_qp> qp_;  // goes before the memory that peers write
  std::uint32_t psn_;
  std::uint32_t number_ = 0;

  std::string peer_;
  std::uint64_t peer_slots_ = 0;
  std::uint32_t peer_key_ = 0;

  std::uint64_t sent_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t granted_;
  unsigned under_way_ = 0;  // sends not completed, credits included
  std::uint64_t arrived_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t credited_ = 0;
  std::uint64_t bytes_received_ = 0;
};

}  // namespace mrc::collective
