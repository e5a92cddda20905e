// Between what people write and what the C API takes. Bad words are a fabric::InputError.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mrc_ctl.h"

namespace mrc::controller {

// "PORT:HEX" ("2:0001c350"), or for SRv6 "PORT:ADDRESS" and "PORT:ADDRESS+SEGMENT".
mrc_ctl_ev parse_ev(const std::string& text);
// The shortest of these forms; `srv6` chooses addresses.
std::string ev_text(const mrc_ctl_ev& ev, bool srv6);

// "16,8,8".
std::vector<std::uint8_t> parse_widths(const std::string& text);
// "WIDTH:INIT" for a fixed field, "WIDTH:INIT:MASK" or "WIDTH:INIT:MASK:MIN-MAX"; numbers decimal
// or 0x.
mrc_ctl_ev_field parse_field(const std::string& text);
std::string field_text(const mrc_ctl_ev_field& field);

mrc_ctl_ev_fmt_mode parse_format_mode(std::string_view text);  // stev, srv6, udp
const char* format_mode_text(mrc_ctl_ev_fmt_mode mode);
mrc_ctl_ev_mode parse_ev_mode(std::string_view text);  // auto, explicit, generated
const char* ev_mode_text(mrc_ctl_ev_mode mode);
// "good", "bad", "good,bad", "none".
int parse_event_mask(const std::string& text);
std::string event_mask_text(int mask);
// "nscc" and the full name, "none".
const char* parse_algorithm(std::string_view text);
// The first vendor byte of a CC profile: device, on, off.
std::uint8_t parse_trimming(std::string_view text);
const char* trimming_text(std::uint8_t vendor_byte);
// "name=value".
void parse_cc_setting(const std::string& text, mrc_ctl_cc_nscc_cfg& config);
void set_cc_value(std::string_view name, double value, mrc_ctl_cc_nscc_cfg& config);
std::vector<std::pair<const char*, double>> cc_values(const mrc_ctl_cc_nscc_cfg& config);

const char* profile_state_text(mrc_ctl_profile_state state);
const char* ev_state_text(mrc_ctl_ev_state state);
// ", 3 events before it were lost", or nothing.
std::string lost_events_text(const mrc_ctl_ev_event& event);

ibv_gid parse_gid(const std::string& text);

}  // namespace mrc::controller
