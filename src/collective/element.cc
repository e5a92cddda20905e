#include "collective/element.h"

#include <algorithm>
#include <cstring>

namespace mrc::collective {
namespace {

constexpr std::size_t kBlock = 64;

// Through small arrays, as bytes may stand anywhere.
template <typename T>
void add_as(std::span<std::byte> into, std::span<const std::byte> from) {
  T sums[kBlock];
  T terms[kBlock];
  for (std::size_t at = 0; at < into.size(); at += sizeof(sums)) {
    const std::size_t bytes = std::min(sizeof(sums), into.size() - at);
    std::memcpy(sums, into.data() + at, bytes);
    std::memcpy(terms, from.data() + at, bytes);
    for (std::size_t i = 0; i < bytes / sizeof(T); ++i)
      sums[i] += terms[i];
    std::memcpy(into.data() + at, sums, bytes);
  }
}

}  // namespace

const char* name_of(Element element) {
  switch (element) {
    case Element::kInt32:
      return "int32";
    case Element::kInt64:
      return "int64";
    case Element::kFloat:
      return "float";
    case Element::kDouble:
      return "double";
  }
  return "?";
}

std::optional<Element> element_of(const std::string& name) {
  for (const Element element :
       {Element::kInt32, Element::kInt64, Element::kFloat, Element::kDouble}) {
    if (name == name_of(element)) return element;
  }
  return std::nullopt;
}

std::size_t bytes_of(Element element) {
  return element == Element::kInt32 || element == Element::kFloat ? 4 : 8;
}

void add(Element element, std::span<std::byte> into, std::span<const std::byte> from) {
  switch (element) {
    case Element::kInt32:
      return add_as<std::uint32_t>(into, from);  // wraps around, as sums of machine words do
    case Element::kInt64:
      return add_as<std::uint64_t>(into, from);
    case Element::kFloat:
      return add_as<float>(into, from);
    case Element::kDouble:
      return add_as<double>(into, from);
  }
}

}  // namespace mrc::collective
