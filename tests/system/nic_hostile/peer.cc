// A program over the C API that does one thing per line of input and says on one line how it went.
// The tests drive several of them as real processes; see peer_driver.py for the other end.
//
//   open DEVICE|-                                  ok GID
//   mr NAME BYTES                                  ok ADDRESS RKEY
//   dereg NAME | fill NAME SEED | guards NAME      ok | bad
//   check NAME OFFSET LENGTH SEED FROM             ok | bad AT
//   qp NAME DEPTH                                  ok QPN PSN
//   connect QP GID QPN PSN TIMEOUT LINEAR EXP      ok
//   write QP MR OFFSET LENGTH ADDRESS RKEY COUNT   done COMPLETED STATUS
//   imm QP MR OFFSET LENGTH ADDRESS RKEY VALUE     done COMPLETED STATUS
//   stream QP MR LENGTH ADDRESS RKEY MS            done COMPLETED STATUS
//   receive QP COUNT                               ok
//   received QP MS                                 done COMPLETED STATUS IMMEDIATE
//   port NUMBER 0|1                                ok
//   state PORT                                     ok active|down
//   threads                                        ok THOSE_OF_THE_LIBRARY
//   destroy QP | event MS | fork | close | quit | exit
//
// Whatever fails without a completion: error ERRNO CALL.
#include <arpa/inet.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "mrc.h"
#include "mrc_ctl.h"

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kGuardBytes = 4'096;
constexpr unsigned char kGuard = 0xa5;
constexpr int kWaitMs = 30'000;
constexpr int kCauseMs = 500;
constexpr std::uint32_t kFirstPsn = 0xff'fff0;  // wraps soon

struct Failure {
  int error;
  std::string what;
};

void need(bool good, int result, const char* what) {
  const int error = result == -1 ? errno : result;
  if (!good) throw Failure{error, what};
}

struct Memory {
  unsigned char* begin = nullptr;  // of the guard in front
  std::size_t bytes = 0;           // between the guards
  ibv_mr* mr = nullptr;

  unsigned char* data() const { return begin + kGuardBytes; }
};

struct QueuePair {
  mrc_cq* sends = nullptr;
  mrc_cq* receives = nullptr;
  mrc_qp* qp = nullptr;
  unsigned depth = 0;
};

// Several bytes depend on where they are and on the seed.
unsigned char pattern(std::uint64_t seed, std::size_t at) {
  std::uint64_t x = (seed << 40) + at / 8 + 1;
  x = (x ^ (x >> 31)) * 0x7fb5'd329'728e'a185ULL;
  x = (x ^ (x >> 27)) * 0x81da'def4'bc2d'd44dULL;
  return static_cast<unsigned char>((x ^ (x >> 33)) >> (8 * (at % 8)));
}

std::size_t thread_count() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                    std::filesystem::directory_iterator()));
}

// Threads of the program itself. A sanitizer may keep one of its own from the first thread on.
std::size_t own_thread_count() {
  std::thread([] {}).join();
  return thread_count();
}

class Peer {
 public:
  void run();

 private:
  void execute(const std::string& command, std::istringstream& in);
  void open(std::istringstream& in);
  void close();
  void register_memory(std::istringstream& in);
  void check(std::istringstream& in);
  void guards(std::istringstream& in);
  void create_qp(std::istringstream& in);
  void connect(std::istringstream& in);
  void write(std::istringstream& in, bool immediate);
  void stream(std::istringstream& in);
  void received(std::istringstream& in);
  void event(std::istringstream& in);
  void set_port(std::istringstream& in);
  void port_state(std::istringstream& in);
  void fork_child();
  int post(QueuePair& qp, const Memory& memory, std::size_t offset, std::uint32_t length,
           std::uint64_t address, std::uint32_t rkey, const std::uint32_t* immediate);
  void destroy(QueuePair& qp);

  Memory& memory(std::istringstream& in) {
    std::string name;
    in >> name;
    return memories_.at(name);
  }
  QueuePair& queue_pair(std::istringstream& in) {
    std::string name;
    in >> name;
    return qps_.at(name);
  }

  const std::size_t own_threads_ = own_thread_count();
  ibv_context* verbs_ = nullptr;
  mrc_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  std::map<std::string, Memory> memories_;
  std::map<std::string, QueuePair> qps_;
};

void say(const std::string& line) { std::cout << line << std::endl; }

void Peer::open(std::istringstream& in) {
  std::string wanted;
  in >> wanted;
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  need(list != nullptr, errno, "ibv_get_device_list");
  for (int i = 0; i < count && verbs_ == nullptr; ++i) {
    if (wanted != "-" && wanted != ibv_get_device_name(list[i])) continue;
    verbs_ = ibv_open_device(list[i]);
    need(verbs_ != nullptr, errno, "ibv_open_device");
  }
  ibv_free_device_list(list);
  need(verbs_ != nullptr, ENODEV, "no such device");
  context_ = mrc_create_context(verbs_, nullptr);
  need(context_ != nullptr, errno, "mrc_create_context");
  pd_ = ibv_alloc_pd(verbs_);
  need(pd_ != nullptr, errno, "ibv_alloc_pd");
  ibv_gid gid = {};
  need(ibv_query_gid(verbs_, 1, 0, &gid) == 0, errno, "ibv_query_gid");
  std::ostringstream text;
  for (const unsigned byte : gid.raw)
    text << std::hex << std::setw(2) << std::setfill('0') << byte;
  say("ok " + text.str());
}

void Peer::close() {
  while (!qps_.empty()) {
    destroy(qps_.begin()->second);
    qps_.erase(qps_.begin());
  }
  for (auto& [name, memory] : memories_) {
    if (memory.mr != nullptr) need(ibv_dereg_mr(memory.mr) == 0, errno, "ibv_dereg_mr");
  }
  if (verbs_ == nullptr) return;
  int error = ibv_dealloc_pd(pd_);
  need(error == 0, error, "ibv_dealloc_pd");
  error = mrc_destroy_context(context_);
  need(error == 0, error, "mrc_destroy_context");
  error = ibv_close_device(verbs_);
  need(error == 0, error, "ibv_close_device");
  verbs_ = nullptr;
}

void Peer::register_memory(std::istringstream& in) {
  std::string name;
  Memory made;
  in >> name >> made.bytes;
  void* const got = mmap(nullptr, made.bytes + 2 * kGuardBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  need(got != MAP_FAILED, errno, "mmap");
  made.begin = static_cast<unsigned char*>(got);
  std::memset(made.begin, kGuard, kGuardBytes);
  std::memset(made.data() + made.bytes, kGuard, kGuardBytes);
  made.mr =
      ibv_reg_mr(pd_, made.data(), made.bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  need(made.mr != nullptr, errno, "ibv_reg_mr");
  memories_[name] = made;
  std::ostringstream text;
  text << "ok " << reinterpret_cast<std::uintptr_t>(made.data()) << ' ' << made.mr->rkey;
  say(text.str());
}

void Peer::check(std::istringstream& in) {
  const Memory& memory = this->memory(in);
  std::size_t offset = 0;
  std::size_t length = 0;
  std::size_t from = 0;
  std::uint64_t seed = 0;
  in >> offset >> length >> seed >> from;
  for (std::size_t i = 0; i < length; ++i) {
    if (memory.data()[offset + i] != pattern(seed, from + i))
      return say("bad " + std::to_string(offset + i));
  }
  say("ok");
}

void Peer::guards(std::istringstream& in) {
  const Memory& memory = this->memory(in);
  for (std::size_t i = 0; i < kGuardBytes; ++i) {
    if (memory.begin[i] != kGuard || memory.data()[memory.bytes + i] != kGuard)
      return say("bad " + std::to_string(i));
  }
  say("ok");
}

void Peer::create_qp(std::istringstream& in) {
  std::string name;
  QueuePair made;
  in >> name >> made.depth;
  made.sends = mrc_create_cq(context_, static_cast<int>(made.depth), nullptr, nullptr, 0);
  made.receives = mrc_create_cq(context_, static_cast<int>(made.depth), nullptr, nullptr, 0);
  need(made.sends != nullptr && made.receives != nullptr, errno, "mrc_create_cq");
  mrc_qp_init_attr setup = {};
  setup.send_cq = made.sends;
  setup.recv_cq = made.receives;
  setup.cap.max_send_wr = made.depth;
  setup.cap.max_recv_wr = made.depth;
  setup.cap.max_send_sge = setup.cap.max_recv_sge = 1;
  setup.sq_sig_all = 1;
  setup.pd = pd_;
  made.qp = mrc_create_qp(context_, &setup);
  need(made.qp != nullptr, errno, "mrc_create_qp");
  std::uint32_t number = 0;
  mrc_get_qpn(made.qp, &number);
  qps_[name] = made;
  say("ok " + std::to_string(number) + ' ' + std::to_string(kFirstPsn));
}

void Peer::connect(std::istringstream& in) {
  QueuePair& qp = queue_pair(in);
  std::string gid;
  std::uint32_t number = 0;
  std::uint32_t psn = 0;
  unsigned timeout = 0;
  unsigned linear = 0;
  unsigned exponential = 0;
  in >> gid >> number >> psn >> timeout >> linear >> exponential;
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  int error = mrc_modify_qp(qp.qp, &attributes, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS, nullptr, 0);
  need(error == 0, error, "to INIT");
  attributes = {};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = IBV_MTU_4096;
  attributes.dest_qp_num = number;
  attributes.rq_psn = psn;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.port_num = 1;
  for (std::size_t i = 0; i < 16 && gid.size() == 32; ++i)
    attributes.ah_attr.grh.dgid.raw[i] =
        static_cast<std::uint8_t>(std::stoul(gid.substr(2 * i, 2), nullptr, 16));
  error = mrc_modify_qp(
      qp.qp, &attributes,
      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN, nullptr, 0);
  need(error == 0, error, "to RTR");
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = kFirstPsn;
  mrc_qp_attr retry = {};
  retry.timeout = static_cast<std::uint8_t>(timeout);
  retry.retry.linear_cnt = static_cast<std::uint8_t>(linear);
  retry.retry.exp_cnt = static_cast<std::uint8_t>(exponential);
  error = mrc_modify_qp(qp.qp, &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN, &retry,
                        MRC_QP_TIMEOUT | MRC_QP_RETRY_CNT);
  need(error == 0, error, "to RTS");
  say("ok");
}

int Peer::post(QueuePair& qp, const Memory& memory, std::size_t offset, std::uint32_t length,
               std::uint64_t address, std::uint32_t rkey, const std::uint32_t* immediate) {
  ibv_sge piece = {};
  piece.addr = reinterpret_cast<std::uintptr_t>(memory.data() + offset);
  piece.length = length;
  piece.lkey = memory.mr == nullptr ? 0 : memory.mr->lkey;
  ibv_send_wr request = {};
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = immediate == nullptr ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM;
  if (immediate != nullptr) request.imm_data = htonl(*immediate);
  request.wr.rdma.remote_addr = address;
  request.wr.rdma.rkey = rkey;
  ibv_send_wr* bad = nullptr;
  return mrc_post_send(qp.qp, &request, &bad);
}

std::string name_of(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_LOC_PROT_ERR:
      return "LOCAL_PROTECTION";
    case IBV_WC_WR_FLUSH_ERR:
      return "FLUSHED";
    case IBV_WC_REM_ACCESS_ERR:
      return "REMOTE_ACCESS";
    case IBV_WC_RETRY_EXC_ERR:
      return "RETRY_EXCEEDED";
    default:
      return "STATUS_" + std::to_string(status);
  }
}

// Messages posted before the one that failed may be flushed before it; look on for the cause.
ibv_wc_status cause(mrc_cq* cq, ibv_wc_status first) {
  const auto deadline = Clock::now() + milliseconds(kCauseMs);
  while (first == IBV_WC_WR_FLUSH_ERR && Clock::now() < deadline) {
    ibv_wc wc = {};
    if (mrc_poll_cq(cq, 1, &wc) > 0 && wc.status != IBV_WC_SUCCESS) first = wc.status;
  }
  return first;
}

// Waits for `count` completions or the first failed one.
std::string completions(mrc_cq* cq, std::uint64_t& completed, std::uint64_t count, int wait_ms,
                        std::uint32_t* immediate = nullptr) {
  const auto deadline = Clock::now() + milliseconds(wait_ms);
  while (completed < count) {
    ibv_wc wc = {};
    const int got = mrc_poll_cq(cq, 1, &wc);
    if (got < 0) return "CQ_BROKEN";
    if (got == 0 && Clock::now() > deadline) return "TIMEOUT";
    if (got == 0) continue;
    if (wc.status != IBV_WC_SUCCESS) return name_of(cause(cq, wc.status));
    ++completed;
    if (immediate != nullptr) *immediate = ntohl(wc.imm_data);
  }
  return "ok";
}

void say_done(std::uint64_t completed, const std::string& status) {
  say("done " + std::to_string(completed) + ' ' + status);
}

void Peer::write(std::istringstream& in, bool immediate) {
  QueuePair& qp = queue_pair(in);
  const Memory& memory = this->memory(in);
  std::size_t offset = 0;
  std::uint32_t length = 0;
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
  std::uint64_t count = 0;
  in >> offset >> length >> address >> rkey >> count;
  const auto value = static_cast<std::uint32_t>(count);
  if (immediate) count = 1;
  std::uint64_t completed = 0;
  for (std::uint64_t posted = 0; posted < count;) {
    const std::uint64_t batch = std::min<std::uint64_t>(count - posted, qp.depth);
    for (std::uint64_t i = 0; i < batch; ++i) {
      const int error =
          post(qp, memory, offset, length, address, rkey, immediate ? &value : nullptr);
      need(error == 0, error, "mrc_post_send");
    }
    posted += batch;
    const std::string status = completions(qp.sends, completed, posted, kWaitMs);
    if (status != "ok") return say_done(completed, status);
  }
  say_done(completed, "ok");
}

void Peer::stream(std::istringstream& in) {
  QueuePair& qp = queue_pair(in);
  const Memory& memory = this->memory(in);
  std::uint32_t length = 0;
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
  int ms = 0;
  in >> length >> address >> rkey >> ms;
  const auto end = Clock::now() + milliseconds(ms);
  std::uint64_t posted = 0;
  std::uint64_t completed = 0;
  std::string status = "ok";
  while (status == "ok" && (Clock::now() < end || completed < posted)) {
    while (posted - completed < qp.depth && Clock::now() < end) {
      const int error = post(qp, memory, 0, length, address, rkey, nullptr);
      need(error == 0, error, "mrc_post_send");
      ++posted;
    }
    if (completed < posted) status = completions(qp.sends, completed, completed + 1, kWaitMs);
  }
  say_done(completed, status);
}

void Peer::received(std::istringstream& in) {
  QueuePair& qp = queue_pair(in);
  int ms = 0;
  in >> ms;
  std::uint64_t completed = 0;
  std::uint32_t immediate = 0;
  const std::string status = completions(qp.receives, completed, 1, ms, &immediate);
  say("done " + std::to_string(completed) + ' ' + status + ' ' + std::to_string(immediate));
}

void Peer::event(std::istringstream& in) {
  int ms = 0;
  in >> ms;
  pollfd entry = {verbs_->async_fd, POLLIN, 0};
  if (::poll(&entry, 1, ms) <= 0) return say("none");
  mrc_async_event event = {};
  need(mrc_get_async_event(context_, &event) == 0, errno, "mrc_get_async_event");
  mrc_ack_async_event(&event);
  say(event.event_type == IBV_EVENT_QP_FATAL ? "event QP_FATAL"
                                             : "event " + std::to_string(event.event_type));
}

void Peer::set_port(std::istringstream& in) {
  unsigned port = 0;
  int enabled = 0;
  in >> port >> enabled;
  mrc_ctl_port_attr attributes = {};
  attributes.port_admin_state =
      enabled != 0 ? MRC_CTL_PORT_ADMIN_ENABLED : MRC_CTL_PORT_ADMIN_DISABLED;
  const int error = mrc_ctl_modify_port(context_, static_cast<std::uint8_t>(port), &attributes,
                                        MRC_CTL_PORT_ADMIN_STATE);
  need(error == 0, error, "mrc_ctl_modify_port");
  say("ok");
}

void Peer::port_state(std::istringstream& in) {
  unsigned port = 0;
  in >> port;
  ibv_port_attr attributes = {};
  const int error = ibv_query_port(verbs_, static_cast<std::uint8_t>(port), &attributes);
  need(error == 0, error, "ibv_query_port");
  say(attributes.state == IBV_PORT_ACTIVE ? "ok active" : "ok down");
}

// A child must not be able to touch what its parent shares with the network.
void Peer::fork_child() {
  std::cout.flush();
  const pid_t child = fork();
  need(child >= 0, errno, "fork");
  if (child == 0) {
    int refused = 0;
    for (auto& [name, qp] : qps_) {
      ibv_qp_attr attributes = {};
      attributes.qp_state = IBV_QPS_ERR;
      if (mrc_modify_qp(qp.qp, &attributes, IBV_QP_STATE, nullptr, 0) == 0) _exit(1);
      ibv_send_wr request = {};
      request.opcode = IBV_WR_RDMA_WRITE;
      ibv_send_wr* bad = nullptr;
      if (mrc_post_send(qp.qp, &request, &bad) == 0) _exit(2);
      ++refused;
    }
    std::exit(refused > 0 ? 0 : 3);
  }
  int status = 0;
  need(waitpid(child, &status, 0) == child, errno, "waitpid");
  say(WIFEXITED(status) ? "child " + std::to_string(WEXITSTATUS(status))
                        : "child killed " + std::to_string(WTERMSIG(status)));
}

void Peer::destroy(QueuePair& qp) {
  int error = mrc_destroy_qp(qp.qp);
  need(error == 0, error, "mrc_destroy_qp");
  error = mrc_destroy_cq(qp.sends);
  need(error == 0, error, "mrc_destroy_cq");
  error = mrc_destroy_cq(qp.receives);
  need(error == 0, error, "mrc_destroy_cq");
}

void Peer::execute(const std::string& command, std::istringstream& in) {
  if (command == "open") return open(in);
  if (command == "mr") return register_memory(in);
  if (command == "check") return check(in);
  if (command == "guards") return guards(in);
  if (command == "qp") return create_qp(in);
  if (command == "connect") return connect(in);
  if (command == "write") return write(in, false);
  if (command == "imm") return write(in, true);
  if (command == "stream") return stream(in);
  if (command == "received") return received(in);
  if (command == "event") return event(in);
  if (command == "port") return set_port(in);
  if (command == "state") return port_state(in);
  if (command == "fork") return fork_child();
  if (command == "threads") return say("ok " + std::to_string(thread_count() - own_threads_));
  if (command == "exit") std::exit(0);
  if (command == "close") {
    close();
  } else if (command == "dereg") {
    Memory& memory = this->memory(in);
    const int error = ibv_dereg_mr(memory.mr);
    need(error == 0, error, "ibv_dereg_mr");
    memory.mr = nullptr;
  } else if (command == "fill") {
    const Memory& memory = this->memory(in);
    std::uint64_t seed = 0;
    in >> seed;
    for (std::size_t i = 0; i < memory.bytes; ++i)
      memory.data()[i] = pattern(seed, i);
  } else if (command == "receive") {
    QueuePair& qp = queue_pair(in);
    unsigned count = 0;
    in >> count;
    ibv_recv_wr request = {};
    ibv_recv_wr* bad = nullptr;
    for (unsigned i = 0; i < count; ++i) {
      const int error = mrc_post_recv(qp.qp, &request, &bad);
      need(error == 0, error, "mrc_post_recv");
    }
  } else if (command == "destroy") {
    std::string name;
    in >> name;
    destroy(qps_.at(name));
    qps_.erase(name);
  } else {
    throw Failure{EINVAL, "unknown command " + command};
  }
  say("ok");
}

void Peer::run() {
  std::string line;
  while (std::getline(std::cin, line) && line != "quit") {
    std::istringstream in(line);
    std::string command;
    in >> command;
    try {
      execute(command, in);
    } catch (const Failure& failure) {
      say("error " + std::to_string(failure.error) + ' ' + failure.what);
    }
  }
  close();
}

}  // namespace

int main() {
  try {
    Peer().run();
  } catch (const Failure& failure) {
    std::fprintf(stderr, "peer: %s: %s\n", failure.what.c_str(), std::strerror(failure.error));
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "peer: %s\n", error.what());
    return 1;
  }
  return 0;
}
