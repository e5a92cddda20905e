#include "exchange.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_TRIES 100
#define CONNECT_PAUSE_US 100000

static int transfer(int peer, void* data, size_t size, int sending) {
  char* at = data;
  while (size > 0) {
    const ssize_t done =
        sending ? send(peer, at, size, MSG_NOSIGNAL) : recv(peer, at, size, MSG_WAITALL);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      fprintf(stderr, "connection to the peer lost%s%s\n", done < 0 ? ": " : "",
              done < 0 ? strerror(errno) : "");
      return -1;
    }
    at += done;
    size -= (size_t)done;
  }
  return 0;
}

static int wait_for_client(int listener, const struct sockaddr_in* address) {
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(listener, (const struct sockaddr*)address, sizeof *address) != 0 ||
      listen(listener, 1) != 0) {
    fprintf(stderr, "cannot listen on port %u: %s\n", ntohs(address->sin_port), strerror(errno));
    return -1;
  }
  const int peer = accept(listener, NULL, NULL);
  if (peer < 0) fprintf(stderr, "cannot accept: %s\n", strerror(errno));
  return peer;
}

/* The server may not be there yet. */
static int connect_to_server(const struct sockaddr_in* address) {
  for (int i = 0; i < CONNECT_TRIES; ++i) {
    const int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (peer < 0) break;
    if (connect(peer, (const struct sockaddr*)address, sizeof *address) == 0) return peer;
    const int error = errno;
    close(peer);
    errno = error;
    if (error != ECONNREFUSED) break;
    usleep(CONNECT_PAUSE_US);
  }
  fprintf(stderr, "cannot connect to the server: %s\n", strerror(errno));
  return -1;
}

int connect_peer(const char* host, uint16_t port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  if (host != NULL && inet_pton(AF_INET, host, &address.sin_addr) != 1) {
    fprintf(stderr, "%s is not a dotted IPv4 address\n", host);
    return -1;
  }
  if (host != NULL) return connect_to_server(&address);
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) {
    fprintf(stderr, "cannot make a socket: %s\n", strerror(errno));
    return -1;
  }
  const int peer = wait_for_client(listener, &address);
  close(listener);
  return peer;
}

/* Numbers travel in network order. */
struct wire_endpoint {
  uint32_t qpn;
  uint32_t psn;
  uint64_t address;
  uint32_t rkey;
  uint8_t gid[16];
} __attribute__((packed));

int exchange_endpoints(int peer, const struct endpoint* ours, struct endpoint* theirs) {
  struct wire_endpoint wire = {.qpn = htobe32(ours->qpn),
                               .psn = htobe32(ours->psn),
                               .address = htobe64(ours->address),
                               .rkey = htobe32(ours->rkey)};
  memcpy(wire.gid, ours->gid.raw, sizeof wire.gid);
  if (transfer(peer, &wire, sizeof wire, 1) != 0) return -1;
  if (transfer(peer, &wire, sizeof wire, 0) != 0) return -1;
  theirs->qpn = be32toh(wire.qpn);
  theirs->psn = be32toh(wire.psn);
  theirs->address = be64toh(wire.address);
  theirs->rkey = be32toh(wire.rkey);
  memcpy(theirs->gid.raw, wire.gid, sizeof wire.gid);
  return 0;
}

static int step(struct mrc_qp* qp, struct ibv_qp_attr* attr, int mask, const char* to) {
  struct mrc_qp_attr none;
  memset(&none, 0, sizeof none);
  const int error = mrc_modify_qp(qp, attr, IBV_QP_STATE | mask, &none, 0);
  if (error != 0) fprintf(stderr, "to %s: %s\n", to, strerror(error));
  return error == 0 ? 0 : -1;
}

int connect_queue_pair(struct mrc_qp* qp, const struct endpoint* ours,
                       const struct endpoint* theirs, struct way way) {
  struct ibv_qp_attr init = {
      .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
  struct ibv_qp_attr rtr = {
      .qp_state = IBV_QPS_RTR,
      .path_mtu = way.mtu,
      .dest_qp_num = theirs->qpn,
      .rq_psn = theirs->psn,
      .ah_attr = {.is_global = 1,
                  .port_num = 1,
                  .grh = {.dgid = theirs->gid, .sgid_index = way.gid_index, .hop_limit = 64}}};
  struct ibv_qp_attr rts = {
      .qp_state = IBV_QPS_RTS, .sq_psn = ours->psn, .timeout = 14, .retry_cnt = 14, .rnr_retry = 7};
  if (step(qp, &init, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT") != 0)
    return -1;
  if (step(qp, &rtr, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN, "RTR") != 0)
    return -1;
  return step(qp, &rts, IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY,
              "RTS");
}

int exchange_word(int peer, uint32_t ours, uint32_t* theirs) {
  uint32_t wire = htobe32(ours);
  if (transfer(peer, &wire, sizeof wire, 1) != 0) return -1;
  if (transfer(peer, &wire, sizeof wire, 0) != 0) return -1;
  *theirs = be32toh(wire);
  return 0;
}
