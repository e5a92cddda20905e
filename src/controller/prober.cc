#include "controller/prober.h"
#include "controller/peer_probe.h"
#include "os/errors.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <iterator>
#include <mutex>
#include <set>
#include <thread>

namespace mrc::controller {
namespace {

using Clock = std::chrono::steady_clock;

// A round waits for its slowest answer, so that several must be under way to keep the rate where
// probes get lost. They sleep nearly all the time.
constexpr unsigned kWorkers = 32;
// A loop from which so many probes in a row stay away is dead until one comes back. It is looked at
// every sixteenth round only: no more evidence is needed, and waiting for it takes time.
constexpr unsigned kSilent = 8;
constexpr unsigned kSilentEvery = 16;
// Where nothing is answered for a moment, the host or its network is busy with something else. So
// few rounds are sent meanwhile that none is lost for lack of room: what is told is about cables.
constexpr std::size_t kUnanswered = 4;
constexpr Clock::duration kMoment = std::chrono::milliseconds(500);

}  // namespace

// What the threads of one run share.
class Prober::Run {
 public:
  Run(Prober& prober, unsigned rounds)
      : prober_(&prober),
        rounds_(rounds),
        interval_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
            static_cast<double>(prober.targets_.size()) / prober.settings_.rate))) {}

  void work() {
    try {
      std::vector<std::size_t> chosen;
      Clock::time_point start;
      while (next_round(chosen, start)) {
        std::this_thread::sleep_until(start);
        send(chosen);
        const std::lock_guard lock(mutex_);
        under_way_.erase(under_way_.find(start));
        settled_.notify_one();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      settled_.notify_all();
    }
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  bool next_round(std::vector<std::size_t>& chosen, Clock::time_point& start) {
    std::unique_lock lock(mutex_);
    const auto recent = [this] {
      const auto first = under_way_.lower_bound(Clock::now() - kMoment);
      return static_cast<std::size_t>(std::distance(first, under_way_.end()));
    };
    while (!failure_ && done_ < rounds_ && recent() >= kUnanswered)
      settled_.wait_for(lock, kMoment / 10);
    if (failure_ || done_ == rounds_) return false;
    // Never faster than the rate, not even to make up for lost time.
    start = next_start_ = std::max(Clock::now(), next_start_ + interval_);
    chosen.clear();
    for (std::size_t i = 0; i < prober_->targets_.size(); ++i) {
      Target& target = prober_->targets_[i];
      if (target.silent >= kSilent && done_ % kSilentEvery != 0) continue;
      chosen.push_back(i);
    }
    ++done_;
    under_way_.insert(start);
    return true;
  }

  void send(const std::vector<std::size_t>& chosen) {
    if (chosen.empty()) return;
    std::vector<mrc_ctl_ep_req> requests;
    requests.reserve(chosen.size());
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      requests.push_back(prober_->targets_[chosen[i]].request);
      requests.back().req_id = static_cast<std::uint16_t>(i);
    }
    std::vector<mrc_ctl_ep_rsp> answers(requests.size());
    int count = 0;
    const int error = os::errno_of(mrc_ctl_ep_batch_send_wait(
        prober_->session_->context(), prober_->session_->control_dscp(), MRC_CTL_EP_OP_EV_PROBE,
        requests.data(), static_cast<int>(requests.size()),
        probe_timeout_ns(prober_->settings_.timeout_s), answers.data(), &count));
    if (error != ETIMEDOUT) prober_->session_->check(error, "probes");
    std::vector<bool> answered(chosen.size());
    for (int i = 0; i < count; ++i)
      answered[answers[static_cast<std::size_t>(i)].req_id] = true;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      Target& target = prober_->targets_[chosen[i]];
      ++target.sent;
      if (answered[i]) ++target.answered;
      target.silent = answered[i] ? 0 : target.silent + 1;
    }
  }

  Prober* prober_;
  unsigned rounds_;
  Clock::duration interval_;
  std::mutex mutex_;
  unsigned done_ = 0;
  Clock::time_point next_start_;
  std::multiset<Clock::time_point> under_way_;  // rounds without all their answers, by their start
  std::condition_variable settled_;
  std::exception_ptr failure_;
};

Prober::Prober(const Session& session, const fabric::Routing& routing,
               const std::vector<fabric::Loop>& loops, const ProbeSettings& settings)
    : session_(&session), settings_(settings) {
  for (const fabric::Loop& loop : loops) {
    Target target;
    target.loop = loop;
    target.request.sgid = target.request.dgid = session.gid();
    target.request.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_SRV6;
    const wire::IpAddress carrier = fabric::loop_carrier(routing, loop);
    std::copy(carrier.bytes.begin(), carrier.bytes.end(), target.request.req_ev.val);
    target.request.req_ev.port = static_cast<std::uint8_t>(loop.path.plane + 1);
    targets_.push_back(target);
  }
}

std::vector<fabric::LoopResult> Prober::run(unsigned rounds) {
  for (Target& target : targets_)
    target.sent = target.answered = 0;
  Run run(*this, rounds);
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 0; i < std::min(kWorkers, rounds); ++i)
      workers.emplace_back([&run] { run.work(); });
  }
  run.rethrow();
  std::vector<fabric::LoopResult> results;
  for (const Target& target : targets_)
    results.push_back({target.loop, target.sent, target.answered});
  return results;
}

unsigned Prober::rounds_in(double seconds) const {
  const double rounds = seconds * settings_.rate / static_cast<double>(targets_.size());
  return static_cast<unsigned>(std::clamp(rounds, 1.0, 1e9));
}

}  // namespace mrc::controller
