#include "commands/demo/goodput.h"

#include <algorithm>

namespace mrc::tool::demo {
namespace {

constexpr double kStepS = 0.1;
constexpr double kWindowS = 0.2;
constexpr double kSettledS = 0.4;  // so long the rate must hold to count as recovered
constexpr double kBeforeS = 1.5;
constexpr double kEnough = 0.7;  // of the rate that a fault leaves; the rest is noise of a machine
constexpr double kStalled = 0.05;

}  // namespace

void Goodput::add(unsigned rank, double at_s, std::uint64_t bytes) {
  ranks_.at(rank).push_back({at_s, static_cast<double>(bytes)});
}

std::uint64_t Goodput::bytes() const {
  double sum = 0;
  for (const auto& points : ranks_)
    if (!points.empty()) sum += points.back().bytes;
  return static_cast<std::uint64_t>(sum);
}

// Between two reports of a rank its bytes are taken to have come evenly.
double Goodput::bytes_until(double at_s) const {
  double sum = 0;
  for (const auto& points : ranks_) {
    const auto after = std::upper_bound(points.begin(), points.end(), at_s,
                                        [](double at, const Point& p) { return at < p.at_s; });
    if (after == points.begin()) continue;
    const Point& left = *(after - 1);
    sum += left.bytes;
    if (after == points.end()) continue;
    sum += (after->bytes - left.bytes) * (at_s - left.at_s) / (after->at_s - left.at_s);
  }
  return sum;
}

double Goodput::rate(double from_s, double to_s) const {
  return to_s > from_s ? (bytes_until(to_s) - bytes_until(from_s)) / (to_s - from_s) : 0;
}

FaultEffect effect_of(const Goodput& goodput, const FaultWindow& window) {
  FaultEffect effect;
  effect.before = goodput.rate(window.start_s - kBeforeS, window.start_s);
  if (effect.before <= 0) return effect;
  const double enough = kEnough * window.share_left * effect.before;
  const auto rate_at = [&](double at_s, double length_s) {
    return goodput.rate(at_s, std::min(at_s + length_s, window.end_s));
  };
  effect.worst = 1;
  effect.recovered = true;
  double stall_s = 0;
  bool dipped = false;
  for (double at_s = window.start_s; at_s + kWindowS <= window.end_s; at_s += kStepS) {
    const double rate = rate_at(at_s, kWindowS);
    const bool stalls = rate < kStalled * effect.before;
    effect.worst = std::min(effect.worst, rate / effect.before);
    stall_s = stalls ? stall_s + kStepS : 0;
    effect.stall_s = std::max(effect.stall_s, stall_s);
    // A later dip may be noise of the machine, standing still is not.
    if (stalls || (!dipped && rate < enough)) {
      dipped = true;
      effect.recovered = false;
    }
    if (!effect.recovered && rate >= enough && rate_at(at_s, kSettledS) >= enough) {
      effect.recovered = true;
      effect.recovery_s = at_s - window.start_s;
    }
  }
  if (!effect.recovered) effect.recovery_s = window.end_s - window.start_s;
  return effect;
}

}  // namespace mrc::tool::demo
