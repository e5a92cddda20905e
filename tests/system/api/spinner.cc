// Calls the API at random from several threads, with memory failing now and then.
//
// Each thread has handles of its own and shares a context, a protection domain and the numbers of
// the queue pairs, so that queue pairs of different threads become peers. Every return value must
// be one the call may give; in the end everything can be taken down, no thread and no descriptor is
// left. Run under AddressSanitizer and ThreadSanitizer this finds leaks and races.
//
// Usage: spinner [seed] [steps per thread] [threads]
#include <dirent.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <mrc.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "failing_new.h"

namespace mrc::api_test {
namespace {

constexpr std::size_t kMaxHandles = 6;
constexpr std::size_t kMemoryBytes = 256 * 1024;
constexpr std::size_t kNumbers = 64;

[[noreturn]] void fail(const char* what, int value) {
  std::fprintf(stderr, "spinner: %s: %d (%s)\n", what, value, std::strerror(value));
  std::abort();
}

// A call may succeed or give one of these, as its value or by -1 and errno.
void expect(const char* what, int result, std::initializer_list<int> allowed) {
  const int error = result == -1 ? errno : result;
  if (error == 0) return;
  for (const int one : allowed) {
    if (error == one) return;
  }
  fail(what, error);
}

struct Shared {
  ibv_context* verbs = nullptr;
  ibv_pd* pd = nullptr;
  mrc_context* context = nullptr;
  ibv_gid gid{};
  std::array<std::atomic<std::uint32_t>, kNumbers> numbers{};
  // To see that something was tried at all.
  std::atomic<unsigned> writes_done{0};
  std::atomic<unsigned> writes_failed{0};
  std::atomic<unsigned> allocations_failed{0};
};

struct Pair {
  mrc_qp* qp = nullptr;
  mrc_cq* send_cq = nullptr;
  mrc_cq* receive_cq = nullptr;
  mrc_qp_hint* hint = nullptr;
};

struct Region {
  std::vector<std::uint8_t> memory;
  ibv_mr* mr = nullptr;
};

class Spinner {
 public:
  Spinner(Shared& shared, std::uint64_t seed) : shared_(shared), random_(seed) {}

  void run(unsigned steps) {
    for (unsigned i = 0; i < steps; ++i)
      step();
    take_down();
  }

 private:
  using Action = void (Spinner::*)();

  std::size_t below(std::size_t limit) { return random_() % limit; }
  bool chance(unsigned percent) { return below(100) < percent; }
  // One call in eight runs out of memory somewhere.
  unsigned when_to_fail() { return below(8) == 0 ? static_cast<unsigned>(1 + below(12)) : 0; }
  // Calls `call`, perhaps with too little memory.
  template <typename Call>
  auto starved(const Call& call) {
    const FailingNew failing(when_to_fail());
    const auto result = call();
    if (failing.fired()) ++shared_.allocations_failed;
    return result;
  }

  template <typename Handle>
  Handle* any(const std::vector<Handle*>& handles) {
    return handles.empty() ? nullptr : handles[below(handles.size())];
  }

  void step() {
    static constexpr std::array<Action, 17> kActions{&Spinner::create_channel,
                                                     &Spinner::create_cq,
                                                     &Spinner::create_cq,
                                                     &Spinner::create_qp,
                                                     &Spinner::create_qp,
                                                     &Spinner::create_hint,
                                                     &Spinner::register_memory,
                                                     &Spinner::modify,
                                                     &Spinner::modify,
                                                     &Spinner::modify,
                                                     &Spinner::post,
                                                     &Spinner::post,
                                                     &Spinner::poll,
                                                     &Spinner::poll,
                                                     &Spinner::take_event,
                                                     &Spinner::ask,
                                                     &Spinner::destroy_something};
    (this->*kActions.at(below(kActions.size())))();
  }

  void create_channel();
  void create_cq();
  void create_qp();
  void create_hint();
  void register_memory();
  void modify();
  void post();
  void post_receive(mrc_qp* qp);
  void poll();
  void take_event();
  void ask();
  void destroy_something();
  void destroy_pair(std::size_t index);
  bool is_used(const mrc_cq* cq) const;
  bool is_used(const mrc_qp_hint* hint) const;
  void take_down();
  ibv_qp_attr peer_attr(const Pair& pair);

  Shared& shared_;
  std::mt19937_64 random_;
  std::vector<mrc_comp_channel*> channels_;
  std::vector<mrc_cq*> cqs_;
  std::vector<mrc_qp_hint*> hints_;
  std::vector<Pair> pairs_;
  std::vector<Region> regions_;
};

void Spinner::create_channel() {
  if (channels_.size() >= kMaxHandles) return;
  channels_.reserve(kMaxHandles);
  mrc_comp_channel* made = nullptr;
  mrc_context* context = chance(90) ? shared_.context : nullptr;
  const int error = starved([&] { return mrc_create_comp_channel(context, &made); });
  expect("create_comp_channel", error, {EINVAL, ENOMEM});
  if (error != 0) return;
  channels_.push_back(made);
  // So that nobody waits for an event that never comes.
  int fd = -1;
  expect("get_comp_channel_fd", mrc_get_comp_channel_fd(made, &fd), {});
  if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) fail("fcntl", errno);
}

void Spinner::create_cq() {
  if (cqs_.size() >= kMaxHandles) return;
  cqs_.reserve(kMaxHandles);
  const int depth = chance(90) ? static_cast<int>(1 + below(300)) : static_cast<int>(random_());
  mrc_comp_channel* channel = chance(60) ? any(channels_) : nullptr;
  const int vector = static_cast<int>(below(70));
  mrc_cq* made =
      starved([&] { return mrc_create_cq(shared_.context, depth, this, channel, vector); });
  if (made == nullptr) return expect("create_cq", errno, {EINVAL, ENOMEM});
  cqs_.push_back(made);
}

void Spinner::create_qp() {
  if (pairs_.size() >= kMaxHandles) return;
  pairs_.reserve(kMaxHandles);
  mrc_qp_init_attr attr{};
  attr.send_cq = any(cqs_);
  attr.recv_cq = any(cqs_);
  attr.pd = chance(95) ? shared_.pd : nullptr;
  attr.cap = {.max_send_wr = static_cast<std::uint32_t>(1 + below(64)),
              .max_recv_wr = static_cast<std::uint32_t>(1 + below(64)),
              .max_send_sge = static_cast<std::uint32_t>(1 + below(4)),
              .max_recv_sge = 1,
              .max_inline_data = static_cast<std::uint32_t>(below(300))};
  attr.sq_sig_all = chance(30) ? 1 : 0;
  attr.send_ops_flags = chance(95) ? 0 : random_();
  mrc_qp* made = starved([&] { return mrc_create_qp(shared_.context, &attr); });
  if (made == nullptr) return expect("create_qp", errno, {EINVAL, ENOMEM, EOPNOTSUPP});
  pairs_.push_back({made, attr.send_cq, attr.recv_cq, nullptr});
  std::uint32_t number = 0;
  expect("get_qpn", mrc_get_qpn(made, &number), {});
  shared_.numbers.at(below(kNumbers)) = number;
}

void Spinner::create_hint() {
  if (hints_.size() >= kMaxHandles) return;
  hints_.reserve(kMaxHandles);
  mrc_qp_hint_init_attr attr{};
  attr.attr.num_send_peers = static_cast<int>(below(20)) - 1;
  mrc_qp_hint* made = starved([&] { return mrc_create_qp_hint(shared_.context, &attr); });
  if (made == nullptr) return expect("create_qp_hint", errno, {EINVAL, ENOMEM});
  hints_.push_back(made);
}

void Spinner::register_memory() {
  if (regions_.size() >= kMaxHandles) return;
  regions_.reserve(kMaxHandles);
  Region region{std::vector<std::uint8_t>(kMemoryBytes), nullptr};
  region.mr = starved([&] {
    return ibv_reg_mr(shared_.pd, region.memory.data(), region.memory.size(),
                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  });
  if (region.mr == nullptr) return expect("reg_mr", errno, {ENOMEM});
  regions_.push_back(std::move(region));
}

// Every other queue pair is its own peer, so that something succeeds as well.
ibv_qp_attr Spinner::peer_attr(const Pair& pair) {
  ibv_qp_attr attr{};
  attr.dest_qp_num = shared_.numbers.at(below(kNumbers));
  if (chance(50)) expect("get_qpn", mrc_get_qpn(pair.qp, &attr.dest_qp_num), {});
  attr.path_mtu = static_cast<ibv_mtu>(1 + below(5));
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.dgid = shared_.gid;
  attr.timeout = static_cast<std::uint8_t>(1 + below(4));
  attr.retry_cnt = static_cast<std::uint8_t>(below(3));
  return attr;
}

void Spinner::modify() {
  if (pairs_.empty()) return;
  Pair& pair = pairs_[below(pairs_.size())];
  ibv_qp_attr now{};
  expect("query_qp", mrc_query_qp(pair.qp, &now, IBV_QP_STATE, nullptr, 0, nullptr), {});
  ibv_qp_attr attr = peer_attr(pair);
  attr.qp_state = now.qp_state < IBV_QPS_RTS && chance(85)
                      ? static_cast<ibv_qp_state>(now.qp_state + 1)
                      : static_cast<ibv_qp_state>(below(8));
  int mask = IBV_QP_STATE;
  if (attr.qp_state == IBV_QPS_RTR)
    mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (attr.qp_state == IBV_QPS_RTS) mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT;
  if (chance(5)) mask = static_cast<int>(random_());
  mrc_qp_attr mrc{};
  mrc.qp_hint = any(hints_);
  const int mrc_mask = attr.qp_state == IBV_QPS_INIT && chance(50) ? MRC_QP_HINT : 0;
  const int error = starved([&] { return mrc_modify_qp(pair.qp, &attr, mask, &mrc, mrc_mask); });
  expect("modify_qp", error, {EINVAL, ENOMEM});
  if (error != 0) return;
  if (attr.qp_state == IBV_QPS_RESET) pair.hint = nullptr;
  if (mrc_mask != 0) pair.hint = mrc.qp_hint;
}

void Spinner::post_receive(mrc_qp* qp) {
  ibv_recv_wr receive{};
  ibv_recv_wr* bad = nullptr;
  const int error = starved([&] { return mrc_post_recv(qp, &receive, &bad); });
  expect("post_recv", error, {EINVAL, ENOMEM});
}

void Spinner::post() {
  if (pairs_.empty() || regions_.empty()) return;
  mrc_qp* qp = pairs_[below(pairs_.size())].qp;
  if (chance(40)) return post_receive(qp);
  Region& region = regions_[below(regions_.size())];
  const auto length = static_cast<std::uint32_t>(below(kMemoryBytes / (chance(80) ? 64 : 1)));
  ibv_sge sge{.addr = reinterpret_cast<std::uintptr_t>(region.memory.data()),
              .length = length,
              .lkey = region.mr->lkey};
  ibv_send_wr request{};
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = chance(50) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM;
  if (chance(5)) request.opcode = static_cast<ibv_wr_opcode>(below(12));
  request.send_flags = static_cast<unsigned>(below(16));
  // Into memory of this thread, whichever thread's queue pair is the peer: one domain for all.
  request.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(region.memory.data());
  request.wr.rdma.rkey = chance(98) ? region.mr->rkey : static_cast<std::uint32_t>(random_());
  ibv_send_wr* bad = nullptr;
  const int error = starved([&] { return mrc_post_send(qp, &request, &bad); });
  expect("post_send", error, {EINVAL, ENOMEM, EOPNOTSUPP});
}

void Spinner::poll() {
  mrc_cq* cq = any(cqs_);
  if (cq == nullptr) return;
  if (chance(30)) expect("req_notify_cq", mrc_req_notify_cq(cq, chance(50) ? 1 : 0), {EIO});
  std::array<ibv_wc, 16> done;
  const int room = static_cast<int>(below(done.size()));
  const int count = starved([&] { return mrc_poll_cq(cq, room, done.data()); });
  if (count < 0) expect("poll_cq", count, {EOVERFLOW});
  for (int i = 0; i < count; ++i) {
    const bool good = done.at(static_cast<std::size_t>(i)).status == IBV_WC_SUCCESS;
    ++(good ? shared_.writes_done : shared_.writes_failed);
  }
}

void Spinner::take_event() {
  mrc_comp_channel* channel = any(channels_);
  mrc_cq* cq = nullptr;
  void* cookie = nullptr;
  if (channel != nullptr) {
    if (mrc_get_cq_event(channel, &cq, &cookie) == 0) {
      mrc_ack_cq_events(cq, 1);
    } else {
      expect("get_cq_event", errno, {EAGAIN});
    }
  }
  mrc_async_event event{};
  if (starved([&] { return mrc_get_async_event(shared_.context, &event); }) == 0) {
    mrc_ack_async_event(&event);
  } else {
    expect("get_async_event", errno, {EAGAIN, ENOMEM});
  }
}

void Spinner::ask() {
  mrc_device_attr attr{};
  int supported = 0;
  expect("query_device", mrc_query_device(shared_.verbs, &attr, &supported), {});
  ibv_port_attr port{};
  expect("query_port", ibv_query_port(shared_.verbs, static_cast<std::uint8_t>(below(6)), &port),
         {EINVAL});
  if (pairs_.empty()) return;
  ibv_qp_attr verbs{};
  mrc_qp_attr mrc{};
  mrc_qp_init_attr init{};
  const Pair& pair = pairs_[below(pairs_.size())];
  expect("query_qp", mrc_query_qp(pair.qp, &verbs, IBV_QP_STATE, &mrc, MRC_QP_MPR, &init), {});
  if (init.send_cq != pair.send_cq) fail("query_qp gives another completion queue", 0);
}

bool Spinner::is_used(const mrc_cq* cq) const {
  for (const Pair& pair : pairs_) {
    if (pair.send_cq == cq || pair.receive_cq == cq) return true;
  }
  return false;
}

bool Spinner::is_used(const mrc_qp_hint* hint) const {
  for (const Pair& pair : pairs_) {
    if (pair.hint == hint) return true;
  }
  return false;
}

void Spinner::destroy_pair(std::size_t index) {
  expect("destroy_qp", mrc_destroy_qp(pairs_[index].qp), {});
  pairs_.erase(pairs_.begin() + static_cast<std::ptrdiff_t>(index));
}

void Spinner::destroy_something() {
  if (!pairs_.empty() && chance(40)) destroy_pair(below(pairs_.size()));
  if (!cqs_.empty()) {
    const std::size_t index = below(cqs_.size());
    const int error = mrc_destroy_cq(cqs_[index]);
    if (error != (is_used(cqs_[index]) ? EBUSY : 0)) fail("destroy_cq", error);
    if (error == 0) cqs_.erase(cqs_.begin() + static_cast<std::ptrdiff_t>(index));
  }
  if (!hints_.empty()) {
    const std::size_t index = below(hints_.size());
    const int error = mrc_destroy_qp_hint(hints_[index]) != 0 ? errno : 0;
    if (error != (is_used(hints_[index]) ? EBUSY : 0)) fail("destroy_qp_hint", error);
    if (error == 0) hints_.erase(hints_.begin() + static_cast<std::ptrdiff_t>(index));
  }
  if (!channels_.empty()) {
    const std::size_t index = below(channels_.size());
    const int error = mrc_destroy_comp_channel(channels_[index]);
    expect("destroy_comp_channel", error, {EBUSY});
    if (error == 0) channels_.erase(channels_.begin() + static_cast<std::ptrdiff_t>(index));
  }
  if (!regions_.empty()) {
    const std::size_t index = below(regions_.size());
    expect("dereg_mr", ibv_dereg_mr(regions_[index].mr), {});
    regions_.erase(regions_.begin() + static_cast<std::ptrdiff_t>(index));
  }
}

void Spinner::take_down() {
  while (!pairs_.empty())
    destroy_pair(pairs_.size() - 1);
  for (mrc_cq* cq : cqs_)
    expect("destroy_cq at the end", mrc_destroy_cq(cq), {});
  for (mrc_qp_hint* hint : hints_)
    expect("destroy_qp_hint at the end", mrc_destroy_qp_hint(hint), {});
  for (mrc_comp_channel* channel : channels_)
    expect("destroy_comp_channel at the end", mrc_destroy_comp_channel(channel), {});
  for (Region& region : regions_)
    expect("dereg_mr at the end", ibv_dereg_mr(region.mr), {});
}

std::size_t entries_of(const char* folder) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    static_cast<void>(entry);
    ++count;
  }
  return count;
}

void open_shared(Shared& shared) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list == nullptr || count == 0) fail("no device", errno);
  shared.verbs = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  if (shared.verbs == nullptr) fail("open_device", errno);
  shared.pd = ibv_alloc_pd(shared.verbs);
  shared.context = mrc_create_context(shared.verbs, nullptr);
  if (shared.pd == nullptr || shared.context == nullptr) fail("set-up", errno);
  if (fcntl(shared.verbs->async_fd, F_SETFL, O_NONBLOCK) != 0) fail("fcntl", errno);
  if (ibv_query_gid(shared.verbs, 1, 0, &shared.gid) != 0) fail("query_gid", errno);
}

void close_shared(const Shared& shared) {
  expect("destroy_context", mrc_destroy_context(shared.context), {});
  expect("dealloc_pd", ibv_dealloc_pd(shared.pd), {});
  expect("close_device", ibv_close_device(shared.verbs), {});
}

void spin(std::uint64_t seed, unsigned steps, unsigned threads) {
  Shared shared;
  open_shared(shared);
  std::vector<std::thread> running;
  for (unsigned i = 0; i < threads; ++i)
    running.emplace_back(
        [&shared, seed, steps, i] { Spinner(shared, seed * 1000 + i).run(steps); });
  for (std::thread& thread : running)
    thread.join();
  close_shared(shared);
  std::printf("%u completions, %u of them failed; memory ran out %u times\n",
              shared.writes_done + shared.writes_failed, shared.writes_failed.load(),
              shared.allocations_failed.load());
}

}  // namespace
}  // namespace mrc::api_test

int main(int argc, char** argv) {
  const std::uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const unsigned steps = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 2000;
  const unsigned threads = argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 3;
  std::printf("seed %llu, %u steps on %u threads\n", static_cast<unsigned long long>(seed), steps,
              threads);
  mrc::api_test::spin(seed, 1, 1);  // what is opened once and stays, such as the log
  const std::size_t tasks = mrc::api_test::entries_of("/proc/self/task");
  const std::size_t descriptors = mrc::api_test::entries_of("/proc/self/fd");
  mrc::api_test::spin(seed, steps, threads);
  if (mrc::api_test::entries_of("/proc/self/task") != tasks)
    mrc::api_test::fail("threads are left", 0);
  if (mrc::api_test::entries_of("/proc/self/fd") != descriptors)
    mrc::api_test::fail("descriptors are left", 0);
  return 0;
}
