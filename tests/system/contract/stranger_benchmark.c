/* Behaves like OCP's public benchmark (contract 8.8 and api.md), with every byte and every
 * completion checked: the parent receives, the child sends, addresses go over a TCP connection.
 *
 * Usage: stranger_benchmark [largest size in bytes]
 */
#define _DEFAULT_SOURCE
#include "stranger.h"

enum {
  DEPTH = 128, /* sends under way */
  SIGNAL_EVERY = 64,
  WARM_UP = 100,
  CQ_DEPTH = 256,
  GID_INDEX = 3,
  RECV_ID = 0x1000,
  WORD = 8,   /* of the counters */
  GUARD = 64, /* bytes behind the data that nobody may write */
  IMM_ID = 999999
};

/* Memory of either side: a counter that the peer writes, one that we send, data, the guard. */
enum { IN = 0, OUT = WORD, DATA = 2 * WORD };

struct address {
  uint32_t qpn;
  uint32_t psn;
  uint32_t rkey;
  uint64_t base;
  union ibv_gid gid;
};

struct side {
  struct ibv_device** list;
  struct ibv_context* verbs;
  struct mrc_context* mrc;
  struct ibv_pd* pd;
  struct ibv_mr* mr;
  struct mrc_cq* send_cq;
  struct mrc_cq* recv_cq;
  struct mrc_qp* qp;
  uint8_t* memory;
  size_t largest;
  struct address here;
  struct address there;
};

static void open_side(struct side* side, size_t largest) {
  side->largest = largest;
  side->verbs = open_mrc_device(&side->list);
  /* The benchmark passes the number 1 as its version, which must do (section 2). */
  struct mrc_context_attr attr = {.mrc_api_version_used = 1};
  side->mrc = mrc_create_context(side->verbs, &attr);
  NEED("2", side->mrc != NULL);
  side->pd = ibv_alloc_pd(side->verbs);
  NEED("8.8", side->pd != NULL);
  const size_t size = DATA + largest + GUARD;
  side->memory = calloc(1, size);
  NEED("8.8", side->memory != NULL);
  side->mr =
      ibv_reg_mr(side->pd, side->memory, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  NEED("8.8", side->mr != NULL);
  side->send_cq = mrc_create_cq(side->mrc, CQ_DEPTH, NULL, NULL, 0);
  side->recv_cq = mrc_create_cq(side->mrc, CQ_DEPTH, NULL, NULL, 0);
  NEED("3", side->send_cq != NULL && side->recv_cq != NULL);
}

static void look_at_device(struct side* side) {
  struct mrc_device_attr attr;
  struct ibv_port_attr port;
  int supported = 0;
  CHECK_OK("3", mrc_query_device(side->verbs, &attr, &supported));
  CHECK_EQ("3", supported, 1);
  /* Version 1 is bit 0, version 0 is no bit. */
  CHECK_EQ("5", attr.mrc_protocol_version, 1);
  CHECK_CMP("5", attr.mpr_attr.max_mpr, >=, 1);
  CHECK_EQ("8.8", ibv_query_port(side->verbs, 1, &port), 0);
  CHECK_EQ("8.8", port.state, IBV_PORT_ACTIVE);
}

static void create_qp(struct side* side) {
  struct mrc_qp_init_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.send_cq = side->send_cq;
  attr.recv_cq = side->recv_cq;
  attr.pd = side->pd;
  attr.cap.max_send_wr = DEPTH;
  attr.cap.max_recv_wr = 1;
  attr.cap.max_send_sge = 1;
  attr.cap.max_recv_sge = 1;
  attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
  side->qp = mrc_create_qp(side->mrc, &attr);
  NEED("3", side->qp != NULL);
  /* The benchmark prints what was granted, so it is written back (section 3). */
  CHECK_CMP("3", attr.cap.max_send_wr, >=, DEPTH);
  CHECK_CMP("3", attr.cap.max_recv_wr, >=, 1);
  struct ibv_qp_attr state;
  CHECK_OK("3", mrc_query_qp(side->qp, &state, IBV_QP_STATE, NULL, 0, NULL));
  CHECK_EQ("3", state.qp_state, IBV_QPS_RESET);
}

static void exchange(struct side* side, int peer) {
  CHECK_OK("3", mrc_get_qpn(side->qp, &side->here.qpn));
  CHECK_EQ("3", side->here.qpn >> 24, 0);
  side->here.psn = (uint32_t)rand() & 0xffffff;
  side->here.rkey = side->mr->rkey;
  side->here.base = (uint64_t)(uintptr_t)side->memory;
  CHECK_EQ("api.md", ibv_query_gid(side->verbs, 1, GID_INDEX, &side->here.gid), 0);
  swap(peer, &side->here, &side->there, sizeof side->here);
}

/* The verbs attributes that MRC calls unsupported must be taken all the same, a retry count beyond
 * what verbs allow included (section 4, api.md). */
static void connect_qp(struct side* side) {
  struct ibv_qp_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  CHECK_OK("4", mrc_modify_qp(side->qp, &attr,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                              NULL, 0));
  memset(&attr, 0, sizeof attr);
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_4096;
  attr.dest_qp_num = side->there.qpn;
  attr.rq_psn = side->there.psn;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.dgid = side->there.gid;
  attr.ah_attr.grh.sgid_index = GID_INDEX;
  attr.ah_attr.grh.hop_limit = 64;
  CHECK_OK("4", mrc_modify_qp(
                    side->qp, &attr,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
                    NULL, 0));
  memset(&attr, 0, sizeof attr);
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = side->here.psn;
  attr.timeout = 14;
  attr.retry_cnt = 14;
  attr.rnr_retry = 7;
  CHECK_OK("4", mrc_modify_qp(side->qp, &attr,
                              IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                  IBV_QP_RNR_RETRY,
                              NULL, 0));
  CHECK_OK("3", mrc_query_qp(side->qp, &attr, IBV_QP_STATE, NULL, 0, NULL));
  NEED("4", attr.qp_state == IBV_QPS_RTS);
}

/* QP, CQs, MR, PD, MRC context, device, and the list last (8.8). */
static void close_side(struct side* side) {
  CHECK_OK("8.8", mrc_destroy_qp(side->qp));
  CHECK_OK("8.8", mrc_destroy_cq(side->send_cq));
  CHECK_OK("8.8", mrc_destroy_cq(side->recv_cq));
  CHECK_EQ("8.8", ibv_dereg_mr(side->mr), 0);
  CHECK_EQ("8.8", ibv_dealloc_pd(side->pd), 0);
  CHECK_OK("8.8", mrc_destroy_context(side->mrc));
  CHECK_EQ("8.8", ibv_close_device(side->verbs), 0);
  ibv_free_device_list(side->list);
  free(side->memory);
}

/* --- One size --- */

static uint8_t byte_of(size_t size, size_t offset) {
  return (uint8_t)(offset * 7 + (offset >> 8) * 3 + size + 1);
}

static size_t iterations(size_t size) {
  if (size <= 4096) return 500;
  if (size <= 65536) return 130;
  return size <= (1 << 20) ? 12 : 2;
}

static int post_write(struct side* side, uint64_t id, size_t from, size_t to, size_t size,
                      enum ibv_wr_opcode opcode, unsigned flags, uint32_t imm) {
  struct ibv_sge sge = {(uint64_t)(uintptr_t)(side->memory + from), (uint32_t)size, side->mr->lkey};
  struct ibv_send_wr wr;
  struct ibv_send_wr* bad = NULL;
  memset(&wr, 0, sizeof wr);
  wr.wr_id = id;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = opcode;
  wr.send_flags = flags;
  wr.imm_data = imm;
  wr.wr.rdma.remote_addr = side->there.base + to;
  wr.wr.rdma.rkey = side->there.rkey;
  return mrc_post_send(side->qp, &wr, &bad);
}

static void take_write(struct side* side, uint64_t id) {
  struct ibv_wc wc;
  memset(&wc, 0, sizeof wc);
  NEED("8.8", take(side->send_cq, 1, 1, &wc));
  CHECK_EQ("api.md", wc.wr_id, id); /* completions come in posting order */
  CHECK_EQ("3", wc.status, IBV_WC_SUCCESS);
  CHECK_EQ("3", wc.opcode, IBV_WC_RDMA_WRITE);
  CHECK_EQ("3", wc.qp_num, side->here.qpn);
}

/* At most 128 outstanding; every 64th and the last one signalled. A send queue of 128 must not be
 * full at any time then. */
static void stream(struct side* side, size_t size, size_t count) {
  size_t posted = 0;
  size_t done = 0;
  while (done < count) {
    if (posted < count && posted - done < DEPTH) {
      const int last = posted + 1 == count || (posted + 1) % SIGNAL_EVERY == 0;
      const unsigned flags = last ? IBV_SEND_SIGNALED : 0;
      CHECK_OK("3", post_write(side, posted, DATA, DATA, size, IBV_WR_RDMA_WRITE, flags, 0));
      ++posted;
      continue;
    }
    const size_t next = done + SIGNAL_EVERY < count ? done + SIGNAL_EVERY : count;
    take_write(side, next - 1);
    done = next;
  }
}

static void await_counter(struct side* side, uint64_t wanted) {
  volatile uint64_t* counter = (volatile uint64_t*)(void*)(side->memory + IN);
  const double deadline = now_s() + PATIENCE_S / 2;
  /* Nothing but memory is looked at: progress needs no call of ours (api.md). */
  while (*counter != wanted && now_s() < deadline)
    sched_yield();
  NEED("api.md", *counter == wanted);
}

static void send_size(struct side* side, size_t size, uint64_t round) {
  for (size_t i = 0; i < size; ++i)
    side->memory[DATA + i] = byte_of(size, i);
  await_counter(side, round);
  const size_t warm_up = size <= 65536 ? WARM_UP : 1;
  for (size_t i = 0; i < warm_up; ++i) {
    CHECK_OK("3", post_write(side, i, DATA, DATA, size, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0));
    take_write(side, i);
  }
  stream(side, size, iterations(size));
  memcpy(side->memory + OUT, &round, sizeof round);
  CHECK_OK("3", post_write(side, IMM_ID, OUT, IN, WORD, IBV_WR_RDMA_WRITE_WITH_IMM,
                           IBV_SEND_SIGNALED, htonl((uint32_t)size)));
  take_write(side, IMM_ID);
  struct ibv_wc none;
  CHECK_EQ("8.8", mrc_poll_cq(side->send_cq, 1, &none), 0); /* as many as were signalled */
}

static void post_empty_receive(struct side* side) {
  struct ibv_recv_wr wr = {.wr_id = RECV_ID};
  struct ibv_recv_wr* bad = NULL;
  CHECK_OK("3", mrc_post_recv(side->qp, &wr, &bad));
}

static void check_receive(struct side* side, size_t size) {
  struct ibv_wc wc;
  memset(&wc, 0, sizeof wc);
  NEED("8.8", take(side->recv_cq, 1, 1, &wc));
  CHECK_EQ("8.8", wc.wr_id, RECV_ID);
  CHECK_EQ("8.8", wc.status, IBV_WC_SUCCESS);
  CHECK_EQ("3", wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  CHECK_EQ("3", wc.imm_data, htonl((uint32_t)size)); /* as posted, untouched */
  CHECK("3", (wc.wc_flags & IBV_WC_WITH_IMM) != 0);
  CHECK_EQ("3", wc.byte_len, WORD);
  CHECK_EQ("3", wc.qp_num, side->here.qpn);
}

/* The immediate says that all earlier writes are in memory (api.md). */
static void check_bytes(struct side* side, size_t size, uint64_t round) {
  uint64_t counter = 0;
  size_t wrong = 0;
  memcpy(&counter, side->memory + IN, sizeof counter);
  CHECK_EQ("api.md", counter, round);
  for (size_t i = 0; i < size; ++i)
    wrong += side->memory[DATA + i] != byte_of(size, i);
  CHECK_EQ("8.8", wrong, 0);
  wrong = 0;
  for (size_t i = DATA + size; i < DATA + side->largest + GUARD; ++i)
    wrong += side->memory[i] != 0;
  CHECK_EQ("8.8", wrong, 0); /* nothing behind the data */
}

static void receive_size(struct side* side, size_t size, uint64_t round) {
  struct ibv_wc none;
  memset(side->memory + DATA, 0, side->largest + GUARD);
  post_empty_receive(side);
  memcpy(side->memory + OUT, &round, sizeof round);
  CHECK_OK("8.8", post_write(side, round, OUT, IN, WORD, IBV_WR_RDMA_WRITE, 0, 0));
  check_receive(side, size);
  check_bytes(side, size, round);
  CHECK_EQ("8.8", mrc_poll_cq(side->send_cq, 1, &none), 0); /* unsignalled: no completion */
  CHECK_EQ("8.8", mrc_poll_cq(side->recv_cq, 1, &none), 0);
}

/* --- The program --- */

static int run(int peer, int is_sender, size_t largest) {
  static const size_t sizes[] = {
      1, 2, 8, 63, 256, 1000, 4096, 4097, 65536, (1 << 20) + 1, 8 << 20, 64 << 20};
  struct side side;
  memset(&side, 0, sizeof side);
  srand((unsigned)getpid());
  open_side(&side, largest);
  look_at_device(&side);
  create_qp(&side);
  exchange(&side, peer);
  connect_qp(&side);
  meet(peer); /* both can be written to */
  uint64_t round = 0;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    if (sizes[i] > largest) break;
    ++round;
    if (is_sender)
      send_size(&side, sizes[i], round);
    else
      receive_size(&side, sizes[i], round);
    meet(peer);
  }
  close_side(&side);
  return failures == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  const size_t largest = argc > 1 ? strtoul(argv[1], NULL, 10) : 8 << 20;
  pid_t child = 0;
  const int peer = two_processes(&child);
  const int here = run(peer, child == 0, largest);
  close(peer);
  if (child == 0) return here;
  const int there = end_of_child(child);
  if (here == 0 && there == 0) puts("benchmark: all held");
  return here != 0 ? here : there;
}
