#include "os/dialect_conflict.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace mrc::os {
namespace {

std::string line(std::span<char> room) {
  wire::Dialect theirs = wire::kOpenMrc;
  theirs.first_rqmsn = 1;
  const wire::DialectField* const field = wire::first_conflict(wire::kOpenMrc, theirs);
  if (field == nullptr) return "no conflict";
  describe_conflict("the peer", wire::kOpenMrc, theirs, *field, room);
  return room.data();
}

TEST(DialectConflict, NamesThePeerTheFieldAndBothValues) {
  std::array<char, 256> room{};
  EXPECT_EQ(line(room),
            "the peer speaks another dialect: first_rqmsn is \"1\" there and \"0\" here, and both "
            "ends must have the same; set MRC_DIALECT or [device.NAME.dialect] alike");
}

TEST(DialectConflict, IsCutToTheRoomThereIs) {
  std::array<char, 16> room{};
  EXPECT_EQ(line(room), "the peer speaks");
}

}  // namespace
}  // namespace mrc::os
