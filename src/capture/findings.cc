// From what was counted to what is found.
#include <algorithm>
#include <bit>

#include "capture/dialect_finder.h"

namespace mrc::capture {
namespace {

constexpr std::uint64_t kFewestStamps = 8;
constexpr unsigned kFewestPorts = 2;
constexpr std::uint16_t kUsualFirst = 1;  // numbers begin with 0 or 1, if nobody shows another

using Counts = std::map<std::uint16_t, std::uint64_t>;

// Numbers with which flows begin. Beyond 0 and 1 it takes two flows that agree: one alone may have
// begun before the capture did.
Counts beginnings(const Counts& firsts) {
  Counts result;
  for (const auto& [number, flows] : firsts) {
    if (number <= kUsualFirst || flows >= 2) result[number] = flows;
  }
  return result;
}

bool is_known_nak(std::uint8_t code) {
  return code == wire::kSyndromeNakInvalidRequest || code == wire::kSyndromeNakRemoteAccess ||
         code == wire::kSyndromeNakRemoteOperation;
}

bool is_known_nack(std::uint8_t reason) {
  using enum wire::NackReason;
  for (const auto known : {kTrimmed, kTrimmedLastHop, kNoBitmap, kNoPacketBuffer, kNoResource,
                           kPsnOutOfWindow, kUnexpectedEvent}) {
    if (static_cast<std::uint8_t>(known) == reason) return true;
  }
  return false;
}

std::string text_of(const wire::DialectField& field, std::uint16_t value) {
  wire::Dialect dialect;
  field.set(dialect, value);
  return std::string(wire::dialect_value(dialect, field).view());
}

}  // namespace

void DialectFinder::count_beginnings(std::map<std::string_view, Votes>& votes) const {
  Counts msns;
  Counts rqmsns;
  for (const Flow& flow : flows_) {
    if (flow.first_msn) ++msns[*flow.first_msn];
  }
  votes["first_msn"] = beginnings(msns);
  // Immediates count from the beginning only where the flow was seen to begin.
  for (const Flow& flow : flows_) {
    const bool began = flow.first_msn && votes["first_msn"].contains(*flow.first_msn);
    if (began && flow.first_rqmsn) ++rqmsns[*flow.first_rqmsn];
  }
  votes["first_rqmsn"] = beginnings(rqmsns);
}

// A migration bit is the same in all packets; a solicited event is one of some that end a message.
void DialectFinder::judge_bth(std::map<std::string_view, Votes>& votes) const {
  const auto with = [&](unsigned ends, unsigned bit) {
    return bth_bits_[ends][bit] + bth_bits_[ends][3];
  };
  std::uint64_t all = 0;
  for (const auto& kind : bth_bits_)
    for (const std::uint64_t packets : kind)
      all += packets;
  // Index 2: the top bit; index 1: the one below.
  const std::uint64_t top = with(0, 2) + with(1, 2);
  const std::uint64_t next = with(0, 1) + with(1, 1);
  constexpr auto kSolicited = static_cast<std::uint16_t>(wire::BthOrder::kSolicitedFirst);
  constexpr auto kMigration = static_cast<std::uint16_t>(wire::BthOrder::kMigrationFirst);
  const bool mixed_kinds =
      all > bth_bits_[1][0] + bth_bits_[1][1] + bth_bits_[1][2] + bth_bits_[1][3];
  if (mixed_kinds && next == all && top < all) votes["bth_order"][kSolicited] += next;
  if (mixed_kinds && top == all && next < all) votes["bth_order"][kMigration] += top;
  if (top > 0 && top < all && with(0, 2) == 0) votes["bth_order"][kSolicited] += top;
  if (next > 0 && next < all && with(0, 1) == 0) votes["bth_order"][kMigration] += next;
}

// Bit 0 is port 1 or nobody. Without it, a row of ports from bit 1 on speaks for the other base.
void DialectFinder::judge_ports(std::map<std::string_view, Votes>& votes) const {
  std::uint64_t with_bit_0 = 0;
  std::uint64_t rows_from_1 = 0;
  for (const auto& [mask, packets] : port_masks_) {
    if ((mask & 1) != 0) with_bit_0 += packets;
    const bool row = (mask & 1) == 0 && std::has_single_bit((mask >> 1) + 1);
    if (row && std::popcount(mask) >= static_cast<int>(kFewestPorts)) rows_from_1 += packets;
  }
  if (with_bit_0 > 0) votes["port_bit"][0] = with_bit_0;
  if (with_bit_0 == 0 && rows_from_1 > 0) votes["port_bit"][1] = rows_from_1;
}

std::string DialectFinder::note_on(std::string_view field) const {
  if (field == "processes") return "no queue pair number from 0x10000 on was seen";
  if (field == "first_msn") return "no connection was seen to begin";
  if (field == "first_rqmsn") return "no connection with an immediate was seen to begin";
  if (field == "ack_msn") return "no acknowledgement met the write it is for";
  if (field == "ev_order") return "no answer met the packet whose EV it echoes";
  if (field == "ev_label") return "no tunnel whose flow labels differ was answered";
  if (field == "bth_order") return "neither bit was seen as only one of them can be";
  if (field == "eeth_op") return "no answer to an EV probe was seen";
  if (field == "srv6_icrc" && tunnels_of_unknown_icrc_ > 0) {
    return std::to_string(tunnels_of_unknown_icrc_) +
           " packets in tunnels have an ICRC of no rule we know; \"unchecked\" takes them";
  }
  if (field == "srv6_icrc") return "no whole packet in a tunnel was seen";
  if (field == "port_bit") return "no port status told where port 1 is";
  if (field == "service_time") return "too few reflected time stamps met their packets";
  if (field == "window") {
    return "no SACK names a window; at least " + std::to_string(traffic_.widest_flight) +
           " packets were under way";
  }
  if (field == "unknown_nak") return "no refusal of unknown code was seen";
  return {};
}

std::vector<Finding> DialectFinder::findings() const {
  std::map<std::string_view, Votes> votes = votes_;
  count_beginnings(votes);
  judge_bth(votes);
  judge_ports(votes);
  if (stamps_advanced_ > 0) {
    votes["service_time"][1] = stamps_advanced_;
  } else if (stamps_as_sent_ >= kFewestStamps) {
    votes["service_time"][0] = stamps_as_sent_;
  }
  constexpr auto kAct = static_cast<std::uint16_t>(wire::UnknownNak::kAct);
  for (const auto& [code, packets] : traffic_.nak_codes) {
    if (!is_known_nak(code)) votes["unknown_nak"][kAct] += packets;
  }
  for (const auto& [reason, packets] : traffic_.nack_reasons) {
    if (!is_known_nack(reason)) votes["unknown_nak"][kAct] += packets;
  }
  // A window may be lowered for a while: the widest counts.
  if (Votes& windows = votes["window"]; windows.size() > 1) {
    windows = {*std::prev(windows.end())};
  }
  std::vector<Finding> findings;
  for (const wire::DialectField& field : wire::dialect_fields()) {
    Finding finding{.field = &field};
    for (const auto& [value, packets] : votes[field.name])
      finding.evidence.push_back({text_of(field, value), packets});
    if (finding.evidence.size() == 1) {
      finding.verdict = Verdict::kFound;
      finding.value = finding.evidence[0].value;
    } else if (finding.evidence.empty()) {
      finding.note = note_on(field.name);
    } else {
      finding.verdict = Verdict::kContradicted;
      finding.note =
          field.name.starts_with("first_")
              ? "connections begin with more than one: two dialects, or first packets not captured"
              : "packets show more than one: two dialects, or damage";
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace mrc::capture
