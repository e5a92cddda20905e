#include "commands/map/report.h"

#include <fmt/core.h>

#include <cstdio>
#include <nlohmann/json.hpp>

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

std::string finding_text(const Finding& finding) {
  std::string text = fabric::part_name(finding.part);
  if (finding.silent()) {
    text += " is down";
  } else {
    text += fmt::format(" {} {} ({} to {}, 95 % confidence)",
                        finding.down() ? "is broken: loses" : "loses", share(finding.loss),
                        share(finding.loss_low), share(finding.loss_high));
  }
  for (const Part& part : finding.or_else)
    text += ", or " + fabric::part_name(part);
  if (!finding.or_else.empty()) text += " (probes from more hosts would tell)";
  return text;
}

void print_survey(const fabric::Survey& survey) {
  const fabric::Diagnosis& diagnosis = survey.diagnosis;
  fmt::print("{}, {}: {} of {} probes answered\n", counted(survey.hosts.size(), "host", "hosts"),
             counted(survey.loops, "loop", "loops"), grouped(survey.answered),
             grouped(survey.sent));
  for (const Finding& finding : diagnosis.findings)
    fmt::print("  {}\n", finding_text(finding));
  if (diagnosis.healthy()) {
    fmt::print("healthy: {} lose nothing (rates are not measured)\n",
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

void print_json(const fabric::Survey& survey, bool pretty) {
  Json findings = Json::array();
  for (const Finding& finding : survey.diagnosis.findings)
    findings.push_back(finding_json(finding));
  const Json document = {{"schema", "mrc.map/1"},
                         {"time", wall_time()},
                         {"healthy", survey.diagnosis.healthy()},
                         {"hosts", survey.hosts},
                         {"loops", survey.loops},
                         {"probes", survey.sent},
                         {"answered", survey.answered},
                         {"findings", findings},
                         {"seen", survey.diagnosis.seen.size()},
                         {"unseen", names(survey.diagnosis.unseen)}};
  fmt::print("{}\n", document.dump(pretty ? 2 : -1));
  std::fflush(stdout);
}

}  // namespace mrc::tool::map
