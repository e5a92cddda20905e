#include "os/dialect_conflict.h"

#include <cstdio>

namespace mrc::os {

void describe_conflict(std::string_view peer, const wire::Dialect& own, const wire::Dialect& theirs,
                       const wire::DialectField& field, std::span<char> out) {
  const auto there = wire::dialect_value(theirs, field);
  const auto here = wire::dialect_value(own, field);
  const auto width = [](std::string_view text) { return static_cast<int>(text.size()); };
  std::snprintf(out.data(), out.size(),
                "%.*s speaks another dialect: %.*s is \"%.*s\" there and \"%.*s\" here, and both "
                "ends must have the same; set MRC_DIALECT or [device.NAME.dialect] alike",
                width(peer), peer.data(), width(field.name), field.name.data(), width(there.view()),
                there.view().data(), width(here.view()), here.view().data());
}

}  // namespace mrc::os
