#include "wire/dialect.h"

#include <algorithm>
#include <bit>
#include <charconv>

namespace mrc::wire {
namespace {

template <auto Member>
std::uint16_t get(const Dialect& dialect) {
  return static_cast<std::uint16_t>(dialect.*Member);
}

template <auto Member>
void set(Dialect& dialect, std::uint16_t value) {
  auto& member = dialect.*Member;
  member = static_cast<std::remove_reference_t<decltype(member)>>(value);
}

template <typename Enum>
constexpr DialectChoice choice(std::string_view name, Enum value) {
  return {name, static_cast<std::uint16_t>(value)};
}

constexpr DialectChoice kProcesses[] = {choice("udp_port", Processes::kByUdpPort),
                                        choice("queue_pair", Processes::kByQueuePair)};
constexpr DialectChoice kAckMsn[] = {choice("last", AckMsn::kLast), choice("next", AckMsn::kNext)};
constexpr DialectChoice kEvOrder[] = {choice("low_in_port", EvOrder::kLowInPort),
                                      choice("high_in_port", EvOrder::kHighInPort)};
constexpr DialectChoice kEvLabel[] = {choice("inner", EvLabel::kInner),
                                      choice("outer", EvLabel::kOuter)};
constexpr DialectChoice kBthOrder[] = {choice("solicited_first", BthOrder::kSolicitedFirst),
                                       choice("migration_first", BthOrder::kMigrationFirst)};
constexpr DialectChoice kEethOp[] = {choice("bits_3_2", EethOp::kBits32),
                                     choice("bits_5_4", EethOp::kBits54)};
constexpr DialectChoice kSrv6Icrc[] = {choice("inner", Srv6Icrc::kInner),
                                       choice("outer", Srv6Icrc::kOuter),
                                       choice("unchecked", Srv6Icrc::kUnchecked)};
constexpr DialectChoice kServiceTime[] = {choice("reflected", false), choice("added", true)};
constexpr DialectChoice kUnknownNak[] = {choice("drop", UnknownNak::kDrop),
                                         choice("act", UnknownNak::kAct)};

template <auto Member>
constexpr DialectField field(std::string_view name, std::string_view meaning,
                             std::span<const DialectChoice> choices) {
  return {name, meaning, choices, 0, 0, get<Member>, set<Member>};
}
template <auto Member>
constexpr DialectField number(std::string_view name, std::string_view meaning, std::uint16_t min,
                              std::uint16_t max) {
  return {name, meaning, {}, min, max, get<Member>, set<Member>};
}

constexpr DialectField kFields[] = {
    field<&Dialect::processes>("processes", "how a packet finds its process on a host", kProcesses),
    number<&Dialect::first_msn>("first_msn", "number of the first message", 0, 0xFFFF),
    number<&Dialect::first_rqmsn>("first_rqmsn", "number of the first message with an immediate", 0,
                                  0xFFFF),
    field<&Dialect::ack_msn>("ack_msn", "which message a transport acknowledgement names", kAckMsn),
    field<&Dialect::ev_order>("ev_order", "which half of an EV is the UDP source port", kEvOrder),
    field<&Dialect::ev_label>("ev_label", "whose flow label counts in a tunnel", kEvLabel),
    field<&Dialect::bth_order>("bth_order", "order of the top bits of BTH byte 1", kBthOrder),
    field<&Dialect::eeth_op>("eeth_op", "where an endpoint response has its op", kEethOp),
    field<&Dialect::srv6_icrc>("srv6_icrc", "the IP header under the ICRC of a tunnel", kSrv6Icrc),
    number<&Dialect::port_bit>("port_bit", "bit of port 1 in a port status mask", 0, 1),
    field<&Dialect::service_time>("service_time", "time stamps come back as sent or advanced",
                                  kServiceTime),
    number<&Dialect::window_units>("window", "window where nobody says, units of 128 packets", 1,
                                   255),
    field<&Dialect::unknown_nak>("unknown_nak", "what a refusal of unknown code does", kUnknownNak),
};

struct Named {
  std::string_view name;
  const Dialect* dialect;
};
constexpr Named kNamed[] = {{"openmrc", &kOpenMrc}, {"card", &kCard}};

template <std::size_t Size>
void append_number(ShortText<Size>& text, unsigned value) {
  std::array<char, 8> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  text.append({digits.data(), static_cast<std::size_t>(end - digits.data())});
}

// Fields in which they differ.
unsigned distance(const Dialect& a, const Dialect& b) {
  unsigned count = 0;
  for (const DialectField& field : kFields)
    count += field.get(a) != field.get(b) ? 1 : 0;
  return count;
}

// What each end decides for itself.
bool is_private(const DialectField& field) {
  return field.name == "window" || field.name == "service_time" || field.name == "unknown_nak";
}

constexpr std::uint64_t kCodeVersion = 1;
constexpr unsigned kVersionShift = 60;
// A number as it is; a choice by its place among the choices, of which no field has more than four.
unsigned code_width(const DialectField& field) {
  return field.choices.empty() ? static_cast<unsigned>(std::bit_width(field.max)) : 2;
}
std::uint64_t code_of(const DialectField& field, std::uint16_t value) {
  if (field.choices.empty()) return value;
  const auto found =
      std::find_if(field.choices.begin(), field.choices.end(),
                   [&](const DialectChoice& choice) { return choice.value == value; });
  return static_cast<std::uint64_t>(found - field.choices.begin());
}
std::optional<std::uint16_t> value_of(const DialectField& field, std::uint64_t code) {
  if (!field.choices.empty()) {
    if (code >= field.choices.size()) return std::nullopt;
    return field.choices[code].value;
  }
  if (code < field.min || code > field.max) return std::nullopt;
  return static_cast<std::uint16_t>(code);
}

// One "field=value".
void apply_part(std::string_view part, DialectParse& out) {
  const std::size_t equals = part.find('=');
  const DialectField* const field = find_dialect_field(part.substr(0, equals));
  if (field == nullptr || equals == std::string_view::npos) {
    out.error.append("no field of a dialect: '");
    out.error.append(part.substr(0, 32));
    out.error.append("'");
    return;
  }
  const std::string_view value = part.substr(equals + 1);
  if (set_dialect_field(out.dialect, *field, value)) return;
  out.error.append(field->name);
  out.error.append(" is '");
  out.error.append(value.substr(0, 24));
  out.error.append("' but must be ");
  out.error.append(dialect_rule(*field).view());
}

}  // namespace

std::span<const DialectField> dialect_fields() { return kFields; }

const DialectField* find_dialect_field(std::string_view name) {
  for (const DialectField& field : kFields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

const Dialect* find_dialect(std::string_view name) {
  for (const Named& named : kNamed) {
    if (named.name == name) return named.dialect;
  }
  return nullptr;
}

std::string_view dialect_name(const Dialect& dialect) {
  for (const Named& named : kNamed) {
    if (*named.dialect == dialect) return named.name;
  }
  return {};
}

bool set_dialect_field(Dialect& dialect, const DialectField& field, std::string_view text) {
  for (const DialectChoice& choice : field.choices) {
    if (choice.name != text) continue;
    field.set(dialect, choice.value);
    return true;
  }
  if (!field.choices.empty()) return false;
  std::uint16_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if (value < field.min || value > field.max) return false;
  field.set(dialect, value);
  return true;
}

ShortText<24> dialect_value(const Dialect& dialect, const DialectField& field) {
  ShortText<24> text;
  const std::uint16_t value = field.get(dialect);
  for (const DialectChoice& choice : field.choices) {
    if (choice.value == value) text.append(choice.name);
  }
  if (field.choices.empty()) append_number(text, value);
  return text;
}

ShortText<96> dialect_rule(const DialectField& field) {
  ShortText<96> text;
  for (const DialectChoice& choice : field.choices) {
    text.append(text.length == 0 ? "\"" : " or \"");
    text.append(choice.name);
    text.append("\"");
  }
  if (!field.choices.empty()) return text;
  text.append("a whole number from ");
  append_number(text, field.min);
  text.append(" to ");
  append_number(text, field.max);
  return text;
}

DialectParse parse_dialect(std::string_view text) {
  DialectParse out;
  std::size_t comma = text.find(',');
  const std::string_view name = text.substr(0, comma);
  const Dialect* const base = find_dialect(name);
  if (base == nullptr) {
    out.error.append("dialect is '");
    out.error.append(name.substr(0, 32));
    out.error.append("' but must begin with openmrc or card");
    return out;
  }
  out.dialect = *base;
  while (comma != std::string_view::npos && out.ok()) {
    text.remove_prefix(comma + 1);
    comma = text.find(',');
    apply_part(text.substr(0, comma), out);
  }
  return out;
}

DialectText dialect_text(const Dialect& dialect) {
  const Named* nearest = &kNamed[0];
  for (const Named& named : kNamed) {
    if (distance(dialect, *named.dialect) < distance(dialect, *nearest->dialect)) nearest = &named;
  }
  DialectText text;
  text.append(nearest->name);
  for (const DialectField& field : kFields) {
    if (field.get(dialect) == field.get(*nearest->dialect)) continue;
    text.append(",");
    text.append(field.name);
    text.append("=");
    text.append(dialect_value(dialect, field).view());
  }
  return text;
}

// The version of the code in the top four bits, then the fields from bit 0 on, in the order of the
// list.
std::uint64_t dialect_code(const Dialect& dialect) {
  std::uint64_t code = kCodeVersion << kVersionShift;
  unsigned at = 0;
  for (const DialectField& field : kFields) {
    if (is_private(field)) continue;
    code |= code_of(field, field.get(dialect)) << at;
    at += code_width(field);
  }
  return code;
}

std::optional<Dialect> dialect_of_code(std::uint64_t code) {
  if (code >> kVersionShift != kCodeVersion) return std::nullopt;
  std::uint64_t rest = code & ((std::uint64_t{1} << kVersionShift) - 1);
  Dialect dialect;
  for (const DialectField& field : kFields) {
    if (is_private(field)) continue;
    const unsigned width = code_width(field);
    const std::optional<std::uint16_t> value = value_of(field, rest & ((1U << width) - 1));
    if (!value) return std::nullopt;
    field.set(dialect, *value);
    rest >>= width;
  }
  if (rest != 0) return std::nullopt;
  return dialect;
}

const DialectField* first_conflict(const Dialect& a, const Dialect& b) {
  for (const DialectField& field : kFields) {
    if (!is_private(field) && field.get(a) != field.get(b)) return &field;
  }
  return nullptr;
}

}  // namespace mrc::wire
