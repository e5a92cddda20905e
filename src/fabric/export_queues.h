// What a switch needs beside its table: which packets go first, how long queues may be, where
// marking begins, what is trimmed. In the words of Linux (`tc`) and SONiC, from the values of
// queue_policy.h.
#pragma once

#include <span>
#include <string>

#include "fabric/queue_policy.h"
#include "wire/frame.h"

namespace mrc::fabric {

// One port and what its queues are to do.
struct PortQueues {
  std::string port;
  QueuePolicy policy;
};

// A shell script of `tc` commands. Linux cannot trim: what finds no room is dropped.
std::string tc_script(const std::string& switch_name, std::span<const PortQueues> ports,
                      const wire::DscpMap& dscp);

// Tables of config_db.json, without the braces around them and with no comma behind the last.
std::string sonic_queue_tables(std::span<const PortQueues> ports, const wire::DscpMap& dscp);

}  // namespace mrc::fabric
