#include "collective/dialect_check.h"

#include <fmt/core.h>

#include <array>

#include "collective/failure.h"
#include "os/dialect_conflict.h"
#include "wire/dialect.h"

namespace mrc::collective {

namespace {

wire::DialectParse read(std::string_view text) {
  return wire::parse_dialect(text.empty() ? "openmrc" : text);
}

}  // namespace

void check_dialect(std::string_view own, std::string_view theirs, const std::string& peer) {
  const wire::DialectParse here = read(own);
  const wire::DialectParse there = read(theirs);
  if (!there.ok()) {
    throw Failure(
        fmt::format("{} speaks a dialect that is unknown here: {}; use the same version "
                    "on both sides",
                    peer, there.error.view()));
  }
  const wire::DialectField* const field = wire::first_conflict(here.dialect, there.dialect);
  if (field == nullptr) return;
  std::array<char, 512> line{};
  os::describe_conflict(peer, here.dialect, there.dialect, *field, line);
  throw Failure(line.data());
}

}  // namespace mrc::collective
