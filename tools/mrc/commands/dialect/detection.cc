#include "commands/dialect/detection.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "capture/capture_file.h"
#include "failure.h"
#include "file_bytes.h"
#include "text.h"
#include "wire/frame.h"

namespace mrc::tool::dialect {
namespace {

using capture::Finding;
using capture::Verdict;
using Json = nlohmann::ordered_json;

const char* word_for(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFound:
      return "found";
    case Verdict::kOpen:
      return "open";
    case Verdict::kContradicted:
      return "contradicted";
  }
  return "";
}

std::string evidence_text(const Finding& finding) {
  std::string text;
  for (const capture::Evidence& each : finding.evidence) {
    text += text.empty() ? "" : ", ";
    if (finding.evidence.size() > 1) text += each.value + ": ";
    text += finding.field->name.starts_with("first_")
                ? counted(each.packets, "connection", "connections")
                : counted(each.packets, "packet", "packets");
  }
  return text;
}

bool is_number(const Finding& finding) { return finding.field->choices.empty(); }

}  // namespace

Detection detect(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path);
  capture::DialectFinder finder;
  capture::CapturedFrame frame;
  capture::CaptureFile survey(bytes);
  while (survey.next(frame))
    finder.survey(frame);
  capture::CaptureFile study(bytes);
  while (study.next(frame))
    finder.study(frame);
  if (finder.traffic().frames == 0 && study.problem().starts_with("no capture")) {
    throw Failure(fmt::format("{}: {}", path, study.problem()));
  }
  return {.file = path,
          .damage = study.problem(),
          .traffic = finder.traffic(),
          .udp_port = finder.udp_port(),
          .findings = finder.findings()};
}

void print(const Detection& detection) {
  const capture::Traffic& traffic = detection.traffic;
  fmt::print("{}: {}, {} of MRC ({} with the right ICRC), {} of others\n", detection.file,
             counted(traffic.frames, "frame", "frames"), grouped(traffic.mrc),
             grouped(traffic.verified), grouped(traffic.other));
  if (!detection.damage.empty())
    fmt::print("damaged: {}; what came before counts\n", detection.damage);
  for (const auto& [port, packets] : traffic.udp_ports)
    fmt::print("  UDP port {:<13} {}\n", port, counted(packets, "packet", "packets"));
  if (traffic.mrc == 0) {
    fmt::print("No MRC in this capture: nothing can be told.\n");
    return;
  }
  for (const Finding& finding : detection.findings) {
    const std::string value = finding.verdict == Verdict::kFound  ? finding.value
                              : finding.verdict == Verdict::kOpen ? "cannot tell"
                                                                  : "CONTRADICTED";
    const std::string why =
        finding.verdict == Verdict::kOpen ? finding.note : evidence_text(finding);
    fmt::print("  {:<13} {:<16} {}\n", finding.field->name, value, why);
  }
  for (const auto& [code, packets] : traffic.nak_codes)
    fmt::print("  NAK {:#04x}      {}\n", code, counted(packets, "packet", "packets"));
  for (const auto& [reason, packets] : traffic.nack_reasons)
    fmt::print("  NACK {:#04x}     {}\n", reason, counted(packets, "packet", "packets"));
}

Json to_json(const Detection& detection) {
  const capture::Traffic& traffic = detection.traffic;
  const auto table = [](const auto& counts) {
    Json json = Json::object();
    for (const auto& [key, packets] : counts)
      json[std::to_string(key)] = packets;
    return json;
  };
  Json document = {{"schema", "mrc.dialect"},
                   {"version", 1},
                   {"file", detection.file},
                   {"damage", detection.damage},
                   {"frames", traffic.frames},
                   {"mrc_packets", traffic.mrc},
                   {"verified_packets", traffic.verified},
                   {"other_frames", traffic.other},
                   {"widest_flight_packets", traffic.widest_flight},
                   {"udp_ports", table(traffic.udp_ports)},
                   {"opcodes", table(traffic.opcodes)},
                   {"nak_codes", table(traffic.nak_codes)},
                   {"nack_reasons", table(traffic.nack_reasons)}};
  for (const Finding& finding : detection.findings) {
    Json entry = {{"field", finding.field->name}, {"verdict", word_for(finding.verdict)}};
    if (finding.verdict == Verdict::kFound) entry["value"] = finding.value;
    if (!finding.note.empty()) entry["note"] = finding.note;
    Json evidence = Json::object();
    for (const capture::Evidence& each : finding.evidence)
      evidence[each.value] = each.packets;
    entry["evidence"] = std::move(evidence);
    document["fields"].push_back(std::move(entry));
  }
  return document;
}

// What was captured was a card's as long as nothing speaks against it.
std::string to_config(const Detection& detection, const std::string& device) {
  std::string text = "# Found by `mrc dialect detect`.\n";
  if (detection.udp_port && *detection.udp_port != wire::kDefaultUdpPort) {
    text += fmt::format("[device.{}]\nudp_port = {}\n", device, *detection.udp_port);
  }
  bool ours = false;
  for (const Finding& finding : detection.findings)
    ours |= finding.field->name == "processes" && finding.value == "udp_port";
  text += fmt::format("[device.{}.dialect]\nname = \"{}\"\n", device, ours ? "openmrc" : "card");
  for (const Finding& finding : detection.findings) {
    if (finding.verdict == Verdict::kFound) {
      text += is_number(finding) ? fmt::format("{} = {}\n", finding.field->name, finding.value)
                                 : fmt::format("{} = \"{}\"\n", finding.field->name, finding.value);
    } else {
      text += fmt::format("# {}: {}: {}\n", finding.field->name, word_for(finding.verdict),
                          finding.note);
    }
  }
  return text;
}

}  // namespace mrc::tool::dialect
