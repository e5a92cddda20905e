// The receiving side of write_imm: takes immediates in order, looks at the data, gives room back.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collective/exchange.h"
#include "perf/endpoint.h"
#include "perf/memory.h"
#include "perf/patience.h"
#include "perf/pattern.h"

namespace mrc::tool::perf {

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
