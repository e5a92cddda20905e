/* What two processes must tell each other before they can use MRC, over a TCP connection, and what
 * they do with it. */
#pragma once

#include <mrc.h>
#include <stdint.h>

/* One side's queue pair and buffer. */
struct endpoint {
  uint32_t qpn;
  uint32_t psn;
  union ibv_gid gid;
  uint64_t address;
  uint32_t rkey;
};

/* Connects to `host`, a dotted IPv4 address, or waits for a connection when it is NULL. The
 * descriptor, or -1 with a message on stderr. */
int connect_peer(const char* host, uint16_t port);

/* Sends ours and receives theirs. 0, or -1 with a message. */
int exchange_endpoints(int peer, const struct endpoint* ours, struct endpoint* theirs);

/* Takes a new queue pair to where it sends to theirs and lets them write. 0, or -1 with a message.
 */
struct way {
  enum ibv_mtu mtu;
  uint8_t gid_index;
};
int connect_queue_pair(struct mrc_qp* qp, const struct endpoint* ours,
                       const struct endpoint* theirs, struct way way);

/* Returns when both sides have called it. 0, or -1 with a message. */
int exchange_word(int peer, uint32_t ours, uint32_t* theirs);
