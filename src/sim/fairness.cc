#include "sim/fairness.h"

#include <algorithm>
#include <numeric>

namespace mrc::sim {
namespace {

std::vector<double> shares_between(const Series& series, std::size_t from, std::size_t until) {
  std::vector<double> shares(series.planes());
  for (unsigned flow = 0; flow < series.planes(); ++flow)
    for (std::size_t bin = from; bin < until; ++bin)
      shares[flow] += static_cast<double>(series.bytes(flow, bin));
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares)
    share = all > 0 ? share / all : 0;
  return shares;
}

}  // namespace

double jain_index(const std::vector<double>& amounts) {
  double sum = 0;
  double squares = 0;
  for (const double amount : amounts) {
    sum += amount;
    squares += amount * amount;
  }
  return squares > 0 ? sum * sum / (static_cast<double>(amounts.size()) * squares) : 1;
}

std::optional<FairnessReport> measure_fairness(const Workload& workload, const SimResult& result) {
  const Series& series = result.shares;
  if (series.planes() == 0) return {};
  Time last_post = 0;
  Time first_end = kEndOfTime;
  for (TaskId id = 0; id < workload.tasks.size(); ++id) {
    const FlowResult& flow = result.flows[id];
    if (flow.posted < 0 || flow.sent < 0 || flow.failed) return {};
    last_post = std::max(last_post, flow.posted);
    first_end = std::min(first_end, flow.sent);
  }
  const auto from = static_cast<std::size_t>((last_post + series.bin_ps() - 1) / series.bin_ps());
  const auto until = static_cast<std::size_t>(first_end / series.bin_ps());
  if (last_post >= first_end || until < from + FairnessReport::kSlices) return {};
  FairnessReport report;
  report.from_us = static_cast<double>(from) * static_cast<double>(series.bin_ps()) / 1e6;
  report.until_us = static_cast<double>(until) * static_cast<double>(series.bin_ps()) / 1e6;
  report.share = shares_between(series, from, until);
  report.jain = jain_index(report.share);
  for (unsigned i = 0; i < FairnessReport::kSlices; ++i) {
    const std::size_t count = until - from;
    report.slices.push_back(shares_between(series, from + count * i / FairnessReport::kSlices,
                                           from + count * (i + 1) / FairnessReport::kSlices));
    report.jain_worst = std::min(report.jain_worst, jain_index(report.slices.back()));
  }
  return report;
}

}  // namespace mrc::sim
