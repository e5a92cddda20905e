/* Makes the calls of Microsoft's plug-in for NCCL in its order, with its masks, sizes and values
 * (contract 9.1), first as released, then as its newer line does; at the end with its inline
 * option. The parent is the receiving rank, the child the sending one. In between the parent alone
 * tries what such programs run into when something goes wrong.
 *
 * Usage: stranger_plugin [--sysfs]     --sysfs: under a launcher that shows devices in /sys
 */
#define _DEFAULT_SOURCE
#define _XOPEN_SOURCE 700
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "stranger.h"

enum {
  QPS = 2, /* NCCL_IB_QPS_PER_CONNECTION */
  SEND_DEPTH = 128,
  RECV_DEPTH = 64,
  MAX_CHAIN = 9, /* eight requests and what announces them */
  POLL = 4,
  GID_INDEX = 3,
  TRAFFIC_CLASS = 4, /* NCCL_IB_TC of the scripts */
  TIMEOUT = 20,
  MIN_RNR_TIMER = 12,
  SLOT = 1 << 16, /* bytes of one request */
  SLOTS = 8,
  FIFO = SLOT * SLOTS,
  MEMORY = FIFO + 4096,
  INLINE_ASKED = 64,
  INLINE_POSTED = 512
};

enum kind { RELEASED, NEWER, INLINE };

/* What the receiver writes into the sender's memory to say that it is ready; as in NCCL the number
 * that is watched stands behind the rest. */
struct clear_to_send {
  uint64_t base;
  uint32_t rkey;
  uint32_t requests;
  uint8_t more[INLINE_POSTED - 24];
  uint64_t number;
};

struct address {
  uint32_t qpn[QPS];
  uint32_t rkey;
  uint32_t mtu;
  uint64_t base;
  union ibv_gid gid;
};

struct device {
  struct ibv_device** list;
  struct ibv_context* verbs;
  struct mrc_context* mrc;
  struct ibv_port_attr port;
};

struct comm {
  struct device* device;
  enum kind kind;
  int is_sender;
  struct ibv_pd* pd;
  struct mrc_cq* cq;
  struct ibv_cq* verbs_cq;
  struct mrc_qp_hint* hints[QPS];
  struct mrc_qp* qps[QPS];
  uint8_t* memory;
  struct ibv_mr* mr;
  struct address here;
  struct address there;
  uint64_t number; /* of messages */
};

static atomic_int qp_events; /* that came out of ibv_get_async_event */

/* --- Init --- */

static int is_about_a_queue(enum ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return 1;
    default:
      return 0;
  }
}

/* The plug-in takes element.qp of what it gets here for an ibv_qp: an MRC queue pair would crash
 * it (section 3). */
static void* watch_events(void* verbs) {
  struct ibv_async_event event;
  while (ibv_get_async_event(verbs, &event) == 0) {
    if (is_about_a_queue(event.event_type)) atomic_fetch_add(&qp_events, 1);
    ibv_ack_async_event(&event);
  }
  return NULL;
}

/* Each active port becomes a device of NCCL's, so there is to be one (9.1). */
static void query_ports(struct device* device) {
  struct ibv_device_attr attr;
  int active = 0;
  CHECK_EQ("9.1", ibv_query_device(device->verbs, &attr), 0);
  for (int port = 1; port <= attr.phys_port_cnt; ++port) {
    CHECK_EQ("9.1", ibv_query_port(device->verbs, (uint8_t)port, &device->port), 0);
    active += device->port.state == IBV_PORT_ACTIVE;
  }
  CHECK_EQ("9.1", active, 1);
  CHECK_EQ("9.1", ibv_query_port(device->verbs, 1, &device->port), 0);
}

static void check_dma_buf(struct device* device) {
  struct ibv_pd* pd = ibv_alloc_pd(device->verbs);
  NEED("9.1", pd != NULL);
  errno = 0;
  struct ibv_mr* mr = ibv_reg_dmabuf_mr(pd, 0, 0, 0, -1, 0);
  CHECK("9.1", mr == NULL);
  CHECK("9.1", errno == EOPNOTSUPP || errno == EPROTONOSUPPORT);
  CHECK_EQ("9.1", ibv_dealloc_pd(pd), 0);
}

static void check_sysfs(struct device* device) {
  const char* name = ibv_get_device_name(device->verbs->device);
  char path[PATH_MAX];
  char resolved[PATH_MAX];
  char type[32] = "";
  snprintf(path, sizeof path, "/sys/class/infiniband/%s/device", name);
  CHECK("9.1", realpath(path, resolved) != NULL);
  snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/1/gid_attrs/types/%d", name,
           GID_INDEX);
  FILE* file = fopen(path, "r");
  CHECK("9.1", file != NULL && fgets(type, sizeof type, file) != NULL);
  CHECK("9.1", strncmp(type, "RoCE v2", 7) == 0);
  if (file != NULL) fclose(file);
}

static void open_device(struct device* device, int sysfs) {
  struct mrc_device_attr attr;
  struct mrc_context_attr version = {.mrc_api_version_used = MRC_API_VER_USED};
  int supported = 0;
  pthread_t thread;
  CHECK_EQ("9.1", ibv_fork_init(), 0);
  device->verbs = open_mrc_device(&device->list);
  query_ports(device);
  if (sysfs) check_sysfs(device);
  CHECK_OK("3", mrc_query_device(device->verbs, &attr, &supported));
  CHECK_EQ("3", supported, 1);
  device->mrc = mrc_create_context(device->verbs, &version);
  NEED("2", device->mrc != NULL);
  NEED("9.1", pthread_create(&thread, NULL, watch_events, device->verbs) == 0);
  pthread_detach(thread);
  ibv_free_device_list(device->list);
  check_dma_buf(device);
}

/* --- Connection --- */

/* 16 vendor bytes: version and three rates in native order; they mean nothing to us and must be
 * taken and given back (sections 3 and 9.1). */
static struct mrc_qp_hint* create_hint(struct device* device) {
  static const uint32_t rates[3] = {1 << 20, (1 << 18) / QPS, 1 << 20};
  struct mrc_qp_hint_init_attr init;
  struct mrc_qp_hint_attr back;
  memset(&init, 0, sizeof init);
  init.attr.num_qps_per_peer = QPS;
  init.attr.num_send_peers = 1;
  init.attr.vendor_cfg[0] = 1;
  memcpy(init.attr.vendor_cfg + 4, rates, sizeof rates);
  struct mrc_qp_hint* hint = mrc_create_qp_hint(device->mrc, &init);
  NEED("3", hint != NULL);
  memset(&back, 0xa5, sizeof back);
  CHECK_OK("3", mrc_query_qp_hint(hint, &back,
                                  MRC_QP_HINT_NUM_QPS_PER_PEER | MRC_QP_HINT_NUM_SEND_PEERS |
                                      MRC_QP_HINT_NUM_REMOTE_RECV_PEERS | MRC_QP_HINT_VENDOR_CFG));
  CHECK_EQ("4", back.num_qps_per_peer, QPS);
  CHECK_EQ("4", back.num_send_peers, 1);
  CHECK_EQ("4", back.num_remote_recv_peers, 0);
  CHECK_EQ("4", memcmp(back.vendor_cfg, init.attr.vendor_cfg, sizeof back.vendor_cfg), 0);
  return hint;
}

static struct mrc_qp* create_qp(struct comm* comm) {
  struct mrc_qp_init_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.qp_context = comm;
  attr.send_cq = comm->cq;
  attr.recv_cq = comm->cq;
  attr.pd = comm->pd;
  attr.cap.max_send_wr = SEND_DEPTH;
  attr.cap.max_recv_wr = comm->kind == NEWER && comm->is_sender ? 0 : RECV_DEPTH;
  attr.cap.max_send_sge = 1;
  attr.cap.max_recv_sge = 1;
  attr.cap.max_inline_data = comm->kind == INLINE ? INLINE_ASKED : 0;
  struct mrc_qp* qp = mrc_create_qp(comm->device->mrc, &attr);
  NEED("3", qp != NULL);
  CHECK_CMP("3", attr.cap.max_send_wr, >=, SEND_DEPTH);
  /* It asks for 64 bytes and posts up to 512. */
  if (comm->kind == INLINE) CHECK_CMP("9.1", attr.cap.max_inline_data, >=, INLINE_POSTED);
  return qp;
}

static int access_flags(const struct comm* comm) {
  if (comm->kind != NEWER || comm->is_sender) return IBV_ACCESS_REMOTE_WRITE;
  return IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
}

/* Where the mask is 0 the MRC structure is never looked at, so it may be anything (section 4). */
static struct mrc_qp_attr* rubbish(void) {
  static struct mrc_qp_attr attr;
  memset(&attr, 0xa5, sizeof attr);
  return &attr;
}

static void to_init(struct comm* comm, int i) {
  struct ibv_qp_attr attr;
  struct mrc_qp_attr mrc;
  memset(&attr, 0, sizeof attr);
  memset(&mrc, 0, sizeof mrc);
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = (unsigned)access_flags(comm);
  mrc.qp_hint = comm->hints[i];
  const int with_hint = comm->hints[i] != NULL;
  CHECK_OK("9.1",
           mrc_modify_qp(comm->qps[i], &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                         with_hint ? &mrc : rubbish(), with_hint ? MRC_QP_HINT : 0));
}

static void to_rtr(struct comm* comm, struct mrc_qp* qp, uint32_t qpn) {
  struct ibv_qp_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = comm->there.mtu < comm->here.mtu ? (enum ibv_mtu)comm->there.mtu
                                                   : (enum ibv_mtu)comm->here.mtu;
  attr.dest_qp_num = qpn;
  attr.min_rnr_timer = MIN_RNR_TIMER;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 9; /* the peer's number for its port: not to be checked (section 4) */
  attr.ah_attr.grh.dgid = comm->there.gid;
  attr.ah_attr.grh.sgid_index = GID_INDEX;
  attr.ah_attr.grh.hop_limit = 255;
  attr.ah_attr.grh.traffic_class = TRAFFIC_CLASS;
  const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  CHECK_OK("9.1", mrc_modify_qp(qp, &attr, comm->kind == NEWER ? mask | IBV_QP_MIN_RNR_TIMER : mask,
                                rubbish(), 0));
}

static void to_rts(struct mrc_qp* qp, uint8_t mrc_timeout) {
  struct ibv_qp_attr attr;
  struct mrc_qp_attr mrc;
  memset(&attr, 0, sizeof attr);
  memset(&mrc, 0, sizeof mrc);
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = TIMEOUT;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  mrc.timeout = mrc_timeout;
  CHECK_OK("9.1", mrc_modify_qp(qp, &attr,
                                IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                    IBV_QP_RNR_RETRY,
                                &mrc, MRC_QP_TIMEOUT));
}

/* What was set, and the defaults of what was not (section 4). The verbs retry count may count as
 * one of MRC's (api.md), so these are left out. */
static void check_connected(struct comm* comm, int i) {
  struct ibv_qp_attr attr;
  struct mrc_qp_attr mrc;
  struct mrc_qp_init_attr init;
  memset(&mrc, 0xa5, sizeof mrc);
  memset(&init, 0, sizeof init);
  CHECK_OK("3", mrc_query_qp(comm->qps[i], &attr, IBV_QP_STATE, &mrc,
                             MRC_QP_TIMEOUT | MRC_QP_MPR | MRC_QP_MPR_DEST | MRC_QP_MAX_WIMM |
                                 MRC_QP_MAX_WIMM_DEST | MRC_QP_HINT | MRC_QP_CAP,
                             &init));
  CHECK_EQ("4", attr.qp_state, IBV_QPS_RTS);
  CHECK_EQ("4", mrc.timeout, TIMEOUT);
  CHECK_EQ("4", mrc.mpr.mpr, 8);
  CHECK_EQ("4", mrc.mpr.mpr_dest, 8);
  CHECK_EQ("4", mrc.wimm.max_wimm, 128);
  CHECK_EQ("4", mrc.wimm.max_wimm_dest, 128);
  CHECK_EQ("4", mrc.cap, 0);
  CHECK("4", mrc.qp_hint == comm->hints[i]);
  CHECK("3", init.qp_context == comm);
  CHECK_CMP("3", init.cap.max_send_wr, >=, SEND_DEPTH);
  CHECK("3", init.send_cq == comm->cq && init.recv_cq == comm->cq);
}

static void make_comm(struct comm* comm, struct device* device, enum kind kind, int is_sender) {
  memset(comm, 0, sizeof *comm);
  comm->device = device;
  comm->kind = kind;
  comm->is_sender = is_sender;
  comm->pd = ibv_alloc_pd(device->verbs);
  NEED("9.1", comm->pd != NULL);
  comm->cq = mrc_create_cq(device->mrc, SEND_DEPTH * QPS, NULL, NULL, 0);
  comm->verbs_cq = ibv_create_cq(device->verbs, SEND_DEPTH * QPS, NULL, NULL, 0);
  NEED("9.1", comm->cq != NULL && comm->verbs_cq != NULL);
  comm->memory = calloc(1, MEMORY);
  NEED("9.1", comm->memory != NULL);
  /* Rights that MRC has no use for have no effect (section 4). */
  comm->mr =
      ibv_reg_mr_iova2(comm->pd, comm->memory, MEMORY, (uintptr_t)comm->memory,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_RELAXED_ORDERING);
  NEED("9.1", comm->mr != NULL);
  for (int i = 0; i < QPS; ++i) {
    if (kind == RELEASED) comm->hints[i] = create_hint(device);
    comm->qps[i] = create_qp(comm);
    to_init(comm, i);
    CHECK_OK("3", mrc_get_qpn(comm->qps[i], &comm->here.qpn[i]));
  }
  comm->here.rkey = comm->mr->rkey;
  comm->here.base = (uint64_t)(uintptr_t)comm->memory;
  comm->here.mtu = (uint32_t)device->port.active_mtu;
  CHECK_EQ("4", ibv_query_gid(device->verbs, 1, GID_INDEX, &comm->here.gid), 0);
}

/* QP, hint, MRs, MRC CQ, ibv CQ, PD; each gives 0 (9.1). The order matters to some of them. */
static void end_comm(struct comm* comm) {
  for (int i = 0; i < QPS; ++i) {
    if (comm->hints[i] != NULL) CHECK_MINUS("3", mrc_destroy_qp_hint(comm->hints[i]), EBUSY);
    if (i == 0) CHECK_PLUS("3", mrc_destroy_cq(comm->cq), EBUSY);
    CHECK_OK("9.1", mrc_destroy_qp(comm->qps[i]));
    if (comm->hints[i] != NULL) CHECK_OK("9.1", mrc_destroy_qp_hint(comm->hints[i]));
  }
  CHECK_EQ("9.1", ibv_dereg_mr(comm->mr), 0);
  CHECK_MINUS("3", mrc_destroy_context(comm->device->mrc), EBUSY);
  CHECK_OK("9.1", mrc_destroy_cq(comm->cq));
  CHECK_EQ("9.1", ibv_destroy_cq(comm->verbs_cq), 0);
  CHECK_EQ("9.1", ibv_dealloc_pd(comm->pd), 0);
  free(comm->memory);
}

/* --- Traffic --- */

static void post_receives(struct mrc_qp* qp, int first, int count) {
  for (int i = first; i < first + count; ++i) {
    struct ibv_recv_wr wr = {.wr_id = (uint64_t)i};
    struct ibv_recv_wr* bad = NULL;
    CHECK_OK("3", mrc_post_recv(qp, &wr, &bad));
  }
}

/* Numbers from 1: requests of a message, their sizes, and the bytes of one, all from its number. */
static int requests_of(uint64_t number) { return (int)(number % SLOTS) + 1; }

static uint32_t size_of(uint64_t number, int request) {
  static const uint32_t sizes[] = {0, 1, 4097, SLOT, 12345, 128, 2, 65535};
  return sizes[(number * 3 + (uint64_t)request) % 8];
}

static uint8_t byte_of(uint64_t number, int request, uint32_t offset) {
  return (uint8_t)(number * 17 + (uint64_t)request * 5 + offset + (offset >> 8) + 1);
}

/* Half of each request goes over each queue pair. */
static uint32_t part_of(uint32_t size, int qp, uint32_t* from) {
  *from = qp == 0 ? 0 : size / 2;
  return qp == 0 ? size / 2 : size - size / 2;
}

static void write_clear_to_send(struct comm* comm) {
  struct clear_to_send word;
  struct clear_to_send* registered = (struct clear_to_send*)(void*)(comm->memory + FIFO);
  const int is_inline = comm->kind == INLINE;
  memset(&word, 0, sizeof word);
  word.base = comm->here.base;
  word.rkey = comm->here.rkey;
  word.requests = (uint32_t)requests_of(comm->number);
  word.number = comm->number;
  if (!is_inline) memcpy(registered, &word, sizeof word);
  struct ibv_sge sge = {(uint64_t)(uintptr_t)(is_inline ? &word : registered), sizeof word,
                        is_inline ? 0 : comm->mr->lkey};
  struct ibv_send_wr wr;
  struct ibv_send_wr* bad = NULL;
  memset(&wr, 0, sizeof wr);
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED | (is_inline ? IBV_SEND_INLINE : 0u);
  wr.wr.rdma.remote_addr = comm->there.base + FIFO;
  wr.wr.rdma.rkey = comm->there.rkey;
  wr.wr_id = 0xc0;
  NEED("9.1", mrc_post_send(comm->qps[0], &wr, &bad) == 0);
  memset(&word, 0xee, sizeof word); /* inline bytes were taken at the post */
}

/* Waits for `count` completions of receives and one of the word above, four at a time. */
static void take_message(struct comm* comm, int each, const uint32_t* imms) {
  struct ibv_wc wc[QPS * RECV_DEPTH + 1];
  int seen[QPS] = {0};
  int words = 0;
  NEED("9.1", take(comm->cq, QPS * each + 1, POLL, wc));
  for (int i = 0; i < QPS * each + 1; ++i) {
    CHECK_EQ("9.1", wc[i].status, IBV_WC_SUCCESS);
    if ((wc[i].wr_id & 0xff) == 0xc0) {
      CHECK_EQ("3", wc[i].opcode, IBV_WC_RDMA_WRITE);
      ++words;
      continue;
    }
    const int qp = wc[i].qp_num == comm->here.qpn[0] ? 0 : 1;
    CHECK_EQ("3", wc[i].qp_num, comm->here.qpn[qp]);
    CHECK_EQ("3", wc[i].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    /* The n-th receive belongs to the n-th immediate, which comes back as it was posted. */
    CHECK_EQ("9.1", wc[i].wr_id & 0xff, seen[qp]);
    CHECK_EQ("9.1", wc[i].imm_data, imms[seen[qp]]);
    CHECK_EQ("3", wc[i].byte_len, 0);
    ++seen[qp];
  }
  CHECK_EQ("9.1", words, 1);
  CHECK_EQ("9.1", seen[0], each);
}

static void receive_message(struct comm* comm) {
  const uint32_t imm = size_of(comm->number, 0);
  if (comm->kind != NEWER)
    for (int i = 0; i < QPS; ++i)
      post_receives(comm->qps[i], 0, 1);
  memset(comm->memory, 0, FIFO);
  write_clear_to_send(comm);
  take_message(comm, 1, &imm);
  /* The newer line has a receive posted before it says that it is ready. */
  if (comm->kind == NEWER)
    for (int i = 0; i < QPS; ++i)
      post_receives(comm->qps[i], 0, 1);
  size_t wrong = 0;
  for (int r = 0; r < requests_of(comm->number); ++r)
    for (uint32_t i = 0; i < size_of(comm->number, r); ++i)
      wrong += comm->memory[SLOT * r + (int)i] != byte_of(comm->number, r, i);
  CHECK_EQ("9.1", wrong, 0);
}

static struct clear_to_send await_clear_to_send(struct comm* comm) {
  volatile struct clear_to_send* word =
      (volatile struct clear_to_send*)(void*)(comm->memory + FIFO);
  const double deadline = now_s() + PATIENCE_S / 2;
  while (word->number != comm->number && now_s() < deadline)
    sched_yield();
  NEED("9.1", word->number == comm->number);
  atomic_thread_fence(memory_order_seq_cst);
  const struct clear_to_send got = {
      .base = word->base, .rkey = word->rkey, .requests = word->requests, .number = word->number};
  CHECK_EQ("9.1", got.base, comm->there.base);
  CHECK_EQ("9.1", got.rkey, comm->there.rkey);
  return got;
}

/* A write of each request and an empty one with the immediate behind them; only that one is
 * signalled. Empty writes have no sge at all. */
static void post_chain(struct comm* comm, int qp, const struct clear_to_send* word) {
  struct ibv_send_wr wrs[MAX_CHAIN];
  struct ibv_sge sges[MAX_CHAIN];
  struct ibv_send_wr* bad = NULL;
  const int count = (int)word->requests;
  memset(wrs, 0, sizeof wrs);
  for (int r = 0; r < count; ++r) {
    uint32_t from = 0;
    const uint32_t size = part_of(size_of(comm->number, r), qp, &from);
    sges[r] = (struct ibv_sge){comm->here.base + (uint64_t)SLOT * (unsigned)r + from, size,
                               comm->mr->lkey};
    wrs[r].sg_list = size == 0 ? NULL : &sges[r];
    wrs[r].num_sge = size == 0 ? 0 : 1;
    wrs[r].opcode = IBV_WR_RDMA_WRITE;
    wrs[r].wr.rdma.remote_addr = word->base + (uint64_t)SLOT * (unsigned)r + from;
    wrs[r].wr.rdma.rkey = word->rkey;
    wrs[r].next = &wrs[r + 1];
  }
  wrs[count].opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wrs[count].send_flags = IBV_SEND_SIGNALED;
  wrs[count].imm_data = size_of(comm->number, 0); /* host order: only carried */
  wrs[count].wr_id = 0x070600 | (uint64_t)(uint8_t)comm->number;
  CHECK_OK("9.1", mrc_post_send(comm->qps[qp], wrs, &bad));
}

static void send_message(struct comm* comm) {
  for (int r = 0; r < requests_of(comm->number); ++r)
    for (uint32_t i = 0; i < size_of(comm->number, r); ++i)
      comm->memory[SLOT * r + (int)i] = byte_of(comm->number, r, i);
  const struct clear_to_send word = await_clear_to_send(comm);
  CHECK_EQ("9.1", word.requests, requests_of(comm->number));
  for (int qp = 0; qp < QPS; ++qp)
    post_chain(comm, qp, &word);
  struct ibv_wc wc[QPS];
  NEED("9.1", take(comm->cq, QPS, POLL, wc));
  for (int i = 0; i < QPS; ++i) {
    CHECK_EQ("9.1", wc[i].status, IBV_WC_SUCCESS);
    CHECK_EQ("9.1", wc[i].wr_id & 0xff, (uint8_t)comm->number);
  }
  struct ibv_wc none;
  CHECK_EQ("9.1", mrc_poll_cq(comm->cq, 1, &none), 0); /* one for each chain */
}

/* 64 immediates of each queue pair under way at once; both spellings of an empty write. */
static void send_burst(struct comm* comm) {
  struct ibv_sge empty = {0, 0, 0};
  (void)await_clear_to_send(comm);
  for (int i = 0; i < RECV_DEPTH; ++i) {
    struct ibv_send_wr wr;
    struct ibv_send_wr* bad = NULL;
    memset(&wr, 0, sizeof wr);
    wr.sg_list = i % 2 == 0 ? NULL : &empty;
    wr.num_sge = i % 2;
    wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.imm_data = 0x01000000u * (unsigned)i + 77;
    wr.wr_id = 0xabcd00 | (uint64_t)i;
    for (int qp = 0; qp < QPS; ++qp)
      CHECK_OK("9.1", mrc_post_send(comm->qps[qp], &wr, &bad));
  }
  struct ibv_wc wc[QPS * RECV_DEPTH];
  NEED("9.1", take(comm->cq, QPS * RECV_DEPTH, POLL, wc));
  int next[QPS] = {0};
  for (int i = 0; i < QPS * RECV_DEPTH; ++i) {
    const int qp = wc[i].qp_num == comm->here.qpn[0] ? 0 : 1;
    CHECK_EQ("9.1", wc[i].status, IBV_WC_SUCCESS);
    CHECK_EQ("api.md", wc[i].wr_id & 0xff, next[qp]++); /* in posting order */
  }
}

static void receive_burst(struct comm* comm) {
  uint32_t imms[RECV_DEPTH];
  for (int i = 0; i < RECV_DEPTH; ++i)
    imms[i] = 0x01000000u * (unsigned)i + 77;
  const int posted = comm->kind == NEWER ? 1 : 0;
  for (int i = 0; i < QPS; ++i)
    post_receives(comm->qps[i], posted, RECV_DEPTH - posted);
  write_clear_to_send(comm);
  take_message(comm, RECV_DEPTH, imms);
}

static void run_comm(struct device* device, enum kind kind, int is_sender, int peer) {
  enum { MESSAGES = 40 };
  struct comm comm;
  make_comm(&comm, device, kind, is_sender);
  swap(peer, &comm.here, &comm.there, sizeof comm.here);
  for (int i = 0; i < QPS; ++i) {
    if (kind == NEWER && !is_sender) post_receives(comm.qps[i], 0, 1); /* from INIT on */
    to_rtr(&comm, comm.qps[i], comm.there.qpn[i]);
    to_rts(comm.qps[i], TIMEOUT);
    check_connected(&comm, i);
  }
  meet(peer);
  for (comm.number = 1; comm.number <= MESSAGES; ++comm.number)
    is_sender ? send_message(&comm) : receive_message(&comm);
  is_sender ? send_burst(&comm) : receive_burst(&comm);
  meet(peer);
  end_comm(&comm);
}

/* --- What goes wrong; both ends are in this process: the two queue pairs of a connection --- */

static void to_state(struct mrc_qp* qp, enum ibv_qp_state state) {
  struct ibv_qp_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.qp_state = state;
  CHECK_OK("4", mrc_modify_qp(qp, &attr, IBV_QP_STATE, rubbish(), 0));
  memset(&attr, 0xff, sizeof attr);
  CHECK_OK("3", mrc_query_qp(qp, &attr, IBV_QP_STATE, NULL, 0, NULL));
  CHECK_EQ("4", attr.qp_state, state);
}

static void connect_to_each_other(struct comm* comm) {
  comm->there = comm->here;
  for (int i = 0; i < QPS; ++i) {
    to_rtr(comm, comm->qps[i], comm->here.qpn[1 - i]);
    to_rts(comm->qps[i], TIMEOUT);
  }
}

/* A write of 8 bytes from the first queue pair into the other half of the memory. */
static struct ibv_send_wr small_write(struct comm* comm, struct ibv_sge* sge, uint64_t id) {
  struct ibv_send_wr wr;
  memset(&wr, 0, sizeof wr);
  *sge = (struct ibv_sge){comm->here.base, 8, comm->mr->lkey};
  wr.wr_id = id;
  wr.sg_list = sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = comm->here.base + SLOT;
  wr.wr.rdma.rkey = comm->here.rkey;
  return wr;
}

static void expect_status(struct comm* comm, uint64_t id, enum ibv_wc_status status) {
  struct ibv_wc wc;
  NEED("3", take(comm->cq, 1, 1, &wc));
  CHECK_EQ("3", wc.wr_id, id);
  CHECK_EQ("4", wc.status, status);
}

/* Operations that MRC lacks are refused at the post; what stands before them in the chain is sent
 * (section 3). Too early is refused as well. */
static void check_refused_sends(struct comm* comm) {
  static const enum ibv_wr_opcode lacking[] = {IBV_WR_RDMA_READ, IBV_WR_SEND,
                                               IBV_WR_ATOMIC_FETCH_AND_ADD};
  struct ibv_sge sge[2];
  struct ibv_send_wr wr[2] = {small_write(comm, &sge[0], 1), small_write(comm, &sge[1], 2)};
  struct ibv_send_wr* bad = NULL;
  CHECK_PLUS("3", mrc_post_send(comm->qps[0], wr, &bad), EINVAL); /* in INIT */
  CHECK("3", bad == wr);
  connect_to_each_other(comm);
  for (size_t i = 0; i < sizeof lacking / sizeof *lacking; ++i) {
    wr[0].next = &wr[1];
    wr[1].opcode = lacking[i];
    errno = 0;
    const int rc = mrc_post_send(comm->qps[0], wr, &bad);
    CHECK("3", rc == EINVAL || rc == EOPNOTSUPP);
    CHECK_EQ("1", errno, rc);
    CHECK("3", bad == &wr[1]);
    expect_status(comm, 1, IBV_WC_SUCCESS);
  }
}

static void check_receive_queue(struct comm* comm) {
  struct mrc_qp_init_attr init;
  struct ibv_recv_wr wr = {.wr_id = 5};
  struct ibv_recv_wr* bad = NULL;
  to_state(comm->qps[0], IBV_QPS_RESET);
  CHECK_MINUS("3", mrc_post_recv(comm->qps[0], &wr, &bad), EINVAL); /* from INIT on */
  CHECK("3", bad == &wr);
  to_init(comm, 0);
  CHECK_OK("3", mrc_query_qp(comm->qps[0], NULL, 0, NULL, 0, &init));
  CHECK_CMP("3", init.cap.max_recv_wr, >=, RECV_DEPTH);
  post_receives(comm->qps[0], 0, (int)init.cap.max_recv_wr);
  CHECK_MINUS("3", mrc_post_recv(comm->qps[0], &wr, &bad), ENOMEM);
  CHECK("3", bad == &wr);
  to_state(comm->qps[0], IBV_QPS_RESET); /* drops them, so that nothing is flushed later */
  to_init(comm, 0);
}

/* In ERR sends are taken and flushed, waiting receives too; from there only RESET leads on. */
static void check_error_and_reset(struct comm* comm) {
  struct ibv_sge sge;
  struct ibv_send_wr wr = small_write(comm, &sge, 21);
  struct ibv_send_wr* bad = NULL;
  connect_to_each_other(comm);
  post_receives(comm->qps[0], 20, 1);
  to_state(comm->qps[0], IBV_QPS_ERR);
  expect_status(comm, 20, IBV_WC_WR_FLUSH_ERR);
  CHECK_OK("3", mrc_post_send(comm->qps[0], &wr, &bad));
  expect_status(comm, 21, IBV_WC_WR_FLUSH_ERR);
  for (int i = 0; i < QPS; ++i) {
    to_state(comm->qps[i], IBV_QPS_RESET);
    to_init(comm, i);
  }
  connect_to_each_other(comm);
  memset(comm->memory + SLOT, 0, 8);
  comm->memory[0] = 0x5a;
  CHECK_OK("3", mrc_post_send(comm->qps[0], &wr, &bad));
  expect_status(comm, 21, IBV_WC_SUCCESS);
  CHECK_EQ("3", comm->memory[SLOT], 0x5a);
}

/* Rights of the queue pair count once they were given, keys always (section 4). The receiving
 * queue pair may fail for it: nothing of that shows in ibv_get_async_event. */
static void check_access(struct comm* comm) {
  struct ibv_qp_attr attr;
  struct ibv_sge sge;
  struct ibv_send_wr wr = small_write(comm, &sge, 30);
  struct ibv_send_wr* bad = NULL;
  for (int bad_key = 0; bad_key < 2; ++bad_key) {
    for (int i = 0; i < QPS; ++i) {
      to_state(comm->qps[i], IBV_QPS_RESET);
      memset(&attr, 0, sizeof attr);
      attr.qp_state = IBV_QPS_INIT;
      attr.qp_access_flags = bad_key ? IBV_ACCESS_REMOTE_WRITE : 0;
      CHECK_OK("4",
               mrc_modify_qp(comm->qps[i], &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS, NULL, 0));
    }
    connect_to_each_other(comm);
    wr.wr.rdma.rkey = bad_key ? comm->here.rkey ^ 0x00ffff00 : comm->here.rkey;
    memset(comm->memory + SLOT, 0, 8);
    CHECK_OK("3", mrc_post_send(comm->qps[0], &wr, &bad));
    expect_status(comm, 30, IBV_WC_REM_ACCESS_ERR);
    CHECK_EQ("4", comm->memory[SLOT], 0);
    CHECK_OK("3", mrc_query_qp(comm->qps[0], &attr, IBV_QP_STATE, NULL, 0, NULL));
    CHECK_EQ("4", attr.qp_state, IBV_QPS_ERR);
  }
}

/* One immediate at a time, and rights never given: all 64 are taken and arrive in order; the
 * requester holds them back (end of section 3). */
static void check_one_immediate_at_a_time(struct comm* comm) {
  struct ibv_wc wc[2 * RECV_DEPTH];
  for (int i = 0; i < QPS; ++i) {
    struct ibv_qp_attr attr;
    struct mrc_qp_attr mrc;
    to_state(comm->qps[i], IBV_QPS_RESET);
    to_state(comm->qps[i], IBV_QPS_INIT);
    memset(&attr, 0, sizeof attr);
    memset(&mrc, 0, sizeof mrc);
    attr.qp_state = IBV_QPS_RTR;
    attr.dest_qp_num = comm->here.qpn[1 - i];
    attr.path_mtu = (enum ibv_mtu)comm->here.mtu;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.dgid = comm->here.gid;
    mrc.wimm.max_wimm_dest = 1;
    mrc.wimm.max_wimm = 1;
    CHECK_OK("4", mrc_modify_qp(
                      comm->qps[i], &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
                      &mrc, MRC_QP_MAX_WIMM_DEST | MRC_QP_MAX_WIMM));
    to_rts(comm->qps[i], TIMEOUT);
  }
  post_receives(comm->qps[1], 0, RECV_DEPTH);
  for (int i = 0; i < RECV_DEPTH; ++i) {
    struct ibv_sge sge;
    struct ibv_send_wr wr = small_write(comm, &sge, 100);
    struct ibv_send_wr* bad = NULL;
    wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    wr.imm_data = (uint32_t)i;
    CHECK_OK("3", mrc_post_send(comm->qps[0], &wr, &bad));
  }
  NEED("3", take(comm->cq, 2 * RECV_DEPTH, POLL, wc));
  uint32_t next = 0;
  for (int i = 0; i < 2 * RECV_DEPTH; ++i) {
    CHECK_EQ("3", wc[i].status, IBV_WC_SUCCESS);
    if (wc[i].wr_id != 100) CHECK_EQ("3", wc[i].imm_data, next++);
  }
  CHECK_EQ("3", next, RECV_DEPTH);
}

/* Masks choose fields; refused calls change nothing (sections 1 and 3). */
static void check_hints(struct device* device) {
  struct mrc_qp_hint_attr attr;
  struct mrc_qp_hint* hint = create_hint(device);
  memset(&attr, 0, sizeof attr);
  attr.num_qps_per_peer = 11;
  attr.num_send_peers = 12;
  CHECK_OK("3", mrc_modify_qp_hint(hint, &attr, MRC_QP_HINT_NUM_SEND_PEERS));
  CHECK_MINUS("3", mrc_modify_qp_hint(hint, &attr, 1 << 20), EINVAL);
  CHECK_MINUS("3", mrc_query_qp_hint(hint, NULL, MRC_QP_HINT_NUM_SEND_PEERS), EINVAL);
  CHECK_MINUS("3", mrc_query_qp_hint(NULL, &attr, MRC_QP_HINT_NUM_SEND_PEERS), EINVAL);
  CHECK_OK("3", mrc_query_qp_hint(hint, &attr,
                                  MRC_QP_HINT_NUM_QPS_PER_PEER | MRC_QP_HINT_NUM_SEND_PEERS));
  CHECK_EQ("3", attr.num_qps_per_peer, QPS);
  CHECK_EQ("3", attr.num_send_peers, 12);
  CHECK_OK("3", mrc_destroy_qp_hint(hint));
}

static void run_alone(struct device* device) {
  struct comm comm;
  check_hints(device);
  make_comm(&comm, device, RELEASED, 0);
  check_refused_sends(&comm);
  check_receive_queue(&comm);
  to_state(comm.qps[1], IBV_QPS_RESET);
  to_init(&comm, 1);
  check_error_and_reset(&comm);
  check_access(&comm);
  check_one_immediate_at_a_time(&comm);
  for (int i = 0; i < QPS; ++i) /* the hint is the queue pair's again */
    to_state(comm.qps[i], IBV_QPS_RESET);
  for (int i = 0; i < QPS; ++i)
    to_init(&comm, i);
  end_comm(&comm);
}

int main(int argc, char** argv) {
  const int sysfs = argc > 1 && strcmp(argv[1], "--sysfs") == 0;
  struct device device;
  pid_t child = 0;
  const int peer = two_processes(&child);
  open_device(&device, sysfs);
  run_comm(&device, RELEASED, child == 0, peer);
  run_comm(&device, NEWER, child == 0, peer);
  if (child != 0) run_alone(&device);
  run_comm(&device, INLINE, child == 0, peer);
  nap_ms(100); /* time for events that must not come */
  CHECK_EQ("3", atomic_load(&qp_events), 0);
  CHECK_OK("9.1", mrc_destroy_context(device.mrc)); /* the newer line does; nobody closes */
  if (child == 0) return failures == 0 ? 0 : 1;
  const int there = end_of_child(child);
  if (failures == 0 && there == 0) puts("plug-in: all held");
  return failures != 0 ? 1 : there;
}
