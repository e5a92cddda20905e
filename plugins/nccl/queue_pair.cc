#include "queue_pair.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "log.h"
#include "openmrc_dialect.h"
#include "openmrc_security.h"
#include "random.h"

namespace mrc::nccl {
namespace {

constexpr std::uint32_t kPsnMask = 0xff'ffff;
// A link that comes back after hours is used again: linear steps, then doubling ones for ever. Dead
// peers are noticed by their TCP connection.
constexpr std::uint8_t kLinearRetries = 7;
constexpr std::uint8_t kRetryForEver = 25;
constexpr std::uint8_t kHopLimit = 64;

// Immediates under way never exceed the receives that both ends keep posted.
std::uint16_t immediates(const DeviceInfo& info, unsigned wanted) {
  return static_cast<std::uint16_t>(std::min<unsigned>(info.max_immediates, wanted));
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown host";
  return name.data();
}

}  // namespace

QueuePair::QueuePair(std::shared_ptr<Adapter> adapter, const QueuePairOptions& options)
    : adapter_(std::move(adapter)),
      max_sends_(options.max_sends),
      max_receives_(options.max_receives),
      ring_bytes_(options.ring_bytes),
      memory_bytes_(options.ring_bytes + options.staging_bytes),
      traffic_class_(options.traffic_class),
      hint_attr_(options.hint) {}

std::unique_ptr<QueuePair> QueuePair::create(std::shared_ptr<Adapter> adapter,
                                             const QueuePairOptions& options) {
  std::unique_ptr<QueuePair> made(new QueuePair(std::move(adapter), options));
  const int error = made->build();
  if (error == 0) return made;
  log_warning("%s: no queue pair to be had: %s", made->adapter_->info().name.c_str(),
              std::strerror(error));
  return nullptr;
}

int QueuePair::build() {
  memory_ = std::make_unique<std::byte[]>(memory_bytes_);
  domain_ = ibv_alloc_pd(adapter_->verbs());
  if (domain_ == nullptr) return errno;
  constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  own_memory_ = ibv_reg_mr(domain_, memory_.get(), memory_bytes_, kAccess);
  if (own_memory_ == nullptr) return errno;
  completions_ = mrc_create_cq(adapter_->mrc(), static_cast<int>(max_sends_ + max_receives_),
                               nullptr, nullptr, 0);
  if (completions_ == nullptr) return errno;
  mrc_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = completions_;
  attr.cap.max_send_wr = max_sends_;
  attr.cap.max_recv_wr = max_receives_;
  attr.cap.max_send_sge = 1;
  attr.cap.max_recv_sge = 1;
  attr.sq_sig_all = 1;
  attr.pd = domain_;
  attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
  pair_ = mrc_create_qp(adapter_->mrc(), &attr);
  if (pair_ == nullptr) return errno;
  first_psn_ = static_cast<std::uint32_t>(random_number()) & kPsnMask;
  if (mrc_get_qpn(pair_, &number_) != 0) return errno;
  mrc_qp_attr mrc{};
  const int error = mrc_query_qp(pair_, nullptr, 0, &mrc, MRC_QP_MPR_DEST, nullptr);
  if (error != 0) return error;
  window_ = mrc.mpr.mpr_dest;
  return to_init();
}

QueuePair::~QueuePair() {
  if (pair_ != nullptr) mrc_destroy_qp(pair_);
  if (hint_ != nullptr) mrc_destroy_qp_hint(hint_);
  if (completions_ != nullptr) mrc_destroy_cq(completions_);
  if (own_memory_ != nullptr) ibv_dereg_mr(own_memory_);
  if (domain_ != nullptr) ibv_dealloc_pd(domain_);
}

Message QueuePair::introduction() const {
  const DeviceInfo& info = adapter_->info();
  Message message;
  message.path_mtu = info.path_mtu;
  message.plane_count = static_cast<std::uint8_t>(info.planes);
  message.gid = info.gid.bytes;
  message.qp_number = number_;
  message.first_psn = first_psn_;
  message.ring_address = reinterpret_cast<std::uintptr_t>(memory_.get());
  message.ring_key = own_memory_->rkey;
  message.window = window_;
  message.immediates = immediates(info, max_receives_);
  message.capabilities = info.capabilities;
  static_cast<void>(openmrc_query_dialect(adapter_->mrc(), &message.dialect));
  static_cast<void>(openmrc_query_security(adapter_->mrc(), &message.security));
  message.name = info.name + " of " + host_name();
  return message;
}

int QueuePair::to_init() {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  constexpr int kMask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  mrc_qp_attr mrc{};
  const bool known = hint_attr_.num_qps_per_peer > 0 || hint_attr_.num_send_peers > 0 ||
                     hint_attr_.num_remote_recv_peers > 0;
  if (known) {
    mrc_qp_hint_init_attr init{.attr = hint_attr_};
    hint_ = mrc_create_qp_hint(adapter_->mrc(), &init);
    mrc.qp_hint = hint_;
  }
  return mrc_modify_qp(pair_, &attr, kMask, &mrc, hint_ != nullptr ? MRC_QP_HINT : 0);
}

int QueuePair::to_ready_to_receive(const Message& peer, const Agreement& agreed) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = static_cast<ibv_mtu>(std::min(peer.path_mtu, adapter_->info().path_mtu));
  attr.dest_qp_num = peer.qp_number;
  attr.rq_psn = peer.first_psn;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.hop_limit = kHopLimit;
  if (traffic_class_ >= 0 && traffic_class_ <= UINT8_MAX)
    attr.ah_attr.grh.traffic_class = static_cast<std::uint8_t>(traffic_class_);
  std::copy(peer.gid.begin(), peer.gid.end(), std::begin(attr.ah_attr.grh.dgid.raw));
  constexpr int kMask =
      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  mrc_qp_attr mrc{};
  mrc.wimm.max_wimm_dest = immediates(adapter_->info(), max_receives_);
  mrc.mpr.mpr_dest = window_;
  mrc.cap = agreed.capabilities;
  constexpr int kMrcMask = MRC_QP_MAX_WIMM_DEST | MRC_QP_CAP;
  return mrc_modify_qp(pair_, &attr, kMask, &mrc,
                       window_ != 0 ? kMrcMask | MRC_QP_MPR_DEST : kMrcMask);
}

int QueuePair::to_ready_to_send(const Agreement& agreed) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = first_psn_;
  mrc_qp_attr mrc{};
  mrc.wimm.max_wimm = agreed.immediates;
  mrc.mpr.mpr = agreed.window;
  mrc.retry.linear_cnt = kLinearRetries;
  mrc.retry.exp_cnt = kRetryForEver;
  constexpr int kMrcMask = MRC_QP_MAX_WIMM | MRC_QP_RETRY_CNT;
  return mrc_modify_qp(pair_, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN, &mrc,
                       agreed.window != 0 ? kMrcMask | MRC_QP_MPR : kMrcMask);
}

int QueuePair::compare(const Message& peer) const {
  std::array<char, 400> why{};
  int error = openmrc_compare_dialect(adapter_->mrc(), peer.dialect, why.data(), why.size());
  if (error == 0)
    error = openmrc_compare_security(adapter_->mrc(), peer.security, why.data(), why.size());
  if (error != 0)
    log_warning("%s: %s: %s", adapter_->info().name.c_str(), peer.name.c_str(), why.data());
  return error;
}

int QueuePair::connect(const Message& peer) {
  const int stranger = compare(peer);
  if (stranger != 0) return stranger;
  remote_ring_ = peer.ring_address;
  remote_ring_key_ = peer.ring_key;
  for (unsigned i = 0; i < max_receives_; ++i) {
    const int error = post_receive();
    if (error != 0) return error;
  }
  const DeviceInfo& info = adapter_->info();
  const Agreement agreed =
      agree(introduction(), peer, {.window = info.max_window, .immediates = info.max_immediates});
  log_info("%s: queue pair 0x%06x may have %u packets and %u immediates under way, flags 0x%x",
           info.name.c_str(), number_, 128 * unsigned{agreed.window}, unsigned{agreed.immediates},
           agreed.capabilities);
  const int error = to_ready_to_receive(peer, agreed);
  return error != 0 ? error : to_ready_to_send(agreed);
}

int QueuePair::post_receive() {
  ibv_recv_wr request{};
  ibv_recv_wr* bad = nullptr;
  return mrc_post_recv(pair_, &request, &bad) != 0 ? errno : 0;
}

int QueuePair::post_write(const Write& write) { return post(write, IBV_WR_RDMA_WRITE, 0); }

int QueuePair::post_write_with_immediate(const Write& write, std::uint32_t immediate) {
  return post(write, IBV_WR_RDMA_WRITE_WITH_IMM, immediate);
}

int QueuePair::post(const Write& write, ibv_wr_opcode opcode, std::uint32_t immediate) {
  ibv_sge part{.addr = reinterpret_cast<std::uintptr_t>(write.data),
               .length = write.size,
               .lkey = write.local_key};
  ibv_send_wr request{};
  request.wr_id = write.id;
  request.sg_list = &part;
  request.num_sge = write.size > 0 ? 1 : 0;
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  request.imm_data = htonl(immediate);
  request.wr.rdma.remote_addr = write.remote_address;
  request.wr.rdma.rkey = write.remote_key;
  ibv_send_wr* bad = nullptr;
  const int error = mrc_post_send(pair_, &request, &bad);
  if (error == 0) ++sends_under_way_;
  return error;
}

int QueuePair::poll(std::span<ibv_wc> out) {
  const int got = mrc_poll_cq(completions_, static_cast<int>(out.size()), out.data());
  for (int i = 0; i < got; ++i) {
    const ibv_wc& done = out[static_cast<std::size_t>(i)];
    // The opcode of a failed one means nothing; the connection is over then.
    if (done.status == IBV_WC_SUCCESS && (done.opcode & IBV_WC_RECV) == 0) --sends_under_way_;
  }
  return got;
}

}  // namespace mrc::nccl
