/* A walk through the controller API: what a program that manages a node does.
 *
 *   ctl_walkthrough [device]
 *
 * It looks at the device, switches a port off and on, describes paths in four ways (a structured EV
 * and SRv6 with and without a routing header; listed one by one and drawn from ranges), takes a
 * range of paths out of use, sets up congestion control, waits for events and probes a peer, which
 * is the device itself. Everything it sets it also removes. It ends with "ok" and status 0, or with
 * the line of the first call that did not do what it should.
 *
 * It needs the right to change the device: its owner's, or CAP_NET_ADMIN.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <mrc_ctl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                           \
  do {                                                                        \
    if ((call) != 0) {                                                        \
      fprintf(stderr, "line %d: %s: %s\n", __LINE__, #call, strerror(errno)); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

#define EXPECT(condition)                                             \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

/* Ids are the controller's own; these are unlikely to be anybody else's. */
enum { FMT_STEV = 9001, FMT_SRV6 = 9002, FMT_SRH = 9003 };
enum { EV_STEV_GEN = 9101, EV_STEV_EXP = 9102, EV_SRV6_GEN = 9103, EV_SRH_EXP = 9104 };
enum { CC_NSCC = 9201, CC_NONE = 9202 };
enum { MAX_EVS = 256 };

static struct ibv_context* open_device(const char* name) {
  int count = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  struct ibv_context* verbs = NULL;
  for (int i = 0; list != NULL && i < count && verbs == NULL; ++i) {
    if (name == NULL || strcmp(ibv_get_device_name(list[i]), name) == 0)
      verbs = ibv_open_device(list[i]);
  }
  if (list != NULL) ibv_free_device_list(list);
  return verbs;
}

/* --- Ports --- */

static void switch_port(struct mrc_context* mrc, struct ibv_context* verbs, uint8_t port) {
  struct mrc_ctl_port_attr attr = {.port_admin_state = MRC_CTL_PORT_ADMIN_DISABLED};
  struct ibv_port_attr seen;
  CHECK(mrc_ctl_modify_port(mrc, port, &attr, MRC_CTL_PORT_ADMIN_STATE));
  CHECK(ibv_query_port(verbs, port, &seen));
  EXPECT(seen.state == IBV_PORT_DOWN);
  attr.port_admin_state = MRC_CTL_PORT_ADMIN_ENABLED;
  CHECK(mrc_ctl_modify_port(mrc, port, &attr, MRC_CTL_PORT_ADMIN_STATE));
  CHECK(mrc_ctl_query_port(mrc, port, &attr, MRC_CTL_PORT_ADMIN_STATE));
  EXPECT(attr.port_admin_state == MRC_CTL_PORT_ADMIN_ENABLED);
  printf("port %u was off and is on again\n", port);
}

/* --- EV formats --- */

static void make_format(struct mrc_context* mrc, uint64_t id, enum mrc_ctl_ev_fmt_mode mode,
                        const uint8_t* widths, int count) {
  struct mrc_ctl_ev_fmt_field fields[MAX_EVS];
  struct mrc_ctl_ev_fmt_profile_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
  attr.ev_fmt_mode = mode;
  CHECK(mrc_ctl_modify_ev_fmt_profile(mrc, id, &attr,
                                      MRC_CTL_EV_FMT_PROFILE_STATE | MRC_CTL_EV_FMT_PROFILE_MODE));
  for (int i = 0; i < count; ++i)
    fields[i].width = widths[i];
  attr.profile_state = MRC_CTL_PROFILE_ONLINE;
  attr.ev_fmt_op.op = MRC_CTL_EV_FMT_OP_MODIFY_FIELDS;
  attr.ev_fmt_op.fmt_fields = fields;
  attr.ev_fmt_op.fmt_field_count = count;
  CHECK(mrc_ctl_modify_ev_fmt_profile(mrc, id, &attr,
                                      MRC_CTL_EV_FMT_PROFILE_STATE | MRC_CTL_EV_FMT_PROFILE_OP));
}

static void drop_format(struct mrc_context* mrc, uint64_t id) {
  struct mrc_ctl_ev_fmt_profile_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
  CHECK(mrc_ctl_modify_ev_fmt_profile(mrc, id, &attr, MRC_CTL_EV_FMT_PROFILE_STATE));
  attr.profile_state = MRC_CTL_PROFILE_INIT;
  CHECK(mrc_ctl_modify_ev_fmt_profile(mrc, id, &attr, MRC_CTL_EV_FMT_PROFILE_STATE));
}

/* --- EV profiles --- */

static int ev_state(struct mrc_context* mrc, uint64_t id, enum mrc_ctl_profile_state state) {
  struct mrc_ctl_ev_profile_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.profile_state = state;
  attr.ev_min_active = 1;
  attr.ev_event_mask = MRC_CTL_EV_GOOD | MRC_CTL_EV_ASSUMED_BAD;
  int mask = MRC_CTL_EV_PROFILE_STATE;
  if (state == MRC_CTL_PROFILE_ONLINE)
    mask |= MRC_CTL_EV_PROFILE_MIN_ACTIVE | MRC_CTL_EV_PROFILE_EVENT_MASK;
  return mrc_ctl_modify_ev_profile(mrc, id, &attr, mask);
}

/* Creates a profile and returns how many EVs it has, which may be more than asked for. */
static uint32_t make_profile(struct mrc_context* mrc, uint64_t id, enum mrc_ctl_ev_mode mode,
                             uint64_t format, uint32_t count, struct mrc_ctl_ev_field* fields,
                             int field_count) {
  struct mrc_ctl_ev_profile_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
  attr.ev_mode = mode;
  attr.ev_fmt_profile_id = format;
  attr.ev_count = count;
  int mask = MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE | MRC_CTL_EV_PROFILE_FMT_ID |
             MRC_CTL_EV_PROFILE_COUNT;
  if (field_count > 0) {
    attr.ev_fields_op.op = MRC_CTL_EV_FIELDS_OP_MODIFY_FIELDS;
    attr.ev_fields_op.fields = fields;
    attr.ev_fields_op.field_count = field_count;
    mask |= MRC_CTL_EV_PROFILE_EV_FIELDS_OP;
  }
  CHECK(mrc_ctl_modify_ev_profile(mrc, id, &attr, mask));
  memset(&attr, 0, sizeof attr);
  CHECK(mrc_ctl_query_ev_profile(mrc, id, &attr, MRC_CTL_EV_PROFILE_COUNT));
  EXPECT(attr.ev_count >= count && attr.ev_count <= MAX_EVS);
  return attr.ev_count;
}

static int ev_operation(struct mrc_context* mrc, uint64_t id, enum mrc_ctl_ev_op op,
                        struct mrc_ctl_ev_op_entry* entries, int count) {
  struct mrc_ctl_ev_profile_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.ev_op.op = op;
  attr.ev_op.entries = entries;
  attr.ev_op.entry_count = count;
  if (op == MRC_CTL_EV_OP_QUERY_EV_STATE || op == MRC_CTL_EV_OP_QUERY_EV_ARRAY)
    return mrc_ctl_query_ev_profile(mrc, id, &attr, MRC_CTL_EV_PROFILE_EV_OP);
  return mrc_ctl_modify_ev_profile(mrc, id, &attr, MRC_CTL_EV_PROFILE_EV_OP);
}

static void fill(struct mrc_context* mrc, uint64_t id, const struct mrc_ctl_ev* evs,
                 uint32_t count) {
  struct mrc_ctl_ev_op_entry entries[MAX_EVS];
  memset(entries, 0, sizeof entries);
  for (uint32_t i = 0; i < count; ++i) {
    entries[i].ev = MRC_CTL_EV_UNPOPULATED;
    entries[i].ev_new = evs[i];
  }
  CHECK(ev_operation(mrc, id, MRC_CTL_EV_OP_REPLACE_EV, entries, (int)count));
}

static void drop_profile(struct mrc_context* mrc, uint64_t id) {
  CHECK(ev_state(mrc, id, MRC_CTL_PROFILE_OFFLINE));
  CHECK(ev_state(mrc, id, MRC_CTL_PROFILE_INIT));
}

/* A structured EV of two halves: source port and flow label, drawn from a range each. */
static void generated_stev(struct mrc_context* mrc) {
  struct mrc_ctl_ev_field fields[2] = {
      {.width = 16, .init_val = 0xC000, .min_val = 0, .max_val = 1023, .mask = 0x3FFF},
      {.width = 16, .init_val = 0x0100, .mask = 0x00FF}};
  uint32_t count = make_profile(mrc, EV_STEV_GEN, MRC_CTL_EV_MODE_GEN, FMT_STEV, 64, fields, 2);
  CHECK(ev_state(mrc, EV_STEV_GEN, MRC_CTL_PROFILE_ONLINE));
  printf("profile %d: %u generated structured EVs\n", EV_STEV_GEN, count);
}

/* The same format with every EV listed; ports take turns. */
static void explicit_stev(struct mrc_context* mrc, unsigned ports) {
  struct mrc_ctl_ev evs[MAX_EVS];
  uint32_t count = make_profile(mrc, EV_STEV_EXP, MRC_CTL_EV_MODE_EXP, FMT_STEV, 32, NULL, 0);
  memset(evs, 0, sizeof evs);
  for (uint32_t i = 0; i < count; ++i) {
    evs[i].val[1] = (uint8_t)i;
    evs[i].val[2] = 0xC8;
    evs[i].val[3] = (uint8_t)i;
    evs[i].port = (uint8_t)(i % ports + 1);
  }
  /* Nothing is listed yet. */
  EXPECT(ev_state(mrc, EV_STEV_EXP, MRC_CTL_PROFILE_ONLINE) == -1 && errno == EINVAL);
  fill(mrc, EV_STEV_EXP, evs, count);
  CHECK(ev_state(mrc, EV_STEV_EXP, MRC_CTL_PROFILE_ONLINE));
  printf("profile %d: %u explicit structured EVs\n", EV_STEV_EXP, count);
}

/* Micro segments fc00:0: <leaf> <spine 1..8> <leaf> <host>: only the spine is drawn. */
static void generated_srv6(struct mrc_context* mrc) {
  struct mrc_ctl_ev_field fields[5] = {
      {.width = 32, .init_val = 0xFC000000},
      {.width = 16, .init_val = 0x0001},
      {.width = 16, .init_val = 0x0100, .min_val = 1, .max_val = 8, .mask = 0x000F},
      {.width = 16, .init_val = 0x0002},
      {.width = 16, .init_val = 0x0301}};
  uint32_t count = make_profile(mrc, EV_SRV6_GEN, MRC_CTL_EV_MODE_GEN, FMT_SRV6, 8, fields, 5);
  CHECK(ev_state(mrc, EV_SRV6_GEN, MRC_CTL_PROFILE_ONLINE));
  printf("profile %d: %u generated SRv6 paths\n", EV_SRV6_GEN, count);
}

/* Longer than one address holds: the rest goes into a routing header. */
static void explicit_srh(struct mrc_context* mrc, unsigned ports) {
  static const uint8_t block[4] = {0xFC, 0x00, 0x00, 0x00};
  struct mrc_ctl_ev evs[MAX_EVS];
  uint32_t count = make_profile(mrc, EV_SRH_EXP, MRC_CTL_EV_MODE_EXP, FMT_SRH, 4, NULL, 0);
  memset(evs, 0, sizeof evs);
  for (uint32_t i = 0; i < count; ++i) {
    memcpy(evs[i].val, block, sizeof block);
    memcpy(evs[i].val + 16, block, sizeof block);
    for (int hop = 0; hop < 6; ++hop)
      evs[i].val[5 + 2 * hop] = (uint8_t)(i + (uint32_t)hop + 1);
    for (int hop = 0; hop < 4; ++hop)
      evs[i].val[21 + 2 * hop] = (uint8_t)(0x10 + hop);
    evs[i].port = (uint8_t)(i % ports + 1);
  }
  fill(mrc, EV_SRH_EXP, evs, count);
  CHECK(ev_state(mrc, EV_SRH_EXP, MRC_CTL_PROFILE_ONLINE));
  printf("profile %d: %u explicit SRv6 paths with a routing header\n", EV_SRH_EXP, count);
}

/* Every EV of a profile whose source port lies below a bound is taken out of use. */
static void deny_range(struct mrc_context* mrc) {
  struct mrc_ctl_ev_op_entry all[MAX_EVS];
  struct mrc_ctl_ev_op_entry some[MAX_EVS];
  struct mrc_ctl_ev_profile_attr attr;
  int denied = 0;
  memset(&attr, 0, sizeof attr);
  attr.ev_op.op = MRC_CTL_EV_OP_QUERY_EV_ARRAY;
  attr.ev_op.entries = all;
  attr.ev_op.entry_count = MAX_EVS;
  CHECK(mrc_ctl_query_ev_profile(mrc, EV_STEV_EXP, &attr, MRC_CTL_EV_PROFILE_EV_OP));
  memset(some, 0, sizeof some);
  for (int i = 0; i < attr.ev_op.entry_count; ++i) {
    EXPECT(all[i].state == MRC_CTL_EV_GOOD);
    if (all[i].ev.val[3] >= 8) continue;
    some[denied].ev = all[i].ev;
    some[denied].state = MRC_CTL_EV_DENIED;
    some[denied].flags = MRC_CTL_EV_OP_F_ALL_COPIES;
    ++denied;
  }
  CHECK(ev_operation(mrc, EV_STEV_EXP, MRC_CTL_EV_OP_MODIFY_EV_STATE, some, denied));
  for (int i = 0; i < denied; ++i)
    some[i].state = MRC_CTL_EV_UNKNOWN;
  CHECK(ev_operation(mrc, EV_STEV_EXP, MRC_CTL_EV_OP_QUERY_EV_STATE, some, denied));
  for (int i = 0; i < denied; ++i)
    EXPECT(some[i].state == MRC_CTL_EV_DENIED);
  some[0].ev.val[0] = 0x77;
  EXPECT(ev_operation(mrc, EV_STEV_EXP, MRC_CTL_EV_OP_QUERY_EV_STATE, some, 1) == -1 &&
         errno == ENOENT);
  printf("profile %d: %d EVs denied\n", EV_STEV_EXP, denied);
}

/* --- Congestion control --- */

static void congestion_control(struct mrc_context* mrc) {
  struct mrc_ctl_cc_nscc_cfg nscc;
  struct mrc_ctl_cc_profile_attr attr;
  memset(&nscc, 0, sizeof nscc);
  nscc.base_rtt = 12000;
  nscc.gamma = 0.8F;
  for (int i = 0; i < 2; ++i) {
    uint64_t id = i == 0 ? CC_NSCC : CC_NONE;
    memset(&attr, 0, sizeof attr);
    attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
    attr.algorithm = i == 0 ? "uet-1.0-nscc" : NULL;
    CHECK(mrc_ctl_modify_cc_profile(mrc, id, &attr,
                                    MRC_CTL_CC_PROFILE_STATE | MRC_CTL_CC_PROFILE_ALGORITHM));
    attr.profile_state = MRC_CTL_PROFILE_ONLINE;
    attr.cc_config = &nscc;
    CHECK(mrc_ctl_modify_cc_profile(
        mrc, id, &attr,
        i == 0 ? MRC_CTL_CC_PROFILE_STATE | MRC_CTL_CC_PROFILE_CONFIG : MRC_CTL_CC_PROFILE_STATE));
  }
  printf("profiles %d and %d: congestion control by NSCC and none at all\n", CC_NSCC, CC_NONE);
}

static void drop_congestion_control(struct mrc_context* mrc) {
  for (int i = 0; i < 2; ++i) {
    struct mrc_ctl_cc_profile_attr attr;
    memset(&attr, 0, sizeof attr);
    uint64_t id = i == 0 ? CC_NSCC : CC_NONE;
    attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
    CHECK(mrc_ctl_modify_cc_profile(mrc, id, &attr, MRC_CTL_CC_PROFILE_STATE));
    attr.profile_state = MRC_CTL_PROFILE_INIT;
    CHECK(mrc_ctl_modify_cc_profile(mrc, id, &attr, MRC_CTL_CC_PROFILE_STATE));
  }
}

/* --- Events and probes --- */

/* With no traffic there is nothing to tell; a real controller polls as long as it lives. */
static void events(struct mrc_context* mrc) {
  struct mrc_ctl_ev_event event[8];
  struct mrc_cq* cq = mrc_ctl_create_ev_event_cq(mrc, 64, NULL, NULL, 0);
  EXPECT(cq != NULL);
  int count = mrc_ctl_poll_ev_event(cq, 8, event);
  EXPECT(count >= 0);
  for (int i = 0; i < count; ++i) {
    printf("event: profile %llu, port %u, %u lost\n", (unsigned long long)event[i].profile_id,
           event[i].ev.port, event[i].drop_count);
  }
  CHECK(mrc_destroy_cq(cq));
  printf("%d events were waiting\n", count);
}

static void probes(struct mrc_context* mrc, struct ibv_context* verbs, unsigned ports) {
  struct mrc_ctl_ep_req request[16];
  struct mrc_ctl_ep_rsp answer[16];
  int answers = (int)ports;
  memset(request, 0, sizeof request);
  for (unsigned i = 0; i < ports; ++i) {
    request[i].req_id = (uint16_t)(i + 1);
    CHECK(ibv_query_gid(verbs, 1, 0, &request[i].sgid));
    request[i].dgid = request[i].sgid;
    request[i].ev_fmt_mode = MRC_CTL_EV_FMT_MODE_STEV;
    request[i].req_ev.val[2] = 0xC9;
    request[i].req_ev.val[3] = (uint8_t)i;
    request[i].req_ev.port = (uint8_t)(i + 1);
  }
  CHECK(mrc_ctl_ep_batch_send_wait(mrc, 0, MRC_CTL_EP_OP_EV_PROBE, request, (int)ports, 4000000000U,
                                   answer, &answers));
  EXPECT(answers == (int)ports);
  for (int i = 0; i < answers; ++i)
    printf("probe %u: answered on port %u\n", answer[i].req_id, answer[i].port);
}

int main(int argc, char** argv) {
  static const uint8_t stev[] = {16, 16};
  static const uint8_t srv6[] = {32, 16, 16, 16, 16};
  static const uint8_t srh[] = {32, 16, 16, 16, 16, 16, 16, 32, 16, 16, 16, 16};
  struct mrc_ctl_device_attr device;
  int supported = 0;
  unsigned ports = 0;

  struct ibv_context* verbs = open_device(argc > 1 ? argv[1] : NULL);
  EXPECT(verbs != NULL);
  CHECK(mrc_ctl_query_device_ex(verbs, NULL, &device, &supported));
  EXPECT(supported);
  while (ports < 16 && (device.phy_port_mask >> (ports + 1) & 1) != 0)
    ++ports;
  printf("%u ports, %u of %u EVs free, congestion control %s\n", ports, device.ev.ev_free_count,
         device.ev.ev_max_count, device.cc.algorithms[0]);
  struct mrc_context* mrc = mrc_create_context(verbs, NULL);
  EXPECT(mrc != NULL);

  switch_port(mrc, verbs, 1);
  make_format(mrc, FMT_STEV, MRC_CTL_EV_FMT_MODE_STEV, stev, 2);
  make_format(mrc, FMT_SRV6, MRC_CTL_EV_FMT_MODE_SRV6, srv6, 5);
  make_format(mrc, FMT_SRH, MRC_CTL_EV_FMT_MODE_SRV6, srh, 12);
  generated_stev(mrc);
  explicit_stev(mrc, ports);
  generated_srv6(mrc);
  explicit_srh(mrc, ports);
  deny_range(mrc);
  congestion_control(mrc);
  events(mrc);
  probes(mrc, verbs, ports);

  drop_congestion_control(mrc);
  drop_profile(mrc, EV_STEV_GEN);
  drop_profile(mrc, EV_STEV_EXP);
  drop_profile(mrc, EV_SRV6_GEN);
  drop_profile(mrc, EV_SRH_EXP);
  drop_format(mrc, FMT_STEV);
  drop_format(mrc, FMT_SRV6);
  drop_format(mrc, FMT_SRH);
  CHECK(mrc_destroy_context(mrc));
  CHECK(ibv_close_device(verbs));
  printf("ok\n");
  return 0;
}
