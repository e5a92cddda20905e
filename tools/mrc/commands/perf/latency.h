// write_lat: one message goes to and fro. Small ones are seen by watching memory, as programs of
// this kind do; ones of several packets, whose bytes may come in any order, carry an immediate.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "collective/exchange.h"
#include "commands/perf/endpoint.h"
#include "commands/perf/memory.h"
#include "commands/perf/plan.h"
#include "commands/perf/watch.h"

namespace mrc::tool::perf {

class PingPong {
 public:
  static constexpr unsigned kSendSlots = 16;
  static std::size_t source_bytes(const Plan& plan);  // registered memory that messages leave from

  PingPong(Endpoint& endpoint, const Layout& layout, const Pattern& own, const Pattern& peers,
           std::span<const std::byte> area, std::span<std::byte> source, bool spin);

  // The client: sends first, measures. The result counts round trips.
  Result run(const Plan& plan, Watch& watch);
  // The server: answers until the client says on `exchange` that it is done.
  void answer(const collective::Exchange& exchange, bool verify);

  // Afterwards: waits for the last completions, and says what is wrong with the data received.
  void drain(double timeout_s);
  std::string check() const;

 private:
  void send();
  bool arrived(bool verify);
  bool arrived_in_memory(bool verify);
  bool arrived_by_immediate(bool verify);
  void reap();

  Endpoint& endpoint_;
  const Layout& layout_;
  const Pattern& own_;
  const Pattern& peers_;
  std::span<const std::byte> area_;
  std::span<std::byte> source_;
  bool immediates_;
  bool spin_;
  std::uint64_t sent_ = 0;
  std::uint64_t signaled_ = 0;  // messages up to the last one with a completion
  std::uint64_t completed_ = 0;
  std::uint64_t received_ = 0;
  unsigned torn_ = 0;
  Patience patience_;
  std::string wrong_;
};

}  // namespace mrc::tool::perf
