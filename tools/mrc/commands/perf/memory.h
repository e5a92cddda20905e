// Where messages land and what they hold.
//
// Each queue pair has a ring of places, each with untouchable bytes behind it. Message number i of
// queue pair q is the stretch of a pseudo-random reference that begins at offset_of(q, i). Both
// sides hold the same reference, so a message needs no making up and any part of it that is wrong,
// of another message, of another queue pair or in the wrong place shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "commands/perf/plan.h"

namespace mrc::tool::perf {

// Memory of its own, zeroed, page aligned. Throws Failure when there is not enough.
class Area {
 public:
  explicit Area(std::size_t bytes);
  ~Area();
  Area(const Area&) = delete;
  Area& operator=(const Area&) = delete;

  std::span<std::byte> bytes() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Placement of the messages of one size. A place is written again only after the sender knows that
// the message before is complete, since MRC may deliver a later write before an earlier one.
class Layout {
 public:
  Layout(const Plan& plan, std::uint64_t message_bytes);

  std::uint64_t message_bytes() const { return message_bytes_; }
  unsigned slots() const { return slots_; }  // per queue pair; most messages in flight
  std::size_t total_bytes() const { return qps_ * slots_ * stride_; }

  std::size_t offset_of(unsigned qp, std::uint64_t message) const {
    return (qp * std::size_t{slots_} + message % slots_) * stride_;
  }
  std::span<const std::byte> message_in(std::span<const std::byte> area, unsigned qp,
                                        std::uint64_t message) const {
    return area.subspan(offset_of(qp, message), message_bytes_);
  }
  std::span<const std::byte> guard_in(std::span<const std::byte> area, unsigned qp,
                                      std::uint64_t message) const {
    return area.subspan(offset_of(qp, message) + message_bytes_, stride_ - message_bytes_);
  }

 private:
  std::uint64_t message_bytes_;
  std::size_t qps_;
  std::size_t stride_;
  unsigned slots_;
};

// Enough for all sizes of a plan. Throws Failure above a sane limit.
std::size_t area_bytes(const Plan& plan);

// Bytes that tell where they belong.
class Pattern {
 public:
  // For messages of up to `max_bytes`.
  Pattern(std::uint64_t seed, std::uint64_t max_bytes);

  std::span<std::byte> reference() { return bytes_; }
  static std::size_t offset_of(unsigned qp, std::uint64_t message);
  std::span<const std::byte> message(unsigned qp, std::uint64_t number, std::size_t bytes) const;

  // Empty when `found` is that message, else where it differs.
  std::string difference(unsigned qp, std::uint64_t number, std::span<const std::byte> found) const;
  // The same for the two ends and some places in between only.
  std::string sampled_difference(unsigned qp, std::uint64_t number,
                                 std::span<const std::byte> found) const;

 private:
  std::vector<std::byte> bytes_;
};

// Memory that nobody may write: filled and checked with one value.
constexpr std::byte kGuard{0xa5};
void fill_guard(std::span<std::byte> memory);
bool guard_intact(std::span<const std::byte> memory);

// Before a measurement: every byte that messages of this layout may reach gets the guard value.
void prepare_area(std::span<std::byte> area, const Layout& layout);

// After it: `counts` messages came per queue pair, so each place holds the last one that belongs
// there, places never used and the bytes between places are untouched. Empty when all is well, else
// the first thing that is wrong.
std::string check_area(std::span<const std::byte> area, const Layout& layout,
                       const Pattern& expected, const std::vector<std::uint64_t>& counts);

}  // namespace mrc::tool::perf
