// What ranks put into a collective, and what must come out: small whole numbers that every type
// holds exactly, different for each place, rank and round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "collective/element.h"

namespace mrc::tool::perf {

enum class Operation : std::uint8_t { kAllReduce, kReduceScatter, kAllGather, kAllToAll };

const char* name_of(Operation operation);
// Bytes over the busiest link for each byte of the buffer, by which nccl-tests makes bandwidths of
// different operations comparable.
double bus_factor(Operation operation, unsigned ranks);

struct Round {
  Operation operation = Operation::kAllReduce;
  collective::Element element = collective::Element::kFloat;
  unsigned rank = 0;
  unsigned ranks = 1;
  std::uint64_t number = 0;  // of this round
};

void fill(const Round& round, std::span<std::byte> buffer);
// Elements of the result that are not what they must be.
std::uint64_t count_wrong(const Round& round, std::span<std::byte> buffer);

}  // namespace mrc::tool::perf
