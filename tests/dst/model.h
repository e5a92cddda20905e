// All connections of a run, and which queue pair numbers lead to them at the moment.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/types.h"
#include "dst/connection.h"

namespace mrc::dst {

class Model {
 public:
  Connection& add(Connection connection);

  Connection& connection(std::uint32_t uid) { return connections_[uid]; }
  const Connection& connection(std::uint32_t uid) const { return connections_[uid]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(connections_.size()); }

  End& end(EndRef ref) { return connections_[ref.connection].ends[ref.side]; }
  const End& end(EndRef ref) const { return connections_[ref.connection].ends[ref.side]; }
  // The flow that leaves this end, and the one that arrives at it.
  Flow& outgoing(EndRef ref) { return connections_[ref.connection].flows[ref.side]; }
  Flow& incoming(EndRef ref) { return outgoing(ref.peer()); }

  // Each send that has to be reported was: all of them after a failure, the signaled ones
  // otherwise.
  bool all_reported(EndRef ref) const;

  // The end that this number leads to on that host, if it exists and was not destroyed.
  std::optional<EndRef> find(unsigned host, QpNumber number) const;
  // Forgets the number; the end is gone.
  void remove(EndRef ref);

  // Ends that exist, in order of creation.
  std::vector<EndRef> ends() const;
  std::vector<EndRef> ends_of(unsigned host) const;

  std::uint64_t next_message_uid() { return next_message_uid_++; }

 private:
  static std::uint64_t key(unsigned host, QpNumber number) {
    return (std::uint64_t{host} << 32) | static_cast<std::uint64_t>(number);
  }

  std::deque<Connection> connections_;
  std::unordered_map<std::uint64_t, EndRef> by_number_;  // never iterated
  std::uint64_t next_message_uid_ = 1;
};

}  // namespace mrc::dst
