// Which packet numbers of a chain have been seen: the last 65,536 one by one, all before as seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mrc::seal {

class ReplayWindow {
 public:
  // Packets that are sprayed over many paths overtake each other by thousands.
  static constexpr std::uint64_t kSize = 65'536;

  enum class Verdict : std::uint8_t { kNew, kSeen, kTooOld };

  ReplayWindow() : words_(kSize / 64) {}
  // A window in which `highest` and all before it count as seen.
  explicit ReplayWindow(std::uint64_t highest)
      : highest_(highest), any_(true), words_(kSize / 64, ~std::uint64_t{0}) {}

  // Changes nothing.
  [[nodiscard]] Verdict check(std::uint64_t number) const {
    if (!any_ || number > highest_) return Verdict::kNew;
    if (highest_ - number >= kSize) return Verdict::kTooOld;
    return (words_[word(number)] & bit(number)) != 0 ? Verdict::kSeen : Verdict::kNew;
  }
  // Of a number that check() calls new; only once its packet is known to be genuine.
  void mark(std::uint64_t number);

  // Of a window with a mark.
  std::uint64_t highest() const { return highest_; }

 private:
  static std::size_t word(std::uint64_t number) { return number / 64 % (kSize / 64); }
  static std::uint64_t bit(std::uint64_t number) { return std::uint64_t{1} << (number % 64); }

  std::uint64_t highest_ = 0;
  bool any_ = false;  // whether anything was marked
  std::vector<std::uint64_t> words_;
};

}  // namespace mrc::seal
