#include "node/telemetry_page.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace mrc::node {
namespace {

// A page with that body at version 3, beside an older one.
std::vector<std::byte> page_of(const TelemetryBody& body) {
  std::vector<std::byte> page(kTelemetryPageBytes, std::byte{0xEE});
  const TelemetryHeader header{.magic = TelemetryHeader::kMagic,
                               .layout = kTelemetryLayout,
                               .body_bytes = sizeof(TelemetryBody),
                               .version = 3};
  std::memcpy(page.data(), &header, sizeof header);
  std::memcpy(page.data() + telemetry_body_at(3), &body, sizeof body);
  return page;
}

class TelemetryPage : public ::testing::Test {
 protected:
  TelemetryPage() {
    body->process.name.set("train");
    body->device.set("mrc0");
    body->plane_count = 2;
    body->planes[0].port = 1;
    body->planes[1].port = 2;
    body->listed_queue_pairs = 1;
    body->list[0].number = 77;
    body->listed_paths = 1;
    body->paths[0] = {.queue_pair = 77, .port = 2, .state = 2};
  }
  ErrorCode decode() { return decode_telemetry(page_of(*body), *out).code(); }

  std::unique_ptr<TelemetryBody> body = std::make_unique<TelemetryBody>();
  std::unique_ptr<TelemetryBody> out = std::make_unique<TelemetryBody>();
};

TEST_F(TelemetryPage, ComesBackAsItWasWritten) {
  ASSERT_EQ(decode(), ErrorCode::kOk);
  EXPECT_EQ(std::memcmp(out.get(), body.get(), sizeof *body), 0);
}

TEST_F(TelemetryPage, OfAnotherSizeLayoutOrKindIsRefused) {
  std::vector<std::byte> page = page_of(*body);
  for (const std::size_t bytes : {std::size_t{0}, sizeof(TelemetryHeader), page.size() - 1})
    EXPECT_FALSE(decode_telemetry(std::span(page).first(bytes), *out).ok()) << bytes;
  page[0] ^= std::byte{1};
  EXPECT_EQ(decode_telemetry(page, *out).code(), ErrorCode::kInvalidArgument);
  page = page_of(*body);
  page[offsetof(TelemetryHeader, layout)] ^= std::byte{1};
  EXPECT_EQ(decode_telemetry(page, *out).code(), ErrorCode::kUnsupported);
  page = page_of(*body);
  page[offsetof(TelemetryHeader, version)] = std::byte{0};
  EXPECT_EQ(decode_telemetry(page, *out).code(), ErrorCode::kBusy);
}

TEST_F(TelemetryPage, ListsBeyondTheirBoundsAreRefused) {
  body->listed_queue_pairs = kTelemetryQueuePairs + 1;
  EXPECT_EQ(decode(), ErrorCode::kInvalidArgument);
  body->listed_queue_pairs = 1;
  body->listed_paths = kTelemetryPaths + 1;
  EXPECT_EQ(decode(), ErrorCode::kInvalidArgument);
  body->listed_paths = 1;
  body->plane_count = kMaxPorts + 1;
  EXPECT_EQ(decode(), ErrorCode::kInvalidArgument);
  body->plane_count = 2;
  body->engine_count = kTelemetryEngines + 1;
  EXPECT_EQ(decode(), ErrorCode::kInvalidArgument);
}

TEST_F(TelemetryPage, StatesAndPortsThereAreNotAreRefused) {
  body->list[0].state = 5;
  EXPECT_EQ(decode(), ErrorCode::kInvalidArgument);
  body->list[0].state = 4;
  body->paths[0].state = core::kEvStateCount;
  EXPECT_EQ(decode(), ErrorCode::kInvalidArgument);
  body->paths[0].state = 0;
  body->paths[0].port = 0;
  EXPECT_EQ(decode(), ErrorCode::kInvalidArgument);
  body->paths[0].port = 1;
  body->planes[1].port = 7;
  EXPECT_EQ(decode(), ErrorCode::kInvalidArgument);
}

TEST_F(TelemetryPage, TextsCanBeShown) {
  body->process.name.bytes.fill('\x1b');
  body->device.set("a\nb");
  ASSERT_EQ(decode(), ErrorCode::kOk);
  EXPECT_EQ(out->process.name.text(), std::string(31, '?'));
  EXPECT_EQ(out->device.text(), "a?b");
}

TEST(TelemetryHistogram, BucketsEndAtPowersOfTwo) {
  EXPECT_EQ(TelemetryHistogram::bucket_of(0), 0U);
  EXPECT_EQ(TelemetryHistogram::bucket_of(1'024), 0U);
  EXPECT_EQ(TelemetryHistogram::bucket_of(1'025), 1U);
  EXPECT_EQ(TelemetryHistogram::bucket_of(2'048), 1U);
  EXPECT_EQ(TelemetryHistogram::bucket_of(2'049), 2U);
  EXPECT_EQ(TelemetryHistogram::bucket_of(~std::uint64_t{0}), TelemetryHistogram::kBuckets - 1);
  TelemetryHistogram histogram;
  for (std::size_t i = 0; i < TelemetryHistogram::kBuckets; ++i)
    histogram.add(static_cast<DurationNs>(TelemetryHistogram::bound_ns(i)));
  for (const std::uint64_t bucket : histogram.buckets)
    EXPECT_EQ(bucket, 1U);
  EXPECT_EQ(histogram.count(), TelemetryHistogram::kBuckets);
  EXPECT_EQ(histogram.sum_ns, (std::uint64_t{1} << 36) - 1'024);
}

}  // namespace
}  // namespace mrc::node
