// Values in scripts: numbers, times, names of enumerators, variables, and sums of them.
//
//   17   0x1F   0b101   10us   $a   $a+1   success   100..   0x1000..+1024
//
// The two last forms count: in a statement that is repeated the value grows by 1 or by the step.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "script/script_parser.h"

namespace mrc::script {

// The name of an enumerator, valid for the field it belongs to.
struct Symbol {
  const char* name;
  std::uint64_t value;
};
using Symbols = std::span<const Symbol>;

using Variables = std::map<std::string, std::uint64_t>;

// A readable property of T: a packet, a completion, the status of a queue pair.
template <typename T>
struct Field {
  const char* name;
  std::uint64_t (*get)(const T&);
  unsigned bits = 64;  // comparisons are made modulo 2^bits
  Symbols symbols = {};
};

// Evaluates an expression for the `repeat`-th execution of a statement, 0 for the first. Throws
// std::invalid_argument for a bad expression or an unknown variable.
std::uint64_t evaluate(std::string_view expression, const Variables& variables,
                       Symbols symbols = {}, unsigned repeat = 0);

// A list such as `101,103..105`, evaluated element by element.
std::vector<std::uint64_t> evaluate_list(std::string_view list, const Variables& variables);

// The name of a variable that `expression` would bind; nothing when it is not just an unbound one.
std::optional<std::string> unbound_variable(std::string_view expression,
                                            const Variables& variables);

// Compares modulo 2^bits for equality, as signed numbers for order.
bool compares(std::uint64_t actual, Comparison comparison, std::uint64_t expected, unsigned bits);

// The name of `value`, or its decimal (below 10,000) or hexadecimal form.
std::string show_value(std::uint64_t value, Symbols symbols = {});

}  // namespace mrc::script
