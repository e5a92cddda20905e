#include "collective/device.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include "collective/failure.h"
#include "openmrc_security.h"
#include "os/errors.h"
#include "wire/ip_address.h"

namespace mrc::collective {
namespace {

constexpr std::uint8_t kPort = 1;
constexpr std::uint32_t kPsnMask = 0xff'ffff;
constexpr std::uint8_t kHopLimit = 64;
// As many retries at equal distance as there can be, then at doubling distance for ever.
constexpr std::uint8_t kLinearRetries = 7;
constexpr std::uint8_t kForEver = 25;

std::uint32_t bytes_of(ibv_mtu mtu) { return 128U << static_cast<unsigned>(mtu); }

// The largest step of verbs that is not above `bytes`.
ibv_mtu mtu_of(std::uint32_t bytes) {
  for (unsigned step = IBV_MTU_4096; step > IBV_MTU_256; --step) {
    if (bytes_of(static_cast<ibv_mtu>(step)) <= bytes) return static_cast<ibv_mtu>(step);
  }
  return IBV_MTU_256;
}

}  // namespace

std::string gid_text(const Gid& gid) {
  // ::ffff:a.b.c.d
  static constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255};
  wire::IpAddress address;
  if (std::equal(kMapped.begin(), kMapped.end(), gid.begin())) {
    address.is_v4 = true;
    std::copy(gid.begin() + kMapped.size(), gid.end(), address.bytes.begin());
  } else {
    address.bytes = gid;
  }
  return std::string(wire::format_address(address).view());
}

void refuse(const std::string& what, int error) {
  throw Failure(fmt::format("{}: {}", what, std::strerror(error)));
}

void expect_ok(const std::string& what, int error) {
  if (error != 0) refuse(what, error);
}

Device::Device(const DeviceOptions& options)
    : dialect_(options.dialect), gid_index_(options.gid_index) {
  open(options.name);
  find_port(options);
}

std::uint64_t Device::security() const {
  std::uint64_t code = 0;
  expect_ok("openmrc_query_security", openmrc_query_security(context(), &code));
  return code;
}

void Device::check_security(std::uint64_t theirs, const std::string& peer) const {
  std::array<char, 400> why{};
  const int error = openmrc_compare_security(context(), theirs, why.data(), why.size());
  if (error == EPROTO) throw Failure(fmt::format("{}: {}", peer, why.data()));
  expect_ok("openmrc_compare_security", error);
}

void Device::open(const std::string& name) {
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  if (list == nullptr) refuse("cannot list devices", errno);
  const std::unique_ptr<ibv_device*, decltype(&ibv_free_device_list)> owner(list,
                                                                            &ibv_free_device_list);
  std::string names;
  for (int i = 0; i < count; ++i) {
    const std::string found = ibv_get_device_name(list[i]);
    names += (names.empty() ? "" : ", ") + found;
    if (!name.empty() && found != name) continue;
    verbs_.reset(ibv_open_device(list[i]));
    if (!verbs_ && errno == EKEYREJECTED)
      throw Failure("cannot open device " + found + " for want of its key", FailureKind::kUsage);
    if (!verbs_) refuse("cannot open device " + found + " (see mrc doctor)", errno);
    name_ = found;
    break;
  }
  if (!verbs_ && count == 0) throw Failure("there is no device; mrc doctor may know why");
  if (!verbs_) throw Failure(fmt::format("there is no device {}; there are: {}", name, names));
  int supported = 0;
  mrc_device_attr attributes = {};
  expect_ok("mrc_query_device",
            os::errno_of(mrc_query_device(verbs_.get(), &attributes, &supported)));
  if (supported == 0) throw Failure(fmt::format("device {} has no MRC", name_));
  context_.reset(mrc_create_context(verbs_.get(), nullptr));
  if (!context_) refuse("mrc_create_context", errno);
  pd_.reset(ibv_alloc_pd(verbs_.get()));
  if (!pd_) refuse("ibv_alloc_pd", errno);
}

void Device::find_port(const DeviceOptions& options) {
  ibv_port_attr port = {};
  expect_ok("ibv_query_port", ibv_query_port(verbs_.get(), kPort, &port));
  const std::uint32_t largest = bytes_of(port.active_mtu);
  mtu_ = options.mtu == 0 ? largest : options.mtu;
  if (mtu_ > largest || bytes_of(mtu_of(mtu_)) != mtu_)
    throw Failure(
        fmt::format("--mtu {}: 256, 512, 1024, 2048, 4096 up to the port's {} are possible",
                    options.mtu, largest),
        FailureKind::kUsage);
  ibv_gid gid = {};
  if (ibv_query_gid(verbs_.get(), kPort, gid_index_, &gid) != 0)
    throw Failure(
        fmt::format("device {} has no GID with index {} (see mrc info)", name_, gid_index_));
  std::copy(std::begin(gid.raw), std::end(gid.raw), gid_.begin());
}

Owned<ibv_mr> Device::register_memory(void* memory, std::size_t bytes, Access access) const {
  const int remote = access == Access::kPeersWrite ? IBV_ACCESS_REMOTE_WRITE : 0;
  Owned<ibv_mr> region(ibv_reg_mr(pd_.get(), memory, bytes, IBV_ACCESS_LOCAL_WRITE | remote));
  if (!region) refuse(fmt::format("cannot register {} bytes", bytes), errno);
  return region;
}

void to_init(mrc_qp* qp, const QpProfileIds& profiles) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = kPort;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  mrc_qp_attr mrc_attributes = {};
  int mask = 0;
  if (profiles.ev) {
    mrc_attributes.profile.ev_profile_id = *profiles.ev;
    mask |= MRC_QP_EV_PROFILE_ID;
  }
  if (profiles.cc) {
    mrc_attributes.profile.cc_profile_id = *profiles.cc;
    mask |= MRC_QP_CC_PROFILE_ID;
  }
  expect_ok(mask == 0 ? "queue pair to INIT" : "queue pair to INIT (is the profile online?)",
            mrc_modify_qp(qp, &attributes,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                          &mrc_attributes, mask));
}

void to_ready(mrc_qp* qp, const Device& device, const QpConnection& connection) {
  ibv_qp_attr receive = {};
  receive.qp_state = IBV_QPS_RTR;
  receive.path_mtu = mtu_of(connection.mtu);
  receive.dest_qp_num = connection.peer_qp;
  receive.rq_psn = connection.peer_psn;
  receive.ah_attr.is_global = 1;
  receive.ah_attr.port_num = kPort;
  receive.ah_attr.grh.hop_limit = kHopLimit;
  receive.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(device.gid_index());
  std::copy(connection.gid.begin(), connection.gid.end(), std::begin(receive.ah_attr.grh.dgid.raw));
  expect_ok(
      fmt::format("queue pair to RTR towards {}", gid_text(connection.gid)),
      mrc_modify_qp(qp, &receive,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
                    nullptr, 0));
  ibv_qp_attr send = {};
  send.qp_state = IBV_QPS_RTS;
  send.sq_psn = connection.own_psn;
  mrc_qp_attr retries = {};
  retries.retry = {.linear_cnt = kLinearRetries, .exp_cnt = kForEver};
  retries.timeout = connection.timeout.value_or(0);
  const int mask = (connection.waits_for_ever ? MRC_QP_RETRY_CNT : 0) |
                   (connection.timeout ? MRC_QP_TIMEOUT : 0);
  expect_ok("queue pair to RTS",
            mrc_modify_qp(qp, &send, IBV_QP_STATE | IBV_QP_SQ_PSN, &retries, mask));
}

std::uint32_t random_psn() { return static_cast<std::uint32_t>(std::random_device{}()) & kPsnMask; }

}  // namespace mrc::collective
