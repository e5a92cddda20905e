// The software NIC: one device of this process, its memory, queue pairs and completion queues.
//
// The C API and the verbs shim are thin layers over this header. The engine thread of a device, or
// several (docs/nic.md), makes progress without the program's help and sleeps when there is nothing
// to do. A program that polls a completion queue or posts work does the engine's work itself
// whenever the engine lock is free, so that a hard-polling program never waits for another thread
// to be scheduled.
//
// Threads: every function may be called from any thread. Lock order: object locks before the engine
// lock; the engine lock is never held across a call into the program.
// Errors are errno values, 0 is success; a refused call has changed nothing. Memory exhaustion is
// ENOMEM. After fork() a child's calls on its parent's devices give EIO and touch nothing shared.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"
#include "core/config.h"
#include "core/counters.h"
#include "core/endpoint.h"
#include "core/work.h"
#include "nic/io/backend.h"
#include "nic/plane_watch.h"
#include "node/config.h"
#include "node/node_state.h"

namespace mrc::nic {

class Device;
class QueuePair;
class CompletionQueue;

// --- Work and completions ---

struct Buffer {
  const std::byte* address = nullptr;
  std::uint32_t length = 0;
  std::uint32_t key = 0;  // local key; checked at post for range and domain
};

enum class SendKind : std::uint8_t {
  kWrite,
  kWriteImmediate,
  kSend,  // the last two only between queue pairs created with allow_sends at both ends
  kSendImmediate,
};

struct SendWork {
  std::uint64_t id = 0;
  SendKind kind = SendKind::kWrite;
  std::span<const Buffer> buffers;  // copied; the bytes must stay until completion
  bool inline_data = false;         // the bytes are copied too; keys are not looked at
  bool signaled = true;
  bool solicited = false;
  std::uint64_t remote_address = 0;
  std::uint32_t remote_key = 0;
  std::uint32_t immediate = 0;
};

struct ReceiveWork {
  std::uint64_t id = 0;
  std::span<const Buffer> buffers;  // only kSend lands here; may be empty
};

// Mirrors what a program sees in an ibv_wc; the layers above only rename.
struct WorkCompletion {
  std::uint64_t id = 0;
  core::CompletionStatus status = core::CompletionStatus::kSuccess;
  SendKind kind = SendKind::kWrite;  // for receives: the peer's operation
  bool receive = false;
  bool has_immediate = false;
  std::uint32_t immediate = 0;
  std::uint32_t length = 0;
  QpNumber qp{};
};

// --- Completion queues ---

// Notifications of any number of completion queues on one descriptor (an eventfd in semaphore style
// or a pipe; readable while an event waits).
class CompletionChannel {
 public:
  static int create(std::shared_ptr<CompletionChannel>& out);
  virtual ~CompletionChannel() = default;
  virtual int descriptor() const = 0;
  // Blocks unless the descriptor is O_NONBLOCK (then EAGAIN). Gives the queue's user pointer as
  // passed to create_completion_queue.
  virtual int wait(void*& cq_cookie) = 0;
  virtual unsigned users() const = 0;  // completion queues attached
};

class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;
  // Up to out.size() completions, oldest first; 0 when there is none; drives the engine when empty.
  // A negative value is -errno: the queue overran (EOVERFLOW) and is broken, as in verbs.
  virtual int poll(std::span<WorkCompletion> out) = 0;
  virtual int request_notification(bool solicited_only) = 0;
  virtual unsigned depth() const = 0;
  virtual int resize(unsigned depth) = 0;
  virtual unsigned users() const = 0;  // queue pairs attached
  virtual void acknowledge(unsigned events) = 0;
  virtual void wait_acknowledged() = 0;  // until every event taken from the channel is acked
};

// --- Queue pairs ---

struct QpSetup {
  std::uint32_t domain = 0;
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* receive_cq = nullptr;
  std::uint32_t max_sends = 128;
  std::uint32_t max_receives = 128;
  std::uint32_t max_send_buffers = 1;
  std::uint32_t max_receive_buffers = 1;
  std::uint32_t max_inline = 0;  // bytes; read back what was granted
  bool signal_all = false;
  // For queue pairs of ordinary verbs programs: SEND and RECEIVE work, and the last byte of a write
  // becomes visible after all others of the queue pair so far.
  bool allow_sends = false;
  bool last_byte_last = false;
};

struct QpProfiles {
  std::uint64_t ev_profile = 0;  // 0 = none: paths by hash, chosen by the device (AUTO)
  std::uint64_t cc_profile = 0;  // 0 = the device's own
  bool has_ev_profile = false;
  bool has_cc_profile = false;
  core::QpHints hints;
};

// INIT -> RTR as a program says it; the device adds what it knows.
struct QpPeer {
  wire::IpAddress gid;
  // Of data that switches may not trim; without it the device's. What can be trimmed keeps the
  // device's code points, since switches know it by them.
  std::optional<std::uint8_t> dscp;
  core::QpReadyToReceive settings;  // `remote` is filled in by the device
};

struct PathReport {
  PortId port = kNoPort;
  std::uint32_t entropy = 0;
  core::EvState state = core::EvState::kGood;
  core::EvCounters counters;
};

// Everything a person needs to understand a failure: kept when a queue pair fails.
struct QpReport {
  core::QpStatus status;
  wire::IpAddress peer;
  QpNumber remote_qp{};
  std::vector<PathReport> paths;
  unsigned unusable_evs =
      0;  // of the profile: on ports that the device has not, or without a socket
  core::CompletionStatus failure = core::CompletionStatus::kSuccess;
  std::string explanation;  // peer, plane, EV and path, last RTT, retries and a hint, in words
};

// What a program may know about a queue pair while it runs. Counters begin anew with a reset.
struct QpTotals {
  core::QpStatus status;
  std::array<std::uint32_t, core::kEvStateCount> paths{};  // how many are in each core::EvState
};

class QueuePair {
 public:
  virtual ~QueuePair() = default;
  virtual QpNumber number() const = 0;
  virtual core::QpState state() const = 0;  // becomes kError by itself when the peer is lost
  virtual const QpSetup& setup() const = 0;

  virtual int to_init(const QpProfiles& profiles) = 0;
  virtual int to_rtr(const QpPeer& peer) = 0;
  virtual int to_rts(const core::QpReadyToSend& settings) = 0;
  virtual int to_error() = 0;
  virtual int to_reset() = 0;
  // Whether the peer may write here at all; it may until told otherwise, and again after a reset.
  virtual void allow_remote_writes(bool allowed) = 0;

  // All or up to the first bad one: `posted` says how many were taken. ENOMEM: queue full. EINVAL:
  // wrong state, buffers, keys or operation. Both are safe against concurrent posters.
  virtual int post_sends(std::span<const SendWork> work, std::size_t& posted) = 0;
  virtual int post_receives(std::span<const ReceiveWork> work, std::size_t& posted) = 0;

  virtual QpReport report() = 0;
  virtual int totals(QpTotals& totals) = 0;  // EIO in a child of fork
};

// --- The device ---

struct MemoryKeys {
  std::uint32_t local = 0;
  std::uint32_t remote = 0;
};

enum class AsyncKind : std::uint8_t { kQpFatal, kCqError, kPortActive, kPortError, kDeviceFatal };
struct AsyncEvent {
  AsyncKind kind = AsyncKind::kQpFatal;
  QueuePair* qp = nullptr;
  CompletionQueue* cq = nullptr;
  PortId port = kNoPort;
};

// A stream of asynchronous events, one per context of a program.
class AsyncEvents {
 public:
  virtual ~AsyncEvents() = default;
  virtual int descriptor() const = 0;     // readable while an event waits
  virtual int wait(AsyncEvent& out) = 0;  // blocks, or EAGAIN when the descriptor is O_NONBLOCK
  // A queue pair or completion queue with unacknowledged events cannot be destroyed; destroying
  // waits.
  virtual void acknowledge(const AsyncEvent& event) = 0;
};

// An endpoint request of a controller and its answer.
struct EndpointRequest {
  std::uint16_t id = 0;
  wire::IpAddress peer;
  PortId port{1};
  wire::EvKind kind{};
  wire::EvValue ev;
  bool port_status = false;  // otherwise an EV probe
  PortMask ports;
  std::uint8_t dscp = 0;  // of the request
};
struct EndpointAnswer {
  std::uint16_t id = 0;
  PortId port{1};  // it arrived on
  DurationNs rtt_ns = 0;
  bool service_time_subtracted = false;  // the peer told how long it took to answer
};

struct DeviceLimits {
  unsigned max_qps = 65'536;
  unsigned max_cqs = 65'536;
  unsigned max_cq_depth = 1U << 22;
  unsigned max_regions = 65'536;
  unsigned max_sends = 16'384;
  unsigned max_buffers = 16;
  unsigned max_inline = 512;
  std::uint16_t max_immediates = 1'024;
  std::uint8_t max_window_units = 255;
};

struct PortReport {
  PortId port{1};
  node::PlaneConfig plane;
  bool enabled = true;  // by the controller
  bool link_up = true;
  core::PortCounters counters;
};

struct DeviceReport {
  ProcessNumber process = 0;  // of the first engine
  unsigned threads = 0;       // engines, each with a thread; the counters below are sums over them
  std::uint32_t path_mtu = 0;
  std::uint64_t port_bits_per_second = 0;
  std::vector<PortReport> ports;
  core::EndpointCounters engine;
  BackendCounters backend;
  unsigned queue_pairs = 0;
  seal::Stance stance;  // whether packets are sealed, and with which keys now
};

class Device {
 public:
  // The device of this process by that configuration, opened on first use and shared afterwards;
  // it ends, its thread included, with the last reference. `error` is one line for a person.
  static std::shared_ptr<Device> open(const node::DeviceConfig& config, std::string& error);
  virtual ~Device() = default;

  virtual const node::DeviceConfig& config() const = 0;
  virtual const DeviceLimits& limits() const = 0;
  virtual wire::IpAddress gid() const = 0;
  virtual bool port_active(PortId port) const = 0;  // enabled and link up
  virtual std::uint32_t path_mtu() const = 0;
  virtual std::uint64_t port_bits_per_second() const = 0;
  virtual node::NodeState& node() = 0;

  virtual std::uint32_t new_domain() = 0;
  virtual int register_memory(std::uint32_t domain, void* address, std::size_t length,
                              std::uint64_t io_address, bool local_write, bool remote_write,
                              MemoryKeys& out) = 0;
  // When it returns no packet in any thread reads or writes the region any more.
  virtual int deregister_memory(const MemoryKeys& keys) = 0;

  virtual int create_completion_queue(unsigned depth, void* cookie,
                                      std::shared_ptr<CompletionChannel> channel,
                                      std::unique_ptr<CompletionQueue>& out) = 0;
  virtual int create_queue_pair(QpSetup& setup, std::unique_ptr<QueuePair>& out) = 0;
  virtual std::unique_ptr<AsyncEvents> subscribe() = 0;

  // Sends all requests and waits for their answers, at most `timeout_ns`. ETIMEDOUT when some are
  // missing; those that came are in `answers`, in order of arrival.
  virtual int endpoint_requests(std::span<const EndpointRequest> requests, DurationNs timeout_ns,
                                std::vector<EndpointAnswer>& answers) = 0;

  virtual DeviceReport report() = 0;
  // For whoever can tell people of planes that fell silent.
  virtual PlaneWatch& planes() = 0;
};

}  // namespace mrc::nic
