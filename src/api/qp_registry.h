// All queue pairs of this process by device and number, so that a completion that failed can be
// explained. Any thread.
#pragma once

#include "api/queue_pair.h"
#include "nic/device.h"

namespace mrc::api {

// Throws std::bad_alloc.
void add_to_registry(nic::Device& device, QueuePair& pair);
void remove_from_registry(nic::Device& device, const QueuePair& pair);

// Says in the log, at `warn`, why a queue pair failed; once, whoever finds out first.
void log_failure(nic::Device& device, QpNumber number);

}  // namespace mrc::api
