#include "commands/check/fleet_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "text.h"

namespace mrc::tool::check {
namespace {

using Json = nlohmann::ordered_json;

std::string verdict_of(const HostReport& host, bool strict) {
  if (!host.answered) return "no answer";
  Tally tally;
  tally.add(host.findings, strict);
  if (tally.problems > 0) return counted(tally.problems, "problem", "problems");
  return tally.slow > 0 ? "slow" : "ok";
}

struct Row {
  std::string name, version, alone, with, sent, back, lost;
};

Row row_of(const FleetReport& report, std::size_t host, bool strict) {
  const HostReport& own = report.hosts[host];
  Row row{own.host.name, own.version, verdict_of(own, strict), "-", "-", "-", "-"};
  const auto pair = std::ranges::find(report.pairs, host, &PairReport::client);
  if (pair == report.pairs.end()) return row;
  row.with = report.hosts[pair->server].host.name;
  if (!pair->transfer) return row;
  const RemoteTransfer& transfer = *pair->transfer;
  row.sent = fmt::format("{:.2f}", transfer.gbps);
  row.back = fmt::format("{:.2f}", transfer.peer_gbps);
  const double share = transfer.packets == 0 ? 0
                                             : static_cast<double>(transfer.lost) /
                                                   static_cast<double>(transfer.packets);
  row.lost = fmt::format("{:.3f} %", 100 * share);
  return row;
}

void print_table(const FleetReport& report, bool strict) {
  std::vector<Row> rows = {{"host", "version", "alone", "with", "Gb/s there", "back", "lost"}};
  for (std::size_t i = 0; i < report.hosts.size(); ++i)
    rows.push_back(row_of(report, i, strict));
  std::size_t name = 0;
  std::size_t version = 0;
  std::size_t with = 0;
  for (const Row& row : rows) {
    name = std::max(name, row.name.size());
    version = std::max(version, row.version.size());
    with = std::max(with, row.with.size());
  }
  for (const Row& row : rows)
    fmt::print("{:<{}}  {:<{}}  {:<12}  {:<{}}  {:>10}  {:>10}  {:>8}\n", row.name, name,
               row.version, version, row.alone, row.with, with, row.sent, row.back, row.lost);
}

std::string name_of(const FleetReport& report, const PairReport& pair) {
  return report.hosts[pair.client].host.name + " with " + report.hosts[pair.server].host.name;
}

void print_text(const FleetReport& report, const Manner& manner, const Tally& tally) {
  for (const HostReport& host : report.hosts)
    print_findings(host.findings, manner, host.host.name + ": ");
  for (const PairReport& pair : report.pairs)
    print_findings(pair.findings, manner, name_of(report, pair) + ": ");
  print_table(report, manner.strict);
  const auto answered = std::ranges::count(report.hosts, true, &HostReport::answered);
  print_verdict(tally, report.interrupted,
                fmt::format("; {} of {} answered, {}", answered,
                            counted(report.hosts.size(), "host", "hosts"),
                            counted(report.pairs.size(), "pair", "pairs")));
}

Json pair_json(const FleetReport& report, const PairReport& pair) {
  Json object = {{"client", report.hosts[pair.client].host.name},
                 {"server", report.hosts[pair.server].host.name},
                 {"findings", doctor::to_json(pair.findings)}};
  if (pair.transfer)
    object["transfer"] = {{"bandwidth_gbps", pair.transfer->gbps},
                          {"peer_bandwidth_gbps", pair.transfer->peer_gbps},
                          {"packets_sent", pair.transfer->packets},
                          {"lost", pair.transfer->lost}};
  return object;
}

void print_json(const FleetReport& report, const Tally& tally) {
  Json hosts = Json::array();
  for (const HostReport& host : report.hosts)
    hosts.push_back({{"name", host.host.name},
                     {"address", host.host.address},
                     {"answered", host.answered},
                     {"program", host.version},
                     {"findings", doctor::to_json(host.findings)}});
  Json pairs = Json::array();
  for (const PairReport& pair : report.pairs)
    pairs.push_back(pair_json(report, pair));
  const Json document = {{"schema", "mrc.check.hosts"},
                         {"version", 1},
                         {"program", "mrc " MRC_VERSION},
                         {"ok", tally.problems == 0 && !report.interrupted},
                         {"problems", tally.problems},
                         {"hosts", hosts},
                         {"pairs", pairs}};
  fmt::print("{}\n", document.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

ExitCode conclude(const FleetReport& report, const Manner& manner, bool json) {
  Tally tally;
  for (const HostReport& host : report.hosts)
    tally.add(host.findings, manner.strict);
  for (const PairReport& pair : report.pairs)
    tally.add(pair.findings, manner.strict);
  if (json) {
    print_json(report, tally);
  } else {
    print_text(report, manner, tally);
  }
  if (report.interrupted) return ExitCode::kInterrupted;
  return tally.problems == 0 ? ExitCode::kOk : ExitCode::kFailed;
}

}  // namespace mrc::tool::check
