// Work requests and completions of verbs, from and to those of the NIC.
#pragma once

#include <infiniband/verbs.h>

#include "api/queue_pair.h"
#include "nic/device.h"

namespace mrc::api {

// Both take the requests before the first bad one, put that in *bad and return why. EOPNOTSUPP: an
// operation that the dialect does not have. Others as nic::QueuePair has them.
int post_sends(QueuePair& pair, ibv_send_wr* first, ibv_send_wr** bad);
int post_receives(QueuePair& pair, ibv_recv_wr* first, ibv_recv_wr** bad);

// How many completions were written to `out`, or a negative errno. Failures are logged.
int poll_completions(nic::Device& device, nic::CompletionQueue& queue, int count, ibv_wc* out);

ibv_wc_status wc_status(core::CompletionStatus status);

}  // namespace mrc::api
