// The state file of a node, which every process of the host reads: as it comes, or with a right
// head and checksum, so that what lies behind them is reached.
#include <cstring>
#include <vector>

#include "fuzz/fuzz_support.h"
#include "node/node_state_codec.h"
#include "wire/byte_order.h"
#include "wire/icrc.h"

using mrc::fuzz::require;
namespace node = mrc::node;
namespace wire = mrc::wire;

namespace {

using Bytes = std::vector<std::byte>;

// The head of node_state_codec.h: magic, schema, length, version, checksum.
constexpr std::size_t kChecksumAt = 24;
constexpr std::size_t kHeadBytes = 28;

Bytes with_head(std::span<const std::byte> body) {
  Bytes file(kHeadBytes);
  std::memcpy(file.data(), "MRCstate", 8);
  wire::store_big_endian(file.data() + 8, node::kStateSchema);
  wire::store_big_endian(file.data() + 12, static_cast<std::uint32_t>(body.size()));
  wire::store_big_endian(file.data() + 16, std::uint64_t{7});
  file.insert(file.end(), body.begin(), body.end());
  const std::span<const std::byte> all(file);
  const std::uint32_t head = wire::crc32_update(0xFFFF'FFFF, all.first(kChecksumAt));
  const std::uint32_t sum = ~wire::crc32_update(head, all.subspan(kHeadBytes));
  wire::store_big_endian(file.data() + kChecksumAt, sum);
  return file;
}

void check(std::span<const std::byte> file) {
  const auto state = node::decode_state(file);
  if (!state.ok()) return;
  require(state.value().formats.size() <= node::kMaxFormatProfiles);
  require(state.value().ev_profiles.size() <= node::kMaxEvProfiles);
  require(state.value().cc_profiles.size() <= node::kMaxCcProfiles);
  // What was believed can be written, and says the same when it is read.
  const auto written = node::encode_state(state.value());
  require(written.ok());
  const auto again = node::decode_state(written.value());
  require(again.ok() && again.value().version == state.value().version);
  require(again.value().ev_profiles == state.value().ev_profiles);
  const auto written_again = node::encode_state(again.value());
  require(written_again.ok() && written_again.value() == written.value());
  require(node::same_contents(written.value(), written_again.value()));
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  check(input);
  check(with_head(input));
  return 0;
}
