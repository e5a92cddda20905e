// Attributes of a device, its ports and its GIDs.
#include <net/if.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "api/guard.h"
#include "api/verbs_ops.h"
#include "api/verbs_real.h"
#include "api/verbs_types.h"

#undef ibv_query_port

namespace mrc::api {
namespace {

constexpr std::uint16_t kPkey = 0xffff;
constexpr std::size_t kOldPortAttrSize = offsetof(ibv_port_attr, port_cap_flags2);
constexpr std::uint32_t kVendorId = 0;

// How fast a port is in the words of InfiniBand: lanes and the rate of one.
struct Speed {
  std::uint64_t bits_per_second;
  std::uint8_t width;
  std::uint8_t speed;
};
constexpr std::uint64_t kGiga = 1'000'000'000;
constexpr std::array<Speed, 10> kSpeeds{{
    {2 * kGiga + kGiga / 2, 1, 1},
    {10 * kGiga, 1, 4},
    {25 * kGiga, 1, 32},
    {40 * kGiga, 2, 4},
    {50 * kGiga, 1, 64},
    {100 * kGiga, 2, 32},
    {200 * kGiga, 2, 64},
    {400 * kGiga, 2, 128},
    {800 * kGiga, 4, 128},
    {1200 * kGiga, 8, 128},
}};

Speed speed_of(std::uint64_t bits_per_second) {
  Speed best = kSpeeds.front();
  for (const Speed& candidate : kSpeeds) {
    if (candidate.bits_per_second <= bits_per_second) best = candidate;
  }
  return best;
}

unsigned ports_of(const nic::Device& device) {
  return static_cast<unsigned>(device.config().planes.size());
}

// Port 1 stands for the whole device towards verbs programs, which use no other: it is active while
// any plane carries packets. Yet a port that a controller has disabled reads as down, always.
bool port_active(nic::Device& device, unsigned port) {
  if (!device.node().snapshot()->ports_enabled.contains(PortId{static_cast<std::uint8_t>(port)}))
    return false;
  if (device.port_active(PortId{static_cast<std::uint8_t>(port)})) return true;
  if (port != 1) return false;
  for (unsigned other = 2; other <= ports_of(device); ++other) {
    if (device.port_active(PortId{static_cast<std::uint8_t>(other)})) return true;
  }
  return false;
}

void fill_port(nic::Device& device, unsigned port, ibv_port_attr& out) {
  const bool active = port_active(device, port);
  const std::uint64_t planes = port == 1 ? ports_of(device) : 1;
  const Speed speed = speed_of(device.port_bits_per_second() * planes);
  out.state = active ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  out.max_mtu = IBV_MTU_4096;
  out.active_mtu = mtu_within(device.path_mtu());
  out.gid_tbl_len = kGidCount;
  out.port_cap_flags = IBV_PORT_IP_BASED_GIDS;
  out.max_msg_sz = core::kMaxMessageBytes;
  out.pkey_tbl_len = 1;
  out.max_vl_num = 1;
  out.active_width = speed.width;
  out.active_speed = speed.speed;
  out.phys_state = active ? 5 : 3;  // link up, disabled
  out.link_layer = IBV_LINK_LAYER_ETHERNET;
}

// Writes no more than `size` bytes, whatever the structure of today has.
int query_port(ibv_context* context, std::uint8_t port, void* out, std::size_t size) {
  nic::Device& device = nic_of(context);
  if (out == nullptr || port < 1 || port > ports_of(device)) return EINVAL;
  ibv_port_attr attr{};
  fill_port(device, port, attr);
  std::memset(out, 0, size);
  std::memcpy(out, &attr, std::min(size, sizeof attr));
  return 0;
}

void fill_device(nic::Device& device, const VerbsDevice& verbs, ibv_device_attr& out) {
  const nic::DeviceLimits& limits = device.limits();
  std::snprintf(out.fw_ver, sizeof out.fw_ver, "software");
  out.node_guid = out.sys_image_guid = htobe64(verbs.guid);
  out.max_mr_size = UINT64_MAX;
  out.page_size_cap = ~std::uint64_t{4095};
  out.vendor_id = kVendorId;
  out.max_qp = static_cast<int>(limits.max_qps);
  out.max_qp_wr = static_cast<int>(limits.max_sends);
  out.device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN;
  out.max_sge = static_cast<int>(limits.max_buffers);
  out.max_cq = static_cast<int>(limits.max_cqs);
  out.max_cqe = static_cast<int>(limits.max_cq_depth);
  out.max_mr = static_cast<int>(limits.max_regions);
  out.max_pd = INT_MAX;
  out.atomic_cap = IBV_ATOMIC_NONE;
  out.max_pkeys = 1;
  out.phys_port_cnt = 1;
}

ibv_gid_entry gid_entry(const nic::Device& device, std::uint32_t port, std::uint32_t index) {
  const node::PlaneConfig& plane = device.config().planes.front();
  return {.gid = gid_of(device.gid()),
          .gid_index = index,
          .port_num = port,
          .gid_type = IBV_GID_TYPE_ROCE_V2,
          .ndev_ifindex = if_nametoindex(plane.interface.c_str())};
}

}  // namespace

int query_port_sized(ibv_context* context, std::uint8_t port, ibv_port_attr* out,
                     std::size_t size) {
  return query_port(context, port, out, size);
}

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* out, std::size_t size) {
  if (out == nullptr || size < sizeof out->orig_attr) return EINVAL;
  if (input != nullptr && input->comp_mask != 0) return EINVAL;
  ibv_device_attr_ex attr{};
  fill_device(nic_of(context), *our_device(context->device), attr.orig_attr);
  attr.phys_port_cnt_ex = attr.orig_attr.phys_port_cnt;
  std::memset(out, 0, size);
  std::memcpy(out, &attr, std::min(size, sizeof attr));
  return 0;
}

}  // namespace mrc::api

using mrc::api::forward_or;
using mrc::api::kGidCount;
using mrc::api::nic_of;
using mrc::api::our_context;

MRC_API_EXPORT int ibv_query_device(ibv_context* context, ibv_device_attr* out) {
  if (our_context(context) == nullptr)
    return forward_or(EINVAL, context, MRC_REAL(ibv_query_device), context, out);
  if (out == nullptr) return EINVAL;
  *out = {};
  mrc::api::fill_device(nic_of(context), *mrc::api::our_device(context->device), *out);
  return 0;
}

// Programs that were built long ago, or that look this symbol up, pass a structure that ends before
// port_cap_flags2.
MRC_API_EXPORT int ibv_query_port(ibv_context* context, uint8_t port,
                                  struct _compat_ibv_port_attr* out) {
  if (our_context(context) != nullptr) {
    return mrc::api::query_port(context, port, out, mrc::api::kOldPortAttrSize);
  }
  return forward_or(EINVAL, context, MRC_REAL(ibv_query_port), context, port, out);
}

MRC_API_EXPORT int ibv_query_gid(ibv_context* context, uint8_t port, int index, ibv_gid* gid) {
  if (our_context(context) == nullptr)
    return forward_or(-1, context, MRC_REAL(ibv_query_gid), context, port, index, gid);
  const bool known = port >= 1 && port <= mrc::api::ports_of(nic_of(context)) && index >= 0 &&
                     index < kGidCount && gid != nullptr;
  if (!known) {
    errno = EINVAL;
    return -1;
  }
  *gid = mrc::api::gid_of(nic_of(context).gid());
  return 0;
}

MRC_API_EXPORT int _ibv_query_gid_ex(ibv_context* context, uint32_t port, uint32_t index,
                                     ibv_gid_entry* entry, uint32_t flags, size_t size) {
  if (our_context(context) == nullptr) {
    return forward_or(EINVAL, context, MRC_REAL(_ibv_query_gid_ex), context, port, index, entry,
                      flags, size);
  }
  if (entry == nullptr || flags != 0 || size < sizeof *entry) return EINVAL;
  if (port < 1 || port > mrc::api::ports_of(nic_of(context))) return EINVAL;
  if (index >= kGidCount) return ENODATA;
  std::memset(entry, 0, size);
  *entry = mrc::api::gid_entry(nic_of(context), port, index);
  return 0;
}

MRC_API_EXPORT ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries,
                                            size_t room, uint32_t flags, size_t size) {
  if (our_context(context) == nullptr) {
    return forward_or(ssize_t{-EINVAL}, context, MRC_REAL(_ibv_query_gid_table), context, entries,
                      room, flags, size);
  }
  if (entries == nullptr || flags != 0 || size < sizeof *entries) return -EINVAL;
  if (room < kGidCount) return -EINVAL;
  auto* at = reinterpret_cast<std::byte*>(entries);
  std::memset(at, 0, size * kGidCount);
  for (uint32_t index = 0; index < kGidCount; ++index, at += size) {
    const ibv_gid_entry entry = mrc::api::gid_entry(nic_of(context), 1, index);
    std::memcpy(at, &entry, sizeof entry);
  }
  return kGidCount;
}

// Not in the public header, yet ibv_devinfo asks it. 1: RoCE v2.
MRC_API_EXPORT int ibv_query_gid_type(ibv_context* context, uint8_t port, unsigned index,
                                      int* type);
int ibv_query_gid_type(ibv_context* context, uint8_t port, unsigned index, int* type) {
  if (our_context(context) == nullptr)
    return forward_or(-1, context, MRC_REAL(ibv_query_gid_type), context, port, index, type);
  if (port < 1 || port > mrc::api::ports_of(nic_of(context)) || index >= kGidCount ||
      type == nullptr) {
    errno = EINVAL;
    return -1;
  }
  *type = 1;
  return 0;
}

MRC_API_EXPORT int ibv_query_pkey(ibv_context* context, uint8_t port, int index, __be16* pkey) {
  if (our_context(context) == nullptr)
    return forward_or(-1, context, MRC_REAL(ibv_query_pkey), context, port, index, pkey);
  if (port < 1 || port > mrc::api::ports_of(nic_of(context)) || index != 0 || pkey == nullptr) {
    errno = EINVAL;
    return -1;
  }
  *pkey = htobe16(mrc::api::kPkey);
  return 0;
}

MRC_API_EXPORT int ibv_get_pkey_index(ibv_context* context, uint8_t port, __be16 pkey) {
  if (our_context(context) == nullptr)
    return forward_or(-1, context, MRC_REAL(ibv_get_pkey_index), context, port, pkey);
  return pkey == htobe16(mrc::api::kPkey) ? 0 : -1;
}
