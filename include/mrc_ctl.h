/* The controller half of the MRC API: ports, entropy values (EVs) and congestion control of a node.
 *
 * One privileged process per node uses it (without the privilege: EPERM). What it sets belongs to
 * the device: it outlives the process, and queue pairs of other processes use it, which know only
 * the ids of profiles. Ids are free for the controller to choose.
 *
 * The three kinds of profiles live alike: INIT -> OFFLINE -> ONLINE -> OFFLINE -> INIT, any other
 * step is EINVAL. Leaving ONLINE gives EBUSY while somebody uses the profile.
 *
 * Functions return 0, or -1 with errno set, unless said otherwise; docs/controller.md has more.
 */
#ifndef MRC_CTL_H
#define MRC_CTL_H

#include "mrc.h"
#include "mrc_ctl_api_ver.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MRC_CTL_MAX_VENDOR_CFG_SIZE 128
#define MRC_CTL_EV_MAX_BYTES 32

enum mrc_ctl_protocol_version { MRC_CTL_PROTOCOL_VERSION_0 = 0, MRC_CTL_PROTOCOL_VERSION_1 = 1 };

enum mrc_ctl_profile_state {
  MRC_CTL_PROFILE_INIT = 0,    /* empty; every id starts here */
  MRC_CTL_PROFILE_OFFLINE = 1, /* being filled in */
  MRC_CTL_PROFILE_ONLINE = 2   /* may be used */
};

/* --- The device --- */

/* What a device may or may not offer. */
enum mrc_ctl_attr_opt {
  MRC_CTL_OPT_CAP_EV_PROFILE_MODIFY_ONLINE = 1 << 0,
  MRC_CTL_OPT_CAP_CC_PROFILE_MODIFY_ONLINE = 1 << 1,
  MRC_CTL_OPT_CAP_EV_EVENT = 1 << 2,
  MRC_CTL_OPT_CAP_EV_EXPLICIT_RANGE = 1 << 3, /* explicit EVs must be one contiguous range */
  MRC_CTL_OPT_CAP_EV_EVENT_PRECISE_DROP_CNT = 1 << 4,
  MRC_CTL_OPT_CAP_EP_OP_EV_PROBE = 1 << 5
};

struct mrc_ctl_device_attr {
  uint32_t mrc_ctl_protocol_version; /* enum mrc_ctl_protocol_version: those spoken */
  struct {
    uint32_t ev_max_fmt_profiles;
    uint32_t ev_max_profiles;
    uint32_t ev_max_count;         /* EVs of all profiles together */
    uint32_t ev_free_count;        /* of these, not yet taken */
    uint32_t ev_max_count_profile; /* EVs of one profile */
    uint32_t ev_count_align;       /* counts of explicit profiles are rounded up to this */
    uint32_t ev_max_width;         /* bits of an expanded EV */
    uint32_t ev_fmt_mode_mask;     /* enum mrc_ctl_ev_fmt_mode */
    uint32_t ev_mode_mask;         /* enum mrc_ctl_ev_mode */
    uint32_t ev_op_max_entries;    /* entries of one EV operation */
  } ev;
  struct {
    uint32_t cc_max_profiles;
    const char** algorithms; /* names, ended by NULL; they live as long as the library */
  } cc;
  uint32_t phy_port_mask; /* bit n: port n exists; ports count from 1 */
  uint32_t opt_attr;      /* enum mrc_ctl_attr_opt */
};

#if MRC_CTL_API_VER_USED >= MRC_CTL_API_VER(1, 0, 1)
/* Sets *supported to 0 when the device has no MRC. Either context may be NULL. */
int mrc_ctl_query_device_ex(struct ibv_context* context, struct mrc_context* mcontext,
                            struct mrc_ctl_device_attr* ctl_attr, int* supported);
#endif

int mrc_ctl_query_device(struct ibv_context* context, struct mrc_ctl_device_attr* ctl_attr);

/* Needs no context. NULL pointers are skipped. */
void mrc_ctl_query_version(uint32_t* current_version, uint32_t* last_supported_version,
                           uint32_t* vendor_version, uint32_t* last_supported_vendor_version);

/* --- Ports --- */

enum mrc_ctl_port_admin_state {
  MRC_CTL_PORT_ADMIN_DISABLED = 0, /* reads as IBV_PORT_DOWN in ibv_query_port */
  MRC_CTL_PORT_ADMIN_ENABLED = 1
};

enum mrc_ctl_port_attr_mask { MRC_CTL_PORT_ADMIN_STATE = 1 << 0 };

struct mrc_ctl_port_attr {
  enum mrc_ctl_port_admin_state port_admin_state;
};

/* Ports count from 1. */
int mrc_ctl_query_port(struct mrc_context* context, uint8_t port_num,
                       struct mrc_ctl_port_attr* attr, int attr_mask);
int mrc_ctl_modify_port(struct mrc_context* context, uint8_t port_num,
                        struct mrc_ctl_port_attr* attr, int attr_mask);

/* --- EV format profiles: how an EV stands in a packet --- */

enum mrc_ctl_ev_fmt_mode {
  MRC_CTL_EV_FMT_MODE_STEV = 1 << 0, /* a 32-bit value */
  MRC_CTL_EV_FMT_MODE_SRV6 = 1 << 1, /* a list of micro segments, and perhaps one more segment */
  MRC_CTL_EV_FMT_MODE_UDP = 1 << 2   /* the UDP source port */
};

enum mrc_ctl_ev_fmt_op { MRC_CTL_EV_FMT_OP_MODIFY_FIELDS = 0, MRC_CTL_EV_FMT_OP_QUERY_FIELDS = 1 };

enum mrc_ctl_ev_fmt_profile_attr_mask {
  MRC_CTL_EV_FMT_PROFILE_STATE = 1 << 0,
  MRC_CTL_EV_FMT_PROFILE_CUR_STATE = 1 << 1,
  MRC_CTL_EV_FMT_PROFILE_MODE = 1 << 2,
  MRC_CTL_EV_FMT_PROFILE_OP = 1 << 3,
  MRC_CTL_EV_FMT_VENDOR_CFG = -2147483647 - 1
};

struct mrc_ctl_ev_fmt_field {
  uint8_t width; /* bits, 1 to 255 */
};

struct mrc_ctl_ev_fmt_profile_attr {
  enum mrc_ctl_profile_state profile_state;     /* the one to go to */
  enum mrc_ctl_profile_state cur_profile_state; /* the one it must be in, or is in */
  enum mrc_ctl_ev_fmt_mode ev_fmt_mode;
  struct {
    enum mrc_ctl_ev_fmt_op op;
    struct mrc_ctl_ev_fmt_field* fmt_fields;
    int fmt_field_count; /* a query writes how many there are */
  } ev_fmt_op;
  uint8_t vendor_cfg[MRC_CTL_MAX_VENDOR_CFG_SIZE];
};

int mrc_ctl_modify_ev_fmt_profile(struct mrc_context* mrc_ctx, uint64_t ev_fmt_profile_id,
                                  struct mrc_ctl_ev_fmt_profile_attr* attr, int attr_mask);
int mrc_ctl_query_ev_fmt_profile(struct mrc_context* mrc_ctx, uint64_t ev_fmt_profile_id,
                                 struct mrc_ctl_ev_fmt_profile_attr* attr, int attr_mask);

/* --- EV profiles: which paths there are --- */

/* STEV: the first 4 bytes. SRv6: 16 bytes of address, then 16 bytes of the one further segment. */
typedef uint8_t mrc_ctl_ev_t[MRC_CTL_EV_MAX_BYTES];

struct mrc_ctl_ev {
  mrc_ctl_ev_t val;
  uint8_t port; /* 1-based; 0 only in an entry that was never filled */
};

/* How an entry reads that was never filled. */
#ifdef __cplusplus
#define MRC_CTL_EV_UNPOPULATED (mrc_ctl_ev())
#else
#define MRC_CTL_EV_UNPOPULATED ((struct mrc_ctl_ev){{0}, 0})
#endif

enum mrc_ctl_ev_state {
  MRC_CTL_EV_GOOD = 1 << 0,
  MRC_CTL_EV_ASSUMED_BAD = 1 << 1,
  MRC_CTL_EV_DENIED = 1 << 2,
  MRC_CTL_EV_UNKNOWN = -2147483647 - 1
};

enum mrc_ctl_ev_mode {
  MRC_CTL_EV_MODE_AUTO = 1 << 0, /* the device chooses */
  MRC_CTL_EV_MODE_EXP = 1 << 1,  /* every EV is listed */
  MRC_CTL_EV_MODE_GEN = 1 << 2   /* drawn from the ranges of the fields */
};

enum mrc_ctl_ev_op {
  MRC_CTL_EV_OP_REPLACE_EV = 0,
  MRC_CTL_EV_OP_MODIFY_EV_STATE = 1,
  MRC_CTL_EV_OP_QUERY_EV_STATE = 2,
  MRC_CTL_EV_OP_QUERY_EV_ARRAY = 3
};

enum mrc_ctl_ev_fields_op {
  MRC_CTL_EV_FIELDS_OP_MODIFY_FIELDS = 0,
  MRC_CTL_EV_FIELDS_OP_QUERY_FIELDS = 1
};

enum mrc_ctl_ev_profile_attr_mask {
  MRC_CTL_EV_PROFILE_STATE = 1 << 0,
  MRC_CTL_EV_PROFILE_CUR_STATE = 1 << 1,
  MRC_CTL_EV_PROFILE_MODE = 1 << 2,
  MRC_CTL_EV_PROFILE_FMT_ID = 1 << 3,
  MRC_CTL_EV_PROFILE_COUNT = 1 << 4,
  MRC_CTL_EV_PROFILE_MIN_ACTIVE = 1 << 5,
  MRC_CTL_EV_PROFILE_EVENT_MASK = 1 << 6,
  MRC_CTL_EV_PROFILE_EV_OP = 1 << 7,
  MRC_CTL_EV_PROFILE_EV_FIELDS_OP = 1 << 8,
  MRC_CTL_EV_PROFILE_VENDOR_CFG = -2147483647 - 1
};

enum mrc_ctl_ev_op_flags {
  MRC_CTL_EV_OP_F_ALL_COPIES = 1 << 0 /* every occurrence of the EV, not only the first */
};

/* One field of a compact EV: it starts as init_val, then each bit set in `mask`, from the top, is
 * replaced by the next bit of the compact EV. */
struct mrc_ctl_ev_field {
  uint32_t width; /* bits */
  uint32_t init_val;
  uint32_t min_val; /* of the drawn bits, generated profiles */
  uint32_t max_val;
  uint32_t mask;
};

struct mrc_ctl_ev_op_entry {
  struct mrc_ctl_ev ev;
  struct mrc_ctl_ev ev_new;    /* REPLACE_EV */
  enum mrc_ctl_ev_state state; /* REPLACE_EV, MODIFY_EV_STATE: wanted; queries: found */
  uint32_t flags;              /* enum mrc_ctl_ev_op_flags */
};

struct mrc_ctl_ev_profile_attr {
  enum mrc_ctl_profile_state profile_state;     /* the one to go to */
  enum mrc_ctl_profile_state cur_profile_state; /* the one it must be in, or is in */
  enum mrc_ctl_ev_mode ev_mode;
  uint64_t ev_fmt_profile_id;
  uint32_t ev_count;
  uint32_t ev_min_active; /* as many EVs stay in use whatever their state */
  int ev_event_mask;      /* enum mrc_ctl_ev_state: which changes make an event */
  struct {
    enum mrc_ctl_ev_op op;
    struct mrc_ctl_ev_op_entry* entries;
    int entry_count;
  } ev_op; /* stops at the first entry that fails; earlier ones stay applied */
  struct {
    enum mrc_ctl_ev_fields_op op;
    struct mrc_ctl_ev_field* fields;
    int field_count;
  } ev_fields_op;
  uint8_t vendor_cfg[MRC_CTL_MAX_VENDOR_CFG_SIZE];
};

int mrc_ctl_modify_ev_profile(struct mrc_context* mrc_ctx, uint64_t ev_profile_id,
                              struct mrc_ctl_ev_profile_attr* attr, int attr_mask);
int mrc_ctl_query_ev_profile(struct mrc_context* mrc_ctx, uint64_t ev_profile_id,
                             struct mrc_ctl_ev_profile_attr* attr, int attr_mask);

/* --- Congestion control profiles --- */

enum mrc_ctl_cc_profile_attr_mask {
  MRC_CTL_CC_PROFILE_STATE = 1 << 0,
  MRC_CTL_CC_PROFILE_CUR_STATE = 1 << 1,
  MRC_CTL_CC_PROFILE_ALGORITHM = 1 << 2,
  MRC_CTL_CC_PROFILE_CONFIG = 1 << 3,
  MRC_CTL_CC_PROFILE_VENDOR_CFG = -2147483647 - 1
};

struct mrc_ctl_cc_profile_attr {
  enum mrc_ctl_profile_state profile_state;     /* the one to go to */
  enum mrc_ctl_profile_state cur_profile_state; /* the one it must be in, or is in */
  const char* algorithm;                        /* a name of the device's list; NULL = none */
  const void* cc_config;                        /* the structure of that algorithm */
  uint8_t vendor_cfg[MRC_CTL_MAX_VENDOR_CFG_SIZE];
};

/* cc_config of "uet-1.0-nscc". Zero means: the device's default. */
struct mrc_ctl_cc_nscc_cfg {
  uint8_t disable_qa;
  uint32_t adjust_bytes_threshold;  /* bytes */
  uint32_t adjust_period_threshold; /* ns */
  uint32_t base_rtt;                /* ns */
  float eta;
  float fi;
  float fi_scale;
  float gamma;
  float max_md_jump;
  uint32_t max_cwnd; /* bytes */
  uint8_t qa_gate;
  uint32_t qa_threshold; /* ns */
  uint32_t target_delay; /* ns */
};

int mrc_ctl_modify_cc_profile(struct mrc_context* mrc_ctx, uint64_t cc_profile_id,
                              struct mrc_ctl_cc_profile_attr* attr, int attr_mask);
int mrc_ctl_query_cc_profile(struct mrc_context* mrc_ctx, uint64_t cc_profile_id,
                             struct mrc_ctl_cc_profile_attr* attr, int attr_mask);

/* --- EV events --- */

/* A path changed its state. Events that do not fit the queue are dropped. */
struct mrc_ctl_ev_event {
  uint64_t profile_id;
  struct mrc_ctl_ev ev;
  uint32_t drop_count; /* events lost for want of room since the previous one in this queue */
#if MRC_CTL_API_VER_USED >= MRC_CTL_API_VER(1, 0, 1)
  enum mrc_ctl_ev_state state; /* the new one */
#endif
};

/* A completion queue for EV events only; mrc_destroy_cq() ends it. */
struct mrc_cq* mrc_ctl_create_ev_event_cq(struct mrc_context* mrc_ctx, int cqe, void* cq_context,
                                          struct mrc_comp_channel* channel, int comp_vector);
/* The number of events written, or a negative errno value. */
int mrc_ctl_poll_ev_event(struct mrc_cq* ev_cq, int num_entries, struct mrc_ctl_ev_event* ev_event);

/* --- Requests to other nodes --- */

enum mrc_ctl_ep_op_type { MRC_CTL_EP_OP_EV_PROBE = 0, MRC_CTL_EP_OP_PORT_STATUS_UPDATE = 1 };

struct mrc_ctl_ep_req {
  uint16_t req_id; /* comes back in the answer */
  union ibv_gid sgid;
  union ibv_gid dgid;
  enum mrc_ctl_ev_fmt_mode ev_fmt_mode;
  struct mrc_ctl_ev req_ev; /* the path to take */
  union {
    struct {
      uint32_t port_status; /* bit n: port n is up; ports count from 1 */
    } port_status_update;
  } op;
};

struct mrc_ctl_ep_rsp {
  uint16_t req_id;
  uint8_t port;         /* the answer arrived on */
  unsigned int rtt;     /* ns */
  uint8_t adj_svc_time; /* 1: without the time that the peer took to answer */
};

/* Sends all requests and waits for their answers, at most rsp_timeout nanoseconds. `rsp` has room
 * for num_req of them; *num_rsp, which is only written, says how many came, in order of arrival.
 * ETIMEDOUT when some are missing. req_tc is the DSCP of the requests, 0 to 63. */
int mrc_ctl_ep_batch_send_wait(struct mrc_context* mrc_ctx, uint8_t req_tc,
                               enum mrc_ctl_ep_op_type op_type, struct mrc_ctl_ep_req* req,
                               int num_req, uint32_t rsp_timeout, struct mrc_ctl_ep_rsp* rsp,
                               int* num_rsp);

#ifdef __cplusplus
}
#endif

#endif
