// The numbers that collectives add up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace mrc::collective {

enum class Element : std::uint8_t { kInt32, kInt64, kFloat, kDouble };

const char* name_of(Element element);
std::optional<Element> element_of(const std::string& name);
std::size_t bytes_of(Element element);

// into[i] += from[i] for as many elements as there are in both, which have the same size.
void add(Element element, std::span<std::byte> into, std::span<const std::byte> from);

}  // namespace mrc::collective
