// Quantities as people write them: "10us", "2.5ms", "25%", "64KiB", "400G", "1e6". The one place
// that knows units; whoever refuses a text names those of the form below that it wanted.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace mrc {

inline constexpr std::string_view kTimeForm = "a time such as 10us, 1.5ms or 2s";
inline constexpr std::string_view kSecondsForm =
    "a time such as 10us, 1.5ms or 2s; a number alone is seconds";
inline constexpr std::string_view kBytesForm =
    "a number of bytes such as 65536, 64K or 64KiB (of 1,024), 64kB or 64KB (of 1,000), 2MB, 1e6";
inline constexpr std::string_view kShareForm = "a share such as 1% or 0.01";
inline constexpr std::string_view kRateForm = "bits per second such as 400G, 25Gb/s or 1e9";
inline constexpr std::string_view kCountForm = "a whole number such as 5000 or 1e6";

// All of them: a decimal number, 1e6 and 2.5e-3 among them, and a unit; no sign, no blank between.
// Nothing when the text is not like that.

// ps, ns, us, ms or s, in picoseconds; a bare 0 needs no unit. At most 1,000,000 s, and a whole
// number of picoseconds.
std::optional<std::int64_t> parse_time(std::string_view text);

// The same in seconds, where a number without unit is one of seconds, too.
std::optional<double> parse_seconds(std::string_view text);

// As other tools for Linux have it: K, M, G and T alone and with iB are powers of 1,024, with B
// powers of 1,000; B alone is one byte; case does not matter. At most 2^60; parts of a unit to the
// nearest byte, but no part of a byte.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

// "25%" and "0.25" are 0.25. At most 1.
std::optional<double> parse_share(std::string_view text);

// Bits per second: k, M, G and T are powers of 1,000, alone or before b/s, bps or bit/s. At most
// 10^18.
std::optional<std::uint64_t> parse_rate(std::string_view text);

// The same in units of `unit` bits per second, where a number without unit is one of these. The
// largest is that of parse_rate.
std::optional<double> parse_rate_in(std::string_view text, double unit);

// What has its unit at the end of its name ("uplink_gbps", "delay_us") takes a number alone as one
// of these, and any other unit of that kind; what has none takes numbers alone.
std::optional<double> parse_named(std::string_view name, std::string_view text);
std::string_view form_of_named(std::string_view name);

// A whole number without unit, up to 10^18; 1e6 is one.
std::optional<std::uint64_t> parse_count(std::string_view text);

// The number of a thing, not a quantity: up to 9 digits and nothing else.
std::optional<unsigned> parse_number(std::string_view text);

}  // namespace mrc
