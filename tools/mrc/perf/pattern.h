// Bytes that tell where they belong.
//
// Message number i of queue pair q is the stretch of a pseudo-random reference that begins at
// offset_of(q, i). Both sides hold the same reference, so a message needs no making up and any part
// of it that is wrong, of another message, of another queue pair or in the wrong place shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mrc::tool::perf {

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

}  // namespace mrc::tool::perf
