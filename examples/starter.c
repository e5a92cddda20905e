/* The smallest MRC program: a client writes a line into a server's memory, the server checks it.
 *
 *   ./starter                 the server
 *   ./starter 127.0.0.1       the client; the server's host as a dotted IPv4 address
 *
 * They meet at TCP port 18520, or what PORT says. */
#include <mrc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exchange.h"

#define LINE "written over many paths"
/* Ends the program when a call fails; MRC_LOG_LEVEL=info says why one was refused. */
#define MUST(what) ((what) ? (void)0 : (perror(#what), exit(1)))

int main(int argc, char** argv) {
  const char* const server = argc > 1 ? argv[1] : NULL;
  const char* const port = getenv("PORT");
  const int peer = connect_peer(server, port != NULL ? (uint16_t)atoi(port) : 18520);
  if (peer < 0) return 1; /* it has said why */

  /* A device, memory that the other side may write, a queue pair with its completions. */
  struct ibv_device** const devices = ibv_get_device_list(NULL);
  MUST(devices != NULL && devices[0] != NULL);
  struct ibv_context* const verbs = ibv_open_device(devices[0]);
  struct mrc_context_attr versions = {.mrc_api_version_used = MRC_API_VER_USED,
                                      .mrc_vendor_api_version_used = MRC_VENDOR_API_VER_USED};
  struct mrc_context* const context = mrc_create_context(verbs, &versions);
  MUST(context != NULL);
  struct ibv_pd* const pd = ibv_alloc_pd(verbs);
  static char memory[4096];
  struct ibv_mr* const mr =
      ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  struct mrc_cq* const cq = mrc_create_cq(context, 16, NULL, NULL, 0);
  MUST(mr != NULL && cq != NULL);
  struct mrc_qp_init_attr kind = {.send_cq = cq, .recv_cq = cq, .cap = {16, 1, 1, 1, 0}, .pd = pd};
  struct mrc_qp* const qp = mrc_create_qp(context, &kind);
  MUST(qp != NULL);

  /* Each side tells the other where it is, and connects its queue pair to that. */
  struct endpoint ours = {.address = (uintptr_t)memory, .rkey = mr->rkey}, theirs;
  MUST(mrc_get_qpn(qp, &ours.qpn) == 0 && ibv_query_gid(verbs, 1, 0, &ours.gid) == 0);
  MUST(exchange_endpoints(peer, &ours, &theirs) == 0);
  MUST(connect_queue_pair(qp, &ours, &theirs, (struct way){IBV_MTU_4096, 0}) == 0);

  /* The client writes and waits for the completion; the server then looks at its memory. */
  uint32_t word = 0;
  MUST(exchange_word(peer, 1, &word) == 0); /* both can receive now */
  if (server != NULL) {
    strcpy(memory, LINE);
    struct ibv_sge from = {.addr = (uintptr_t)memory, .length = sizeof LINE, .lkey = mr->lkey};
    struct ibv_send_wr write = {.sg_list = &from,
                                .num_sge = 1,
                                .opcode = IBV_WR_RDMA_WRITE,
                                .send_flags = IBV_SEND_SIGNALED,
                                .wr.rdma = {theirs.address, theirs.rkey}},
                       *bad = NULL;
    MUST(mrc_post_send(qp, &write, &bad) == 0);
    struct ibv_wc done;
    while (mrc_poll_cq(cq, 1, &done) == 0) {
    }
    MUST(done.status == IBV_WC_SUCCESS);
  }
  MUST(exchange_word(peer, 2, &word) == 0); /* the write is complete */
  if (server == NULL) {
    printf("the server has: %s\n", memory);
    return strcmp(memory, LINE) == 0 ? 0 : 3;
  }
  return 0;
}
