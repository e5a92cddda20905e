// What both ends of a connection share: the queue pair, the TCP stream that shows whether the peer
// lives, registered memory, and how trouble is noticed and told.
//
// Trouble is given a moment before it counts: a peer that finished and closed says so on the stream
// (bye), which may come a little later than the end of its queue pair.
//
// One thread sends, receives and tests; another one may register memory. Both ends are closed when
// no other thread is inside.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#include "nccl_net.h"
#include "queue_pair.h"
#include "stream.h"

namespace mrc::nccl {

class Connection;

// What NCCL holds as a request.
struct Request {
  Connection* owner = nullptr;
  bool in_use = false;
  bool done = false;
};

// Registered memory; NCCL holds it as a handle.
struct MemoryHandle {
  ibv_mr* region = nullptr;  // none: empty memory
  std::uint32_t local_key() const { return region == nullptr ? 0 : region->lkey; }
  std::uint32_t remote_key() const { return region == nullptr ? 0 : region->rkey; }
};

struct ConnectionParts {
  std::unique_ptr<QueuePair> pair;
  Stream stream;
  std::string peer;  // for people
};

// Logs what a new connection is made of, and what about it is not as it should be.
void log_connected(QueuePair& pair, const Message& peer, const char* direction);
// How the peer is called in messages.
std::string peer_text(const Message& peer);

class Connection {
 public:
  explicit Connection(ConnectionParts parts);
  virtual ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Result register_memory(void* data, std::size_t size, int type, void** handle);
  Result deregister_memory(void* handle);

  // Says that a request is done and how much came, and makes it free; or drives the device.
  virtual Result test(Request& request, int* done, int* sizes) = 0;
  // Tells the peer that this was the end.
  void say_bye();

 protected:
  // kSuccess unless the connection is broken.
  Result failure() const { return failure_; }
  // Takes completions and lets the device work; then as failure().
  Result progress();
  // Breaks the connection and logs why; gives `result`, or that of the first failure.
  [[gnu::format(printf, 3, 4)]] Result fail(Result result, const char* format, ...);
  QueuePair& pair() { return *pair_; }
  const std::string& peer() const { return peer_; }

  virtual void on_completion(const ibv_wc& done) = 0;
  // The peer closed after it had received so many whole messages.
  virtual void on_bye(std::uint64_t messages_received) = 0;
  virtual std::uint64_t messages_received() const = 0;

 private:
  void on_error(const ibv_wc& failed);
  void look_after_peer();
  void note_trouble(Result result, std::string text);

  std::unique_ptr<QueuePair> pair_;
  Stream stream_;
  std::string peer_;

  Result failure_ = Result::kSuccess;
  Result trouble_ = Result::kSuccess;  // becomes a failure after a moment
  std::string trouble_text_;
  std::uint64_t trouble_since_ms_ = 0;
  std::uint64_t next_look_ms_ = 0;
  unsigned empty_polls_ = 0;

  std::mutex memory_mutex_;
  std::unordered_set<MemoryHandle*> memory_;
};

}  // namespace mrc::nccl
