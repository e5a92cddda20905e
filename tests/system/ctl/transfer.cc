// Writes between two queue pairs of this process over the paths of an EV profile, while somebody
// else controls the device. Told what to do on stdin, answers on stdout:
//   write N     writes N times, each time other bytes, and compares: "written N"
//   ports       packets sent on each port since the last time: "ports A B C D"
//   state P     what ibv_query_port says of port P: "state P up" or "state P down"
//   quit
// Usage: transfer EV_PROFILE [CC_PROFILE]. Ends with 1 and a line on stderr when a call fails, with
// 3 when data is wrong.
#include <infiniband/verbs.h>
#include <mrc.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "api/handles.h"

namespace {

constexpr std::size_t kBytes = 1 << 20;
constexpr auto kPatience = std::chrono::seconds(120);

[[noreturn]] void fail(const std::string& what, int status = 1) {
  std::cerr << what << std::endl;
  std::_Exit(status);
}

void check(int result, const std::string& what) {
  const int error = result == -1 ? errno : result;
  if (error != 0) fail(what + ": errno " + std::to_string(error));
}

class Transfer {
 public:
  Transfer(std::uint64_t ev_profile, bool has_cc, std::uint64_t cc_profile) {
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    if (count < 1) fail("no device");
    verbs_ = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    if (verbs_ == nullptr) fail("ibv_open_device");
    context_ = mrc_create_context(verbs_, nullptr);
    domain_ = ibv_alloc_pd(verbs_);
    cq_ = mrc_create_cq(context_, 64, nullptr, nullptr, 0);
    if (context_ == nullptr || domain_ == nullptr || cq_ == nullptr) fail("objects");
    memory_.resize(2 * kBytes);
    region_ = ibv_reg_mr(domain_, memory_.data(), memory_.size(),
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (region_ == nullptr) fail("ibv_reg_mr");
    for (mrc_qp*& qp : qps_)
      qp = create();
    for (mrc_qp* qp : qps_)
      to_init(qp, ev_profile, has_cc, cc_profile);
    connect(qps_[0], qps_[1]);
    connect(qps_[1], qps_[0]);
  }
  ~Transfer() {
    for (mrc_qp* qp : qps_)
      check(mrc_destroy_qp(qp), "mrc_destroy_qp");
    check(mrc_destroy_cq(cq_), "mrc_destroy_cq");
    check(ibv_dereg_mr(region_), "ibv_dereg_mr");
    check(ibv_dealloc_pd(domain_), "ibv_dealloc_pd");
    check(mrc_destroy_context(context_), "mrc_destroy_context");
    check(ibv_close_device(verbs_), "ibv_close_device");
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  void write(unsigned times) {
    for (unsigned i = 0; i < times; ++i)
      write_once(++round_);
    std::cout << "written " << times << std::endl;
  }

  void ports() {
    const mrc::nic::DeviceReport report = context_->device->report();
    sent_.resize(report.ports.size());
    std::cout << "ports";
    for (std::size_t i = 0; i < report.ports.size(); ++i) {
      const std::uint64_t now = report.ports[i].counters.packets_sent;
      std::cout << ' ' << now - sent_[i];
      sent_[i] = now;
    }
    std::cout << std::endl;
  }

  void state(unsigned port) {
    ibv_port_attr attr{};
    check(ibv_query_port(verbs_, static_cast<std::uint8_t>(port), &attr), "ibv_query_port");
    std::cout << "state " << port << (attr.state == IBV_PORT_ACTIVE ? " up" : " down") << std::endl;
  }

 private:
  mrc_qp* create() {
    mrc_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq_;
    attr.cap.max_send_wr = 8;
    attr.cap.max_recv_wr = 8;
    attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
    attr.sq_sig_all = 1;
    attr.pd = domain_;
    mrc_qp* qp = mrc_create_qp(context_, &attr);
    if (qp == nullptr) fail("mrc_create_qp");
    return qp;
  }

  static void to_init(mrc_qp* qp, std::uint64_t ev_profile, bool has_cc, std::uint64_t cc_profile) {
    ibv_qp_attr verbs{};
    verbs.qp_state = IBV_QPS_INIT;
    verbs.port_num = 1;
    verbs.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
    mrc_qp_attr own{};
    own.profile.ev_profile_id = ev_profile;
    own.profile.cc_profile_id = cc_profile;
    check(mrc_modify_qp(qp, &verbs,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, &own,
                        MRC_QP_EV_PROFILE_ID | (has_cc ? MRC_QP_CC_PROFILE_ID : 0)),
          "INIT");
  }

  void connect(mrc_qp* qp, mrc_qp* peer) {
    uint32_t number = 0;
    check(mrc_get_qpn(peer, &number), "mrc_get_qpn");
    ibv_qp_attr verbs{};
    verbs.qp_state = IBV_QPS_RTR;
    verbs.path_mtu = IBV_MTU_4096;
    verbs.dest_qp_num = number;
    verbs.ah_attr.is_global = 1;
    verbs.ah_attr.port_num = 1;
    verbs.ah_attr.grh.hop_limit = 64;
    check(ibv_query_gid(verbs_, 1, 0, &verbs.ah_attr.grh.dgid), "ibv_query_gid");
    mrc_qp_attr own{};
    check(
        mrc_modify_qp(qp, &verbs,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
                      &own, 0),
        "RTR");
    verbs.qp_state = IBV_QPS_RTS;
    check(mrc_modify_qp(qp, &verbs, IBV_QP_STATE | IBV_QP_SQ_PSN, &own, 0), "RTS");
  }

  void write_once(std::uint32_t round) {
    for (std::size_t i = 0; i < kBytes; ++i)
      memory_[i] = static_cast<std::uint8_t>(i * 7 + i / 4'093 + round * 31);
    ibv_sge piece{.addr = reinterpret_cast<std::uintptr_t>(memory_.data()),
                  .length = kBytes,
                  .lkey = region_->lkey};
    ibv_send_wr work{};
    work.sg_list = &piece;
    work.num_sge = 1;
    work.opcode = IBV_WR_RDMA_WRITE;
    work.send_flags = IBV_SEND_SIGNALED;
    work.wr.rdma.remote_addr = piece.addr + kBytes;
    work.wr.rdma.rkey = region_->rkey;
    ibv_send_wr* bad = nullptr;
    check(mrc_post_send(qps_[0], &work, &bad), "mrc_post_send");
    const auto limit = std::chrono::steady_clock::now() + kPatience;
    ibv_wc done{};
    while (mrc_poll_cq(cq_, 1, &done) == 0) {
      if (std::chrono::steady_clock::now() > limit) fail("no completion");
    }
    if (done.status != IBV_WC_SUCCESS) fail("status " + std::to_string(done.status));
    for (std::size_t i = 0; i < kBytes; ++i) {
      if (memory_[i] != memory_[kBytes + i]) fail("byte " + std::to_string(i) + " is wrong", 3);
    }
  }

  ibv_context* verbs_ = nullptr;
  mrc_context* context_ = nullptr;
  ibv_pd* domain_ = nullptr;
  mrc_cq* cq_ = nullptr;
  ibv_mr* region_ = nullptr;
  mrc_qp* qps_[2] = {};
  std::vector<std::uint8_t> memory_;
  std::vector<std::uint64_t> sent_;
  std::uint32_t round_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) fail("usage: transfer EV_PROFILE [CC_PROFILE]", 2);
  Transfer transfer(std::strtoull(argv[1], nullptr, 0), argc > 2,
                    argc > 2 ? std::strtoull(argv[2], nullptr, 0) : 0);
  std::cout << "ready" << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string verb;
    unsigned number = 0;
    words >> verb >> number;
    if (verb == "write") {
      transfer.write(number);
    } else if (verb == "ports") {
      transfer.ports();
    } else if (verb == "state") {
      transfer.state(number);
    } else {
      break;
    }
  }
  return 0;
}
