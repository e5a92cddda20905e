/* Short forms of the controller's calls: a structure is filled and handed over. For the programs of
 * this folder that control a device.
 */
#pragma once

#include <mrc_ctl.h>

#include "stranger.h"

enum {
  INIT = MRC_CTL_PROFILE_INIT,
  OFFLINE = MRC_CTL_PROFILE_OFFLINE,
  ONLINE = MRC_CTL_PROFILE_ONLINE
};
enum { GOOD = MRC_CTL_EV_GOOD, BAD = MRC_CTL_EV_ASSUMED_BAD, DENIED = MRC_CTL_EV_DENIED };
enum {
  STEV = MRC_CTL_EV_FMT_MODE_STEV,
  SRV6 = MRC_CTL_EV_FMT_MODE_SRV6,
  UDP = MRC_CTL_EV_FMT_MODE_UDP,
  EXPLICIT = MRC_CTL_EV_MODE_EXP,
  GENERATED = MRC_CTL_EV_MODE_GEN,
  BASICS = MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE | MRC_CTL_EV_PROFILE_FMT_ID |
           MRC_CTL_EV_PROFILE_COUNT,
  REST = MRC_CTL_EV_PROFILE_MIN_ACTIVE | MRC_CTL_EV_PROFILE_EVENT_MASK
};

typedef struct mrc_ctl_ev_profile_attr ev_attr;
typedef struct mrc_ctl_ev_op_entry entry;

static struct ibv_context* verbs;
static struct mrc_context* mrc;
static struct mrc_ctl_device_attr device;
static union ibv_gid own_gid;

static inline void open_node(void) {
  struct ibv_device** list = NULL;
  struct mrc_context_attr version = {.mrc_api_version_used = MRC_API_CURRENT_VERSION};
  verbs = open_mrc_device(&list);
  ibv_free_device_list(list);
  CHECK_OK("6", mrc_ctl_query_device(verbs, &device));
  mrc = mrc_create_context(verbs, &version);
  NEED("2", mrc != NULL);
  NEED("6.6", ibv_query_gid(verbs, 1, 0, &own_gid) == 0);
}

static inline int has_option(uint32_t option) { return (device.opt_attr & option) != 0; }

static inline int set_format(uint64_t id, int mask, int state, int mode, const uint8_t* widths,
                             int count) {
  struct mrc_ctl_ev_fmt_field fields[16];
  struct mrc_ctl_ev_fmt_profile_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.profile_state = (enum mrc_ctl_profile_state)state;
  attr.ev_fmt_mode = (enum mrc_ctl_ev_fmt_mode)mode;
  attr.ev_fmt_op.op = MRC_CTL_EV_FMT_OP_MODIFY_FIELDS;
  attr.ev_fmt_op.fmt_fields = fields;
  attr.ev_fmt_op.fmt_field_count = count;
  for (int i = 0; i < count; ++i)
    fields[i].width = widths[i];
  return mrc_ctl_modify_ev_fmt_profile(mrc, id, &attr, mask);
}

static inline int format_to(uint64_t id, int state) {
  return set_format(id, MRC_CTL_EV_FMT_PROFILE_STATE, state, 0, NULL, 0);
}

/* As the examples do: OFFLINE with mode and fields in one call. */
static inline int make_format(uint64_t id, int mode, const uint8_t* widths, int count) {
  return set_format(
      id, MRC_CTL_EV_FMT_PROFILE_STATE | MRC_CTL_EV_FMT_PROFILE_MODE | MRC_CTL_EV_FMT_PROFILE_OP,
      OFFLINE, mode, widths, count);
}

static inline void end_format(uint64_t id) {
  CHECK_OK("6.2", format_to(id, OFFLINE));
  CHECK_OK("6.2", format_to(id, INIT));
}

static inline int set_ev(uint64_t id, ev_attr attr, int mask) {
  return mrc_ctl_modify_ev_profile(mrc, id, &attr, mask);
}

static inline int ev_to(uint64_t id, int state) {
  const ev_attr attr = {.profile_state = (enum mrc_ctl_profile_state)state};
  return set_ev(id, attr, MRC_CTL_EV_PROFILE_STATE);
}

static inline void end_ev(uint64_t id) {
  CHECK_OK("6.2", ev_to(id, OFFLINE));
  CHECK_OK("6.2", ev_to(id, INIT));
}

/* Queries for the ops that ask, modifies for the others. */
static inline int ev_op(uint64_t id, enum mrc_ctl_ev_op op, entry* entries, int count) {
  ev_attr attr = {.ev_op = {op, entries, count}};
  const int asks = op == MRC_CTL_EV_OP_QUERY_EV_STATE || op == MRC_CTL_EV_OP_QUERY_EV_ARRAY;
  return (asks ? mrc_ctl_query_ev_profile : mrc_ctl_modify_ev_profile)(mrc, id, &attr,
                                                                       MRC_CTL_EV_PROFILE_EV_OP);
}

/* As the examples have it: a number in host order in the first four bytes (6.3). */
static inline struct mrc_ctl_ev ev_of(uint32_t value, unsigned port) {
  struct mrc_ctl_ev ev;
  memset(&ev, 0, sizeof ev);
  memcpy(ev.val, &value, sizeof value);
  ev.port = (uint8_t)port;
  return ev;
}

static inline int replace(uint64_t id, struct mrc_ctl_ev old, struct mrc_ctl_ev new, int state,
                          uint32_t flags) {
  entry one = {.ev = old, .ev_new = new, .state = (enum mrc_ctl_ev_state)state, .flags = flags};
  return ev_op(id, MRC_CTL_EV_OP_REPLACE_EV, &one, 1);
}

static inline int set_state(uint64_t id, struct mrc_ctl_ev ev, int state, uint32_t flags) {
  entry one = {.ev = ev, .state = (enum mrc_ctl_ev_state)state, .flags = flags};
  return ev_op(id, MRC_CTL_EV_OP_MODIFY_EV_STATE, &one, 1);
}

static inline int state_of(uint64_t id, struct mrc_ctl_ev ev) {
  entry one = {.ev = ev};
  return ev_op(id, MRC_CTL_EV_OP_QUERY_EV_STATE, &one, 1) == 0 ? (int)one.state : -errno;
}

static inline uint32_t free_evs(void) {
  struct mrc_ctl_device_attr now;
  CHECK_OK("6", mrc_ctl_query_device(verbs, &now));
  return now.ev.ev_free_count;
}
