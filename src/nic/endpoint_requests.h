// Requests of a controller to other endpoints, and the answers that come back.
//
// Answers carry the request's id and nothing about the process that sends them, so this table also
// remembers to whom the protocol engine's own port status updates went.
//
// Not thread safe: belongs to whoever holds the engine lock. Waiting for answers is done on
// `answered()`, outside of it.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "base/types.h"
#include "nic/io/backend.h"
#include "wire/packet.h"

namespace mrc::nic {

struct EndpointAnswer;

// Where the answers of one batch go. Shared between the waiting thread and the engine.
struct RequestBatch {
  std::mutex mutex;
  std::condition_variable answered;
  std::vector<EndpointAnswer>* answers = nullptr;
  std::size_t missing = 0;
};

class EndpointRequests {
 public:
  struct Pending {
    PeerName peer;
    wire::EndpointOp op{};
    std::uint16_t user_id = 0;
    TimeNs sent_at = 0;
    RequestBatch* batch = nullptr;
  };

  // Processes that get each other's answers begin with different ids.
  explicit EndpointRequests(std::uint16_t first_id = 0) : next_id_(first_id) {}

  // An id for the wire, or none when 65,536 wait.
  bool add(const Pending& pending, std::uint16_t& id);
  // Forgets what a batch still waits for.
  void forget(const RequestBatch& batch);
  // True when the response answers one of ours; it is then settled.
  bool settle(TimeNs now, const Received& received, const wire::Packet& packet);

  // The engine's own requests.
  void note_sent(std::uint16_t id, const Address& destination) {
    sent_[id % kSent] = {id, destination};
  }
  // Address{} when no such request was sent lately.
  Address destination_of(std::uint16_t id) const {
    const Sent& sent = sent_[id % kSent];
    return sent.id == id ? sent.destination : Address{};
  }

 private:
  static constexpr unsigned kSent = 256;
  struct Sent {
    std::uint16_t id = 0;
    Address destination;
  };

  std::map<std::uint16_t, Pending> pending_;
  std::uint16_t next_id_;
  std::array<Sent, kSent> sent_{};
};

}  // namespace mrc::nic
