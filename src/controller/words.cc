#include "controller/words.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "fabric/input_error.h"
#include "wire/ip_address.h"

namespace mrc::controller {
namespace {

using fabric::InputError;

std::uint64_t parse_number(std::string_view text, std::uint64_t max, std::string_view what) {
  int base = 10;
  std::string_view digits = text;
  if (digits.starts_with("0x")) {
    base = 16;
    digits.remove_prefix(2);
  }
  std::uint64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (result.ec != std::errc{} || result.ptr != digits.data() + digits.size() || value > max)
    throw InputError(fmt::format("{} must be a number from 0 to {}, not '{}'", what, max, text));
  return value;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  while (true) {
    const std::size_t to = text.find(separator, from);
    parts.push_back(text.substr(from, to - from));
    if (to == std::string::npos) return parts;
    from = to + 1;
  }
}

void put_hex(std::string_view digits, mrc_ctl_ev& ev, const std::string& text) {
  if (digits.starts_with("0x")) digits.remove_prefix(2);
  if (digits.empty() || digits.size() > 2 * sizeof ev.val || digits.size() % 2 != 0)
    throw InputError(fmt::format("an EV has 2 to 64 hex digits, an even number: '{}'", text));
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const auto result =
        std::from_chars(digits.data() + i, digits.data() + i + 2, ev.val[i / 2], 16);
    if (result.ec != std::errc{} || result.ptr != digits.data() + i + 2)
      throw InputError(fmt::format("'{}' is not hexadecimal", text));
  }
}

void put_address(const std::string& text, std::span<std::uint8_t, 16> out) {
  const auto address = wire::parse_address(text);
  if (!address.ok() || address.value().is_v4)
    throw InputError(fmt::format("'{}' is not an IPv6 address", text));
  std::copy(address.value().bytes.begin(), address.value().bytes.end(), out.begin());
}

std::string address_text(std::span<const std::uint8_t, 16> bytes) {
  wire::IpAddress address;
  std::copy(bytes.begin(), bytes.end(), address.bytes.begin());
  return std::string(wire::format_address(address).view());
}

template <typename Value, std::size_t N>
Value find_word(const std::array<std::pair<const char*, Value>, N>& words, std::string_view text,
                const char* what) {
  std::string known;
  for (const auto& [word, value] : words) {
    if (text == word) return value;
    known += (known.empty() ? "" : ", ") + std::string(word);
  }
  throw InputError(fmt::format("{} is one of {}, not '{}'", what, known, text));
}

template <typename Value, std::size_t N>
const char* word_of(const std::array<std::pair<const char*, Value>, N>& words, Value value) {
  for (const auto& [word, known] : words) {
    if (known == value) return word;
  }
  return "unknown";
}

constexpr std::array<std::pair<const char*, mrc_ctl_ev_fmt_mode>, 3> kFormatModes = {
    {{"stev", MRC_CTL_EV_FMT_MODE_STEV},
     {"srv6", MRC_CTL_EV_FMT_MODE_SRV6},
     {"udp", MRC_CTL_EV_FMT_MODE_UDP}}};
constexpr std::array<std::pair<const char*, mrc_ctl_ev_mode>, 3> kEvModes = {
    {{"auto", MRC_CTL_EV_MODE_AUTO},
     {"explicit", MRC_CTL_EV_MODE_EXP},
     {"generated", MRC_CTL_EV_MODE_GEN}}};
constexpr std::array<std::pair<const char*, mrc_ctl_profile_state>, 3> kProfileStates = {
    {{"init", MRC_CTL_PROFILE_INIT},
     {"offline", MRC_CTL_PROFILE_OFFLINE},
     {"online", MRC_CTL_PROFILE_ONLINE}}};
constexpr std::array<std::pair<const char*, mrc_ctl_ev_state>, 4> kEvStates = {
    {{"good", MRC_CTL_EV_GOOD},
     {"assumed bad", MRC_CTL_EV_ASSUMED_BAD},
     {"denied", MRC_CTL_EV_DENIED},
     {"unknown", MRC_CTL_EV_UNKNOWN}}};
constexpr const char* kNscc = "uet-1.0-nscc";

// Settings of NSCC by name.
template <typename Config, typename Visit>
void visit_cc(Config& config, const Visit& visit) {
  visit("disable_qa", config.disable_qa);
  visit("adjust_bytes_threshold", config.adjust_bytes_threshold);
  visit("adjust_period_threshold", config.adjust_period_threshold);
  visit("base_rtt", config.base_rtt);
  visit("eta", config.eta);
  visit("fi", config.fi);
  visit("fi_scale", config.fi_scale);
  visit("gamma", config.gamma);
  visit("max_md_jump", config.max_md_jump);
  visit("max_cwnd", config.max_cwnd);
  visit("qa_gate", config.qa_gate);
  visit("qa_threshold", config.qa_threshold);
  visit("target_delay", config.target_delay);
}

template <typename Number>
Number whole_or_real(std::string_view name, double value) {
  if constexpr (std::is_floating_point_v<Number>) {
    return static_cast<Number>(value);
  } else {
    constexpr double kMax = std::numeric_limits<Number>::max();
    if (value < 0 || value > kMax || value != std::floor(value))
      throw InputError(fmt::format("{} must be a whole number from 0 to {:.0f}", name, kMax));
    return static_cast<Number>(value);
  }
}

constexpr std::array<std::string_view, 3> kTrimmingWords{"device", "on", "off"};  // by byte

}  // namespace

mrc_ctl_ev parse_ev(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos)
    throw InputError(fmt::format("an EV is PORT:HEX or PORT:ADDRESS[+SEGMENT], not '{}'", text));
  mrc_ctl_ev ev{};
  ev.port = static_cast<std::uint8_t>(parse_number(text.substr(0, colon), 16, "the port of an EV"));
  if (ev.port == 0) throw InputError("ports count from 1");
  const std::string value = text.substr(colon + 1);
  if (value.find(':') == std::string::npos) {
    put_hex(value, ev, text);
    return ev;
  }
  const std::vector<std::string> parts = split(value, '+');
  if (parts.size() > 2) throw InputError(fmt::format("'{}' has more than one segment", text));
  const std::span<std::uint8_t, 32> all(ev.val);
  put_address(parts[0], all.first<16>());
  if (parts.size() == 2) put_address(parts[1], all.last<16>());
  return ev;
}

std::string ev_text(const mrc_ctl_ev& ev, bool srv6) {
  const std::span<const std::uint8_t, 32> all(ev.val);
  if (srv6) {
    std::string text = fmt::format("{}:{}", ev.port, address_text(all.first<16>()));
    const auto segment = all.last<16>();
    if (std::any_of(segment.begin(), segment.end(), [](std::uint8_t byte) { return byte != 0; }))
      text += "+" + address_text(segment);
    return text;
  }
  std::size_t length = all.size();
  while (length > 4 && all[length - 1] == 0)
    --length;
  std::string text = fmt::format("{}:", ev.port);
  for (std::size_t i = 0; i < length; ++i)
    text += fmt::format("{:02x}", all[i]);
  return text;
}

std::vector<std::uint8_t> parse_widths(const std::string& text) {
  std::vector<std::uint8_t> widths;
  for (const std::string& part : split(text, ','))
    widths.push_back(static_cast<std::uint8_t>(parse_number(part, 255, "a width")));
  return widths;
}

mrc_ctl_ev_field parse_field(const std::string& text) {
  constexpr std::uint64_t kMax = 0xFFFF'FFFF;
  const std::vector<std::string> parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 4)
    throw InputError(fmt::format("a field is WIDTH:INIT[:MASK[:MIN-MAX]], not '{}'", text));
  mrc_ctl_ev_field field{};
  const auto number = [&](const std::string& part, const char* what) {
    return static_cast<std::uint32_t>(parse_number(part, kMax, what));
  };
  field.width = number(parts[0], "the width of a field");
  field.init_val = number(parts[1], "the initial value of a field");
  if (parts.size() > 2) field.mask = number(parts[2], "the mask of a field");
  if (parts.size() > 3) {
    const std::vector<std::string> limits = split(parts[3], '-');
    if (limits.size() != 2) throw InputError(fmt::format("'{}' is not MIN-MAX", parts[3]));
    field.min_val = number(limits[0], "the minimum of a field");
    field.max_val = number(limits[1], "the maximum of a field");
  }
  return field;
}

std::string field_text(const mrc_ctl_ev_field& field) {
  if (field.mask == 0) return fmt::format("{}:{:#x}", field.width, field.init_val);
  std::string text = fmt::format("{}:{:#x}:{:#x}", field.width, field.init_val, field.mask);
  if (field.min_val != 0 || field.max_val != 0)
    text += fmt::format(":{}-{}", field.min_val, field.max_val);
  return text;
}

mrc_ctl_ev_fmt_mode parse_format_mode(std::string_view text) {
  return find_word(kFormatModes, text, "the mode of a format");
}
const char* format_mode_text(mrc_ctl_ev_fmt_mode mode) { return word_of(kFormatModes, mode); }
mrc_ctl_ev_mode parse_ev_mode(std::string_view text) {
  return find_word(kEvModes, text, "the mode of an EV profile");
}
const char* ev_mode_text(mrc_ctl_ev_mode mode) { return word_of(kEvModes, mode); }
const char* profile_state_text(mrc_ctl_profile_state state) {
  return word_of(kProfileStates, state);
}
const char* ev_state_text(mrc_ctl_ev_state state) { return word_of(kEvStates, state); }

int parse_event_mask(const std::string& text) {
  if (text == "none") return 0;
  int mask = 0;
  for (const std::string& part : split(text, ',')) {
    if (part == "good") {
      mask |= MRC_CTL_EV_GOOD;
    } else if (part == "bad") {
      mask |= MRC_CTL_EV_ASSUMED_BAD;
    } else {
      throw InputError(fmt::format("events are good, bad, good,bad or none, not '{}'", text));
    }
  }
  return mask;
}

std::string event_mask_text(int mask) {
  std::string text = (mask & MRC_CTL_EV_GOOD) != 0 ? "good" : "";
  if ((mask & MRC_CTL_EV_ASSUMED_BAD) != 0) text += text.empty() ? "bad" : ",bad";
  return text.empty() ? "none" : text;
}

const char* parse_algorithm(std::string_view text) {
  if (text == "none") return nullptr;
  if (text == "nscc" || text == kNscc) return kNscc;
  throw InputError(fmt::format("the algorithm is nscc or none, not '{}'", text));
}

std::uint8_t parse_trimming(std::string_view text) {
  const auto* const found = std::find(kTrimmingWords.begin(), kTrimmingWords.end(), text);
  if (found != kTrimmingWords.end()) {
    return static_cast<std::uint8_t>(found - kTrimmingWords.begin());
  }
  throw InputError(fmt::format("trimming is device, on or off, not '{}'", text));
}

const char* trimming_text(std::uint8_t vendor_byte) {
  return vendor_byte < kTrimmingWords.size() ? kTrimmingWords[vendor_byte].data() : "?";
}

void set_cc_value(std::string_view name, double value, mrc_ctl_cc_nscc_cfg& config) {
  bool found = false;
  visit_cc(config, [&](const char* known, auto& number) {
    if (name != known) return;
    number = whole_or_real<std::remove_reference_t<decltype(number)>>(name, value);
    found = true;
  });
  if (found) return;
  std::string names;
  visit_cc(config, [&](const char* known, const auto&) {
    names += (names.empty() ? "" : ", ") + std::string(known);
  });
  throw InputError(fmt::format("there is no setting '{}'; there are {}", name, names));
}

void parse_cc_setting(const std::string& text, mrc_ctl_cc_nscc_cfg& config) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos)
    throw InputError(fmt::format("a setting is NAME=VALUE, not '{}'", text));
  const std::string number = text.substr(equals + 1);
  double value = 0;
  const auto result = std::from_chars(number.data(), number.data() + number.size(), value);
  if (result.ec != std::errc{} || result.ptr != number.data() + number.size())
    throw InputError(fmt::format("'{}' is not a number", number));
  set_cc_value(text.substr(0, equals), value, config);
}

std::vector<std::pair<const char*, double>> cc_values(const mrc_ctl_cc_nscc_cfg& config) {
  std::vector<std::pair<const char*, double>> values;
  visit_cc(config, [&](const char* name, const auto& number) {
    values.emplace_back(name, static_cast<double>(number));
  });
  return values;
}

ibv_gid parse_gid(const std::string& text) {
  const auto address = wire::parse_address(text);
  if (!address.ok()) throw InputError(fmt::format("'{}' is not an address", text));
  ibv_gid gid{};
  if (address.value().is_v4) {
    gid.raw[10] = gid.raw[11] = 0xFF;
    std::copy_n(address.value().bytes.begin(), 4, gid.raw + 12);
  } else {
    std::copy(address.value().bytes.begin(), address.value().bytes.end(), gid.raw);
  }
  return gid;
}

std::string lost_events_text(const mrc_ctl_ev_event& event) {
  if (event.drop_count == 0) return "";
  return event.drop_count == 1 ? ", 1 event before it was lost"
                               : fmt::format(", {} events before it were lost", event.drop_count);
}

}  // namespace mrc::controller
