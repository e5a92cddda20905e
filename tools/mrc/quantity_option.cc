#include "quantity_option.h"

#include <fmt/core.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/quantity.h"

namespace mrc::tool {
namespace {

// The parser of options sees a plain number.
template <typename Value>
CLI::Validator read_by(std::optional<Value> (*parse)(std::string_view), std::string_view form) {
  return {[parse, form](std::string& text) {
            const std::optional<Value> value = parse(text);
            if (!value) return "'" + text + "' is not " + std::string(form);
            text = fmt::format("{}", *value);
            return std::string();
          },
          ""};
}

struct RateUnit {
  double bits = 1;
  std::string_view name;
};

CLI::Validator as_rate(RateUnit unit) {
  return {[unit](std::string& text) {
            const std::optional<double> value = parse_rate_in(text, unit.bits);
            if (!value)
              return fmt::format("'{}' is not {}; a number alone is {}", text, kRateForm,
                                 unit.name);
            text = fmt::format("{}", *value);
            return std::string();
          },
          ""};
}

}  // namespace

CLI::Validator as_bytes() { return read_by(parse_bytes, kBytesForm); }
CLI::Validator as_count() { return read_by(parse_count, kCountForm); }
CLI::Validator as_share() { return read_by(parse_share, kShareForm); }

CLI::Validator as_seconds(SecondsRange range) {
  return {[range](std::string& text) {
            const std::optional<double> value = parse_seconds(text);
            if (!value) return fmt::format("'{}' is not {}", text, kSecondsForm);
            if (*value < range.least || *value > range.most)
              return fmt::format("'{}' is not from {} to {} seconds", text, range.least,
                                 range.most);
            text = fmt::format("{}", *value);
            return std::string();
          },
          ""};
}

CLI::Validator as_gbps() { return as_rate({1e9, "Gb/s"}); }
CLI::Validator as_mbps() { return as_rate({1e6, "Mb/s"}); }
CLI::Validator as_tbps() { return as_rate({1e12, "Tb/s"}); }

CLI::Validator as_named(std::string_view name) {
  return {[name](std::string& text) {
            const std::optional<double> value = parse_named(name, text);
            if (!value) return fmt::format("'{}' is not {}", text, form_of_named(name));
            text = fmt::format("{}", *value);
            return std::string();
          },
          ""};
}

CLI::Validator as_port() {
  return {[](std::string& text) {
            const std::optional<unsigned> port = parse_number(text);
            if (!port || *port > UINT16_MAX)
              return fmt::format("'{}' is no port: a number from 0 to {}", text, UINT16_MAX);
            return std::string();
          },
          ""};
}

}  // namespace mrc::tool
