#include <algorithm>

#include "commands/perf/losses.h"

namespace mrc::tool::perf {

void settle(Losses& own, Losses& theirs) {
  const auto missing = [](const QpLosses& sender, const QpLosses& receiver) {
    const std::uint64_t known = receiver.arrived + sender.trimmed + sender.refused;
    return sender.packets > known ? sender.packets - known : 0;
  };
  for (std::size_t i = 0; i < std::min(own.queue_pairs.size(), theirs.queue_pairs.size()); ++i) {
    QpLosses& a = own.queue_pairs[i];
    QpLosses& b = theirs.queue_pairs[i];
    a.lost = missing(a, b);
    b.lost = missing(b, a);
  }
}

}  // namespace mrc::tool::perf
