#include "collective/collectives.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "collective/device.h"

namespace mrc::collective {
namespace {

std::vector<std::size_t> segment_sizes(std::size_t bytes, Element element, unsigned ranks) {
  std::vector<std::byte> buffer(bytes);
  std::vector<std::size_t> sizes;
  for (unsigned i = 0; i < ranks; ++i)
    sizes.push_back(Collectives::segment_of(buffer, element, ranks, i).size());
  return sizes;
}

TEST(Segments, AreShorterOrEmptyAtTheEnd) {
  EXPECT_EQ(segment_sizes(20, Element::kFloat, 4), (std::vector<std::size_t>{8, 8, 4, 0}));
  EXPECT_EQ(segment_sizes(24, Element::kDouble, 2), (std::vector<std::size_t>{16, 8}));
  EXPECT_EQ(segment_sizes(0, Element::kFloat, 2), (std::vector<std::size_t>{0, 0}));
}

TEST(Segments, LieOneBehindTheOther) {
  std::vector<std::byte> buffer(20);
  std::byte* next = buffer.data();
  for (unsigned i = 0; i < 3; ++i) {
    const auto segment = Collectives::segment_of(buffer, Element::kFloat, 4, i);
    EXPECT_EQ(segment.data(), next);
    next += segment.size();
  }
  EXPECT_EQ(next, buffer.data() + buffer.size());
}

TEST(GidText, KnowsMappedAddresses) {
  EXPECT_EQ(gid_text({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}), "10.0.0.1");
  EXPECT_EQ(gid_text({0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}), "fd00::1");
}

}  // namespace
}  // namespace mrc::collective
