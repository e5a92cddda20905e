#include "seal/stance.h"

#include <algorithm>

#include "base/assert.h"
#include "seal/key_file.h"

namespace mrc::seal {
namespace {

// From the top: 4 bits of format, 4 of the number of keys, 8 for each id, 20 for each print.
constexpr std::uint64_t kFormat = 8;
constexpr unsigned kFormatShift = 60;
constexpr unsigned kCountShift = 56;
constexpr std::uint64_t kCountMask = 0xF;
constexpr unsigned kIdShifts[kMostKeys] = {48, 40};
constexpr unsigned kPrintShifts[kMostKeys] = {20, 0};
constexpr std::uint64_t kPrintMask = (std::uint64_t{1} << Stance::kPrintBits) - 1;

std::string text_of(const Stance::Key& key) {
  std::string text = "key " + std::to_string(static_cast<unsigned>(key.id)) + " (";
  for (unsigned shift = Stance::kPrintBits; shift > 0;) {
    shift -= 4;
    text += "0123456789abcdef"[key.print >> shift & 0xF];
  }
  return text + ")";
}

std::string text_of(const std::vector<Stance::Key>& keys) {
  std::string text;
  for (const Stance::Key& key : keys)
    text += (text.empty() ? "" : " and ") + text_of(key);
  return text;
}

bool has(const Stance& stance, const Stance::Key& key) {
  return std::find(stance.keys.begin(), stance.keys.end(), key) != stance.keys.end();
}

}  // namespace

std::uint64_t stance_code(const Stance& stance) {
  MRC_ASSERT(stance.keys.size() <= kMostKeys);
  std::uint64_t code = kFormat << kFormatShift | std::uint64_t{stance.keys.size()} << kCountShift;
  for (std::size_t i = 0; i < stance.keys.size(); ++i) {
    code |= static_cast<std::uint64_t>(stance.keys[i].id) << kIdShifts[i];
    code |= (stance.keys[i].print & kPrintMask) << kPrintShifts[i];
  }
  return code;
}

std::optional<Stance> stance_of_code(std::uint64_t code) {
  const std::uint64_t count = code >> kCountShift & kCountMask;
  if (code >> kFormatShift != kFormat || count > kMostKeys) return std::nullopt;
  Stance stance;
  for (std::size_t i = 0; i < count; ++i) {
    stance.keys.push_back(
        {.id = KeyId{static_cast<std::uint8_t>(code >> kIdShifts[i] & 0xFF)},
         .print = static_cast<std::uint32_t>(code >> kPrintShifts[i] & kPrintMask)});
  }
  // Bits that stand for nothing are 0.
  return stance_code(stance) == code ? std::optional(stance) : std::nullopt;
}

std::string stance_conflict(const Stance& own, const Stance& theirs) {
  if (own.seals() != theirs.seals()) {
    const std::string there = theirs.seals() ? "sealed" : "off";
    const std::string here = own.seals() ? "sealed" : "off";
    return "security is \"" + there + "\" there and \"" + here +
           "\" here, and neither takes the other's packets; set MRC_SECURITY or security in "
           "[device.NAME] alike";
  }
  if (!own.seals()) return {};
  const std::string way_out(kSameKeyFile);
  if (!has(own, theirs.keys.front())) {
    return "security is \"sealed\" at both ends, but what is sealed there with " +
           text_of(theirs.keys.front()) + " does not open here, where there is " +
           text_of(own.keys) + way_out;
  }
  if (!has(theirs, own.keys.front())) {
    return "security is \"sealed\" at both ends, but what is sealed here with " +
           text_of(own.keys.front()) + " does not open there, where there is " +
           text_of(theirs.keys) + way_out;
  }
  return {};
}

}  // namespace mrc::seal
