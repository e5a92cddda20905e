/* Walks through the public controller examples as they are meant (contract 8.1 to 8.6, their slips
 * corrected) and checks what the contract says about each step: how calls report, the life of
 * profiles, units, numbers of ports, answers to probes. Events (8.7) and other nodes:
 * stranger_events.c.
 *
 * Usage: stranger_controller      as the owner of the device or with CAP_NET_ADMIN
 */
#define _DEFAULT_SOURCE
#include <grp.h>

#include "stranger_ctl.h"

/* --- Device and ports --- */

static void check_versions(void) {
  uint32_t v[4] = {7, 7, 7, 7};
  for (int half = 0; half < 2; ++half) {
    (half ? mrc_ctl_query_version : mrc_query_version)(&v[0], &v[1], &v[2], &v[3]);
    CHECK_EQ("2", v[0], 0x01000001);
    CHECK_EQ("2", v[1], 0);
    CHECK_EQ("2", v[2], 0x01000000);
    CHECK_EQ("2", v[3], 0);
    (half ? mrc_ctl_query_version : mrc_query_version)(NULL, NULL, NULL, NULL);
  }
  struct mrc_context_attr newer = {.mrc_api_version_used = MRC_API_CURRENT_VERSION + 1};
  errno = 0;
  CHECK("2", mrc_create_context(verbs, &newer) == NULL);
  CHECK_EQ("2", errno, EINVAL);
}

static void check_device(void) {
  struct mrc_ctl_device_attr again;
  int supported = 7;
  int found = 0;
  CHECK_EQ("5", device.mrc_ctl_protocol_version, 1);
  CHECK_EQ("5", device.phy_port_mask & 1, 0); /* bit N is port N, and ports count from 1 */
  CHECK_CMP("5", device.phy_port_mask, !=, 0);
  CHECK_CMP("5", device.ev.ev_count_align, >=, 1);
  CHECK_CMP("5", device.ev.ev_max_count_profile, <=, device.ev.ev_max_count);
  CHECK_EQ("5", device.ev.ev_free_count, device.ev.ev_max_count);
  CHECK_CMP("5", device.ev.ev_max_width, <=, 256);
  for (const char** name = device.cc.algorithms; *name != NULL; ++name)
    found += strcmp(*name, "uet-1.0-nscc") == 0;
  CHECK_EQ("api.md", found, 1);
  CHECK_OK("3", mrc_ctl_query_device_ex(verbs, mrc, &again, &supported));
  CHECK_EQ("3", supported, 1);
  CHECK_EQ("3", again.phy_port_mask, device.phy_port_mask);
  CHECK_MINUS("1", mrc_ctl_query_device(verbs, NULL), EINVAL);
  CHECK_MINUS("1", mrc_ctl_query_device(NULL, &again), EINVAL);
}

/* A port that is enabled may take a while to come up. */
static enum ibv_port_state state_in_the_end(uint8_t number) {
  struct ibv_port_attr seen = {.state = IBV_PORT_NOP};
  const double deadline = now_s() + 5;
  while (seen.state != IBV_PORT_ACTIVE && now_s() < deadline) {
    CHECK_EQ("6.1", ibv_query_port(verbs, number, &seen), 0);
    nap_ms(1);
  }
  return seen.state;
}

static void check_one_port(uint8_t number) {
  struct ibv_port_attr seen;
  struct mrc_ctl_port_attr attr = {.port_admin_state = (enum mrc_ctl_port_admin_state)7};
  CHECK_OK("6.1", mrc_ctl_query_port(mrc, number, &attr, MRC_CTL_PORT_ADMIN_STATE));
  CHECK_EQ("6.1", attr.port_admin_state, MRC_CTL_PORT_ADMIN_ENABLED);
  for (int on = 0; on < 2; ++on) {
    attr.port_admin_state = (enum mrc_ctl_port_admin_state)on;
    CHECK_OK("6.1", mrc_ctl_modify_port(mrc, number, &attr, MRC_CTL_PORT_ADMIN_STATE));
    CHECK_EQ("6.1", ibv_query_port(verbs, number, &seen), 0);
    if (!on) CHECK_EQ("6.1", seen.state, IBV_PORT_DOWN); /* at once */
    if (on) CHECK_EQ("6.1", state_in_the_end(number), IBV_PORT_ACTIVE);
    attr.port_admin_state = (enum mrc_ctl_port_admin_state)7;
    CHECK_OK("6.1", mrc_ctl_query_port(mrc, number, &attr, MRC_CTL_PORT_ADMIN_STATE));
    CHECK_EQ("6.1", attr.port_admin_state, on);
  }
}

static void check_ports(void) {
  struct mrc_ctl_port_attr attr = {.port_admin_state = (enum mrc_ctl_port_admin_state)2};
  for (unsigned number = 0; number < 32; ++number) {
    if ((device.phy_port_mask >> number & 1) != 0) {
      check_one_port((uint8_t)number);
    } else {
      CHECK_MINUS("6.1", mrc_ctl_query_port(mrc, (uint8_t)number, &attr, MRC_CTL_PORT_ADMIN_STATE),
                  EINVAL);
      CHECK_EQ("1", attr.port_admin_state, 2); /* nothing is written on error */
    }
  }
  CHECK_MINUS("6.1", mrc_ctl_modify_port(mrc, 1, &attr, MRC_CTL_PORT_ADMIN_STATE), EINVAL);
  CHECK_MINUS("6.1", mrc_ctl_modify_port(mrc, 1, &attr, 1 << 9), EINVAL);
  CHECK_MINUS("6.1", mrc_ctl_modify_port(mrc, 1, NULL, MRC_CTL_PORT_ADMIN_STATE), EINVAL);
}

/* --- Formats: 8.3 and the life that all profiles share (6.2) --- */

static void check_format_reads(uint64_t id, int mode, const uint8_t* widths, int count) {
  struct mrc_ctl_ev_fmt_field fields[16];
  struct mrc_ctl_ev_fmt_profile_attr attr;
  memset(&attr, 0, sizeof attr);
  memset(fields, 0x77, sizeof fields);
  attr.ev_fmt_op.op = MRC_CTL_EV_FMT_OP_QUERY_FIELDS;
  attr.ev_fmt_op.fmt_fields = fields;
  attr.ev_fmt_op.fmt_field_count = count - 1;
  CHECK_MINUS("6.3", mrc_ctl_query_ev_fmt_profile(mrc, id, &attr, MRC_CTL_EV_FMT_PROFILE_OP),
              E2BIG);
  CHECK_EQ("6.3", attr.ev_fmt_op.fmt_field_count, count); /* the length it takes */
  CHECK_EQ("6.3", fields[0].width, 0x77);                 /* and nothing filled */
  attr.ev_fmt_op.fmt_field_count = 16;
  CHECK_OK("6.3", mrc_ctl_query_ev_fmt_profile(
                      mrc, id, &attr,
                      MRC_CTL_EV_FMT_PROFILE_OP | MRC_CTL_EV_FMT_PROFILE_MODE |
                          MRC_CTL_EV_FMT_PROFILE_STATE | MRC_CTL_EV_FMT_PROFILE_CUR_STATE));
  CHECK_EQ("6.3", attr.ev_fmt_mode, mode);
  CHECK_EQ("6.2", attr.profile_state, ONLINE);
  CHECK_EQ("6.2", attr.cur_profile_state, ONLINE);
  CHECK_EQ("6.3", attr.ev_fmt_op.fmt_field_count, count);
  for (int i = 0; i < count; ++i)
    CHECK_EQ("6.3", fields[i].width, widths[i]);
  /* A modify takes the op that asks, too. */
  attr.ev_fmt_op.fmt_field_count = 16;
  CHECK_OK("6.3", mrc_ctl_modify_ev_fmt_profile(mrc, id, &attr, MRC_CTL_EV_FMT_PROFILE_OP));
  CHECK_EQ("6.3", attr.ev_fmt_op.fmt_field_count, count);
  attr.ev_fmt_op.op = MRC_CTL_EV_FMT_OP_MODIFY_FIELDS; /* a query does not take one that changes */
  CHECK_MINUS("6.3", mrc_ctl_query_ev_fmt_profile(mrc, id, &attr, MRC_CTL_EV_FMT_PROFILE_OP),
              EINVAL);
}

static void check_format_errors(void) {
  static const uint8_t wide[] = {16, 17};
  static const uint8_t none[] = {16, 0};
  struct mrc_ctl_ev_fmt_profile_attr attr;
  const int state_and_mode = MRC_CTL_EV_FMT_PROFILE_STATE | MRC_CTL_EV_FMT_PROFILE_MODE;
  CHECK_MINUS("6.2", format_to(70, OFFLINE), EINVAL); /* needs a mode */
  CHECK_MINUS("6.2", format_to(70, ONLINE), EINVAL);  /* not in one step */
  CHECK_MINUS("1", set_format(70, state_and_mode, OFFLINE, STEV | UDP, NULL, 0), EINVAL);
  CHECK_MINUS("6.3", make_format(70, STEV, wide, 2), E2BIG);
  CHECK_MINUS("6.3", make_format(70, UDP, wide + 1, 1), E2BIG);
  CHECK_MINUS("6.3", make_format(70, STEV, none, 2), EINVAL);
  memset(&attr, 0, sizeof attr);
  attr.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_UDP;
  CHECK_MINUS("6.3", mrc_ctl_query_ev_fmt_profile(mrc, 70, &attr, MRC_CTL_EV_FMT_PROFILE_MODE),
              EINVAL);
  CHECK_OK("6.2", mrc_ctl_query_ev_fmt_profile(mrc, 70, &attr, MRC_CTL_EV_FMT_PROFILE_CUR_STATE));
  CHECK_EQ("6.2", attr.cur_profile_state,
           INIT); /* every id starts there; refusals change nothing */
  CHECK_OK("6.2", set_format(70, state_and_mode, OFFLINE, UDP, NULL, 0));
  CHECK_MINUS("6.2", format_to(70, ONLINE), EINVAL); /* no fields yet */
  CHECK_OK("6.2", set_format(70, MRC_CTL_EV_FMT_PROFILE_MODE, 0, STEV, NULL, 0));
  attr.cur_profile_state = MRC_CTL_PROFILE_ONLINE; /* an assertion, and wrong */
  attr.profile_state = MRC_CTL_PROFILE_INIT;
  CHECK_MINUS("6.2",
              mrc_ctl_modify_ev_fmt_profile(
                  mrc, 70, &attr, MRC_CTL_EV_FMT_PROFILE_STATE | MRC_CTL_EV_FMT_PROFILE_CUR_STATE),
              EINVAL);
  attr.vendor_cfg[3] = 1;
  CHECK_MINUS("6.2", mrc_ctl_modify_ev_fmt_profile(mrc, 70, &attr, MRC_CTL_EV_FMT_VENDOR_CFG),
              EINVAL);
  CHECK_OK("6.2", format_to(70, INIT));
}

static void check_formats(void) {
  static const uint8_t srv6[] = {32, 16, 16, 16, 16};
  static const uint8_t segment[] = {32, 16, 16, 16, 16, 16, 16, 32, 16, 16, 16, 16};
  check_format_errors();
  if ((device.ev.ev_fmt_mode_mask & SRV6) == 0) return;
  CHECK_OK("8.3", make_format(14, SRV6, srv6, 5));
  CHECK_OK("8.3", format_to(14, ONLINE));
  CHECK_OK("8.3", make_format(15, SRV6, segment, 12));
  CHECK_OK("8.3", format_to(15, ONLINE));
  check_format_reads(14, SRV6, srv6, 5);
  check_format_reads(15, SRV6, segment, 12);
  CHECK_MINUS("6.2", format_to(15, INIT), EINVAL); /* by way of OFFLINE only */
  CHECK_MINUS("6.2", set_format(15, MRC_CTL_EV_FMT_PROFILE_MODE, 0, STEV, NULL, 0), EINVAL);
  end_format(15);
}

/* --- Explicit structured EVs: 8.2 --- */

static uint32_t rounded_down(uint32_t count) {
  if (count > device.ev.ev_max_count_profile) count = device.ev.ev_max_count_profile;
  return count - count % device.ev.ev_count_align;
}

static void check_profile_reads(uint64_t id, int mode, uint64_t format, uint32_t count) {
  ev_attr attr;
  memset(&attr, 0xa5, sizeof attr);
  CHECK_OK("6.2",
           mrc_ctl_query_ev_profile(mrc, id, &attr, BASICS | REST | MRC_CTL_EV_PROFILE_CUR_STATE));
  CHECK_EQ("6.2", attr.profile_state, ONLINE);
  CHECK_EQ("6.2", attr.cur_profile_state, ONLINE);
  CHECK_EQ("6.3", attr.ev_mode, mode);
  CHECK_EQ("6.3", attr.ev_fmt_profile_id, format);
  CHECK_EQ("6.3", attr.ev_count, count);
  CHECK_EQ("6.3", attr.ev_min_active, count / 4);
  CHECK_EQ("6.3", attr.ev_event_mask, GOOD | BAD);
}

/* Value i<<16|i on port 1. The first ones by single calls as in the example, then in batches. */
static void fill(uint64_t id, uint32_t count) {
  enum { SINGLE = 20 };
  entry* entries = calloc(count, sizeof *entries);
  NEED("8.2", entries != NULL);
  for (uint32_t i = 0; i < count; ++i)
    entries[i] = (entry){MRC_CTL_EV_UNPOPULATED, ev_of(i << 16 | i, 1), MRC_CTL_EV_GOOD, 0};
  const uint32_t most = device.ev.ev_op_max_entries == 0 ? count : device.ev.ev_op_max_entries;
  for (uint32_t at = 0; at < count;) {
    const uint32_t left = count - at;
    const uint32_t now = at < SINGLE ? 1 : left < most ? left : most;
    CHECK_OK("8.2", ev_op(id, MRC_CTL_EV_OP_REPLACE_EV, entries + at, (int)now));
    at += now;
  }
  free(entries);
}

static void check_ev_array(uint64_t id, uint32_t count) {
  entry* all = calloc(count, sizeof *all);
  NEED("8.2", all != NULL);
  ev_attr attr = {.ev_op = {MRC_CTL_EV_OP_QUERY_EV_ARRAY, all, (int)count - 1}};
  CHECK_MINUS("6.3", mrc_ctl_query_ev_profile(mrc, id, &attr, MRC_CTL_EV_PROFILE_EV_OP), E2BIG);
  CHECK_EQ("6.3", attr.ev_op.entry_count, count);
  CHECK_EQ("6.3", all[0].ev.port, 0);
  CHECK_OK("6.3", mrc_ctl_query_ev_profile(mrc, id, &attr, MRC_CTL_EV_PROFILE_EV_OP));
  CHECK_EQ("6.3", attr.ev_op.entry_count, count);
  uint32_t wrong = 0;
  uint32_t denied = 0;
  for (uint32_t i = 0; i < count; ++i) {
    wrong += (device.phy_port_mask >> all[i].ev.port & 1) == 0;
    denied += all[i].state == MRC_CTL_EV_DENIED;
  }
  CHECK_EQ("6.3", wrong, 0);
  CHECK_EQ("8.2", denied, 0);
  CHECK_OK("6.3", mrc_ctl_modify_ev_profile(mrc, id, &attr, MRC_CTL_EV_PROFILE_EV_OP));
  attr.ev_op.op = MRC_CTL_EV_OP_MODIFY_EV_STATE;
  CHECK_MINUS("6.3", mrc_ctl_query_ev_profile(mrc, id, &attr, MRC_CTL_EV_PROFILE_EV_OP), EINVAL);
  free(all);
}

static void check_ev_errors(uint64_t id, uint32_t count) {
  struct mrc_ctl_ev_field field;
  const struct mrc_ctl_ev there = ev_of(1 << 16 | 1, 1);
  const struct mrc_ctl_ev elsewhere = ev_of(1 << 16 | 1, 2); /* the port is part of an EV */
  entry batch[2] = {{.ev = there, .state = MRC_CTL_EV_DENIED},
                    {.ev = elsewhere, .state = MRC_CTL_EV_DENIED}};
  CHECK_EQ("6.3", state_of(id, there), GOOD);
  CHECK_EQ("6.3", state_of(id, elsewhere), -ENOENT);
  CHECK_MINUS("6.3", ev_op(id, MRC_CTL_EV_OP_MODIFY_EV_STATE, batch, 2), ENOENT);
  CHECK_EQ("6.3", state_of(id, there), DENIED); /* what came before the failure stays */
  CHECK_OK("6.3", set_state(id, there, GOOD, 0));
  CHECK_MINUS("6.3", set_state(id, there, MRC_CTL_EV_UNKNOWN, 0), EINVAL);
  ev_attr both = {.ev_op = {MRC_CTL_EV_OP_QUERY_EV_STATE, batch, 1},
                  .ev_fields_op = {MRC_CTL_EV_FIELDS_OP_QUERY_FIELDS, &field, 1}};
  CHECK_MINUS("6.3",
              mrc_ctl_query_ev_profile(mrc, id, &both,
                                       MRC_CTL_EV_PROFILE_EV_OP | MRC_CTL_EV_PROFILE_EV_FIELDS_OP),
              EINVAL);
  const ev_attr less = {.ev_count = count - device.ev.ev_count_align};
  CHECK_MINUS("6.2", set_ev(id, less, MRC_CTL_EV_PROFILE_COUNT), EINVAL); /* not ONLINE */
  const ev_attr mask = {.ev_event_mask = GOOD | DENIED};
  CHECK_MINUS("6.3", set_ev(id, mask, MRC_CTL_EV_PROFILE_EVENT_MASK), EINVAL);
}

/* Steps 8 and 9: denied, then replaced by EVs that are there already and so become copies. */
static void check_copies(uint64_t id, uint32_t count) {
  enum { FIRST = 13, LAST = 42, SHIFT = 128 };
  for (uint32_t i = FIRST; i <= LAST; ++i) {
    CHECK_OK("8.2", set_state(id, ev_of(i << 16 | i, 1), DENIED, 0));
    CHECK_EQ("8.2", state_of(id, ev_of(i << 16 | i, 1)), DENIED);
  }
  for (uint32_t i = FIRST; i <= LAST; ++i) {
    const uint32_t to = i + SHIFT;
    CHECK_OK("8.2", replace(id, ev_of(i << 16 | i, 1), ev_of(to << 16 | to, 1), GOOD, 0));
    CHECK_EQ("8.2", state_of(id, ev_of(i << 16 | i, 1)), -ENOENT);
    CHECK_EQ("8.2", state_of(id, ev_of(to << 16 | to, 1)), GOOD);
  }
  if (count <= FIRST + SHIFT) return;
  const uint32_t twice = (FIRST + SHIFT) << 16 | (FIRST + SHIFT);
  const struct mrc_ctl_ev other = ev_of(0x7fff0000, 1);
  CHECK_OK("6.3", replace(id, ev_of(twice, 1), other, DENIED, 0)); /* one of the two */
  CHECK_EQ("6.3", state_of(id, other), DENIED);                    /* with the state of its entry */
  CHECK_EQ("6.3", state_of(id, ev_of(twice, 1)), GOOD);
  CHECK_OK("6.3", replace(id, other, ev_of(twice, 1), 0, 0)); /* 0 counts as GOOD */
  CHECK_EQ("6.3", state_of(id, ev_of(twice, 1)), GOOD);
  CHECK_OK("6.3", replace(id, ev_of(twice, 1), other, GOOD, MRC_CTL_EV_OP_F_ALL_COPIES));
  CHECK_EQ("6.3", state_of(id, ev_of(twice, 1)), -ENOENT);
}

/* Entries that nobody filled yet have no port and no known state (6.3). */
static void check_unpopulated(uint64_t id, uint32_t count) {
  entry* all = calloc(count, sizeof *all);
  uint32_t wrong = 0;
  NEED("6.3", all != NULL);
  memset(all, 0xa5, count * sizeof *all);
  CHECK_OK("6.3", ev_op(id, MRC_CTL_EV_OP_QUERY_EV_ARRAY, all, (int)count));
  for (uint32_t i = 0; i < count; ++i)
    wrong += all[i].ev.port != 0 || all[i].state != MRC_CTL_EV_UNKNOWN;
  CHECK_EQ("6.3", wrong, 0);
  free(all);
}

static void check_explicit(uint32_t count) {
  static const uint8_t halves[] = {16, 16};
  const uint32_t free_before = free_evs();
  CHECK("8.2", (device.ev.ev_mode_mask & EXPLICIT) != 0);
  CHECK_OK("8.2", make_format(13, STEV, halves, 2));
  ev_attr attr = {.profile_state = MRC_CTL_PROFILE_OFFLINE,
                  .ev_mode = MRC_CTL_EV_MODE_EXP,
                  .ev_fmt_profile_id = 13,
                  .ev_count = count,
                  .ev_min_active = count / 4,
                  .ev_event_mask = GOOD | BAD};
  CHECK_MINUS("6.2", set_ev(1, attr, BASICS & ~MRC_CTL_EV_PROFILE_MODE), EINVAL);
  attr.ev_count = device.ev.ev_max_count_profile + 1;
  CHECK_MINUS("6.3", set_ev(1, attr, BASICS | REST), E2BIG);
  attr.ev_count = 0;
  CHECK_MINUS("6.3", set_ev(1, attr, BASICS), EINVAL);
  attr.ev_count = count;
  attr.ev_min_active = count + 1;
  CHECK_MINUS("6.3", set_ev(1, attr, BASICS | REST), EINVAL);
  attr.ev_min_active = count / 4;
  CHECK_OK("8.2", set_ev(1, attr, BASICS | REST));
  CHECK_EQ("5", free_evs(), free_before - count);
  CHECK_MINUS("8.2", ev_to(1, ONLINE), EINVAL); /* nothing filled */
  check_unpopulated(1, count);
  fill(1, count);
  CHECK_MINUS("6.3", ev_to(1, ONLINE), EINVAL); /* its format is not ONLINE */
  CHECK_OK("8.2", format_to(13, ONLINE));
  CHECK_OK("8.2", ev_to(1, ONLINE));
  CHECK_MINUS("6.2", format_to(13, OFFLINE), EBUSY);
  check_profile_reads(1, EXPLICIT, 13, count);
  check_ev_array(1, count);
  check_ev_errors(1, count);
  if (has_option(MRC_CTL_OPT_CAP_EV_PROFILE_MODIFY_ONLINE)) check_copies(1, count);
}

/* Back OFFLINE nearly everything may change; another count keeps the leading EVs (6.2). */
static void check_offline_changes(uint32_t count) {
  const uint32_t fewer = count / 2 - count / 2 % device.ev.ev_count_align;
  const ev_attr less = {.ev_count = fewer};
  const ev_attr too_many = {.ev_min_active = fewer + 1};
  const ev_attr generated = {.ev_mode = MRC_CTL_EV_MODE_GEN};
  const ev_attr explicit = {.ev_mode = MRC_CTL_EV_MODE_EXP};
  ev_attr attr = explicit;
  CHECK_OK("6.2", ev_to(1, OFFLINE));
  CHECK_OK("6.2", set_ev(1, less, MRC_CTL_EV_PROFILE_COUNT));
  CHECK_EQ("6.2", state_of(1, ev_of(3 << 16 | 3, 1)), GOOD);
  CHECK_MINUS("6.2", set_ev(1, too_many, MRC_CTL_EV_PROFILE_MIN_ACTIVE), EINVAL);
  CHECK_OK("6.2", ev_to(1, ONLINE)); /* still filled */
  CHECK_MINUS("6.2", ev_to(1, INIT), EINVAL);
  CHECK_OK("6.2", ev_to(1, OFFLINE));
  CHECK_OK("6.2", set_ev(1, generated, MRC_CTL_EV_PROFILE_MODE));
  CHECK_OK("6.2", set_ev(1, explicit, MRC_CTL_EV_PROFILE_MODE));
  CHECK_MINUS("6.2", ev_to(1, ONLINE), EINVAL); /* made anew: nothing in it */
  CHECK_OK("6.2", ev_to(1, INIT));
  CHECK_EQ("5", free_evs(), device.ev.ev_max_count);
  CHECK_MINUS("6.3", mrc_ctl_query_ev_profile(mrc, 1, &attr, MRC_CTL_EV_PROFILE_MODE), EINVAL);
  end_format(13);
}

/* --- Generated EVs: 8.4 and 8.5 --- */

static void make_generated(uint64_t id, uint64_t format, uint32_t count,
                           struct mrc_ctl_ev_field* fields, int field_count) {
  const ev_attr attr = {.profile_state = MRC_CTL_PROFILE_OFFLINE,
                        .ev_mode = MRC_CTL_EV_MODE_GEN,
                        .ev_fmt_profile_id = format,
                        .ev_count = count,
                        .ev_min_active = count / 4,
                        .ev_event_mask = GOOD | BAD,
                        .ev_fields_op = {MRC_CTL_EV_FIELDS_OP_MODIFY_FIELDS, fields, field_count}};
  CHECK_OK("8.4", set_ev(id, attr, BASICS | REST | MRC_CTL_EV_PROFILE_EV_FIELDS_OP));
  CHECK_OK("8.4", ev_to(id, ONLINE));
  check_profile_reads(id, GENERATED, format, count);
}

static void check_fields_read(uint64_t id, const struct mrc_ctl_ev_field* wanted, int count) {
  struct mrc_ctl_ev_field fields[10];
  ev_attr attr = {.ev_fields_op = {MRC_CTL_EV_FIELDS_OP_QUERY_FIELDS, fields, count - 1}};
  memset(fields, 0x77, sizeof fields);
  CHECK_MINUS("6.3", mrc_ctl_query_ev_profile(mrc, id, &attr, MRC_CTL_EV_PROFILE_EV_FIELDS_OP),
              E2BIG);
  CHECK_EQ("6.3", attr.ev_fields_op.field_count, count);
  CHECK_EQ("6.3", fields[0].width, 0x77777777);
  attr.ev_fields_op.field_count = 10;
  CHECK_OK("8.4", mrc_ctl_query_ev_profile(mrc, id, &attr, MRC_CTL_EV_PROFILE_EV_FIELDS_OP));
  CHECK_EQ("8.4", attr.ev_fields_op.field_count, count);
  CHECK_EQ("8.4", memcmp(fields, wanted, sizeof *wanted * (size_t)count), 0);
}

/* Denies every EV whose first byte is `first` or above; tells how many. */
static uint32_t deny_from(uint64_t id, uint32_t count, uint8_t first) {
  entry* all = calloc(count, sizeof *all);
  uint32_t found = 0;
  uint32_t denied = 0;
  NEED("8.4", all != NULL);
  CHECK_OK("8.4", ev_op(id, MRC_CTL_EV_OP_QUERY_EV_ARRAY, all, (int)count));
  for (uint32_t i = 0; i < count; ++i) {
    if (all[i].ev.val[0] < first) continue;
    all[i].state = MRC_CTL_EV_DENIED;
    all[i].flags = MRC_CTL_EV_OP_F_ALL_COPIES;
    all[found++] = all[i];
  }
  if (found != 0) CHECK_OK("8.4", ev_op(id, MRC_CTL_EV_OP_MODIFY_EV_STATE, all, (int)found));
  CHECK_OK("8.4", ev_op(id, MRC_CTL_EV_OP_QUERY_EV_ARRAY, all, (int)count));
  for (uint32_t i = 0; i < count; ++i)
    denied += all[i].state == MRC_CTL_EV_DENIED;
  CHECK_EQ("8.4", denied, found);
  free(all);
  return found;
}

static void check_field_errors(uint64_t id) {
  static const struct mrc_ctl_ev_field wrong[][4] = {
      {{8, 256, 0, 0, 0}},                                                     /* init_val */
      {{8, 0, 0, 0, 0x100}},                                                   /* mask */
      {{8, 0, 0, 16, 0xf}},                                                    /* max_val */
      {{9, 0, 0, 0, 0}},                                                       /* width */
      {{8, 0, 0, 0, 0xff}, {4, 0, 0, 0, 0}, {4, 0, 0, 0, 0}, {4, 0, 0, 0, 0}}, /* too many */
  };
  for (int i = 0; i < 5; ++i) {
    struct mrc_ctl_ev_field fields[4];
    memcpy(fields, wrong[i], sizeof fields);
    const ev_attr attr = {
        .ev_fields_op = {MRC_CTL_EV_FIELDS_OP_MODIFY_FIELDS, fields, i == 4 ? 4 : 1}};
    CHECK_MINUS("6.3", set_ev(id, attr, MRC_CTL_EV_PROFILE_EV_FIELDS_OP), EINVAL);
  }
}

static void check_generated(void) {
  static const uint8_t widths[] = {8, 4, 4};
  struct mrc_ctl_ev_field fields[] = {{8, 0, 0, 255, 0xff}, {4, 0, 0, 15, 0xf}, {4, 0, 0, 15, 0xf}};
  const uint32_t count = rounded_down(256 * 16 * 16);
  CHECK("8.4", (device.ev.ev_mode_mask & GENERATED) != 0);
  CHECK_OK("8.4", make_format(13, STEV, widths, 3));
  CHECK_OK("8.4", format_to(13, ONLINE));
  make_generated(1, 13, count, fields, 3);
  check_fields_read(1, fields, 3);
  CHECK_CMP("8.4", deny_from(1, count, 180), >, 0);
  CHECK_MINUS("6.3", replace(1, ev_of(0, 1), ev_of(1, 1), GOOD, 0), EINVAL); /* not explicit */
  CHECK_OK("6.2", ev_to(1, OFFLINE));
  check_field_errors(1);
  fields[0].max_val = 179;
  const ev_attr narrower = {.ev_fields_op = {MRC_CTL_EV_FIELDS_OP_MODIFY_FIELDS, fields, 3}};
  CHECK_OK("6.2", set_ev(1, narrower, MRC_CTL_EV_PROFILE_EV_FIELDS_OP));
  CHECK_OK("6.2", ev_to(1, ONLINE));
  CHECK_EQ("8.4", deny_from(1, count, 180), 0); /* none of them is drawn */
  end_ev(1);
  end_format(13);
}

static void check_generated_srv6(void) {
  struct mrc_ctl_ev_field fields[5] = {{32, 0xdeadcafe, 0, 0, 0}};
  if ((device.ev.ev_fmt_mode_mask & SRV6) == 0) return;
  for (uint32_t k = 1; k < 5; ++k)
    fields[k] = (struct mrc_ctl_ev_field){16, 0x100 * k, 0, 255, 0xff};
  make_generated(2, 14, rounded_down(UINT32_MAX), fields, 5);
  check_fields_read(2, fields, 5);
  end_ev(2);
  end_format(14);
}

/* --- Congestion control: 6.4 --- */

static int set_cc(uint64_t id, int mask, int state, const char* algorithm, const void* config) {
  struct mrc_ctl_cc_profile_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.profile_state = (enum mrc_ctl_profile_state)state;
  attr.algorithm = algorithm;
  attr.cc_config = config;
  return mrc_ctl_modify_cc_profile(mrc, id, &attr, mask);
}

static int cc_to(uint64_t id, int state) {
  return set_cc(id, MRC_CTL_CC_PROFILE_STATE, state, NULL, NULL);
}

static void check_cc_reads(uint64_t id, const char* algorithm, uint32_t base_rtt) {
  struct mrc_ctl_cc_profile_attr attr;
  const int mask = MRC_CTL_CC_PROFILE_STATE | MRC_CTL_CC_PROFILE_ALGORITHM;
  memset(&attr, 0, sizeof attr);
  attr.algorithm = "none of them";
  CHECK_OK("6.4", mrc_ctl_query_cc_profile(
                      mrc, id, &attr, algorithm == NULL ? mask : mask | MRC_CTL_CC_PROFILE_CONFIG));
  CHECK_EQ("6.2", attr.profile_state, ONLINE);
  if (algorithm == NULL) {
    CHECK("6.4", attr.algorithm == NULL);
    return;
  }
  NEED("6.4", attr.algorithm != NULL && attr.cc_config != NULL);
  CHECK_EQ("6.4", strcmp(attr.algorithm, algorithm), 0);
  const struct mrc_ctl_cc_nscc_cfg* config = attr.cc_config;
  CHECK_EQ("6.4", config->base_rtt, base_rtt);
  CHECK_EQ("6.4", config->gamma * 100, 75);
}

/* Profile 1 by NSCC, which stays for the queue pair of 8.1; profile 2 without any control. */
static void check_cc(void) {
  enum { STEP = MRC_CTL_CC_PROFILE_STATE, NAME = MRC_CTL_CC_PROFILE_ALGORITHM };
  const char* nscc = "uet-1.0-nscc";
  struct mrc_ctl_cc_nscc_cfg config = {.base_rtt = 12000, .gamma = 0.75F};
  CHECK_MINUS("6.2", cc_to(1, OFFLINE), EINVAL);
  CHECK_MINUS("6.4", set_cc(1, STEP | NAME, OFFLINE, "no such name", NULL), EINVAL);
  CHECK_OK("6.4", set_cc(1, STEP | NAME, OFFLINE, NULL, NULL));
  CHECK_OK("6.2", set_cc(1, NAME, 0, nscc, NULL)); /* may change OFFLINE */
  CHECK_MINUS("6.2", cc_to(1, ONLINE), EINVAL);    /* needs its settings */
  CHECK_OK("6.4", set_cc(1, STEP | MRC_CTL_CC_PROFILE_CONFIG, ONLINE, NULL, &config));
  check_cc_reads(1, nscc, 12000);
  CHECK_MINUS("6.2", set_cc(1, NAME, 0, NULL, NULL), EINVAL);
  config.base_rtt = 13000;
  if (has_option(MRC_CTL_OPT_CAP_CC_PROFILE_MODIFY_ONLINE)) {
    CHECK_OK("5", set_cc(1, MRC_CTL_CC_PROFILE_CONFIG, 0, NULL, &config));
    check_cc_reads(1, nscc, 13000);
  } else {
    CHECK_MINUS("5", set_cc(1, MRC_CTL_CC_PROFILE_CONFIG, 0, NULL, &config), EINVAL);
  }
  CHECK_OK("6.4", set_cc(2, STEP | NAME, OFFLINE, NULL, NULL));
  CHECK_OK("6.4", cc_to(2, ONLINE));
  check_cc_reads(2, NULL, 0);
  CHECK_OK("6.2", cc_to(2, OFFLINE));
  CHECK_OK("6.2", cc_to(2, INIT));
}

/* --- A queue pair that names profiles: 8.1 --- */

enum {
  RECEIVER = MRC_QP_MPR_DEST | MRC_QP_MAX_WIMM_DEST | MRC_QP_CAP,
  SENDER = MRC_QP_MPR | MRC_QP_MAX_WIMM,
  PATIENT = MRC_QP_TIMEOUT | MRC_QP_RETRY_CNT,
  PROFILES = MRC_QP_EV_PROFILE_ID | MRC_QP_CC_PROFILE_ID | MRC_QP_HINT
};

static int qp_to(struct mrc_qp* qp, enum ibv_qp_state state, struct mrc_qp_attr* attr, int mask) {
  struct ibv_qp_attr plain;
  memset(&plain, 0, sizeof plain);
  plain.qp_state = state;
  return mrc_modify_qp(qp, &plain, IBV_QP_STATE, attr, mask);
}

/* Values out of range and attributes of another step: refused, and the state is as before. */
static void check_init_refusals(struct mrc_qp* qp, const struct mrc_qp_attr* good) {
  struct ibv_qp_attr now;
  struct mrc_qp_attr attr = *good;
  attr.profile.ev_profile_id = 4242; /* no such profile */
  CHECK_PLUS("4", qp_to(qp, IBV_QPS_INIT, &attr, MRC_QP_EV_PROFILE_ID), EINVAL);
  CHECK_PLUS("4", qp_to(qp, IBV_QPS_INIT, &attr, MRC_QP_TIMEOUT), EINVAL);
  CHECK_PLUS("1", qp_to(qp, IBV_QPS_INIT, &attr, 1 << 20), EINVAL);
  CHECK_PLUS("4", qp_to(qp, IBV_QPS_RTR, &attr, 0), EINVAL);
  CHECK_OK("3", mrc_query_qp(qp, &now, IBV_QP_STATE, NULL, 0, NULL));
  CHECK_EQ("4", now.qp_state, IBV_QPS_RESET);
}

static void check_rts_refusals(struct mrc_qp* qp, const struct mrc_qp_attr* good) {
  struct mrc_qp_attr attr = *good;
  attr.timeout = 25;
  attr.retry.linear_cnt = 8;
  attr.mpr.mpr = 0;
  CHECK_PLUS("4", qp_to(qp, IBV_QPS_RTS, &attr, MRC_QP_TIMEOUT), EINVAL);
  CHECK_PLUS("4", qp_to(qp, IBV_QPS_RTS, &attr, MRC_QP_RETRY_CNT), EINVAL);
  CHECK_PLUS("4", qp_to(qp, IBV_QPS_RTS, &attr, MRC_QP_MPR), EINVAL);
  attr.retry.linear_cnt = 7;
  attr.retry.exp_cnt = 26;
  CHECK_PLUS("4", qp_to(qp, IBV_QPS_RTS, &attr, MRC_QP_RETRY_CNT), EINVAL);
  CHECK_PLUS("4", qp_to(qp, IBV_QPS_RTS, &attr, MRC_QP_MPR_DEST), EINVAL);
}

static void check_qp_reads(struct mrc_qp* qp, const struct mrc_qp_attr* wanted) {
  struct ibv_qp_attr now;
  struct mrc_qp_attr attr;
  memset(&attr, 0xa5, sizeof attr);
  CHECK_OK("8.1", mrc_query_qp(qp, &now, IBV_QP_STATE, &attr,
                               RECEIVER | SENDER | PATIENT | PROFILES | MRC_QP_VENDOR_CFG, NULL));
  CHECK_EQ("8.1", now.qp_state, IBV_QPS_RTS);
  CHECK_EQ("8.1", attr.mpr.mpr, wanted->mpr.mpr);
  CHECK_EQ("8.1", attr.mpr.mpr_dest, wanted->mpr.mpr_dest);
  CHECK_EQ("8.1", attr.wimm.max_wimm, wanted->wimm.max_wimm);
  CHECK_EQ("8.1", attr.wimm.max_wimm_dest, wanted->wimm.max_wimm_dest);
  CHECK_EQ("8.1", attr.timeout, wanted->timeout);
  CHECK_EQ("8.1", attr.retry.linear_cnt, wanted->retry.linear_cnt);
  CHECK_EQ("8.1", attr.retry.exp_cnt, wanted->retry.exp_cnt);
  CHECK_EQ("8.1", attr.cap, wanted->cap);
  CHECK("8.1", attr.qp_hint == NULL);
  CHECK_EQ("8.1", attr.profile.ev_profile_id, wanted->profile.ev_profile_id);
  CHECK_EQ("8.1", attr.profile.cc_profile_id, wanted->profile.cc_profile_id);
  CHECK_EQ("4", memcmp(attr.vendor_cfg, wanted->vendor_cfg, sizeof attr.vendor_cfg), 0);
}

/* Steps 6 to 9, without any address; `at_rtr` is the mask of step 7 as meant or as compiled. */
static void walk_qp(struct mrc_qp* qp, int at_rtr) {
  struct mrc_qp_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.profile.ev_profile_id = strtoull(getenv("MRC_QP_EV_PROFILE_ID"), NULL, 10);
  attr.profile.cc_profile_id = strtoull(getenv("MRC_QP_CC_PROFILE_ID"), NULL, 10);
  attr.mpr.mpr = attr.mpr.mpr_dest = 8;
  attr.wimm.max_wimm = attr.wimm.max_wimm_dest = 128;
  attr.cap = MRC_QP_CAP_DYNAMIC_MPR;
  attr.timeout = 8;
  attr.retry.linear_cnt = 7;
  attr.retry.exp_cnt = 25;
  check_init_refusals(qp, &attr);
  CHECK_OK("8.1", qp_to(qp, IBV_QPS_INIT, &attr, PROFILES));
  CHECK_OK("8.1", qp_to(qp, IBV_QPS_RTR, &attr, at_rtr));
  check_rts_refusals(qp, &attr);
  CHECK_OK("8.1", qp_to(qp, IBV_QPS_RTS, &attr, SENDER | PATIENT));
  check_qp_reads(qp, &attr);
  /* A queue pair holds both profiles (6.2). */
  CHECK_MINUS("6.2", ev_to(1, OFFLINE), EBUSY);
  CHECK_MINUS("6.2", cc_to(1, OFFLINE), EBUSY);
}

/* What nobody sets is as section 4 says. */
static void check_qp_defaults(struct mrc_qp* qp) {
  struct mrc_qp_attr attr;
  CHECK_OK("4", qp_to(qp, IBV_QPS_RESET, NULL, 0));
  CHECK_OK("4", qp_to(qp, IBV_QPS_INIT, NULL, 0));
  CHECK_OK("4", qp_to(qp, IBV_QPS_RTR, NULL, 0));
  CHECK_OK("4", qp_to(qp, IBV_QPS_RTS, NULL, 0));
  memset(&attr, 0xa5, sizeof attr);
  CHECK_OK("3", mrc_query_qp(qp, NULL, 0, &attr, RECEIVER | SENDER | PATIENT, NULL));
  CHECK_EQ("4", attr.mpr.mpr, 8);
  CHECK_EQ("4", attr.mpr.mpr_dest, 8);
  CHECK_EQ("4", attr.wimm.max_wimm, 128);
  CHECK_EQ("4", attr.wimm.max_wimm_dest, 128);
  CHECK_EQ("4", attr.timeout, 8);
  CHECK_EQ("4", attr.retry.linear_cnt, 7);
  CHECK_EQ("4", attr.retry.exp_cnt, 12);
  CHECK_EQ("4", attr.cap, 0);
}

static void check_qp(void) {
  struct ibv_device** list = NULL;
  struct ibv_context* own = open_mrc_device(&list);
  ibv_free_device_list(list);
  struct ibv_pd* pd = ibv_alloc_pd(own);
  struct mrc_context_attr version = {.mrc_api_version_used = MRC_API_CURRENT_VERSION};
  struct mrc_context* context = mrc_create_context(own, &version);
  struct mrc_cq* cq = mrc_create_cq(context, 128, NULL, NULL, 0);
  NEED("8.1", pd != NULL && context != NULL && cq != NULL);
  for (int as_meant = 0; as_meant < 2; ++as_meant) {
    struct mrc_qp_init_attr init;
    memset(&init, 0, sizeof init);
    init.send_cq = init.recv_cq = cq;
    init.sq_sig_all = 1;
    init.cap = (struct ibv_qp_cap){128, 128, 1, 1, 0};
    init.pd = pd;
    init.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
    struct mrc_qp* qp = mrc_create_qp(context, &init);
    NEED("8.1", qp != NULL);
    walk_qp(qp, as_meant ? RECEIVER | SENDER : MRC_QP_CAP);
    if (as_meant) check_qp_defaults(qp);
    CHECK_OK("8.1", mrc_destroy_qp(qp));
  }
  CHECK_OK("8.1", mrc_destroy_cq(cq));
  CHECK_OK("8.1", mrc_destroy_context(context));
  CHECK_EQ("8.1", ibv_dealloc_pd(pd), 0);
  CHECK_EQ("8.1", ibv_close_device(own), 0);
  CHECK_OK("6.2", cc_to(1, OFFLINE)); /* nobody has it any more */
  CHECK_OK("6.2", cc_to(1, INIT));
}

/* --- Requests to other nodes: 8.6 --- */

static int ask(enum mrc_ctl_ep_op_type op, struct mrc_ctl_ep_req* req, int count, uint32_t ns,
               uint8_t dscp, struct mrc_ctl_ep_rsp* rsp, int* answers) {
  *answers = -12345; /* output only: whatever stood there is never read (6.6) */
  return mrc_ctl_ep_batch_send_wait(mrc, dscp, op, req, count, ns, rsp, answers);
}

static void check_answers(const struct mrc_ctl_ep_rsp* rsp, int count, double elapsed_s) {
  int seen = 0;
  for (int i = 0; i < count; ++i) {
    seen |= 1 << rsp[i].req_id;
    CHECK("6.6", (device.phy_port_mask >> rsp[i].port & 1) != 0);
    CHECK_CMP("6.6", rsp[i].rtt, <=, elapsed_s * 1e9); /* nanoseconds */
    CHECK_CMP("6.6", rsp[i].adj_svc_time, <=, 1);
  }
  CHECK_EQ("6.6", seen, count == 2 ? 6 : 2); /* ids 1 and 2, or 1 alone */
}

static void check_probes(struct mrc_ctl_ep_req req[2]) {
  const enum mrc_ctl_ep_op_type probe = MRC_CTL_EP_OP_EV_PROBE;
  struct mrc_ctl_ep_rsp rsp[2];
  int answers = 0;
  CHECK("8.6", has_option(MRC_CTL_OPT_CAP_EP_OP_EV_PROBE));
  double start = now_s();
  CHECK_OK("8.6", ask(probe, req, 2, 4000000000u, 0, rsp, &answers)); /* ends with the last one */
  CHECK_EQ("8.6", answers, 2);
  check_answers(rsp, answers, now_s() - start);
  req[1].dgid.raw[15] ^= 0x55; /* nobody lives there */
  start = now_s();
  CHECK_MINUS("8.6", ask(probe, req, 2, 1000000000, 46, rsp, &answers), ETIMEDOUT);
  CHECK_CMP("6.6", (now_s() - start) * 1e3, >=, 999);
  CHECK_EQ("8.6", answers, 1);
  check_answers(rsp, answers, now_s() - start);
  start = now_s();
  CHECK_MINUS("8.6", ask(probe, req + 1, 1, 2000000, 0, rsp, &answers), ETIMEDOUT);
  const double waited_s = now_s() - start; /* 2 ms; were it microseconds, 2 s */
  CHECK_CMP("6.6", waited_s * 1e6, >=, 2000);
  CHECK_CMP("6.6", waited_s * 1e6, <, 1000000);
  CHECK_EQ("8.6", answers, 0);
  CHECK_MINUS("6.6", ask(probe, req, 2, 1000000, 64, rsp, &answers), EINVAL); /* DSCP: 0..63 */
  CHECK_EQ("1", answers, 0);
  CHECK_MINUS("6.6", ask(probe, NULL, 2, 1000000, 0, rsp, &answers), EINVAL);
  req[0].req_ev.port = 0; /* ports count from 1 */
  CHECK_MINUS("6.3", ask(probe, req, 1, 1000000, 0, rsp, &answers), EINVAL);
  req[0].req_ev.port = 1;
}

static void check_requests(void) {
  struct mrc_ctl_ep_req req[2];
  struct mrc_ctl_ep_rsp rsp;
  int answers = 0;
  memset(req, 0, sizeof req);
  for (int i = 0; i < 2; ++i) {
    req[i].req_id = (uint16_t)(i + 1);
    req[i].sgid = req[i].dgid = own_gid;
    req[i].ev_fmt_mode = MRC_CTL_EV_FMT_MODE_STEV;
    req[i].req_ev = ev_of(i == 0 ? 0x12345678 : 0x87654321, 1);
  }
  check_probes(req);
  CHECK_MINUS("6.6", ask((enum mrc_ctl_ep_op_type)9, req, 1, 1000000, 0, &rsp, &answers), EINVAL);
}

/* --- Rights: section 6 --- */

/* Somebody without any may look and not touch. Only where we can become somebody else. */
static void check_rights(void) {
  if (geteuid() != 0) return;
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    struct mrc_ctl_port_attr attr = {.port_admin_state = MRC_CTL_PORT_ADMIN_ENABLED};
    failures = 0;
    alarm(PATIENCE_S);
    NEED("6", setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0);
    open_node();
    CHECK_OK("6", mrc_ctl_query_port(mrc, 1, &attr, MRC_CTL_PORT_ADMIN_STATE));
    CHECK_MINUS("6", mrc_ctl_modify_port(mrc, 1, &attr, MRC_CTL_PORT_ADMIN_STATE), EPERM);
    CHECK_MINUS(
        "6",
        set_cc(5, MRC_CTL_CC_PROFILE_STATE | MRC_CTL_CC_PROFILE_ALGORITHM, OFFLINE, NULL, NULL),
        EPERM);
    _exit(failures != 0);
  }
  CHECK_EQ("6", end_of_child(child), 0);
}

int main(void) {
  /* The variables of the example; names like ours that are not ours are left alone. */
  setenv("MRC_QP_EV_PROFILE_ID", "1", 1);
  setenv("MRC_QP_CC_PROFILE_ID", "1", 1);
  alarm(PATIENCE_S);
  open_node();
  check_versions();
  check_device();
  check_ports();
  check_formats();
  const uint32_t count = rounded_down(UINT32_MAX);
  check_explicit(count);
  check_cc();
  check_qp();
  check_offline_changes(count);
  check_generated();
  check_generated_srv6();
  check_requests();
  check_rights();
  CHECK_EQ("5", free_evs(), device.ev.ev_max_count);
  CHECK_OK("3", mrc_destroy_context(mrc));
  CHECK_EQ("8.2", ibv_close_device(verbs), 0);
  if (failures == 0) puts("controller: all held");
  return failures == 0 ? 0 : 1;
}
