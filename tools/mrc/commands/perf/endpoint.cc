#include "commands/perf/endpoint.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "collective/dialect_check.h"
#include "failure.h"
#include "os/errors.h"

namespace mrc::tool::perf {
namespace {

std::uint64_t resident_bytes() {
  unsigned long pages = 0;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/statm", "re"),
                                                             &std::fclose);
  if (!file || std::fscanf(file.get(), "%*u %lu", &pages) != 1) return 0;
  return std::uint64_t{pages} * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

Endpoint::Endpoint(const EndpointOptions& options) : device_(options.device), mtu_(device_.mtu()) {
  create_qps(options);
}

Endpoint::~Endpoint() = default;

void Endpoint::create_qps(const EndpointOptions& options) {
  const auto depth = [&](unsigned each) {
    return static_cast<int>(std::uint64_t{each} * options.qps);
  };
  send_cq_.reset(mrc_create_cq(device_.context(), depth(options.send_depth), nullptr, nullptr, 0));
  if (!send_cq_) collective::refuse("mrc_create_cq", errno);
  receive_cq_.reset(
      mrc_create_cq(device_.context(), depth(options.receive_depth), nullptr, nullptr, 0));
  if (!receive_cq_) collective::refuse("mrc_create_cq", errno);
  psn_ = collective::random_psn();
  const std::uint64_t before = resident_bytes();
  for (unsigned i = 0; i < options.qps; ++i) {
    mrc_qp_init_attr setup = {};
    setup.send_cq = send_cq_.get();
    setup.recv_cq = receive_cq_.get();
    setup.cap.max_send_wr = options.send_depth;
    setup.cap.max_recv_wr = options.receive_depth;
    setup.cap.max_send_sge = 1;
    setup.cap.max_recv_sge = 1;
    setup.pd = device_.pd();
    collective::Owned<mrc_qp> qp(mrc_create_qp(device_.context(), &setup));
    if (!qp)
      collective::refuse(fmt::format("cannot create queue pair {} of {}", i + 1, options.qps),
                         errno);
    std::uint32_t number = 0;
    collective::expect_ok("mrc_get_qpn", os::errno_of(mrc_get_qpn(qp.get(), &number)));
    collective::to_init(qp.get(), options.profiles);
    numbers_.push_back(number);
    qps_.push_back(std::move(qp));
  }
  const std::uint64_t after = resident_bytes();
  qp_memory_bytes_ = after > before ? after - before : 0;
}

void Endpoint::register_memory(std::span<std::byte> target, std::span<std::byte> source) {
  target_.reset();
  source_.reset();
  target_ = device_.register_memory(target.data(), target.size(),
                                    collective::Device::Access::kPeersWrite);
  source_ =
      device_.register_memory(source.data(), source.size(), collective::Device::Access::kLocal);
}

Address Endpoint::address() const {
  Address own;
  own.gid = device_.gid();
  own.qps = numbers_;
  own.psn = psn_;
  own.mtu = mtu_;
  own.memory = reinterpret_cast<std::uintptr_t>(target_->addr);
  own.memory_bytes = target_->length;
  own.rkey = target_->rkey;
  own.dialect = device_.dialect();
  own.security = device_.security();
  own.device = own_facts(device_name());
  return own;
}

void Endpoint::check_peer(const Address& theirs, const std::string& name) const {
  collective::check_dialect(device_.dialect(), theirs.dialect, name);
  device_.check_security(theirs.security, name);
}

std::string Endpoint::suspicion(const std::string& name) const {
  const std::optional<node::DeviceConfig> own = own_config(device_name());
  if (!own || !peer_.device) return {};
  const std::vector<Disagreement> all = compare(*own, *peer_.device, name);
  return all.empty() ? std::string() : all.front().found + ": " + all.front().fix;
}

void Endpoint::connect(const Address& peer) {
  peer_ = peer;
  mtu_ = std::min(mtu_, peer.mtu);
  for (unsigned i = 0; i < qps_.size(); ++i)
    collective::to_ready(qps_[i].get(), device_,
                         {.gid = peer.gid,
                          .peer_qp = peer.qps.at(i),
                          .peer_psn = peer.psn,
                          .own_psn = psn_,
                          .mtu = mtu_});
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
  collective::expect_ok("mrc_post_send", mrc_post_send(qps_[qp].get(), requests_.data(), &bad));
}

openmrc_qp_counters Endpoint::counters(unsigned qp) const {
  openmrc_qp_counters counters{};
  counters.size = sizeof counters;
  collective::expect_ok("reading the counters of a queue pair",
                        openmrc_query_qp_counters(qps_[qp].get(), &counters));
  return counters;
}

void Endpoint::post_receives(unsigned qp, unsigned count) {
  std::vector<ibv_recv_wr> requests(count);
  for (unsigned i = 0; i < count; ++i) {
    requests[i].wr_id = std::uint64_t{qp} << kQpShift;
    requests[i].next = i + 1 < count ? &requests[i + 1] : nullptr;
  }
  ibv_recv_wr* bad = nullptr;
  if (count > 0)
    collective::expect_ok("mrc_post_recv",
                          os::errno_of(mrc_post_recv(qps_[qp].get(), requests.data(), &bad)));
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
                  collective::gid_text(peer_.gid), ibv_wc_status_str(wc.status));
  throw Failure(what,
                wc.status == IBV_WC_RETRY_EXC_ERR ? FailureKind::kTimeout : FailureKind::kFailed);
}

}  // namespace mrc::tool::perf
