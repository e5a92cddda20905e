#include "perf/endpoint.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>

#include "perf/failure.h"
#include "text.h"

namespace mrc::tool::perf {
namespace {

constexpr std::uint8_t kPort = 1;
constexpr std::uint32_t kPsnMask = 0xff'ffff;
constexpr std::uint8_t kHopLimit = 64;

[[noreturn]] void refuse(const std::string& what, int error) {
  throw Failure(fmt::format("{}: {}", what, std::strerror(error)));
}

void expect_ok(const std::string& what, int error) {
  if (error != 0) refuse(what, error);
}

std::uint64_t resident_bytes() {
  unsigned long pages = 0;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/statm", "re"),
                                                             &std::fclose);
  if (!file || std::fscanf(file.get(), "%*u %lu", &pages) != 1) return 0;
  return std::uint64_t{pages} * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::uint32_t bytes_of(ibv_mtu mtu) { return 128U << static_cast<unsigned>(mtu); }

// The largest step of verbs that is not above `bytes`.
ibv_mtu mtu_of(std::uint32_t bytes) {
  for (unsigned step = IBV_MTU_4096; step > IBV_MTU_256; --step) {
    if (bytes_of(static_cast<ibv_mtu>(step)) <= bytes) return static_cast<ibv_mtu>(step);
  }
  return IBV_MTU_256;
}

}  // namespace

Endpoint::Endpoint(const EndpointOptions& options) : gid_index_(options.gid_index) {
  open_device(options.device);
  find_port(options);
  create_qps(options);
}

Endpoint::~Endpoint() = default;

void Endpoint::open_device(const std::string& name) {
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
    if (!verbs_) refuse("cannot open device " + found + " (see mrc doctor)", errno);
    device_name_ = found;
    break;
  }
  if (!verbs_ && count == 0) throw Failure("there is no device; mrc doctor may know why");
  if (!verbs_) throw Failure(fmt::format("there is no device {}; there are: {}", name, names));
  int supported = 0;
  mrc_device_attr attributes = {};
  expect_ok("mrc_query_device", mrc_query_device(verbs_.get(), &attributes, &supported));
  if (supported == 0) throw Failure(fmt::format("device {} has no MRC", device_name_));
  context_.reset(mrc_create_context(verbs_.get(), nullptr));
  if (!context_) refuse("mrc_create_context", errno);
  pd_.reset(ibv_alloc_pd(verbs_.get()));
  if (!pd_) refuse("ibv_alloc_pd", errno);
}

void Endpoint::find_port(const EndpointOptions& options) {
  ibv_port_attr port = {};
  expect_ok("ibv_query_port", ibv_query_port(verbs_.get(), kPort, &port));
  const std::uint32_t largest = bytes_of(port.active_mtu);
  mtu_ = options.mtu == 0 ? largest : options.mtu;
  if (mtu_ > largest || bytes_of(mtu_of(mtu_)) != mtu_)
    throw Failure(
        fmt::format("--mtu {}: 256, 512, 1024, 2048, 4096 up to the port's {} are possible",
                    options.mtu, largest),
        ExitCode::kUsage);
  ibv_gid gid = {};
  if (ibv_query_gid(verbs_.get(), kPort, gid_index_, &gid) != 0)
    throw Failure(
        fmt::format("device {} has no GID with index {} (see mrc info)", device_name_, gid_index_));
  std::copy(std::begin(gid.raw), std::end(gid.raw), gid_.begin());
}

void Endpoint::create_qps(const EndpointOptions& options) {
  const auto depth = [&](unsigned each) {
    return static_cast<int>(std::uint64_t{each} * options.qps);
  };
  send_cq_.reset(mrc_create_cq(context_.get(), depth(options.send_depth), nullptr, nullptr, 0));
  if (!send_cq_) refuse("mrc_create_cq", errno);
  receive_cq_.reset(
      mrc_create_cq(context_.get(), depth(options.receive_depth), nullptr, nullptr, 0));
  if (!receive_cq_) refuse("mrc_create_cq", errno);
  psn_ = static_cast<std::uint32_t>(std::random_device{}()) & kPsnMask;
  const std::uint64_t before = resident_bytes();
  for (unsigned i = 0; i < options.qps; ++i) {
    mrc_qp_init_attr setup = {};
    setup.send_cq = send_cq_.get();
    setup.recv_cq = receive_cq_.get();
    setup.cap.max_send_wr = options.send_depth;
    setup.cap.max_recv_wr = options.receive_depth;
    setup.cap.max_send_sge = 1;
    setup.cap.max_recv_sge = 1;
    setup.pd = pd_.get();
    Owned<mrc_qp> qp(mrc_create_qp(context_.get(), &setup));
    if (!qp) refuse(fmt::format("cannot create queue pair {} of {}", i + 1, options.qps), errno);
    std::uint32_t number = 0;
    expect_ok("mrc_get_qpn", mrc_get_qpn(qp.get(), &number));
    to_init(qp.get(), options);
    numbers_.push_back(number);
    qps_.push_back(std::move(qp));
  }
  const std::uint64_t after = resident_bytes();
  qp_memory_bytes_ = after > before ? after - before : 0;
}

void Endpoint::to_init(mrc_qp* qp, const EndpointOptions& options) const {
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = kPort;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  mrc_qp_attr mrc_attributes = {};
  int mask = 0;
  if (options.ev_profile) {
    mrc_attributes.profile.ev_profile_id = *options.ev_profile;
    mask |= MRC_QP_EV_PROFILE_ID;
  }
  if (options.cc_profile) {
    mrc_attributes.profile.cc_profile_id = *options.cc_profile;
    mask |= MRC_QP_CC_PROFILE_ID;
  }
  expect_ok(mask == 0 ? "queue pair to INIT" : "queue pair to INIT (is the profile online?)",
            mrc_modify_qp(qp, &attributes,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                          &mrc_attributes, mask));
}

void Endpoint::register_memory(std::span<std::byte> target, std::span<std::byte> source) {
  constexpr int kReadable = IBV_ACCESS_LOCAL_WRITE;
  constexpr int kWritable = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  target_.reset();
  source_.reset();
  target_.reset(ibv_reg_mr(pd_.get(), target.data(), target.size(), kWritable));
  if (!target_) refuse(fmt::format("cannot register {} bytes", target.size()), errno);
  source_.reset(ibv_reg_mr(pd_.get(), source.data(), source.size(), kReadable));
  if (!source_) refuse(fmt::format("cannot register {} bytes", source.size()), errno);
}

Address Endpoint::address() const {
  Address own;
  own.gid = gid_;
  own.qps = numbers_;
  own.psn = psn_;
  own.mtu = mtu_;
  own.memory = reinterpret_cast<std::uintptr_t>(target_->addr);
  own.memory_bytes = target_->length;
  own.rkey = target_->rkey;
  return own;
}

void Endpoint::connect(const Address& peer) {
  peer_ = peer;
  mtu_ = std::min(mtu_, peer.mtu);
  for (unsigned i = 0; i < qps_.size(); ++i)
    to_ready(i, peer);
}

void Endpoint::to_ready(unsigned index, const Address& peer) const {
  ibv_qp_attr receive = {};
  receive.qp_state = IBV_QPS_RTR;
  receive.path_mtu = mtu_of(mtu_);
  receive.dest_qp_num = peer.qps.at(index);
  receive.rq_psn = peer.psn;
  receive.ah_attr.is_global = 1;
  receive.ah_attr.port_num = kPort;
  receive.ah_attr.grh.hop_limit = kHopLimit;
  receive.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gid_index_);
  std::copy(peer.gid.begin(), peer.gid.end(), std::begin(receive.ah_attr.grh.dgid.raw));
  expect_ok(
      fmt::format("queue pair to RTR towards {}", gid_text(peer.gid)),
      mrc_modify_qp(qps_[index].get(), &receive,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
                    nullptr, 0));
  ibv_qp_attr send = {};
  send.qp_state = IBV_QPS_RTS;
  send.sq_psn = psn_;
  expect_ok("queue pair to RTS",
            mrc_modify_qp(qps_[index].get(), &send, IBV_QP_STATE | IBV_QP_SQ_PSN, nullptr, 0));
}

void Endpoint::post(unsigned qp, std::span<const Write> writes) {
  requests_.assign(writes.size(), ibv_send_wr{});
  pieces_.assign(writes.size(), ibv_sge{});
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const Write& write = writes[i];
    pieces_[i].addr = reinterpret_cast<std::uintptr_t>(write.bytes.data());
    pieces_[i].length = static_cast<std::uint32_t>(write.bytes.size());
    pieces_[i].lkey = source_->lkey;
    ibv_send_wr& request = requests_[i];
    request.wr_id = std::uint64_t{qp} << kQpShift | write.message;
    request.next = i + 1 < writes.size() ? &requests_[i + 1] : nullptr;
    request.sg_list = &pieces_[i];
    request.num_sge = 1;
    request.opcode = write.immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    request.imm_data = htonl(write.immediate.value_or(0));
    request.send_flags = write.signaled ? IBV_SEND_SIGNALED : 0;
    request.wr.rdma.remote_addr = write.remote_address;
    request.wr.rdma.rkey = peer_.rkey;
  }
  ibv_send_wr* bad = nullptr;
  expect_ok("mrc_post_send", mrc_post_send(qps_[qp].get(), requests_.data(), &bad));
}

void Endpoint::post_receives(unsigned qp, unsigned count) {
  std::vector<ibv_recv_wr> requests(count);
  for (unsigned i = 0; i < count; ++i) {
    requests[i].wr_id = std::uint64_t{qp} << kQpShift;
    requests[i].next = i + 1 < count ? &requests[i + 1] : nullptr;
  }
  ibv_recv_wr* bad = nullptr;
  if (count > 0) expect_ok("mrc_post_recv", mrc_post_recv(qps_[qp].get(), requests.data(), &bad));
}

std::span<const ibv_wc> Endpoint::poll(mrc_cq* cq) {
  const int count = mrc_poll_cq(cq, static_cast<int>(completions_.size()), completions_.data());
  if (count < 0) throw Failure("a completion queue ran over");
  const std::span<const ibv_wc> found(completions_.data(), static_cast<std::size_t>(count));
  for (const ibv_wc& wc : found) {
    if (wc.status != IBV_WC_SUCCESS) fail(wc);
  }
  return found;
}

void Endpoint::fail(const ibv_wc& wc) const {
  const unsigned index = qp_of(wc);
  const std::string what =
      fmt::format("queue pair {} ({:#x} to {:#x} of {}): {}", index, wc.qp_num, peer_.qps.at(index),
                  gid_text(peer_.gid), ibv_wc_status_str(wc.status));
  throw Failure(what, wc.status == IBV_WC_RETRY_EXC_ERR ? ExitCode::kTimeout : ExitCode::kFailed);
}

}  // namespace mrc::tool::perf
