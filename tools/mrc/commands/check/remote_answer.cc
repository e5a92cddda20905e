#include "commands/check/remote_answer.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/one_line.h"

namespace mrc::tool::check {
namespace {

using doctor::Finding;
using doctor::Verdict;
using nlohmann::json;

constexpr std::size_t kMaxFindings = 512;
constexpr std::size_t kMaxTextBytes = 600;
constexpr std::uint64_t kMaxCount = std::uint64_t{1} << 50;  // sums of some thousand fit

// The document that begins a line and goes to the end.
json document_in(const std::string& output) {
  std::size_t begin = output.starts_with('{') ? 0 : output.find("\n{");
  if (begin == std::string::npos) return json::value_t::discarded;
  if (output[begin] == '\n') ++begin;
  return json::parse(output.begin() + static_cast<std::ptrdiff_t>(begin), output.end(), nullptr,
                     false);
}

bool is_document(const json& document, const char* schema) {
  if (!document.is_object()) return false;
  const auto name = document.find("schema");
  const auto version = document.find("version");
  return name != document.end() && *name == schema && version != document.end() && *version == 1;
}

std::optional<std::string> text_in(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return shown(found->get_ref<const std::string&>());
}

double number_in(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return 0;
  const double number = found->get<double>();
  return std::isfinite(number) && number >= 0 && number < 1e9 ? number : 0;
}

std::uint64_t count_in(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()) return 0;
  return std::min(found->get<std::uint64_t>(), kMaxCount);
}

std::optional<Finding> read_finding(const json& object) {
  if (!object.is_object()) return std::nullopt;
  const auto verdict = text_in(object, "verdict");
  const auto what = text_in(object, "what");
  const auto found = text_in(object, "found");
  const auto fix = text_in(object, "fix");
  if (!verdict || !what || !found || !fix) return std::nullopt;
  for (const Verdict known : {Verdict::kOk, Verdict::kSlow, Verdict::kBroken})
    if (*verdict == doctor::name_of(known)) return Finding{known, *what, *found, *fix};
  return std::nullopt;
}

void add_losses(const json& transfer, const char* way, RemoteTransfer& sums) {
  const auto losses = transfer.find(way);
  if (losses == transfer.end() || !losses->is_object()) return;
  const auto pairs = losses->find("queue_pairs");
  if (pairs == losses->end() || !pairs->is_array()) return;
  for (std::size_t i = 0; i < std::min(pairs->size(), kMaxFindings); ++i) {
    const json& pair = (*pairs)[i];
    if (!pair.is_object()) continue;
    sums.packets += count_in(pair, "packets_sent");
    sums.lost += count_in(pair, "lost");
  }
}

std::optional<RemoteTransfer> read_transfer(const json& document) {
  const auto transfer = document.find("transfer");
  if (transfer == document.end() || !transfer->is_object()) return std::nullopt;
  RemoteTransfer read{.gbps = number_in(*transfer, "bandwidth_gbps"),
                      .peer_gbps = number_in(*transfer, "peer_bandwidth_gbps")};
  add_losses(*transfer, "sent", read);
  add_losses(*transfer, "received", read);
  return read;
}

}  // namespace

std::string shown(const std::string& text) {
  std::string line = text.substr(0, text.find('\n'));
  // The letter that is cut in two, if there is one, is not shown either.
  std::size_t end = std::min(line.size(), kMaxTextBytes);
  while (end > 0 && end < line.size() && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80)
    --end;
  line.resize(end);
  // Controls of 8 bits, as UTF-8 writes them: terminals act upon these, too.
  for (std::size_t i = 0; i + 1 < line.size(); ++i) {
    if (line[i] == '\xC2' && static_cast<unsigned char>(line[i + 1]) < 0xA0)
      line[i] = line[i + 1] = ' ';
  }
  return one_line(line);
}

std::string last_shown(const std::string& text) {
  const std::size_t end = text.find_last_not_of("\r\n ");
  if (end == std::string::npos) return {};
  const std::size_t before = text.find_last_of('\n', end);
  return shown(text.substr(before == std::string::npos ? 0 : before + 1));
}

std::optional<RemoteAnswer> read_answer(const std::string& output) {
  const json document = document_in(output);
  if (!is_document(document, "mrc.check")) return std::nullopt;
  const auto findings = document.find("findings");
  const auto version = text_in(document, "program");
  if (findings == document.end() || !findings->is_array() || findings->size() > kMaxFindings ||
      !version)
    return std::nullopt;
  RemoteAnswer answer{.version = *version, .findings = {}, .transfer = read_transfer(document)};
  for (const json& each : *findings) {
    const std::optional<Finding> finding = read_finding(each);
    if (!finding) return std::nullopt;
    answer.findings.push_back(*finding);
  }
  return answer;
}

std::optional<std::uint16_t> read_port(const std::string& output) {
  for (std::size_t begin = 0, end = 0; (end = output.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    const json line = json::parse(output.substr(begin, end - begin), nullptr, false);
    if (!is_document(line, "mrc.check.serve")) continue;
    const std::uint64_t port = count_in(line, "port");
    if (port > 0 && port <= UINT16_MAX) return static_cast<std::uint16_t>(port);
  }
  return std::nullopt;
}

}  // namespace mrc::tool::check
