// A queue pair: the rings programs post into, and what the engine keeps beside the protocol's own
// state.
//
// Posting. A poster writes a slot under `post_lock_`, publishes it by moving `sends_posted_` (or
// `receives_posted_`), and rings: the queue pair is a doorbell of its engine. The engine takes
// slots in order, under its lock. A slot is in use from posting until its credit returns, so the
// engine and the protocol refer to it by number for as long as they need it, retransmissions
// included.
//
// Credits. A request takes one. The credit of a receive or of a signaled send comes back when its
// completion is polled, together with those of the unsignaled sends before it. Unsignaled sends
// alone therefore fill the queue, as in verbs: every so often one must be signaled.
//
// Locks: post_lock_, then the engine lock. `e` belongs to the engine lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nic/completion_queue.h"
#include "nic/device.h"
#include "nic/engine/engine_inbox.h"
#include "nic/engine/engine_telemetry.h"
#include "nic/mapped_memory.h"
#include "nic/path_profile.h"
#include "nic/profile_use.h"
#include "os/spin_lock.h"

namespace mrc::nic {

inline constexpr unsigned kMaxGather = 16;

constexpr bool is_send(SendKind kind) {
  return kind == SendKind::kSend || kind == SendKind::kSendImmediate;
}
constexpr bool has_immediate(SendKind kind) {
  return kind == SendKind::kWriteImmediate || kind == SendKind::kSendImmediate;
}

struct SendSlot {
  std::uint64_t id = 0;
  std::uint64_t remote_address = 0;
  mutable TimeNs taken_at = 0;  // by the engine, which writes this alone
  std::uint32_t remote_key = 0;
  std::uint32_t immediate = 0;
  std::uint32_t length = 0;
  std::uint32_t pieces = 0;
  SendKind kind = SendKind::kWrite;
  bool signaled = true;
  bool solicited = false;
};

struct ReceiveSlot {
  std::uint64_t id = 0;
  std::uint32_t pieces = 0;
  std::uint32_t capacity = 0;
};

// The last byte of a write that arrived before something sent earlier.
struct HeldByte {
  Psn psn;
  std::uint32_t remote_key = 0;
  std::byte* target = nullptr;
  std::byte value{};
};

// A receive that is done and shall be reported behind the sends posted before it was.
struct WaitingReceive {
  core::Completion completion;
  std::uint64_t after_sends = 0;
  TimeNs until = 0;  // no longer than that
};

// The engine finds new work by its doorbell.
class QueuePairImpl final : public QueuePair, public Doorbell {
 public:
  QueuePairImpl(std::shared_ptr<DeviceImpl> device, const QpSetup& setup);
  ~QueuePairImpl() override;
  QueuePairImpl(const QueuePairImpl&) = delete;
  QueuePairImpl& operator=(const QueuePairImpl&) = delete;

  QpNumber number() const override { return number_; }
  core::QpState state() const override { return state_.load(); }
  const QpSetup& setup() const override { return setup_; }
  int to_init(const QpProfiles& profiles) override;
  int to_rtr(const QpPeer& peer) override;
  int to_rts(const core::QpReadyToSend& settings) override;
  int to_error() override;
  int to_reset() override;
  void allow_remote_writes(bool allowed) override;
  int post_sends(std::span<const SendWork> work, std::size_t& posted) override;
  int post_receives(std::span<const ReceiveWork> work, std::size_t& posted) override;
  QpReport report() override;
  int totals(QpTotals& totals) override;

  void return_credits(std::uint32_t sends, std::uint32_t receives);

  // The engine that carries this queue pair; its lock is "the engine lock" of what follows.
  Engine& engine() const { return *engine_; }

  // --- Under the engine lock from here on.
  // Gives the queue pair its number and enters it into the engine. 0 or an errno.
  int enter();

  std::uint64_t sends_posted() const { return sends_posted_.load(); }
  std::uint64_t receives_posted() const { return receives_posted_.load(); }
  std::uint32_t send_slot_of(std::uint64_t count) const {
    return static_cast<std::uint32_t>(count % sends_.size());
  }
  std::uint32_t receive_slot_of(std::uint64_t count) const {
    return static_cast<std::uint32_t>(count % receives_.size());
  }
  const SendSlot& send(std::uint32_t slot) const { return sends_[slot]; }
  std::uint64_t packets_of(const SendSlot& send) const { return send.length / e.rtr.path_mtu + 1; }
  const ReceiveSlot& receive(std::uint32_t slot) const { return receives_[slot]; }
  CompletionQueueImpl& send_cq() const { return *send_cq_; }
  CompletionQueueImpl& receive_cq() const { return *receive_cq_; }
  void set_state(core::QpState state) { state_.store(state); }

  // Bytes `offset`.. of a send as pieces of program memory; 0 pieces when some of it is gone.
  using Pieces = std::array<std::span<const std::byte>, kMaxGather>;
  unsigned gather(std::uint32_t slot, std::uint32_t offset, std::uint32_t length,
                  MappedMemory& memory, Pieces& pieces) const;

  // The other way: into the buffers of a receive, which must be there.
  struct Part {
    std::uint64_t offset = 0;
    std::size_t length = 0;
  };
  bool can_scatter(std::uint32_t slot, const Part& part, MappedMemory& memory) const;
  void scatter(std::uint32_t slot, std::uint64_t offset, std::span<const std::byte> bytes) const;

  struct EngineSide {
    PeerName remote;
    std::optional<std::uint8_t> dscp;  // QpPeer::dscp
    Address remote_address;
    bool connected = false;
    bool remote_writes = true;
    std::shared_ptr<PathProfile> paths;
    ProfileUse use;
    core::CcProfile cc;
    std::uint64_t sends_taken = 0;
    std::uint64_t receives_taken = 0;
    std::uint64_t sends_done = 0;
    std::vector<WaitingReceive> waiting;  // oldest first; room for all receives
    std::uint32_t silent_credits = 0;     // of unsignaled sends done since the last reported one
    core::QpReadyToReceive rtr;
    core::QpReadyToSend rts;
    std::vector<HeldByte> held;  // room for a whole window; only with last_byte_last
    TimeNs last_heard = 0;
    PortId last_heard_port = kNoPort;
    PortMask gone_planes;                  // without a usable path
    PortMask silent_planes;                // of these, told to the device's PlaneWatch
    bool peer_takes_header_check = false;  // as its last packet said
    bool failing_on_request = false;
    core::CompletionStatus failure = core::CompletionStatus::kSuccess;
    std::string explanation;
    ToldCounters told;
  } e;

 private:
  int init(const QpProfiles& profiles);
  int ready_to_receive(const QpPeer& peer);
  int give_up();
  int check_send(const SendWork& work, std::uint32_t& length) const;
  void fill_send(const SendWork& work, std::uint32_t length);
  int check_receive(const ReceiveWork& work, std::uint32_t& capacity) const;
  bool may_wait(std::size_t posted);
  bool covered(const Buffer& buffer, bool for_writing) const;
  template <typename Visit>
  bool visit_receive(std::uint32_t slot, const Part& part, Visit visit) const;
  void disconnect();
  void forget_work();
  QpReport build_report();

  std::shared_ptr<DeviceImpl> device_;
  Engine* engine_;
  QpSetup setup_;
  QpNumber number_{};
  CompletionQueueImpl* send_cq_;
  CompletionQueueImpl* receive_cq_;
  std::atomic<core::QpState> state_{core::QpState::kReset};
  std::atomic<bool> accepts_immediates_{true};  // the peer can stash some

  os::SpinLock post_lock_;
  std::uint32_t waiting_ = 0;  // posted since the engine was last called
  std::vector<SendSlot> sends_;
  std::vector<Buffer> send_pieces_;           // max_send_buffers a slot
  std::unique_ptr<std::byte[]> inline_data_;  // max_inline a slot
  std::vector<ReceiveSlot> receives_;
  std::vector<Buffer> receive_pieces_;
  std::atomic<std::uint64_t> sends_posted_{0};
  std::atomic<std::uint64_t> sends_returned_{0};
  std::atomic<std::uint64_t> receives_posted_{0};
  std::atomic<std::uint64_t> receives_returned_{0};
};

}  // namespace mrc::nic
