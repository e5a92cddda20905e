// Keeps all queue pairs full of writes and measures what completes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "perf/endpoint.h"
#include "perf/memory.h"
#include "perf/patience.h"
#include "perf/pattern.h"
#include "perf/result.h"
#include "perf/watch.h"

namespace mrc::tool::perf {

struct SenderOptions {
  const Plan& plan;
  const Layout& layout;
  const Pattern& source;
  unsigned signal_every = 0;  // 0 = a good value
  // write_imm: how many messages the peer has room for, one word per queue pair, written by it.
  std::span<const std::byte> credits;
};

class Sender {
 public:
  // Distance of the words in `credits`.
  static constexpr std::size_t kCreditBytes = 64;

  Sender(Endpoint& endpoint, const SenderOptions& options);

  // Returns when everything posted is complete.
  Result run(Watch& watch);
  // Messages written so far, per queue pair, measured or not.
  std::vector<std::uint64_t> counts() const;

 private:
  struct Flow {
    std::uint64_t posted = 0;
    std::uint64_t signaled = 0;  // messages up to the last one with a completion
    std::uint64_t completed = 0;
  };

  bool by_time() const { return options_.plan.seconds > 0; }
  std::uint64_t allowed(unsigned qp) const;
  void post(unsigned qp, std::uint64_t count, bool last);
  void post_all();
  void reap();
  void measure(Watch& watch, Result& result);
  void drain(Watch& watch);
  double share(std::int64_t now) const;
  void note_peak(std::int64_t now);

  Endpoint& endpoint_;
  SenderOptions options_;
  std::vector<Flow> flows_;
  std::uint64_t window_;
  std::uint64_t signal_every_;
  std::uint64_t total_ = 0;      // of all flows, by iterations
  std::uint64_t completed_ = 0;  // of all flows
  std::int64_t begin_ns_ = 0;
  std::int64_t peak_ns_ = 0;
  std::uint64_t peak_completed_ = 0;
  double peak_per_second_ = 0;
  Patience patience_;
};

}  // namespace mrc::tool::perf
