// Functions that programs reach through the tables in a context, not by their names.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

namespace mrc::api {

int query_port_sized(ibv_context* context, std::uint8_t port, ibv_port_attr* out, std::size_t size);
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* out, std::size_t size);
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr);

int poll_cq(ibv_cq* cq, int count, ibv_wc* out);
int request_notify(ibv_cq* cq, int solicited_only);
int post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad);
int post_receive(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad);

// Not offered; they say so.
int post_srq_receive(ibv_srq* srq, ibv_recv_wr* first, ibv_recv_wr** bad);
ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type);
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind);
int dealloc_mw(ibv_mw* mw);

}  // namespace mrc::api
