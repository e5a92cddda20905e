#include "commands/twin/lab_rank.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "collective/device.h"
#include "collective/rendezvous.h"
#include "controller/session.h"
#include "failure.h"
#include "openmrc_counters.h"
#include "os/clock.h"
#include "os/errors.h"
#include "sim/mrc_host.h"

namespace mrc::tool::twin {
namespace {

using collective::Device;
using collective::Owned;
using nlohmann::json;
using sim::TaskId;

constexpr double kPatienceS = 60;
constexpr unsigned kEmptyPolls = 32;
constexpr int kSleepMs = 5;
constexpr std::int64_t kSampleNs = 10'000'000;
constexpr std::size_t kMaxSamples = 4'000;
constexpr std::int64_t kHeadStartNs = 500'000'000;
constexpr unsigned kPings = 21;
constexpr std::uint32_t kPingBytes = 64;
constexpr std::uint32_t kPing = 0x8000'0000;  // an immediate that names no task
constexpr std::uint32_t kMaxPsn = 0xFF'FFFF;

std::byte pattern_at(std::size_t i) { return static_cast<std::byte>(i * 131 + (i >> 8) * 7 + 3); }

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A connection to another host, as the simulator counts them.
struct Line {
  unsigned peer = 0;
  std::uint16_t number = 0;
  unsigned sends = 0;
  unsigned receives = 0;
  Owned<mrc_qp> qp;
  std::uint32_t qp_number = 0;
  std::uint32_t psn = 0;
  std::uint64_t peer_memory = 0;
  std::uint32_t peer_key = 0;
};

struct Flow {
  std::int64_t posted_ns = -1;
  std::int64_t sent_ns = -1;
  bool received = false;
};

// Of all connections of a host; see openmrc_qp_counters.
struct Counted {
  std::uint64_t data_packets = 0;
  std::uint64_t retransmits = 0;
  std::uint64_t spurious = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t probes = 0;
  std::uint64_t bytes_received = 0;
  std::uint32_t bad_paths = 0;  // now
};

struct Sample {
  std::int64_t at_ns = 0;
  std::uint64_t bytes_received = 0;
  std::uint32_t bad_paths = 0;
};

class Rank {
 public:
  Rank(const Scenario& scenario, const collective::Placement& place)
      : scenario_(scenario),
        tasks_(scenario.workload.tasks),
        me_(place.rank),
        rendezvous_(place, kPatienceS),
        profile_(make_profile()),
        device_(collective::DeviceOptions{}),
        flows_(tasks_.size()) {}

  void run();
  void tell(const std::string& why) noexcept { rendezvous_.tell_failure(why); }

 private:
  std::uint64_t make_profile() const;
  void plan_lines();
  Line& line_to(unsigned peer, std::uint16_t number);
  void make_memory();
  void create(Line& line);
  void connect();
  void post_receive(Line& line) const;
  void post_write(Line& line, std::uint32_t immediate, std::uint64_t bytes) const;
  double ping(Line& line);
  void begin();
  void work();
  bool poll();
  void sleep(std::int64_t until_ns);
  void take(const ibv_wc& wc);
  void on_received(TaskId task);
  void start_due(std::int64_t now);
  bool done() const { return to_send_ == 0 && to_receive_ == 0; }
  Counted counted() const;
  void sample(std::int64_t now);
  std::uint64_t wrong_bytes() const;
  void report() const;

  const Scenario& scenario_;
  std::vector<sim::Task> tasks_;  // `waits` counts down
  unsigned me_;
  collective::Rendezvous rendezvous_;
  std::uint64_t profile_;
  Device device_;
  std::vector<Flow> flows_;
  struct {
    std::vector<std::byte> source;  // all messages leave from here
    std::vector<std::byte> target;  // and end here
    Owned<ibv_mr> source_region;
    Owned<ibv_mr> target_region;
  } memory_;
  Owned<mrc_comp_channel> events_;
  int events_fd_ = -1;
  Owned<mrc_cq> cq_;
  std::vector<Line> lines_;
  std::vector<std::pair<std::int64_t, TaskId>> due_;  // tasks that wait for nothing but the time
  std::int64_t start_ns_ = 0;
  Counted before_;  // what measuring the idle lab took
  std::size_t to_send_ = 0;
  std::size_t to_receive_ = 0;
  std::size_t pings_due_ = 0;
  struct {
    std::vector<Sample> taken;
    std::int64_t next_ns = 0;
    std::int64_t every_ns = kSampleNs;
  } samples_;
};

// Before the device is opened by the data path, so that queue pairs find it.
std::uint64_t Rank::make_profile() const {
  const controller::CcSpec spec = cc_profile_of(scenario_);
  const controller::Session session("");
  controller::create(session, spec);
  return spec.id;
}

Line& Rank::line_to(unsigned peer, std::uint16_t number) {
  for (Line& line : lines_)
    if (line.peer == peer && line.number == number) return line;
  Line& line = lines_.emplace_back();
  line.peer = peer;
  line.number = number;
  return line;
}

void Rank::plan_lines() {
  for (const sim::Task& task : tasks_) {
    if (task.kind != sim::Task::Kind::kTransfer) continue;
    if (task.source == me_) ++line_to(task.destination, task.connection).sends;
    if (task.destination == me_) ++line_to(task.source, task.connection).receives;
  }
  for (const Line& line : lines_) {
    to_send_ += line.sends;
    to_receive_ += line.receives;
  }
}

void Rank::make_memory() {
  std::uint64_t longest = kPingBytes;
  for (const sim::Task& task : tasks_)
    if (task.source == me_ || task.destination == me_) longest = std::max(longest, task.bytes);
  memory_.source.resize(longest);
  memory_.target.resize(longest);
  for (std::size_t i = 0; i < longest; ++i) {
    memory_.source[i] = pattern_at(i);
    memory_.target[i] = ~pattern_at(i);
  }
  memory_.source_region =
      device_.register_memory(memory_.source.data(), memory_.source.size(), Device::Access::kLocal);
  memory_.target_region = device_.register_memory(memory_.target.data(), memory_.target.size(),
                                                  Device::Access::kPeersWrite);
}

void Rank::create(Line& line) {
  mrc_qp_init_attr setup = {};
  setup.send_cq = cq_.get();
  setup.recv_cq = cq_.get();
  setup.cap.max_send_wr = line.sends + kPings;
  setup.cap.max_recv_wr = line.receives + kPings;
  setup.cap.max_send_sge = 1;
  setup.cap.max_recv_sge = 1;
  setup.pd = device_.pd();
  line.qp.reset(mrc_create_qp(device_.context(), &setup));
  if (!line.qp) collective::refuse("mrc_create_qp", errno);
  collective::expect_ok("mrc_get_qpn", os::errno_of(mrc_get_qpn(line.qp.get(), &line.qp_number)));
  line.psn = collective::random_psn();
  collective::to_init(line.qp.get(), {.ev = {}, .cc = profile_});
  for (unsigned i = 0; i < line.receives + kPings; ++i)
    post_receive(line);
}

void Rank::connect() {
  json own = {{"gid", device_.gid()},
              {"mtu", device_.mtu()},
              {"key", memory_.target_region->rkey},
              {"memory", reinterpret_cast<std::uintptr_t>(memory_.target.data())},
              {"lines", json::object()}};
  for (const Line& line : lines_)
    own["lines"][fmt::format("{}.{}", line.peer, line.number)] = {line.qp_number, line.psn};
  const std::vector<json> all = rendezvous_.all_gather(own);
  for (Line& line : lines_) {
    try {
      const json& peer = all.at(line.peer);
      const json& address = peer.at("lines").at(fmt::format("{}.{}", me_, line.number));
      line.peer_memory = peer.at("memory").get<std::uint64_t>();
      line.peer_key = peer.at("key").get<std::uint32_t>();
      collective::to_ready(line.qp.get(), device_,
                           {.gid = peer.at("gid").get<collective::Gid>(),
                            .peer_qp = address.at(0).get<std::uint32_t>() & kMaxPsn,
                            .peer_psn = address.at(1).get<std::uint32_t>() & kMaxPsn,
                            .own_psn = line.psn,
                            .mtu = std::min(device_.mtu(), peer.at("mtu").get<std::uint32_t>()),
                            .waits_for_ever = true,
                            .timeout = scenario_.config.mrc.timeout});
    } catch (const json::exception& error) {
      throw Failure(fmt::format("rank {} was started for another scenario", line.peer));
    }
  }
  rendezvous_.all_gather(json::object());  // nobody writes before all can receive
}

void Rank::post_receive(Line& line) const {
  ibv_recv_wr request = {};
  ibv_recv_wr* bad = nullptr;
  collective::expect_ok("mrc_post_recv",
                        os::errno_of(mrc_post_recv(line.qp.get(), &request, &bad)));
}

void Rank::post_write(Line& line, std::uint32_t immediate, std::uint64_t bytes) const {
  ibv_sge piece = {};
  piece.addr = reinterpret_cast<std::uintptr_t>(memory_.source.data());
  piece.length = static_cast<std::uint32_t>(bytes);
  piece.lkey = memory_.source_region->lkey;
  ibv_send_wr request = {};
  request.wr_id = immediate;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.imm_data = htonl(immediate);
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = line.peer_memory;
  request.wr.rdma.rkey = line.peer_key;
  ibv_send_wr* bad = nullptr;
  collective::expect_ok("mrc_post_send", mrc_post_send(line.qp.get(), &request, &bad));
}

// The median round trip of a small message, in microseconds.
double Rank::ping(Line& line) {
  std::vector<double> us;
  for (unsigned i = 0; i < kPings; ++i) {
    const std::int64_t posted = os::monotonic_now();
    pings_due_ = 1;
    post_write(line, kPing, kPingBytes);
    while (pings_due_ > 0) {
      if (!poll()) sleep(posted + 1'000'000);
      if (os::monotonic_now() - posted > static_cast<std::int64_t>(kPatienceS * 1e9))
        throw Failure("nothing comes back from an idle lab", FailureKind::kTimeout);
    }
    us.push_back(static_cast<double>(os::monotonic_now() - posted) / 1e3);
  }
  return median(std::move(us));
}

// One rank after the other, so that the lab is idle; then rank 0 says when all begin.
void Rank::begin() {
  const fabric::Topology topology(scenario_.config.topology);
  double idle_us = 0;
  double in_hosts_us = 0;
  std::vector<json> answers;
  for (unsigned turn = 0; turn < scenario_.config.topology.hosts; ++turn) {
    const auto sends =
        std::find_if(lines_.begin(), lines_.end(), [](const Line& line) { return line.sends > 0; });
    if (turn == me_ && sends != lines_.end()) {
      idle_us = ping(*sends);
      const sim::Time cables =
          sim::idle_rtt(scenario_.config, topology, {me_, sends->peer, kPingBytes});
      in_hosts_us = std::max(0.0, idle_us - static_cast<double>(cables) / 1e6);
    }
    answers = rendezvous_.all_gather({{"idle_us", idle_us}, {"in_hosts_us", in_hosts_us}});
  }
  std::vector<double> idle;
  std::vector<double> in_hosts;
  for (const json& answer : answers) {
    if (answer.value("idle_us", 0.0) <= 0) continue;
    idle.push_back(answer.value("idle_us", 0.0));
    in_hosts.push_back(answer.value("in_hosts_us", 0.0));
  }
  if (idle.empty()) throw Failure("nobody sends anything", FailureKind::kUsage);
  before_ = counted();
  const std::int64_t proposed = os::monotonic_now() + kHeadStartNs;
  const json word = rendezvous_.all_gather({{"start_ns", proposed}}).at(0);
  start_ns_ = word.value("start_ns", proposed);
  if (me_ != 0) return;
  fmt::print("{}\n", json{{"start_ns", start_ns_},
                          {"mtu", device_.mtu()},
                          {"idle_rtt_us", median(std::move(idle))},
                          {"in_hosts_us", median(std::move(in_hosts))}}
                         .dump());
  std::fflush(stdout);
}

void Rank::take(const ibv_wc& wc) {
  if (wc.status != IBV_WC_SUCCESS)
    throw Failure(fmt::format("queue pair {:#x}: {}", wc.qp_num, ibv_wc_status_str(wc.status)));
  if ((wc.opcode & IBV_WC_RECV) != 0) {
    const std::uint32_t task = ntohl(wc.imm_data);
    if (task == kPing) return;
    if (task >= tasks_.size() || tasks_[task].destination != me_ || flows_[task].received)
      throw Failure(fmt::format("a message came that is not due ({})", task));
    flows_[task].received = true;
    --to_receive_;
    on_received(task);
    return;
  }
  if (wc.wr_id == kPing) {
    pings_due_ = 0;
    return;
  }
  flows_[wc.wr_id].sent_ns = os::monotonic_now();
  --to_send_;
}

bool Rank::poll() {
  std::array<ibv_wc, 32> found;
  const int count = mrc_poll_cq(cq_.get(), static_cast<int>(found.size()), found.data());
  if (count < 0) throw Failure("a completion queue ran over");
  for (int i = 0; i < count; ++i)
    take(found[static_cast<std::size_t>(i)]);
  return count > 0;
}

void Rank::sleep(std::int64_t until_ns) {
  for (unsigned i = 0; i < kEmptyPolls; ++i)
    if (poll()) return;
  collective::expect_ok("mrc_req_notify_cq", mrc_req_notify_cq(cq_.get(), 0));
  if (poll()) return;
  const std::int64_t left_ms = (until_ns - os::monotonic_now() + 999'999) / 1'000'000;
  pollfd waiting{events_fd_, POLLIN, 0};
  ::poll(&waiting, 1, static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, kSleepMs)));
  if ((waiting.revents & POLLIN) == 0) return;
  mrc_cq* cq = nullptr;
  void* context = nullptr;
  if (mrc_get_cq_event(events_.get(), &cq, &context) == 0) mrc_ack_cq_events(cq, 1);
}

// What waits for this task and is ours is due, after its delay; computations pass it on.
void Rank::on_received(TaskId task) {
  const sim::Task& t = tasks_[task];
  for (std::uint32_t i = 0; i < t.dependent_count; ++i) {
    const TaskId later = scenario_.workload.dependents[t.first_dependent + i];
    if (--tasks_[later].waits == 0)
      due_.emplace_back(os::monotonic_now() + tasks_[later].delay / 1'000, later);
  }
}

void Rank::start_due(std::int64_t now) {
  for (std::size_t i = 0; i < due_.size();) {
    if (due_[i].first > now) {
      ++i;
      continue;
    }
    const TaskId id = due_[i].second;
    due_[i] = due_.back();
    due_.pop_back();
    flows_[id].posted_ns = now;
    if (tasks_[id].kind == sim::Task::Kind::kCompute) {
      on_received(id);
    } else {
      post_write(line_to(tasks_[id].destination, tasks_[id].connection), id, tasks_[id].bytes);
    }
  }
}

Counted Rank::counted() const {
  Counted sum;
  for (const Line& line : lines_) {
    openmrc_qp_counters c{};
    c.size = sizeof c;
    collective::expect_ok("reading counters", openmrc_query_qp_counters(line.qp.get(), &c));
    sum.data_packets += c.packets_sent;
    sum.retransmits += c.retransmitted;
    sum.spurious += c.spurious;
    sum.timeouts += c.timeouts;
    sum.probes += c.probes_sent;
    sum.bytes_received += c.bytes_received;
    if (line.sends > 0) sum.bad_paths += c.paths_assumed_bad;
  }
  return sum;
}

void Rank::sample(std::int64_t now) {
  if (now < samples_.next_ns) return;
  samples_.next_ns = now + samples_.every_ns;
  const Counted sum = counted();
  samples_.taken.push_back({.at_ns = now - start_ns_,
                            .bytes_received = sum.bytes_received - before_.bytes_received,
                            .bad_paths = sum.bad_paths});
  rendezvous_.check();
}

void Rank::work() {
  for (TaskId id = 0; id < tasks_.size(); ++id)
    if (tasks_[id].source == me_ && tasks_[id].waits == 0)
      due_.emplace_back(start_ns_ + tasks_[id].delay / 1'000, id);
  const std::int64_t end_ns = start_ns_ + scenario_.config.end_ps / 1'000;
  samples_.every_ns = std::max<std::int64_t>(
      kSampleNs, (end_ns - start_ns_) / static_cast<std::int64_t>(kMaxSamples));
  samples_.next_ns = start_ns_;
  while (!done()) {
    const std::int64_t now = os::monotonic_now();
    if (now > end_ns) break;
    start_due(now);
    if (now >= start_ns_) sample(now);
    std::int64_t next = samples_.next_ns;
    for (const auto& [at, task] : due_)
      next = std::min(next, at);
    sleep(next);
  }
  samples_.next_ns = 0;
  sample(os::monotonic_now());
}

std::uint64_t Rank::wrong_bytes() const {
  std::uint64_t longest = 0;
  for (TaskId id = 0; id < tasks_.size(); ++id)
    if (flows_[id].received) longest = std::max(longest, tasks_[id].bytes);
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < longest; ++i)
    wrong += memory_.target[i] == pattern_at(i) ? 0 : 1;
  return wrong;
}

void Rank::report() const {
  json flows = json::array();
  for (TaskId id = 0; id < tasks_.size(); ++id) {
    if (tasks_[id].source != me_ || tasks_[id].kind != sim::Task::Kind::kTransfer) continue;
    const Flow& flow = flows_[id];
    flows.push_back(
        {id, flow.posted_ns - start_ns_, flow.sent_ns < 0 ? -1 : flow.sent_ns - start_ns_});
  }
  const Counted sum = counted();
  json points = json::array();
  for (const Sample& s : samples_.taken)
    points.push_back({s.at_ns, s.bytes_received, s.bad_paths});
  fmt::print("{}\n", json{{"flows", flows},
                          {"done", done()},
                          {"wrong", wrong_bytes()},
                          {"counters",
                           {{"data_packets", sum.data_packets - before_.data_packets},
                            {"retransmits", sum.retransmits - before_.retransmits},
                            {"spurious", sum.spurious - before_.spurious},
                            {"timeouts", sum.timeouts - before_.timeouts},
                            {"probes", sum.probes - before_.probes}}},
                          {"points", points}}
                         .dump());
  std::fflush(stdout);
}

void Rank::run() {
  plan_lines();
  make_memory();
  mrc_comp_channel* made = nullptr;
  collective::expect_ok("mrc_create_comp_channel",
                        mrc_create_comp_channel(device_.context(), &made));
  events_.reset(made);
  collective::expect_ok("mrc_get_comp_channel_fd",
                        os::errno_of(mrc_get_comp_channel_fd(made, &events_fd_)));
  std::size_t entries = 1;
  for (const Line& line : lines_)
    entries += line.sends + line.receives + 2 * kPings;
  cq_.reset(mrc_create_cq(device_.context(), static_cast<int>(entries), nullptr, made, 0));
  if (!cq_) collective::refuse("mrc_create_cq", errno);
  for (Line& line : lines_)
    create(line);
  connect();
  begin();
  work();
  report();
  rendezvous_.finish();
}

}  // namespace

void run_rank(const Scenario& scenario, const collective::Placement& place) {
  if (place.ranks != scenario.config.topology.hosts)
    throw Failure(fmt::format("the scenario has {} hosts", scenario.config.topology.hosts),
                  FailureKind::kUsage);
  Rank rank(scenario, place);
  try {
    rank.run();
  } catch (const Failure& failure) {
    rank.tell(failure.what());
    throw;
  }
}

}  // namespace mrc::tool::twin
