#include "commands/demo/drill.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>

#include "failure.h"
#include "os/interrupt.h"

namespace mrc::tool::demo {
namespace {

using nlohmann::json;

constexpr int kPollMs = 20;
constexpr double kStatusEveryS = 0.25;
constexpr double kRateOverS = 0.5;
// A frame between hosts behind different T0 passes four links.
constexpr double kLinksOnTheWay = 4;
constexpr double kPatienceS = 60;
constexpr const char* kBufferBytes = "4M";

double clock_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string lab_name(Transport transport) {
  return fmt::format("demo{}-{}", transport == Transport::kMrc ? "" : "1", ::getpid());
}

lab::ClusterOptions cluster_options(const Options& options, Transport transport) {
  lab::ClusterOptions cluster;
  cluster.topology = topology_of(options, transport);
  return cluster;
}

std::string address_of(const Page* page) {
  if (page == nullptr) return "none, this build has none";
  return page->url().empty() ? "none, " + page->complaint() : page->url();
}

}  // namespace

// What a rank of the all-reduce said last.
struct Drill::RankState {
  std::uint64_t good = 0;
  std::uint64_t skipped = 0;
  std::uint64_t bad = 0;
  std::uint64_t retransmitted = 0;
  std::uint64_t rounds = 0;
  std::uint64_t checked_bytes = 0;
  std::uint64_t wrong = 0;
};

struct Drill::Running {
  std::unique_ptr<RankGroup> training;
  std::unique_ptr<RankGroup> all_reduces;
};

Drill::Drill(const Options& options, Transport transport, Show& show, PagePlace& place)
    : options_(options),
      transport_(transport),
      show_(show),
      lab_(lab_name(transport), cluster_options(options, transport)),
      page_(make_page_part(lab_.directory(), place)),
      ring_(ring_of(options.hosts)),
      start_s_(clock_s()),
      goodput_(options.hosts),
      ranks_(options.hosts) {
  result_.transport = transport;
  show_.address(address_of(page_.get()));
  snapshot_.steps = options.steps();
  snapshot_.plane_full_bits_per_second =
      static_cast<double>(topology_of(options, transport).host_link.bits_per_second) *
      options.hosts;
}

Drill::~Drill() = default;

double Drill::now_s() const { return clock_s() - start_s_; }

std::vector<std::string> Drill::command(const std::vector<std::string>& words) const {
  std::vector<std::string> all;
  if (transport_ == Transport::kSinglePath) all = {"env", "MRC_EVS=1"};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

std::unique_ptr<RankGroup> Drill::start_training(unsigned pace_ms) const {
  return std::make_unique<RankGroup>(
      lab_.directory(),
      RankGroupOptions{.hosts = ring_,
                       .command = command({options_.training, "--json", "--steps",
                                           std::to_string(options_.steps()), "--pace-ms",
                                           std::to_string(pace_ms)})});
}

std::unique_ptr<RankGroup> Drill::start_all_reduces() const {
  return std::make_unique<RankGroup>(
      lab_.directory(),
      RankGroupOptions{
          .hosts = ring_,
          .command = command({own_program(), "perf", "allreduce", "-b", kBufferBytes, "-e",
                              kBufferBytes, "-w", "0", "-D", "3600", "--report-every", "0.1"})});
}

void Drill::take_training_line(const std::string& line) {
  const json message = json::parse(line, nullptr, false);
  if (!message.is_object()) return;
  if (message.contains("parameters")) result_.losses.push_back(message["parameters"]);
  if (!message.contains("bits")) return;
  result_.losses.push_back(message["bits"]);
  snapshot_.step = message.value("step", std::uint64_t{0}) + 1;
  snapshot_.loss = message.value("loss", 0.0);
  if (snapshot_.step == 1) result_.first_loss = snapshot_.loss;
  result_.last_loss = snapshot_.loss;
}

void Drill::take_interval(unsigned rank, const std::string& line) {
  const json message = json::parse(line, nullptr, false);
  if (!message.is_object()) return;
  if (message.contains("results")) return take_all_reduce_result(message);
  if (!message.contains("interval")) return;
  const auto number = [](const json& object, const char* key) {
    return object.value(key, std::uint64_t{0});
  };
  const json paths = message.value("paths", json::object());
  ranks_[rank] = {.good = number(paths, "good"),
                  .skipped = number(paths, "skipped"),
                  .bad = number(paths, "bad"),
                  .retransmitted = number(message, "retransmitted"),
                  .rounds = number(message, "rounds"),
                  .checked_bytes = number(message, "checked_bytes"),
                  .wrong = number(message, "wrong")};
  goodput_.add(rank, message.value("clock_s", 0.0) - start_s_, number(message, "received_bytes"));
}

// Rank 0 speaks for all ranks at the end.
void Drill::take_all_reduce_result(const json& message) {
  result_.wrong = message.value("wrong", std::uint64_t{0});
  for (const json& row : message["results"]) {
    const auto rounds = row.value("rounds", std::uint64_t{0});
    result_.rounds += rounds;
    result_.checked_bytes += rounds * row.value("size_bytes", std::uint64_t{0}) * options_.hosts;
  }
}

void Drill::look(RankGroup* training, RankGroup* all_reduces) {
  if (os::Interrupt::raised()) throw Failure("interrupted", FailureKind::kInterrupted);
  if (all_reduces != nullptr)
    all_reduces->poll(
        kPollMs, [this](unsigned rank, const std::string& line) { take_interval(rank, line); });
  if (training != nullptr)
    training->poll(
        all_reduces == nullptr ? kPollMs : 0,
        [this](unsigned /*rank*/, const std::string& line) { take_training_line(line); });
  draw();
}

void Drill::draw() {
  const double now = now_s();
  if (now - last_status_s_ < kStatusEveryS) return;
  const LabStatus status = ask_status(lab_.control());
  snapshot_.plane_bits_per_second.assign(status.planes.size(), 0);
  for (std::size_t i = 0; i < last_status_.planes.size() && i < status.planes.size(); ++i) {
    const auto bytes = static_cast<double>(status.planes[i].bytes - last_status_.planes[i].bytes);
    snapshot_.plane_bits_per_second[i] = bytes * 8 / kLinksOnTheWay / (now - last_status_s_);
  }
  last_status_ = status;
  last_status_s_ = now;
  RankState sum;
  for (const RankState& rank : ranks_) {
    sum.good += rank.good;
    sum.skipped += rank.skipped;
    sum.bad += rank.bad;
    sum.retransmitted += rank.retransmitted;
    sum.checked_bytes += rank.checked_bytes;
    sum.wrong += rank.wrong;
  }
  snapshot_.paths_good = sum.good;
  snapshot_.paths_skipped = sum.skipped;
  snapshot_.paths_bad = sum.bad;
  snapshot_.retransmitted = sum.retransmitted;
  snapshot_.rounds = ranks_.front().rounds;
  snapshot_.checked_bytes = sum.checked_bytes;
  snapshot_.wrong = sum.wrong;
  snapshot_.goodput_bits_per_second = goodput_.rate(now - 2 * kRateOverS, now - kRateOverS) * 8;
  show_.update(now, snapshot_);
}

std::vector<std::string> Drill::undisturbed_losses() {
  const std::unique_ptr<RankGroup> training = start_training(0);
  while (training->running())
    look(training.get(), nullptr);
  if (training->result() != 0) throw Failure("training: " + training->complaint());
  show_.event(now_s(), fmt::format("training without faults: {} steps, loss {:.4f} to {:.4f}",
                                   options_.steps(), result_.first_loss, result_.last_loss));
  return std::exchange(result_.losses, {});
}

void Drill::look_until(double end_s, Running& running) {
  while (now_s() < end_s)
    look(running.training.get(), running.all_reduces.get());
}

void Drill::ask(const std::vector<std::string>& words) {
  const lab::Reply reply = lab_.control().ask(words);
  if (!reply.ok) throw Failure("lab: " + reply.text);
}

void Drill::break_and_mend(Running& running) {
  for (const PlannedFault& planned : faults_of(options_, transport_)) {
    const double start_s = now_s();
    ask({"fault", planned.fault});
    show_.event(start_s, planned.begins);
    look_until(start_s + options_.fault_s, running);
    if (!planned.heals.empty()) ask({"heal", planned.heals});
    show_.event(now_s(), planned.ends);
    look_until(start_s + 2 * options_.fault_s, running);
    result_.faults.push_back({planned, start_s, {}});
  }
}

// Training goes to its end, the loop of all-reduces is told to stop.
void Drill::finish(Running& running) {
  double deadline_s = now_s() + kPatienceS;
  while (running.training->running() && now_s() < deadline_s)
    look(running.training.get(), running.all_reduces.get());
  if (running.training->running())
    result_.interruptions.push_back("training does not come to its end");
  if (running.training->result() != 0)
    result_.interruptions.push_back("training: " + running.training->complaint());
  show_.event(now_s(), "training has ended, the all-reduces are told to end");
  running.all_reduces->signal(SIGTERM);
  deadline_s = now_s() + kPatienceS;
  while (running.all_reduces->running() && now_s() < deadline_s)
    look(nullptr, running.all_reduces.get());
  if (running.all_reduces->running())
    result_.interruptions.push_back("the all-reduces do not come to their end");
  const int code = running.all_reduces->result();
  if (code != 0 && code != static_cast<int>(ExitCode::kInterrupted))
    result_.interruptions.push_back("all-reduce: " + running.all_reduces->complaint());
}

DrillResult Drill::run() {
  Running running{start_training(Options::kStepMs), start_all_reduces()};
  const double begin_s = now_s();
  // Faults meet a job that is under way.
  while (goodput_.bytes() == 0 && running.all_reduces->running())
    look(running.training.get(), running.all_reduces.get());
  look_until(now_s() + options_.warm_up_s(), running);
  if (snapshot_.paths_bad > 0) {
    show_.event(now_s(), fmt::format("{} paths are called bad though nothing is broken yet",
                                     snapshot_.paths_bad));
  }
  break_and_mend(running);
  const double end_s = now_s();
  finish(running);
  for (std::size_t i = 0; i < result_.faults.size(); ++i) {
    FaultResult& fault = result_.faults[i];
    const double until_s = i + 1 < result_.faults.size() ? result_.faults[i + 1].start_s : end_s;
    fault.effect = effect_of(
        goodput_,
        {.start_s = fault.start_s, .end_s = until_s, .share_left = fault.planned.share_left});
  }
  result_.moved_bytes = goodput_.bytes();
  result_.wrong = std::max(result_.wrong, snapshot_.wrong);
  result_.retransmitted = snapshot_.retransmitted;
  result_.seconds = now_s() - begin_s;
  return std::move(result_);
}

}  // namespace mrc::tool::demo
