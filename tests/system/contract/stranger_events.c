/* EV events as a controller gets them (contract 8.7 and 6.5). The parent controls the device and
 * writes over the paths of a profile to the child, which it stops now and then: packets stay
 * unanswered, so paths are assumed bad, and good again when the child goes on.
 *
 * Four queues listen: a deep one that is emptied all the time, one of a few entries that
 * overflows, one of a program of version 1.0.0 and one that is read when its channel says so. What
 * the small one says it lost must be exactly what the deep one has in between.
 *
 * Usage: stranger_events [NAME=VALUE...]      as the owner of the device or with CAP_NET_ADMIN
 *
 * The variables are those of the child: they may make it another node, which then gets requests.
 */
#define _DEFAULT_SOURCE
#include <poll.h>

#include "stranger_ctl.h"

enum {
  PROFILE = 13,
  EVS = 64,
  WRITES = 64,
  SIZE = 1 << 15,
  DEEP = 4096,
  SMALL = 8,
  ENOUGH = 300, /* events, so that a queue of a few entries must have overflowed */
  MOST = 8192,
  CYCLES = 20,
  OLD_STRIDE = 48
};

struct address {
  uint32_t qpn;
  uint32_t rkey;
  uint64_t base;
  union ibv_gid gid;
};

struct link {
  struct ibv_pd* pd;
  struct mrc_cq* cq;
  struct mrc_qp* qp;
  struct ibv_mr* mr;
  uint8_t* memory;
  struct address here;
  struct address there;
};

/* All events in order, from the deep queue. */
static struct mrc_ctl_ev_event all[MOST];
static int known;

/* --- A queue pair to the other process --- */

static void open_link(struct link* link, int with_profile) {
  struct mrc_qp_init_attr init;
  struct ibv_qp_attr attr;
  struct mrc_qp_attr profile;
  link->pd = ibv_alloc_pd(verbs);
  link->cq = mrc_create_cq(mrc, WRITES, NULL, NULL, 0);
  link->memory = calloc(1, SIZE);
  NEED("8.7", link->pd != NULL && link->cq != NULL && link->memory != NULL);
  link->mr =
      ibv_reg_mr(link->pd, link->memory, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  NEED("8.7", link->mr != NULL);
  memset(&init, 0, sizeof init);
  init.send_cq = init.recv_cq = link->cq;
  init.pd = link->pd;
  init.cap = (struct ibv_qp_cap){WRITES, 1, 1, 1, 0};
  link->qp = mrc_create_qp(mrc, &init);
  NEED("8.7", link->qp != NULL);
  CHECK_OK("3", mrc_get_qpn(link->qp, &link->here.qpn));
  link->here.rkey = link->mr->rkey;
  link->here.base = (uint64_t)(uintptr_t)link->memory;
  link->here.gid = own_gid;
  memset(&attr, 0, sizeof attr);
  memset(&profile, 0, sizeof profile);
  attr.qp_state = IBV_QPS_INIT;
  profile.profile.ev_profile_id = PROFILE;
  CHECK_OK("4", mrc_modify_qp(link->qp, &attr, IBV_QP_STATE, &profile,
                              with_profile ? MRC_QP_EV_PROFILE_ID : 0));
}

/* Retries for ever: a peer that is stopped is no reason to give up (section 4, 25). */
static void connect_link(struct link* link, int peer) {
  struct ibv_qp_attr attr;
  struct mrc_qp_attr retry;
  memset(&attr, 0, sizeof attr);
  memset(&retry, 0, sizeof retry);
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_4096;
  attr.dest_qp_num = link->there.qpn;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.dgid = link->there.gid;
  CHECK_OK("4", mrc_modify_qp(
                    link->qp, &attr,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
                    NULL, 0));
  attr.qp_state = IBV_QPS_RTS;
  retry.timeout = 8;
  retry.retry.linear_cnt = 7;
  retry.retry.exp_cnt = 25;
  CHECK_OK("4", mrc_modify_qp(link->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN, &retry,
                              MRC_QP_TIMEOUT | MRC_QP_RETRY_CNT));
  meet(peer);
}

static void close_link(struct link* link) {
  CHECK_OK("3", mrc_destroy_qp(link->qp));
  CHECK_OK("3", mrc_destroy_cq(link->cq));
  CHECK_EQ("8.7", ibv_dereg_mr(link->mr), 0);
  CHECK_EQ("8.7", ibv_dealloc_pd(link->pd), 0);
  free(link->memory);
}

static void post_writes(struct link* link) {
  for (int i = 0; i < WRITES; ++i) {
    struct ibv_sge sge = {link->here.base, SIZE, link->mr->lkey};
    struct ibv_send_wr wr;
    struct ibv_send_wr* bad = NULL;
    memset(&wr, 0, sizeof wr);
    wr.wr_id = (uint64_t)i;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = link->there.base;
    wr.wr.rdma.rkey = link->there.rkey;
    CHECK_OK("3", mrc_post_send(link->qp, &wr, &bad));
  }
}

/* --- The profile --- */

/* Ports in turn, each EV another value. */
static struct mrc_ctl_ev ev_number(unsigned i) {
  unsigned port = 0;
  for (unsigned step = 0; step <= i; ++step)
    do
      port = (port + 1) % 32;
    while ((device.phy_port_mask >> port & 1) == 0);
  return ev_of(i << 16 | (0xc000 + i), port);
}

static void make_profile(void) {
  static const uint8_t halves[] = {16, 16};
  const ev_attr attr = {.profile_state = MRC_CTL_PROFILE_OFFLINE,
                        .ev_mode = MRC_CTL_EV_MODE_EXP,
                        .ev_fmt_profile_id = PROFILE,
                        .ev_count = EVS,
                        .ev_min_active = 1};
  entry entries[EVS];
  CHECK_OK("8.2", make_format(PROFILE, STEV, halves, 2));
  CHECK_OK("8.2", format_to(PROFILE, ONLINE));
  CHECK_OK("8.2", set_ev(PROFILE, attr, BASICS | REST)); /* no events wanted yet */
  for (unsigned i = 0; i < EVS; ++i)
    entries[i] = (entry){MRC_CTL_EV_UNPOPULATED, ev_number(i), MRC_CTL_EV_GOOD, 0};
  CHECK_OK("8.2", ev_op(PROFILE, MRC_CTL_EV_OP_REPLACE_EV, entries, EVS));
  CHECK_OK("8.2", ev_to(PROFILE, ONLINE));
}

static void choose_events(int mask) {
  const ev_attr attr = {.ev_event_mask = mask};
  if (has_option(MRC_CTL_OPT_CAP_EV_PROFILE_MODIFY_ONLINE)) {
    CHECK_OK("8.7", set_ev(PROFILE, attr, MRC_CTL_EV_PROFILE_EVENT_MASK));
  } else {
    CHECK_MINUS("5", set_ev(PROFILE, attr, MRC_CTL_EV_PROFILE_EVENT_MASK), EINVAL);
    CHECK_OK("6.2", ev_to(PROFILE, OFFLINE));
    CHECK_OK("8.7", set_ev(PROFILE, attr, MRC_CTL_EV_PROFILE_EVENT_MASK));
    CHECK_OK("6.2", ev_to(PROFILE, ONLINE));
  }
}

/* --- Events --- */

static void check_event(const struct mrc_ctl_ev_event* event) {
  int found = 0;
  CHECK_EQ("6.5", event->profile_id, PROFILE);
  CHECK("6.5", event->state == MRC_CTL_EV_GOOD || event->state == MRC_CTL_EV_ASSUMED_BAD);
  CHECK_EQ("6.5", event->drop_count, 0); /* there was always room */
  for (unsigned i = 0; i < EVS; ++i) {
    const struct mrc_ctl_ev ev = ev_number(i);
    found += memcmp(&ev, &event->ev, sizeof ev) == 0; /* value and port */
  }
  CHECK_EQ("6.5", found, 1);
}

/* Four at a time until there are none (8.7). */
static int drain_deep(struct mrc_cq* deep) {
  const int before = known;
  for (int got = 1; got > 0 && known + 4 <= MOST; known += got) {
    got = mrc_ctl_poll_ev_event(deep, 4, all + known);
    NEED("1", got >= 0);
    for (int i = 0; i < got; ++i)
      check_event(all + known + i);
  }
  return known - before;
}

/* Paths that answer again become good one by one. */
static void settle(struct mrc_cq* deep) {
  const double deadline = now_s() + 10;
  double quiet_since = now_s();
  while (now_s() - quiet_since < 0.3 && now_s() < deadline) {
    if (drain_deep(deep) > 0) quiet_since = now_s();
    nap_ms(10);
  }
}

/* Stops the peer for a moment in the middle of writes, then waits for the paths to settle. */
static void cycle(struct link* link, pid_t child, struct mrc_cq* deep) {
  struct ibv_wc wc[WRITES];
  kill(child, SIGSTOP);
  post_writes(link);
  nap_ms(100);
  drain_deep(deep);
  kill(child, SIGCONT);
  NEED("8.7", take(link->cq, WRITES, 16, wc));
  for (int i = 0; i < WRITES; ++i)
    CHECK_EQ("4", wc[i].status, IBV_WC_SUCCESS);
  settle(deep);
}

/* One change after the other: each EV goes from one state to another, and back. */
static void check_changes(void) {
  int last[EVS] = {0};
  int repeats = 0;
  int kinds = 0;
  for (int i = 0; i < known; ++i) {
    for (unsigned n = 0; n < EVS; ++n) {
      const struct mrc_ctl_ev ev = ev_number(n);
      if (memcmp(&ev, &all[i].ev, sizeof ev) != 0) continue;
      repeats += last[n] == (int)all[i].state;
      last[n] = (int)all[i].state;
      kinds |= last[n];
    }
  }
  CHECK_EQ("6.5", kinds, GOOD | BAD);
  CHECK_EQ("6.5", repeats, 0); /* an event is a change */
}

/* Reads the small queue and follows it through the list of all events, from `at` on: behind as many
 * as it lost, each event must be the next of the list. */
static int check_small(struct mrc_cq* small, int at, int* lost, int* taken) {
  struct mrc_ctl_ev_event events[4];
  for (int got = 1; got > 0;) {
    got = mrc_ctl_poll_ev_event(small, 4, events);
    NEED("1", got >= 0);
    for (int i = 0; i < got; ++i) {
      at += (int)events[i].drop_count;
      *lost += (int)events[i].drop_count;
      NEED("6.5", at < known);
      CHECK_EQ("6.5", memcmp(&events[i].ev, &all[at].ev, sizeof all[at].ev), 0);
      CHECK_EQ("6.5", events[i].state, all[at].state);
      ++at;
      ++*taken;
    }
  }
  return at;
}

/* The structure of 1.0.0 has no state and is 48 bytes long, also as the stride of arrays. */
static void check_old(struct mrc_cq* old) {
  uint8_t raw[3 * OLD_STRIDE];
  memset(raw, 0xa5, sizeof raw);
  NEED("2", known > 2);
  CHECK_EQ("2", mrc_ctl_poll_ev_event(old, 2, (struct mrc_ctl_ev_event*)(void*)raw), 2);
  for (int i = 0; i < 2; ++i) {
    uint64_t id = 0;
    memcpy(&id, raw + i * OLD_STRIDE, sizeof id);
    CHECK_EQ("2", id, PROFILE);
    CHECK_EQ("2", memcmp(raw + i * OLD_STRIDE + 8, &all[i].ev, sizeof all[i].ev), 0);
  }
  CHECK_EQ("2", raw[2 * OLD_STRIDE], 0xa5); /* no more than two of that size */
}

struct listeners {
  struct mrc_context* old_context;
  struct mrc_comp_channel* channel;
  struct mrc_cq* heard; /* that nobody reads before its event */
  struct mrc_cq* deep;
  struct mrc_cq* small;
  struct mrc_cq* old;
};

/* With a channel it is used like any completion queue: an event for each request, also of a queue
 * that was read in the meantime (6.5; section 3: as verbs have it). */
static void check_channel(const struct listeners* on) {
  struct mrc_ctl_ev_event event;
  struct pollfd ready = {.events = POLLIN};
  int heard = 0;
  int deep = 0;
  CHECK_OK("3", mrc_get_comp_channel_fd(on->channel, &ready.fd));
  while (poll(&ready, 1, 500) == 1) {
    struct mrc_cq* cq = NULL;
    void* context = NULL;
    CHECK_OK("3", mrc_get_cq_event(on->channel, &cq, &context));
    CHECK("6.5", context == (cq == on->heard ? (void*)&known : (void*)all));
    heard += cq == on->heard;
    deep += cq == on->deep;
    mrc_ack_cq_events(cq, 1);
  }
  CHECK_EQ("6.5", heard, 1);
  CHECK_EQ("6.5", deep, 1);
  CHECK_EQ("6.5", mrc_ctl_poll_ev_event(on->heard, 1, &event), 1);
}

static void check_wrong_queues(struct mrc_cq* events, struct mrc_cq* work) {
  struct ibv_wc wc;
  struct mrc_ctl_ev_event event;
  CHECK_MINUS("6.5", mrc_poll_cq(events, 1, &wc), EINVAL);
  CHECK_EQ("1", mrc_ctl_poll_ev_event(work, 1, &event), -EINVAL);
  CHECK_EQ("1", mrc_ctl_poll_ev_event(events, -1, &event), -EINVAL);
  CHECK_EQ("6.5", mrc_ctl_poll_ev_event(events, 1, &event), 0); /* empty at the start */
}

static void open_listeners(struct listeners* on) {
  struct mrc_context_attr version = {.mrc_api_version_used = MRC_API_VER(1, 0, 0)};
  on->old_context = mrc_create_context(verbs, &version);
  NEED("2", on->old_context != NULL);
  CHECK_OK("3", mrc_create_comp_channel(mrc, &on->channel));
  on->heard = mrc_ctl_create_ev_event_cq(mrc, SMALL, &known, on->channel, 0);
  on->deep = mrc_ctl_create_ev_event_cq(mrc, DEEP, all, on->channel, 0);
  on->small = mrc_ctl_create_ev_event_cq(mrc, SMALL, NULL, NULL, 0);
  on->old = mrc_ctl_create_ev_event_cq(on->old_context, DEEP, NULL, NULL, 0);
  NEED("6.5", on->heard != NULL && on->deep != NULL && on->small != NULL && on->old != NULL);
  CHECK_OK("6.5", mrc_req_notify_cq(on->heard, 0));
  CHECK_OK("6.5", mrc_req_notify_cq(on->deep, 0));
}

static void close_listeners(struct listeners* on) {
  CHECK_PLUS("3", mrc_destroy_comp_channel(on->channel), EBUSY);
  CHECK_OK("8.7", mrc_destroy_cq(on->heard));
  CHECK_OK("8.7", mrc_destroy_cq(on->deep));
  CHECK_OK("8.7", mrc_destroy_cq(on->small));
  CHECK_OK("8.7", mrc_destroy_cq(on->old));
  CHECK_OK("3", mrc_destroy_comp_channel(on->channel));
  CHECK_OK("3", mrc_destroy_context(on->old_context));
}

/* Until a queue of a few entries has lost some; then some more that it has room for. */
static void watch(struct link* link, pid_t child) {
  struct listeners on;
  int lost = 0;
  int taken = 0;
  int cycles = 0;
  open_listeners(&on);
  check_wrong_queues(on.small, link->cq);
  cycle(link, child, on.deep); /* the mask selects nothing so far */
  CHECK_EQ("6.5", known, 0);
  choose_events(GOOD | BAD);
  while (known < ENOUGH && cycles++ < CYCLES)
    cycle(link, child, on.deep);
  check_channel(&on);
  check_changes();
  check_old(on.old);
  const int at = check_small(on.small, 0, &lost, &taken);
  CHECK_CMP("6.5", taken, >=, SMALL); /* at least as many as asked for */
  CHECK_CMP("8.7", at, <, known);     /* it lost those behind */
  const int before = known;
  while (known == before && cycles++ < CYCLES)
    cycle(link, child, on.deep);
  /* The next event counts those lost; what that one delivers later is in step again. */
  lost = 0;
  const int end = check_small(on.small, at, &lost, &taken);
  CHECK_CMP("6.5", lost, >=, before - at);
  printf("%d events, %d of them in the small queue, which missed %d; the list goes on to %d\n",
         known, taken, lost, end);
  close_listeners(&on);
}

/* A port status and probes go to another node, answers come back, and no queue pair is connected
 * (6.6, api.md). Bit N is port N; all are up, so nothing changes. */
static void check_requests(const union ibv_gid* other) {
  struct mrc_ctl_ep_req req[2];
  struct mrc_ctl_ep_rsp rsp[2];
  memset(req, 0, sizeof req);
  for (int i = 0; i < 2; ++i) {
    req[i].req_id = (uint16_t)(100 + i);
    req[i].sgid = own_gid;
    req[i].dgid = *other;
    req[i].ev_fmt_mode = MRC_CTL_EV_FMT_MODE_STEV;
    req[i].req_ev = ev_number((unsigned)i);
    req[i].op.port_status_update.port_status = device.phy_port_mask;
  }
  for (int status = 0; status < 2; ++status) {
    int answers = 1000000;
    CHECK_OK("6.6", mrc_ctl_ep_batch_send_wait(
                        mrc, 0, status ? MRC_CTL_EP_OP_PORT_STATUS_UPDATE : MRC_CTL_EP_OP_EV_PROBE,
                        req, 2, 4000000000u, rsp, &answers));
    CHECK_EQ("6.6", answers, 2);
    if (answers != 2) continue;
    CHECK_EQ("6.6", rsp[0].req_id + rsp[1].req_id, 201); /* in any order */
    CHECK("6.6", (device.phy_port_mask >> rsp[0].port & 1) != 0);
  }
}

static void control(pid_t child, int peer) {
  struct link link;
  CHECK("8.7", has_option(MRC_CTL_OPT_CAP_EV_EVENT));
  NEED("8.7", has_option(MRC_CTL_OPT_CAP_EV_EVENT_PRECISE_DROP_CNT));
  make_profile();
  open_link(&link, 1);
  swap(peer, &link.here, &link.there, sizeof link.here);
  if (memcmp(&own_gid, &link.there.gid, sizeof own_gid) != 0) check_requests(&link.there.gid);
  connect_link(&link, peer);
  CHECK_MINUS("6.2", ev_to(PROFILE, OFFLINE), EBUSY);
  watch(&link, child);
  meet(peer);
  close_link(&link);
  end_ev(PROFILE);
  end_format(PROFILE);
}

static void serve(int peer) {
  struct link link;
  open_link(&link, 0);
  swap(peer, &link.here, &link.there, sizeof link.here);
  connect_link(&link, peer);
  meet(peer); /* the last word; until then the other side writes */
  close_link(&link);
}

int main(int argc, char** argv) {
  pid_t child = 0;
  const int peer = two_processes(&child);
  for (int i = 1; child == 0 && i < argc; ++i)
    putenv(argv[i]);
  open_node();
  if (child == 0)
    serve(peer);
  else
    control(child, peer);
  CHECK_OK("3", mrc_destroy_context(mrc));
  CHECK_EQ("8.7", ibv_close_device(verbs), 0);
  if (child == 0) return failures == 0 ? 0 : 1;
  const int there = end_of_child(child);
  if (failures == 0 && there == 0) puts("events: all held");
  return failures != 0 ? 1 : there;
}
