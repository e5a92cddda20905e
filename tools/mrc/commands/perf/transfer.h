// Messages in a stream, from both ends: the sender keeps all queue pairs full of writes and
// measures what completes; the receiver of write_imm takes immediates in order, looks at the data
// and gives room back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collective/exchange.h"
#include "commands/perf/endpoint.h"
#include "commands/perf/memory.h"
#include "commands/perf/plan.h"
#include "commands/perf/watch.h"

namespace mrc::tool::perf {

struct SenderOptions {
  const Plan& plan;
  const Layout& layout;
  const Pattern& source;
  unsigned signal_every = 0;  // 0 = a good value
  // write_imm: how many messages the peer has room for, one word per queue pair, written by it.
  std::span<const std::byte> credits;
  WaitSampler* waits = nullptr;  // --explain
};

// Keeps all queue pairs full of writes and measures what completes.
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
  double acknowledged_bytes() const;
  void begin_peak(std::int64_t now);
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
  double peak_from_bytes_ = 0;
  double peak_bytes_per_second_ = 0;
  Patience patience_;
};

// The receiving side of write_imm.
class ImmediateReceiver {
 public:
  // `credits` is registered memory of ours, Sender::kCreditBytes for each queue pair, from which
  // the room we have is written to the beginning of the sender's memory.
  ImmediateReceiver(Endpoint& endpoint, const Plan& plan, const Layout& layout,
                    const Pattern& expected, std::span<const std::byte> area,
                    std::span<std::byte> credits);

  // Tells the sender how much room there is; receives are posted already.
  void open();
  // Takes messages until the sender says on `exchange` that it is done.
  void run(const collective::Exchange& exchange);
  // Takes what is left of `counts` messages per queue pair.
  void finish(const std::vector<std::uint64_t>& counts, double timeout_s);

  const std::string& wrong() const { return wrong_; }  // the first wrong thing, else empty
  std::uint64_t taken() const { return taken_; }

 private:
  struct Flow {
    std::uint64_t taken = 0;
    std::uint64_t granted = 0;
    bool granting = false;  // a grant is under way; its word must not change
  };

  void step();
  void take(const ibv_wc& wc);
  void grant(unsigned qp);

  Endpoint& endpoint_;
  const Plan& plan_;
  const Layout& layout_;
  const Pattern& expected_;
  std::span<const std::byte> area_;
  std::span<std::byte> credits_;
  std::vector<Flow> flows_;
  std::uint64_t taken_ = 0;
  std::string wrong_;
  Patience patience_;
};

}  // namespace mrc::tool::perf
