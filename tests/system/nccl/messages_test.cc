// What two ends tell each other, without a connection.
#include "messages.h"

#include <gtest/gtest.h>

#include "agreement.h"
#include "mrc.h"

namespace mrc::nccl {
namespace {

constexpr std::uint32_t kAll =
    MRC_DEVICE_CAP_TRIM_NACK | MRC_DEVICE_CAP_DYNAMIC_MPR | MRC_DEVICE_CAP_SVC_TIME;

Message introduction(std::uint8_t window, std::uint16_t immediates, std::uint32_t capabilities) {
  Message message;
  message.qp_number = 77;
  message.name = "mrc0 of somewhere";
  message.window = window;
  message.immediates = immediates;
  message.capabilities = capabilities;
  message.dialect = 0x1234'5678'9abc'def0;
  message.security = 0x8234'5678'9abc'def0;
  return message;
}

TEST(Messages, CarryTheSetUpExchange) {
  const auto back = decode_message(encode(introduction(200, 40'000, 0x8000'0005)));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->window, 200);
  EXPECT_EQ(back->immediates, 40'000);
  EXPECT_EQ(back->capabilities, 0x8000'0005);
  EXPECT_EQ(back->dialect, 0x1234'5678'9abc'def0);
  EXPECT_EQ(back->security, 0x8234'5678'9abc'def0);
  EXPECT_EQ(back->name, "mrc0 of somewhere");
}

// What versions before this one had in the place of the number: the end of a long name.
TEST(Messages, TheEndOfALongNameIsNoSecurity) {
  Message message = introduction(1, 2, 3);
  message.name = std::string(60, 'n');
  MessageBytes bytes = encode(message);
  EXPECT_EQ(decode_message(bytes)->name, std::string(Message::kNameBytes - 1, 'n'));
  const std::size_t name = 16 + 16 + 24 + 8;
  std::fill_n(bytes.begin() + name, Message::kNameBytes + 8, std::byte{'n'});
  EXPECT_EQ(decode_message(bytes)->security, 0U);
}

TEST(Messages, AWindowThatTheApiCannotSayIsRefused) {
  MessageBytes bytes = encode(introduction(1, 2, 3));
  // Immediates and capabilities are the eight bytes before the dialect, the window is between.
  const std::size_t window = 16 + 16 + 24 + 8 + Message::kNameBytes + 8 + 2;
  bytes.at(window + 1) = std::byte{1};
  EXPECT_FALSE(decode_message(bytes).has_value());
}

TEST(Agreement, TakesWhatThePeerHoldsButNoMoreThanTheDeviceCan) {
  const Message own = introduction(8, 64, kAll);
  const Agreement small = agree(own, introduction(4, 32, kAll), {.window = 8, .immediates = 100});
  EXPECT_EQ(small.window, 4);
  EXPECT_EQ(small.immediates, 32);
  const Agreement large = agree(own, introduction(64, 500, kAll), {.window = 8, .immediates = 100});
  EXPECT_EQ(large.window, 8);
  EXPECT_EQ(large.immediates, 100);
}

TEST(Agreement, TellsTheDeviceWhatThePeerCannotDo) {
  const Message own = introduction(8, 64, kAll);
  const Limits limits{.window = 8, .immediates = 64};
  EXPECT_EQ(agree(own, introduction(8, 64, kAll), limits).capabilities, MRC_QP_CAP_DYNAMIC_MPR);
  EXPECT_EQ(agree(own, introduction(8, 64, MRC_DEVICE_CAP_SVC_TIME), limits).capabilities,
            MRC_QP_CAP_TRIM_NACK_DEST_UNSUPPORTED);
  EXPECT_EQ(agree(own, introduction(8, 64, MRC_DEVICE_CAP_TRIM_NACK), limits).capabilities,
            MRC_QP_CAP_SVC_TIME_DEST_UNSUPPORTED);
  // Only both ends together let the window change.
  const Message modest = introduction(8, 64, kAll & ~MRC_DEVICE_CAP_DYNAMIC_MPR);
  EXPECT_EQ(agree(modest, introduction(8, 64, kAll), limits).capabilities, 0);
}

TEST(Agreement, APeerThatSaidNothingIsLikeUs) {
  const Agreement agreed =
      agree(introduction(8, 64, kAll), introduction(0, 0, 0), {.window = 16, .immediates = 100});
  EXPECT_EQ(agreed.window, 8);
  EXPECT_EQ(agreed.immediates, 64);
  EXPECT_EQ(agreed.capabilities, MRC_QP_CAP_DYNAMIC_MPR);
}

}  // namespace
}  // namespace mrc::nccl
