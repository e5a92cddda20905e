#include "commands/perf/collective_data.h"

#include <cstring>

#include "collective/collectives.h"

namespace mrc::tool::perf {
namespace {

using collective::Collectives;
using collective::Element;

// 0 to 255: sums over 1,024 ranks, rank numbers included, stay below 2^24, which a float holds.
std::uint64_t base_of(std::uint64_t index, std::uint64_t round) {
  constexpr std::uint64_t kIndexFactor = 0x9e37'79b9'7f4a'7c15;
  constexpr std::uint64_t kRoundFactor = 0xc2b2'ae3d'27d4'eb4f;
  return (index * kIndexFactor + round * kRoundFactor) >> 56;
}

// Position `index` of the buffer of rank `rank` before the operation.
std::uint64_t input(std::uint64_t index, unsigned rank, std::uint64_t round) {
  return base_of(index, round) + rank;
}

// The part of the buffer that the operation defines at this rank.
struct Part {
  std::size_t first = 0;  // element
  std::size_t count = 0;
};

Part result_part(const Round& round, std::span<std::byte> buffer) {
  const std::size_t each = collective::bytes_of(round.element);
  if (round.operation != Operation::kReduceScatter) return {0, buffer.size() / each};
  const auto own = Collectives::segment_of(buffer, round.element, round.ranks, round.rank);
  if (own.empty()) return {};
  return {static_cast<std::size_t>(own.data() - buffer.data()) / each, own.size() / each};
}

std::uint64_t expected(const Round& round, std::size_t index, std::size_t segment_elements) {
  const std::uint64_t n = round.ranks;
  switch (round.operation) {
    case Operation::kAllReduce:
    case Operation::kReduceScatter:
      return n * base_of(index, round.number) + n * (n - 1) / 2;
    case Operation::kAllGather:
      return input(index, static_cast<unsigned>(index / segment_elements), round.number);
    case Operation::kAllToAll: {
      const std::size_t from = index / segment_elements;
      const std::size_t there = round.rank * segment_elements + index % segment_elements;
      return input(there, static_cast<unsigned>(from), round.number);
    }
  }
  return 0;
}

template <typename T>
void fill_as(const Round& round, std::span<std::byte> buffer) {
  for (std::size_t i = 0; i < buffer.size() / sizeof(T); ++i) {
    const auto value = static_cast<T>(input(i, round.rank, round.number));
    std::memcpy(buffer.data() + i * sizeof(T), &value, sizeof(T));
  }
}

template <typename T>
std::uint64_t count_as(const Round& round, std::span<std::byte> buffer) {
  const std::size_t elements = buffer.size() / sizeof(T);
  const std::size_t segment = (elements + round.ranks - 1) / round.ranks;
  const Part part = result_part(round, buffer);
  std::uint64_t wrong = 0;
  for (std::size_t i = part.first; i < part.first + part.count; ++i) {
    T found;
    std::memcpy(&found, buffer.data() + i * sizeof(T), sizeof(T));
    wrong += found != static_cast<T>(expected(round, i, segment)) ? 1 : 0;
  }
  return wrong;
}

}  // namespace

const char* name_of(Operation operation) {
  switch (operation) {
    case Operation::kAllReduce:
      return "allreduce";
    case Operation::kReduceScatter:
      return "reduce_scatter";
    case Operation::kAllGather:
      return "allgather";
    case Operation::kAllToAll:
      return "alltoall";
  }
  return "?";
}

double bus_factor(Operation operation, unsigned ranks) {
  const double share = static_cast<double>(ranks - 1) / ranks;
  return operation == Operation::kAllReduce ? 2 * share : share;
}

void fill(const Round& round, std::span<std::byte> buffer) {
  switch (round.element) {
    case Element::kInt32:
      return fill_as<std::int32_t>(round, buffer);
    case Element::kInt64:
      return fill_as<std::int64_t>(round, buffer);
    case Element::kFloat:
      return fill_as<float>(round, buffer);
    case Element::kDouble:
      return fill_as<double>(round, buffer);
  }
}

std::uint64_t count_wrong(const Round& round, std::span<std::byte> buffer) {
  switch (round.element) {
    case Element::kInt32:
      return count_as<std::int32_t>(round, buffer);
    case Element::kInt64:
      return count_as<std::int64_t>(round, buffer);
    case Element::kFloat:
      return count_as<float>(round, buffer);
    case Element::kDouble:
      return count_as<double>(round, buffer);
  }
  return 0;
}

}  // namespace mrc::tool::perf
