// The history of a run: an order-sensitive hash of everything that matters, and, on demand, a log
// that people can read.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "base/types.h"
#include "core/endpoint.h"
#include "dst/fault.h"
#include "dst/flight.h"

namespace mrc::dst {

class Trace {
 public:
  // Nothing is printed when `log` is null.
  explicit Trace(std::FILE* log) : log_(log) {}

  bool logging() const { return log_ != nullptr; }
  std::uint64_t hash() const { return hash_; }
  std::uint64_t packets() const { return packets_; }

  void sent(TimeNs now, const Flight& flight);
  void arrived(TimeNs now, const Flight& flight, const core::RxResult& result);
  void completed(TimeNs now, unsigned host, const core::Completion& completion);
  void event(TimeNs now, unsigned host, const core::Event& event);
  // A fault struck this packet.
  void fault(TimeNs now, const Flight& flight, Fault kind);
  // Anything else; log only.
  void say(TimeNs now, const char* format, ...) __attribute__((format(printf, 3, 4)));

 private:
  void fold(std::uint64_t value) {
    hash_ = (hash_ ^ value) * 0x9DDF'EA08'EB38'2D69 + (hash_ >> 29);
  }
  void fold_packet(TimeNs now, const Flight& flight);
  void line(TimeNs now, const std::string& text);

  std::FILE* log_;
  std::uint64_t hash_ = 0x243F'6A88'85A3'08D3;
  std::uint64_t packets_ = 0;
};

// "SACK qp 0x12 psn 0x000004 cack 0x000004 ..." without addresses.
std::string describe(const wire::Packet& packet);

}  // namespace mrc::dst
