#include "collective/dialect_check.h"

#include <fmt/core.h>

#include "collective/failure.h"
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
  throw Failure(
      fmt::format("{} speaks another dialect: {} is \"{}\" there and \"{}\" here, and both ends "
                  "must have the same; set MRC_DIALECT or [device.NAME.dialect] alike",
                  peer, field->name, wire::dialect_value(there.dialect, *field).view(),
                  wire::dialect_value(here.dialect, *field).view()));
}

}  // namespace mrc::collective
