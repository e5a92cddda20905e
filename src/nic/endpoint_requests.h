// Requests of a controller to other endpoints, and the answers that come back.
//
// Answers carry the request's id and nothing about the process that sends them, so this table also
// remembers to whom the protocol engine's own port status updates went.
//
// Of port status a peer believes only what is newer than what it has, and says so by answering with
// the id of that (core/port_status.h). The engine's ids begin anywhere, a controller's with 0:
// every second time a peer that has heard the engine takes a controller's word for old. So a
// request that is refused goes on behind the id that is believed, as the engine's do, and leaves
// room there: what the engine says next is taken for old, not for the same once more, and goes on
// behind it. A claim that ports are down is answered with a challenge instead, which an id right
// behind it meets: the first refusal leaves room, those after that none. At most four are needed:
// beyond the challenge, half round, what is believed, the challenge.
//
// Not thread safe: belongs to whoever holds the engine lock. Waiting for answers is done on
// `answered()`, outside of it.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "base/types.h"
#include "core/tx_packet.h"
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
    wire::EndpointOp op{};
    std::uint16_t user_id = 0;
    PortMask ports;  // of a port status
    Route route;     // its `srv6` belongs to who waits for the batch
    core::TrafficClass traffic_class{};
    TimeNs sent_at = 0;
    RequestBatch* batch = nullptr;
    unsigned refusals = 0;
  };

  // Processes that get each other's answers begin with different ids.
  explicit EndpointRequests(std::uint16_t first_id = 0) : next_id_(first_id) {}

  // An id for the wire, or none when 65,536 wait.
  bool add(const Pending& pending, std::uint16_t& id);
  // The request with this id, as a packet.
  void send(std::uint16_t id, TimeNs now, std::uint8_t vendor_info, Backend& backend);
  // What of a batch is news, and not answered, once more.
  void repeat_news(const RequestBatch& batch, TimeNs now, std::uint8_t vendor_info,
                   Backend& backend);
  // Forgets what a batch still waits for.
  void forget(const RequestBatch& batch);
  // True when the response answers one of ours; it is then settled.
  bool settle(TimeNs now, const Received& received, const wire::Packet& packet);
  // The response refuses a port status of ours: the id with which that is to be sent again.
  std::optional<std::uint16_t> id_behind(const Received& received, const wire::Packet& packet);

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
  // Whoever answers with ever newer ids is not followed for ever.
  static constexpr unsigned kMostRefusals = 6;
  static constexpr std::uint16_t kRoom = 256;
  struct Sent {
    std::uint16_t id = 0;
    Address destination;
  };

  std::map<std::uint16_t, Pending> pending_;
  std::uint16_t next_id_;
  std::array<Sent, kSent> sent_{};
};

}  // namespace mrc::nic
