// Bytes that nobody may find in memory after they were used.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

namespace mrc::seal {

template <std::size_t Size>
struct SecretBytes {
  std::array<std::byte, Size> bytes{};

  SecretBytes() = default;
  SecretBytes(const SecretBytes&) = default;
  SecretBytes& operator=(const SecretBytes&) = default;
  ~SecretBytes() { ::explicit_bzero(bytes.data(), Size); }

  std::span<std::byte, Size> span() { return bytes; }
  std::span<const std::byte, Size> span() const { return bytes; }
  friend bool operator==(const SecretBytes&, const SecretBytes&) = default;
};

}  // namespace mrc::seal
