#include "perf/verify.h"

#include <fmt/core.h>

namespace mrc::tool::perf {
namespace {

// `slot` is the number of a place, and of the first message that belongs there.
std::string check_slot(std::span<const std::byte> area, const Layout& layout,
                       const Pattern& expected, unsigned qp, std::uint64_t slot,
                       std::uint64_t count) {
  if (!guard_intact(layout.guard_in(area, qp, slot)))
    return fmt::format("bytes behind place {} of queue pair {} were written to", slot, qp);
  const auto found = layout.message_in(area, qp, slot);
  if (count > slot) {
    const std::uint64_t rounds = (count - 1 - slot) / layout.slots();
    return expected.difference(qp, slot + rounds * layout.slots(), found);
  }
  if (guard_intact(found)) return {};
  return fmt::format("place {} of queue pair {} was written to without a message", slot, qp);
}

}  // namespace

void prepare_area(std::span<std::byte> area, const Layout& layout) {
  fill_guard(area.first(layout.total_bytes()));
}

std::string check_area(std::span<const std::byte> area, const Layout& layout,
                       const Pattern& expected, const std::vector<std::uint64_t>& counts) {
  for (unsigned qp = 0; qp < counts.size(); ++qp) {
    for (std::uint64_t slot = 0; slot < layout.slots(); ++slot) {
      std::string wrong = check_slot(area, layout, expected, qp, slot, counts[qp]);
      if (!wrong.empty()) return wrong;
    }
  }
  return {};
}

}  // namespace mrc::tool::perf
