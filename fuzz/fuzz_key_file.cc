// The file with the secret of a cluster: damaged, half copied, or something else altogether.
#include <cctype>

#include "fuzz/text_support.h"
#include "seal/key_file.h"

using mrc::fuzz::require;
namespace seal = mrc::seal;

namespace {

// A secret is 64 digits; an eighth of one in a log is too much.
constexpr std::size_t kTooMuch = 8;

bool tells_part_of(const std::string& error, const std::string& text) {
  for (std::size_t at = 0; at + kTooMuch <= text.size(); ++at) {
    const std::string part = text.substr(at, kTooMuch);
    const bool digits = std::all_of(part.begin(), part.end(),
                                    [](unsigned char c) { return std::isxdigit(c) != 0; });
    if (digits && error.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = mrc::fuzz::text_of(data, size);
  const auto result = seal::parse_key_text(text, "cluster.key");
  if (result.ok()) {
    require(!result.keys.empty() && result.keys.size() <= seal::kMostKeys);
    return 0;
  }
  mrc::fuzz::require_one_line(result.error);
  require(result.keys.empty() && !tells_part_of(result.error, text));
  return 0;
}
