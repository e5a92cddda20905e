/* The application half of the MRC API: queue pairs whose packets are sprayed over many paths.
 *
 * It stands beside libibverbs and follows its habits. Devices, ibv_context, protection domains and
 * memory regions come from verbs; queue pairs, completion queues, completion channels and
 * asynchronous events are MRC's own. Work requests and work completions are the verbs structures.
 *
 * Only RDMA WRITE and RDMA WRITE WITH IMMEDIATE exist. Payload reaches memory in any order: a
 * buffer may be read only after the sender's completion or the receiver's immediate says so. An
 * immediate is delivered after all earlier writes of its queue pair are in memory. There is no
 * retry for a missing receive: post receives before the peer sends immediates.
 *
 * Calls report in four ways, and in all of them errno says why; success leaves errno alone:
 *
 *   0, or -1                    queries of devices, contexts, hints, descriptors and numbers,
 *                               mrc_post_recv, mrc_get_cq_event, mrc_get_async_event
 *   0, or the errno value       mrc_modify_qp, mrc_query_qp, mrc_destroy_qp, mrc_destroy_cq,
 *                               mrc_create_comp_channel, mrc_destroy_comp_channel, mrc_post_send,
 *                               mrc_req_notify_cq
 *   a count, or -1              mrc_poll_cq
 *   a pointer, or NULL          whatever creates something else
 *
 * A call that fails has changed nothing. All functions may be called from any thread. docs/api.md
 * lists the errors of each call.
 */
#ifndef MRC_H
#define MRC_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "mrc_api_ver.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that a vendor may give a meaning to. This implementation keeps and returns them. */
#define MRC_MAX_VENDOR_CFG_SIZE 128

struct mrc_context;
struct mrc_comp_channel;
struct mrc_cq;
struct mrc_qp_hint;
struct mrc_qp;

/* --- Devices --- */

/* What queue pairs say to each other on the wire. */
enum mrc_protocol_version {
  MRC_PROTOCOL_VERSION_0 = 0, /* at mrc_create_qp: whatever the device prefers */
  MRC_PROTOCOL_VERSION_1 = 1
};

enum mrc_device_cap {
  MRC_DEVICE_CAP_TRIM_NACK = 1 << 0,   /* answers trimmed packets */
  MRC_DEVICE_CAP_DYNAMIC_MPR = 1 << 1, /* the receiver may change the window while running */
  MRC_DEVICE_CAP_SVC_TIME = 1 << 2     /* tells how long it held a packet before it answered */
};

struct mrc_device_attr {
  uint32_t mrc_protocol_version; /* enum mrc_protocol_version: those spoken */
  struct {
    uint16_t max_wimm;      /* most immediates in flight of a sending queue pair */
    uint16_t max_wimm_dest; /* most immediates a receiving queue pair can hold */
  } wimm_attr;
  struct {
    uint8_t max_mpr;        /* largest window, in units of 128 packets */
    uint8_t mpr_resolution; /* its step, in the same unit */
  } mpr_attr;
  struct {
    uint32_t max_qp_hint; /* most hint objects of a context */
  } qp_attr;
  uint32_t cap; /* enum mrc_device_cap */
};

#if MRC_API_VER_USED >= MRC_API_VER(1, 0, 1)
/* As mrc_query_device(), for a device that is open as an MRC context. Either may be NULL. */
int mrc_query_device_ex(struct ibv_context* context, struct mrc_context* mcontext,
                        struct mrc_device_attr* attr, int* supported);
#endif

/* Sets *supported to 0, and leaves *attr alone, when the device has no MRC; this is no error. */
int mrc_query_device(struct ibv_context* context, struct mrc_device_attr* attr, int* supported);

/* Versions of the library in use; needs no context. NULL pointers are skipped. */
void mrc_query_version(uint32_t* current_version, uint32_t* last_supported_version,
                       uint32_t* vendor_version, uint32_t* last_supported_vendor_version);

/* --- Contexts: parents of everything below --- */

struct mrc_context_attr {
  uint32_t mrc_api_version_used;        /* MRC_API_VER_USED of the program; 0 = not stated */
  uint32_t mrc_vendor_api_version_used; /* likewise */
};

struct mrc_context* mrc_create_context(struct ibv_context* vcontext,
                                       struct mrc_context_attr* context_attr);
/* EBUSY while the context has channels, completion queues, hints or queue pairs. */
int mrc_destroy_context(struct mrc_context* mrc_ctx);

/* --- Completion channels and completion queues: as in verbs --- */

int mrc_create_comp_channel(struct mrc_context* mrc_ctx, struct mrc_comp_channel** channel);
/* The descriptor is readable while an event waits. It belongs to the channel. */
int mrc_get_comp_channel_fd(struct mrc_comp_channel* channel, int* fd);
int mrc_destroy_comp_channel(struct mrc_comp_channel* channel);

/* At least `cqe` entries; `channel` may be NULL. */
struct mrc_cq* mrc_create_cq(struct mrc_context* mrc_ctx, int cqe, void* cq_context,
                             struct mrc_comp_channel* channel, int comp_vector);
/* The number of completions written to `wc`, or -1. Fewer than asked for: there are no more now. */
int mrc_poll_cq(struct mrc_cq* cq, int num_entries, struct ibv_wc* wc);
/* Waits until all events of this queue that were taken are acknowledged. */
int mrc_destroy_cq(struct mrc_cq* cq);

int mrc_req_notify_cq(struct mrc_cq* cq, int solicited_only);
/* Waits for an event, unless the channel's descriptor is O_NONBLOCK. 0, or -1 with errno set. */
int mrc_get_cq_event(struct mrc_comp_channel* channel, struct mrc_cq** cq, void** cq_context);
void mrc_ack_cq_events(struct mrc_cq* cq, unsigned int nevents);

/* --- Hints: what a program knows about its traffic --- */

enum mrc_qp_hint_attr_mask {
  MRC_QP_HINT_NUM_QPS_PER_PEER = 1 << 0,
  MRC_QP_HINT_NUM_SEND_PEERS = 1 << 1,
  MRC_QP_HINT_NUM_REMOTE_RECV_PEERS = 1 << 2,
  MRC_QP_HINT_VENDOR_CFG = -2147483647 - 1
};

/* Counts of 0 mean: not known. */
struct mrc_qp_hint_attr {
  int num_qps_per_peer;      /* queue pairs to the same peer that send at the same time */
  int num_send_peers;        /* peers that we send to at the same time */
  int num_remote_recv_peers; /* requesters that our peer receives from at the same time */
  uint8_t vendor_cfg[MRC_MAX_VENDOR_CFG_SIZE];
};

struct mrc_qp_hint_init_attr {
  struct mrc_qp_hint_attr attr;
};

struct mrc_qp_hint* mrc_create_qp_hint(struct mrc_context* mrc_ctx,
                                       struct mrc_qp_hint_init_attr* init_attr);
/* EBUSY while a queue pair uses it. */
int mrc_destroy_qp_hint(struct mrc_qp_hint* qp_hint);
int mrc_query_qp_hint(struct mrc_qp_hint* qp_hint, struct mrc_qp_hint_attr* qp_hint_attr,
                      int qp_hint_attr_mask);
/* Queue pairs that move to INIT afterwards get the new values. */
int mrc_modify_qp_hint(struct mrc_qp_hint* qp_hint, struct mrc_qp_hint_attr* qp_hint_attr,
                       int qp_hint_attr_mask);

/* --- Queue pairs --- */

struct mrc_qp_init_attr {
  void* qp_context;
  struct mrc_cq* send_cq;
  struct mrc_cq* recv_cq;
  struct ibv_qp_cap cap; /* written back with what was granted */
  int sq_sig_all;
  struct ibv_pd* pd;
  uint64_t send_ops_flags; /* IBV_QP_EX_WITH_RDMA_WRITE, ..._WITH_IMM; 0 = both */
  enum mrc_protocol_version protocol_version;
};

/* Every one is optional. INIT takes the profiles and the hint, RTR what we are as a receiver, RTS
 * what we are as a sender. RTR takes MAX_WIMM and MPR too; given again at RTS, that holds. */
enum mrc_qp_attr_mask {
  MRC_QP_MAX_WIMM = 1 << 0,
  MRC_QP_MAX_WIMM_DEST = 1 << 1,
  MRC_QP_MPR = 1 << 2,
  MRC_QP_MPR_DEST = 1 << 3,
  MRC_QP_TIMEOUT = 1 << 4,
  MRC_QP_EV_PROFILE_ID = 1 << 5,
  MRC_QP_CC_PROFILE_ID = 1 << 6,
  MRC_QP_HINT = 1 << 7,
  MRC_QP_RETRY_CNT = 1 << 8,
  MRC_QP_CAP = 1 << 9,
  MRC_QP_VENDOR_CFG = -2147483647 - 1
};

enum mrc_qp_cap {
  MRC_QP_CAP_TRIM_NACK_DEST_UNSUPPORTED = 1 << 0, /* the peer does not answer trimmed packets */
  MRC_QP_CAP_DYNAMIC_MPR = 1 << 1,                /* both ends let the window change */
  MRC_QP_CAP_SVC_TIME_DEST_UNSUPPORTED = 1 << 2   /* the peer does not tell its service time */
};

struct mrc_qp_attr {
  struct {
    uint8_t mpr;      /* window of the peer, in units of 128 packets */
    uint8_t mpr_dest; /* our own window */
  } mpr;
  struct {
    uint16_t max_wimm;      /* immediates in flight that the peer can hold */
    uint16_t max_wimm_dest; /* how many we hold */
  } wimm;
  uint8_t timeout; /* 1.024 us * 2^timeout, at most 24 */
  struct {
    uint64_t ev_profile_id;
    uint64_t cc_profile_id;
  } profile;
  struct {
    uint8_t linear_cnt; /* retries at equal distance, at most 7 */
    uint8_t exp_cnt;    /* then with doubling distance, at most 25, and 25 is for ever */
  } retry;
  struct mrc_qp_hint* qp_hint; /* NULL = none */
  uint32_t cap;                /* enum mrc_qp_cap */
  uint8_t vendor_cfg[MRC_MAX_VENDOR_CFG_SIZE];
};

struct mrc_qp* mrc_create_qp(struct mrc_context* mrc_ctx, struct mrc_qp_init_attr* mrc_qp_attr);
int mrc_destroy_qp(struct mrc_qp* qp);
/* Works in every state. A structure whose mask is 0, and init_attr, may be NULL. */
int mrc_query_qp(struct mrc_qp* qp, struct ibv_qp_attr* vattr, int vattr_mask,
                 struct mrc_qp_attr* mrc_attr, int mrc_attr_mask,
                 struct mrc_qp_init_attr* init_attr);
/* RESET -> INIT -> RTR -> RTS, and from anywhere to ERR and RESET. */
int mrc_modify_qp(struct mrc_qp* qp, struct ibv_qp_attr* vattr, int vattr_mask,
                  struct mrc_qp_attr* mrc_attr, int mrc_attr_mask);
int mrc_get_qpn(struct mrc_qp* qp, uint32_t* qpn);

/* Both take the requests before the first bad one, which they put in *bad_wr. */
int mrc_post_recv(struct mrc_qp* qp, struct ibv_recv_wr* wr, struct ibv_recv_wr** bad_wr);
int mrc_post_send(struct mrc_qp* qp, struct ibv_send_wr* wr, struct ibv_send_wr** bad_wr);

/* --- Asynchronous events --- */

struct mrc_async_event {
  union {
    struct mrc_cq* cq;
    struct mrc_qp* qp;
    int port_num; /* 1-based */
  } element;      /* which one follows from event_type, as in verbs */
  enum ibv_event_type event_type;
};

/* Waits for an event. 0, or -1 with errno set. Each one must be acknowledged. */
int mrc_get_async_event(struct mrc_context* mrc_ctx, struct mrc_async_event* event);
void mrc_ack_async_event(struct mrc_async_event* event);

#ifdef __cplusplus
}
#endif

#endif
