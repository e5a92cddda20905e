#include "map/verdict.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "fabric/input_error.h"
#include "text.h"

namespace mrc::tool::map {
namespace {

using Json = nlohmann::ordered_json;
using fabric::Finding;
using fabric::NodeKind;
using fabric::Part;

const char* kind_of(const Part& part) {
  if (!part.cable) return "switch";
  return part.lower.kind == NodeKind::kHost ? "port" : "cable";
}

Json names(const std::vector<Part>& parts) {
  Json list = Json::array();
  for (const Part& part : parts)
    list.push_back(fabric::part_name(part));
  return list;
}

Json finding_json(const Finding& finding) {
  return {{"part", fabric::part_name(finding.part)},
          {"kind", kind_of(finding.part)},
          {"state", finding.down() ? "down" : "lossy"},
          {"loss", finding.loss},
          {"loss_low", finding.loss_low},
          {"loss_high", finding.loss_high},
          {"confidence", 0.95},
          {"evidence", finding.evidence},
          {"or", names(finding.or_else)}};
}

std::string share(double value) {
  return value >= 0.0995 ? fmt::format("{:.0f} %", value * 100)
                         : fmt::format("{:.2g} %", value * 100);
}

}  // namespace

Verdict judge(const std::vector<Results>& results) {
  if (results.empty()) throw fabric::InputError("no results");
  const auto key = [](const fabric::Loop& loop) {
    return std::tuple(loop.host, loop.path.plane, loop.turn, loop.path.t1, loop.path.t2);
  };
  std::map<decltype(key({})), fabric::LoopResult> sums;
  Verdict verdict;
  for (const Results& part : results) {
    if (!same_shape(part.fabric, results.front().fabric))
      throw fabric::InputError("results of different fabrics");
    verdict.hosts.push_back(part.host);
    for (const fabric::LoopResult& result : part.loops) {
      fabric::LoopResult& sum = sums[key(result.loop)];
      sum.loop = result.loop;
      sum.sent += result.sent;
      sum.answered += result.answered;
    }
  }
  std::sort(verdict.hosts.begin(), verdict.hosts.end());
  verdict.hosts.erase(std::unique(verdict.hosts.begin(), verdict.hosts.end()), verdict.hosts.end());
  std::vector<fabric::LoopResult> loops;
  for (const auto& [name, sum] : sums) {
    loops.push_back(sum);
    verdict.sent += sum.sent;
    verdict.answered += sum.answered;
  }
  verdict.loops = loops.size();
  verdict.diagnosis = fabric::diagnose(fabric::Topology(results.front().fabric), loops);
  return verdict;
}

std::string finding_text(const Finding& finding) {
  std::string text = fabric::part_name(finding.part);
  if (finding.loss > 0.999) {
    text += " is down";
  } else {
    text += fmt::format(" {} {} ({} to {}, 95 % confidence)",
                        finding.down() ? "is down: loses" : "loses", share(finding.loss),
                        share(finding.loss_low), share(finding.loss_high));
  }
  for (const Part& part : finding.or_else)
    text += ", or " + fabric::part_name(part);
  if (!finding.or_else.empty()) text += " (probes from more hosts would tell)";
  return text;
}

void print_verdict(const Verdict& verdict) {
  const fabric::Diagnosis& diagnosis = verdict.diagnosis;
  fmt::print("{}, {}: {} of {} probes answered\n", counted(verdict.hosts.size(), "host", "hosts"),
             counted(verdict.loops, "loop", "loops"), grouped(verdict.answered),
             grouped(verdict.sent));
  for (const Finding& finding : diagnosis.findings)
    fmt::print("  {}\n", finding_text(finding));
  if (diagnosis.healthy()) {
    fmt::print("healthy: {}\n",
               counted(diagnosis.seen.size(), "cable or switch", "cables and switches"));
  } else {
    fmt::print("{} at fault\n",
               counted(diagnosis.findings.size(), "cable or switch", "cables and switches"));
  }
  if (!diagnosis.unseen.empty()) {
    fmt::print("{} out of sight behind them\n",
               counted(diagnosis.unseen.size(), "cable or switch", "cables and switches"));
  }
  std::fflush(stdout);
}

void print_json(const Verdict& verdict, bool pretty) {
  Json findings = Json::array();
  for (const Finding& finding : verdict.diagnosis.findings)
    findings.push_back(finding_json(finding));
  const Json document = {{"schema", "mrc.map/1"},
                         {"time", wall_time()},
                         {"healthy", verdict.diagnosis.healthy()},
                         {"hosts", verdict.hosts},
                         {"loops", verdict.loops},
                         {"probes", verdict.sent},
                         {"answered", verdict.answered},
                         {"findings", findings},
                         {"seen", verdict.diagnosis.seen.size()},
                         {"unseen", names(verdict.diagnosis.unseen)}};
  fmt::print("{}\n", document.dump(pretty ? 2 : -1));
  std::fflush(stdout);
}

}  // namespace mrc::tool::map
