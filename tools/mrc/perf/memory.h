// Where messages land: each queue pair has a ring of places, each with untouchable bytes behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "perf/options.h"

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

}  // namespace mrc::tool::perf
