#include "collective/element.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <vector>

namespace mrc::collective {
namespace {

template <typename T>
std::vector<std::byte> bytes_from(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <typename T>
void expect_sum(Element element, const std::vector<T>& a, const std::vector<T>& b,
                const std::vector<T>& sum) {
  std::vector<std::byte> into = bytes_from(a);
  add(element, into, bytes_from(b));
  EXPECT_EQ(into, bytes_from(sum)) << name_of(element);
}

TEST(Element, NamesAndSizes) {
  const std::array<std::pair<const char*, std::size_t>, 4> known = {
      {{"int32", 4}, {"int64", 8}, {"float", 4}, {"double", 8}}};
  for (const auto& [name, bytes] : known) {
    const auto element = element_of(name);
    ASSERT_TRUE(element) << name;
    EXPECT_STREQ(name_of(*element), name);
    EXPECT_EQ(bytes_of(*element), bytes);
  }
  EXPECT_FALSE(element_of("int16"));
  EXPECT_FALSE(element_of(""));
}

TEST(Element, AddsEveryType) {
  expect_sum<std::int32_t>(Element::kInt32, {1, -5}, {2, 3}, {3, -2});
  expect_sum<std::int64_t>(Element::kInt64, {1LL << 40, -1}, {1, -1}, {(1LL << 40) + 1, -2});
  expect_sum<float>(Element::kFloat, {0.5F, -1.25F}, {0.25F, 1.25F}, {0.75F, 0.0F});
  expect_sum<double>(Element::kDouble, {1e300}, {1.0}, {1e300});
}

TEST(Element, WholeNumbersWrapAround) {
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  expect_sum<std::int32_t>(Element::kInt32, {kMost}, {1},
                           {std::numeric_limits<std::int32_t>::min()});
}

// Sums go through small blocks; the seams must not show.
TEST(Element, AddsAnyNumberOfElementsFromAnyAddress) {
  for (const std::size_t count : {0, 1, 63, 64, 65, 200}) {
    std::vector<std::byte> into(count * 4 + 1);
    std::vector<std::byte> from(count * 4 + 3);
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = static_cast<std::uint32_t>(i * 3);
      std::memcpy(into.data() + 1 + i * 4, &value, 4);
      std::memcpy(from.data() + 3 + i * 4, &value, 4);
    }
    add(Element::kInt32, std::span(into).subspan(1), std::span(from).subspan(3));
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t sum = 0;
      std::memcpy(&sum, into.data() + 1 + i * 4, 4);
      ASSERT_EQ(sum, i * 6) << count;
    }
  }
}

}  // namespace
}  // namespace mrc::collective
