// Events of EVs from any process to the listeners of a node, through one named pipe per listener
// in events/. A pipe holds thousands of them, where a datagram socket holds ten.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "node/node_state.h"

namespace mrc::node {

// Threads: any.
class EventSender {
 public:
  explicit EventSender(std::string directory);
  // To everybody who listens, without waiting for anybody.
  void send(const NodeEvEvent& event);

 private:
  const std::string directory_;
  const std::uint64_t id_;  // tells listeners which sequence an event belongs to
  std::mutex mutex_;
  // Sent or lost so far, by listener, so that it notices what it missed.
  std::map<std::string, std::uint64_t> sequence_;
};

// None on failure; errno says why.
std::unique_ptr<NodeState::Listener> open_listener(const std::string& directory,
                                                   std::size_t capacity);

}  // namespace mrc::node
