// The MRC_* variables: which exist, and which of those that are set look like a slip of the pen.
//
// Others may have variables with that beginning too (build scripts of MRC programs do), so that
// only what is very near to one of ours is taken for a misspelling.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace mrc::node {

struct KnownVariable {
  const char* name;
  const char* meaning;
};
std::span<const KnownVariable> known_variables();

bool is_known_variable(std::string_view name);

// The variable that was probably meant, or empty.
std::string nearest_variable(std::string_view name);

// Empty, or what is wrong with the first misspelt variable of this process.
std::string misspelt_variable();

}  // namespace mrc::node
