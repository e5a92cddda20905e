/* The part of the verbs interface that OpenMRC uses, for machines without the libibverbs headers.
 *
 * Training hosts and containers often have a compiler and none of the RDMA packages. With this
 * header the library and the NCCL plug-in build there (-DMRC_BARE=ON). It declares, in our own
 * arrangement, the names, values and layouts that the binary interface of libibverbs fixes; fields
 * named reserved stand for what we do not use. Where the real header exists it is used instead, and
 * tests/abi/compat_verbs_test.py compares the two name by name.
 */
#ifndef MRC_COMPAT_INFINIBAND_VERBS_H
#define MRC_COMPAT_INFINIBAND_VERBS_H

#include <linux/types.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_ah;
struct ibv_ah_attr;
struct ibv_cq;
struct ibv_device_attr;
struct ibv_dm;
struct ibv_mw;
struct ibv_mw_bind;
struct ibv_qp_ex;
struct ibv_wq;
struct _compat_ibv_port_attr;

/* --- Numbers --- */

enum ibv_node_type { IBV_NODE_UNKNOWN = -1, IBV_NODE_CA = 1 };
enum ibv_transport_type { IBV_TRANSPORT_UNKNOWN = -1, IBV_TRANSPORT_IB = 0 };
enum ibv_gid_type { IBV_GID_TYPE_IB, IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2 };
enum ibv_fork_status { IBV_FORK_DISABLED, IBV_FORK_ENABLED, IBV_FORK_UNNEEDED };
enum ibv_atomic_cap { IBV_ATOMIC_NONE, IBV_ATOMIC_HCA, IBV_ATOMIC_GLOB };
enum ibv_mw_type { IBV_MW_TYPE_1 = 1, IBV_MW_TYPE_2 = 2 };
enum ibv_mig_state { IBV_MIG_MIGRATED, IBV_MIG_REARM, IBV_MIG_ARMED };
enum ibv_rereg_mr_err_code { IBV_REREG_MR_ERR_INPUT = -1 };
enum { IBV_DEVICE_RC_RNR_NAK_GEN = 1 << 12 };
enum { IBV_PORT_IP_BASED_GIDS = 1 << 26 };
enum { IBV_LINK_LAYER_UNSPECIFIED, IBV_LINK_LAYER_INFINIBAND, IBV_LINK_LAYER_ETHERNET };

enum ibv_mtu {
  IBV_MTU_256 = 1,
  IBV_MTU_512 = 2,
  IBV_MTU_1024 = 3,
  IBV_MTU_2048 = 4,
  IBV_MTU_4096 = 5
};

enum ibv_port_state {
  IBV_PORT_NOP = 0,
  IBV_PORT_DOWN = 1,
  IBV_PORT_INIT = 2,
  IBV_PORT_ARMED = 3,
  IBV_PORT_ACTIVE = 4,
  IBV_PORT_ACTIVE_DEFER = 5
};

enum ibv_event_type {
  IBV_EVENT_CQ_ERR = 0,
  IBV_EVENT_QP_FATAL = 1,
  IBV_EVENT_QP_REQ_ERR = 2,
  IBV_EVENT_QP_ACCESS_ERR = 3,
  IBV_EVENT_COMM_EST = 4,
  IBV_EVENT_SQ_DRAINED = 5,
  IBV_EVENT_PATH_MIG = 6,
  IBV_EVENT_PATH_MIG_ERR = 7,
  IBV_EVENT_DEVICE_FATAL = 8,
  IBV_EVENT_PORT_ACTIVE = 9,
  IBV_EVENT_PORT_ERR = 10,
  IBV_EVENT_LID_CHANGE = 11,
  IBV_EVENT_PKEY_CHANGE = 12,
  IBV_EVENT_SM_CHANGE = 13,
  IBV_EVENT_SRQ_ERR = 14,
  IBV_EVENT_SRQ_LIMIT_REACHED = 15,
  IBV_EVENT_QP_LAST_WQE_REACHED = 16,
  IBV_EVENT_CLIENT_REREGISTER = 17,
  IBV_EVENT_GID_CHANGE = 18,
  IBV_EVENT_WQ_FATAL = 19
};

enum ibv_wc_status {
  IBV_WC_SUCCESS = 0,
  IBV_WC_LOC_LEN_ERR = 1,
  IBV_WC_LOC_QP_OP_ERR = 2,
  IBV_WC_LOC_EEC_OP_ERR = 3,
  IBV_WC_LOC_PROT_ERR = 4,
  IBV_WC_WR_FLUSH_ERR = 5,
  IBV_WC_MW_BIND_ERR = 6,
  IBV_WC_BAD_RESP_ERR = 7,
  IBV_WC_LOC_ACCESS_ERR = 8,
  IBV_WC_REM_INV_REQ_ERR = 9,
  IBV_WC_REM_ACCESS_ERR = 10,
  IBV_WC_REM_OP_ERR = 11,
  IBV_WC_RETRY_EXC_ERR = 12,
  IBV_WC_RNR_RETRY_EXC_ERR = 13,
  IBV_WC_LOC_RDD_VIOL_ERR = 14,
  IBV_WC_REM_INV_RD_REQ_ERR = 15,
  IBV_WC_REM_ABORT_ERR = 16,
  IBV_WC_INV_EECN_ERR = 17,
  IBV_WC_INV_EEC_STATE_ERR = 18,
  IBV_WC_FATAL_ERR = 19,
  IBV_WC_RESP_TIMEOUT_ERR = 20,
  IBV_WC_GENERAL_ERR = 21,
  IBV_WC_TM_ERR = 22,
  IBV_WC_TM_RNDV_INCOMPLETE = 23
};

enum ibv_wc_opcode {
  IBV_WC_SEND = 0,
  IBV_WC_RDMA_WRITE = 1,
  IBV_WC_RDMA_READ = 2,
  IBV_WC_RECV = 1 << 7,
  IBV_WC_RECV_RDMA_WITH_IMM = (1 << 7) + 1
};
enum ibv_wc_flags { IBV_WC_GRH = 1 << 0, IBV_WC_WITH_IMM = 1 << 1 };

enum ibv_access_flags {
  IBV_ACCESS_LOCAL_WRITE = 1 << 0,
  IBV_ACCESS_REMOTE_WRITE = 1 << 1,
  IBV_ACCESS_REMOTE_READ = 1 << 2,
  IBV_ACCESS_REMOTE_ATOMIC = 1 << 3,
  IBV_ACCESS_MW_BIND = 1 << 4,
  IBV_ACCESS_ZERO_BASED = 1 << 5,
  IBV_ACCESS_ON_DEMAND = 1 << 6,
  IBV_ACCESS_HUGETLB = 1 << 7,
  IBV_ACCESS_RELAXED_ORDERING = 1 << 20
};
#define IBV_ACCESS_OPTIONAL_RANGE 0x3ff00000

enum ibv_qp_type { IBV_QPT_RC = 2, IBV_QPT_UC = 3, IBV_QPT_UD = 4 };

enum ibv_qp_state {
  IBV_QPS_RESET = 0,
  IBV_QPS_INIT = 1,
  IBV_QPS_RTR = 2,
  IBV_QPS_RTS = 3,
  IBV_QPS_SQD = 4,
  IBV_QPS_SQE = 5,
  IBV_QPS_ERR = 6,
  IBV_QPS_UNKNOWN = 7
};

enum ibv_qp_attr_mask {
  IBV_QP_STATE = 1 << 0,
  IBV_QP_CUR_STATE = 1 << 1,
  IBV_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
  IBV_QP_ACCESS_FLAGS = 1 << 3,
  IBV_QP_PKEY_INDEX = 1 << 4,
  IBV_QP_PORT = 1 << 5,
  IBV_QP_QKEY = 1 << 6,
  IBV_QP_AV = 1 << 7,
  IBV_QP_PATH_MTU = 1 << 8,
  IBV_QP_TIMEOUT = 1 << 9,
  IBV_QP_RETRY_CNT = 1 << 10,
  IBV_QP_RNR_RETRY = 1 << 11,
  IBV_QP_RQ_PSN = 1 << 12,
  IBV_QP_MAX_QP_RD_ATOMIC = 1 << 13,
  IBV_QP_ALT_PATH = 1 << 14,
  IBV_QP_MIN_RNR_TIMER = 1 << 15,
  IBV_QP_SQ_PSN = 1 << 16,
  IBV_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
  IBV_QP_PATH_MIG_STATE = 1 << 18,
  IBV_QP_CAP = 1 << 19,
  IBV_QP_DEST_QPN = 1 << 20,
  IBV_QP_RATE_LIMIT = 1 << 25
};
enum ibv_qp_init_attr_mask { IBV_QP_INIT_ATTR_PD = 1 << 0 };
enum ibv_qp_create_send_ops_flags {
  IBV_QP_EX_WITH_RDMA_WRITE = 1 << 0,
  IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM = 1 << 1
};

enum ibv_wr_opcode {
  IBV_WR_RDMA_WRITE = 0,
  IBV_WR_RDMA_WRITE_WITH_IMM = 1,
  IBV_WR_SEND = 2,
  IBV_WR_SEND_WITH_IMM = 3,
  IBV_WR_RDMA_READ = 4,
  IBV_WR_ATOMIC_CMP_AND_SWP = 5,
  IBV_WR_ATOMIC_FETCH_AND_ADD = 6
};
enum ibv_send_flags {
  IBV_SEND_FENCE = 1 << 0,
  IBV_SEND_SIGNALED = 1 << 1,
  IBV_SEND_SOLICITED = 1 << 2,
  IBV_SEND_INLINE = 1 << 3
};

/* --- Devices and ports --- */

union ibv_gid {
  uint8_t raw[16];
  struct {
    __be64 subnet_prefix;
    __be64 interface_id;
  } global;
};

struct ibv_gid_entry {
  union ibv_gid gid;
  uint32_t gid_index, port_num, gid_type, ndev_ifindex;
};

struct ibv_device {
  void* reserved_ops[2];
  enum ibv_node_type node_type;
  enum ibv_transport_type transport_type;
  char name[64], dev_name[64];
  char dev_path[256], ibdev_path[256];
};

struct ibv_device_attr {
  char fw_ver[64];
  __be64 node_guid, sys_image_guid;
  uint64_t max_mr_size, page_size_cap;
  uint32_t vendor_id, vendor_part_id, hw_ver;
  int max_qp, max_qp_wr;
  unsigned int device_cap_flags;
  int max_sge, max_sge_rd, max_cq, max_cqe, max_mr, max_pd;
  int max_qp_rd_atom, max_ee_rd_atom, max_res_rd_atom, max_qp_init_rd_atom, max_ee_init_rd_atom;
  enum ibv_atomic_cap atomic_cap;
  int max_ee, max_rdd, max_mw, max_raw_ipv6_qp, max_raw_ethy_qp;
  int max_mcast_grp, max_mcast_qp_attach, max_total_mcast_qp_attach;
  int max_ah, max_fmr, max_map_per_fmr, max_srq, max_srq_wr, max_srq_sge;
  uint16_t max_pkeys;
  uint8_t local_ca_ack_delay, phys_port_cnt;
};
struct ibv_device_attr_ex {
  struct ibv_device_attr orig_attr;
  uint32_t comp_mask;
  uint64_t reserved[19];
  uint32_t reserved_caps;
  uint32_t phys_port_cnt_ex;
};
struct ibv_query_device_ex_input {
  uint32_t comp_mask;
};

struct ibv_port_attr {
  enum ibv_port_state state;
  enum ibv_mtu max_mtu, active_mtu;
  int gid_tbl_len;
  uint32_t port_cap_flags, max_msg_sz, bad_pkey_cntr, qkey_viol_cntr;
  uint16_t pkey_tbl_len, lid, sm_lid;
  uint8_t lmc, max_vl_num, sm_sl, subnet_timeout, init_type_reply;
  uint8_t active_width, active_speed, phys_state, link_layer, flags;
  uint16_t port_cap_flags2;
};

/* --- Objects --- */

struct ibv_pd {
  struct ibv_context* context;
  uint32_t handle;
};

struct ibv_mr {
  struct ibv_context* context;
  struct ibv_pd* pd;
  void* addr;
  size_t length;
  uint32_t handle, lkey, rkey;
};

struct ibv_comp_channel {
  struct ibv_context* context;
  int fd, refcnt;
};

struct ibv_cq {
  struct ibv_context* context;
  struct ibv_comp_channel* channel;
  void* cq_context;
  uint32_t handle;
  int cqe;
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  uint32_t comp_events_completed, async_events_completed;
};

struct ibv_srq {
  struct ibv_context* context;
  void* srq_context;
  struct ibv_pd* pd;
  uint32_t handle;
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  uint32_t events_completed;
};
struct ibv_srq_init_attr {
  void* srq_context;
  struct {
    uint32_t max_wr, max_sge, srq_limit;
  } attr;
};

struct ibv_qp {
  struct ibv_context* context;
  void* qp_context;
  struct ibv_pd* pd;
  struct ibv_cq *send_cq, *recv_cq;
  struct ibv_srq* srq;
  uint32_t handle, qp_num;
  enum ibv_qp_state state;
  enum ibv_qp_type qp_type;
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  uint32_t events_completed;
};

struct ibv_qp_cap {
  uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
};

struct ibv_qp_init_attr {
  void* qp_context;
  struct ibv_cq *send_cq, *recv_cq;
  struct ibv_srq* srq;
  struct ibv_qp_cap cap;
  enum ibv_qp_type qp_type;
  int sq_sig_all;
};

struct ibv_qp_init_attr_ex {
  void* qp_context;
  struct ibv_cq *send_cq, *recv_cq;
  struct ibv_srq* srq;
  struct ibv_qp_cap cap;
  enum ibv_qp_type qp_type;
  int sq_sig_all;
  uint32_t comp_mask;
  struct ibv_pd* pd;
  uint64_t reserved[7];
  uint64_t send_ops_flags;
};

struct ibv_global_route {
  union ibv_gid dgid;
  uint32_t flow_label;
  uint8_t sgid_index, hop_limit, traffic_class;
};

struct ibv_grh {
  __be32 version_tclass_flow;
  __be16 paylen;
  uint8_t next_hdr, hop_limit;
  union ibv_gid sgid, dgid;
};

struct ibv_ah_attr {
  struct ibv_global_route grh;
  uint16_t dlid;
  uint8_t sl, src_path_bits, static_rate, is_global, port_num;
};

struct ibv_qp_attr {
  enum ibv_qp_state qp_state, cur_qp_state;
  enum ibv_mtu path_mtu;
  enum ibv_mig_state path_mig_state;
  uint32_t qkey, rq_psn, sq_psn, dest_qp_num;
  unsigned int qp_access_flags;
  struct ibv_qp_cap cap;
  struct ibv_ah_attr ah_attr, alt_ah_attr;
  uint16_t pkey_index, alt_pkey_index;
  uint8_t en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer;
  uint8_t port_num, timeout, retry_cnt, rnr_retry, alt_port_num, alt_timeout;
  uint32_t rate_limit;
};

struct ibv_ece {
  uint32_t vendor_id, options, comp_mask;
};

struct ibv_async_event {
  union {
    struct ibv_cq* cq;
    struct ibv_qp* qp;
    struct ibv_srq* srq;
    struct ibv_wq* wq;
    int port_num;
  } element;
  enum ibv_event_type event_type;
};

/* --- Work --- */

struct ibv_sge {
  uint64_t addr;
  uint32_t length, lkey;
};

struct ibv_recv_wr {
  uint64_t wr_id;
  struct ibv_recv_wr* next;
  struct ibv_sge* sg_list;
  int num_sge;
};

struct ibv_send_wr {
  uint64_t wr_id;
  struct ibv_send_wr* next;
  struct ibv_sge* sg_list;
  int num_sge;
  enum ibv_wr_opcode opcode;
  unsigned int send_flags;
  __be32 imm_data;
  union {
    struct {
      uint64_t remote_addr;
      uint32_t rkey;
    } rdma;
    uint64_t reserved[4];
  } wr;
  uint32_t reserved_xrc;
  uint64_t reserved_bind[6];
};

struct ibv_wc {
  uint64_t wr_id;
  enum ibv_wc_status status;
  enum ibv_wc_opcode opcode;
  uint32_t vendor_err, byte_len;
  __be32 imm_data;
  uint32_t qp_num, src_qp;
  unsigned int wc_flags;
  uint16_t pkey_index, slid;
  uint8_t sl, dlid_path_bits;
};

/* --- Contexts and the tables in them --- */

struct ibv_context_ops {
  void* reserved_1[7];
  struct ibv_mw* (*alloc_mw)(struct ibv_pd*, enum ibv_mw_type);
  int (*bind_mw)(struct ibv_qp*, struct ibv_mw*, struct ibv_mw_bind*);
  int (*dealloc_mw)(struct ibv_mw*);
  void* reserved_2;
  int (*poll_cq)(struct ibv_cq*, int, struct ibv_wc*);
  int (*req_notify_cq)(struct ibv_cq*, int);
  void* reserved_3[7];
  int (*post_srq_recv)(struct ibv_srq*, struct ibv_recv_wr*, struct ibv_recv_wr**);
  void* reserved_4[4];
  int (*post_send)(struct ibv_qp*, struct ibv_send_wr*, struct ibv_send_wr**);
  int (*post_recv)(struct ibv_qp*, struct ibv_recv_wr*, struct ibv_recv_wr**);
  void* reserved_5[5];
};

struct ibv_context {
  struct ibv_device* device;
  struct ibv_context_ops ops;
  int cmd_fd, async_fd, num_comp_vectors;
  pthread_mutex_t mutex;
  void* abi_compat;
};

struct verbs_context {
  int (*query_port)(struct ibv_context*, uint8_t, struct ibv_port_attr*, size_t);
  void* reserved_1[26];
  int (*query_device_ex)(struct ibv_context*, const struct ibv_query_device_ex_input*,
                         struct ibv_device_attr_ex*, size_t);
  void* reserved_2[5];
  struct ibv_qp* (*create_qp_ex)(struct ibv_context*, struct ibv_qp_init_attr_ex*);
  void* reserved_3[5];
  size_t sz;
  struct ibv_context context;
};

/* --- Functions --- */

struct ibv_device** ibv_get_device_list(int* num_devices);
void ibv_free_device_list(struct ibv_device** list);
const char* ibv_get_device_name(struct ibv_device* device);
__be64 ibv_get_device_guid(struct ibv_device* device);
int ibv_get_device_index(struct ibv_device* device);
struct ibv_context* ibv_open_device(struct ibv_device* device);
int ibv_close_device(struct ibv_context* context);
int ibv_query_device(struct ibv_context* context, struct ibv_device_attr* attr);
int ibv_query_port(struct ibv_context* context, uint8_t port, struct _compat_ibv_port_attr* attr);
int ibv_query_gid(struct ibv_context* context, uint8_t port, int index, union ibv_gid* gid);
int _ibv_query_gid_ex(struct ibv_context* context, uint32_t port, uint32_t index,
                      struct ibv_gid_entry* entry, uint32_t flags, size_t size);
ssize_t _ibv_query_gid_table(struct ibv_context* context, struct ibv_gid_entry* entries,
                             size_t count, uint32_t flags, size_t size);
int ibv_query_pkey(struct ibv_context* context, uint8_t port, int index, __be16* pkey);
int ibv_get_pkey_index(struct ibv_context* context, uint8_t port, __be16 pkey);

struct ibv_pd* ibv_alloc_pd(struct ibv_context* context);
int ibv_dealloc_pd(struct ibv_pd* pd);
struct ibv_mr* ibv_reg_mr(struct ibv_pd* pd, void* address, size_t length, int access);
struct ibv_mr* ibv_reg_mr_iova(struct ibv_pd* pd, void* address, size_t length, uint64_t iova,
                               int access);
struct ibv_mr* ibv_reg_mr_iova2(struct ibv_pd* pd, void* address, size_t length, uint64_t iova,
                                unsigned int access);
struct ibv_mr* ibv_reg_dmabuf_mr(struct ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova,
                                 int fd, int access);
int ibv_rereg_mr(struct ibv_mr* mr, int flags, struct ibv_pd* pd, void* address, size_t length,
                 int access);
int ibv_dereg_mr(struct ibv_mr* mr);
struct ibv_pd* ibv_import_pd(struct ibv_context* context, uint32_t handle);
struct ibv_mr* ibv_import_mr(struct ibv_pd* pd, uint32_t handle);
struct ibv_dm* ibv_import_dm(struct ibv_context* context, uint32_t handle);

struct ibv_comp_channel* ibv_create_comp_channel(struct ibv_context* context);
int ibv_destroy_comp_channel(struct ibv_comp_channel* channel);
struct ibv_cq* ibv_create_cq(struct ibv_context* context, int cqe, void* cq_context,
                             struct ibv_comp_channel* channel, int vector);
int ibv_resize_cq(struct ibv_cq* cq, int cqe);
int ibv_destroy_cq(struct ibv_cq* cq);
int ibv_get_cq_event(struct ibv_comp_channel* channel, struct ibv_cq** cq, void** cq_context);
void ibv_ack_cq_events(struct ibv_cq* cq, unsigned int events);

struct ibv_qp* ibv_create_qp(struct ibv_pd* pd, struct ibv_qp_init_attr* attr);
int ibv_modify_qp(struct ibv_qp* qp, struct ibv_qp_attr* attr, int mask);
int ibv_query_qp(struct ibv_qp* qp, struct ibv_qp_attr* attr, int mask,
                 struct ibv_qp_init_attr* init);
int ibv_destroy_qp(struct ibv_qp* qp);
struct ibv_qp_ex* ibv_qp_to_qp_ex(struct ibv_qp* qp);
int ibv_query_qp_data_in_order(struct ibv_qp* qp, enum ibv_wr_opcode opcode, uint32_t flags);
int ibv_query_ece(struct ibv_qp* qp, struct ibv_ece* ece);
int ibv_set_ece(struct ibv_qp* qp, struct ibv_ece* ece);
int ibv_attach_mcast(struct ibv_qp* qp, const union ibv_gid* gid, uint16_t lid);
int ibv_detach_mcast(struct ibv_qp* qp, const union ibv_gid* gid, uint16_t lid);

struct ibv_srq* ibv_create_srq(struct ibv_pd* pd, struct ibv_srq_init_attr* attr);
struct ibv_ah* ibv_create_ah(struct ibv_pd* pd, struct ibv_ah_attr* attr);
struct ibv_ah* ibv_create_ah_from_wc(struct ibv_pd* pd, struct ibv_wc* wc, struct ibv_grh* grh,
                                     uint8_t port);
int ibv_init_ah_from_wc(struct ibv_context* context, uint8_t port, struct ibv_wc* wc,
                        struct ibv_grh* grh, struct ibv_ah_attr* attr);
int ibv_resolve_eth_l2_from_gid(struct ibv_context* context, struct ibv_ah_attr* attr,
                                uint8_t mac[6], uint16_t* vlan);

int ibv_get_async_event(struct ibv_context* context, struct ibv_async_event* event);
void ibv_ack_async_event(struct ibv_async_event* event);
int ibv_fork_init(void);
enum ibv_fork_status ibv_is_fork_initialized(void);
const char* ibv_node_type_str(enum ibv_node_type type);
const char* ibv_port_state_str(enum ibv_port_state state);
const char* ibv_event_type_str(enum ibv_event_type type);
const char* ibv_wc_status_str(enum ibv_wc_status status);

/* The function of that name is for old programs and writes less. */
static inline int mrc_compat_query_port(struct ibv_context* context, uint8_t port,
                                        struct ibv_port_attr* attr) {
  const char* const at = (const char*)context - offsetof(struct verbs_context, context);
  return ((const struct verbs_context*)(const void*)at)
      ->query_port(context, port, attr, sizeof *attr);
}
#define ibv_query_port(context, port, attr) mrc_compat_query_port(context, port, attr)

#ifdef __cplusplus
}
#endif

#endif
