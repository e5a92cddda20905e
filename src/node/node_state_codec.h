// The state file: NodeSnapshot as bytes.
//
// Big endian throughout: magic, schema, length of what follows the header, version of the state,
// CRC-32 over all of that and the body. The reader trusts nothing: a file that is cut short, has a
// bit flipped, or claims more than the limits of node_state.h is refused as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "node/node_state.h"

namespace mrc::node {

// The newest there is. A state is written in the oldest that can hold it, so that an older version
// of OpenMRC reads what it knows: 1 holds all but drained parts, 2 parts of up to 32
// exclusions.
inline constexpr std::uint32_t kStateSchema = 3;
inline constexpr std::size_t kMaxStateFileBytes = 8U << 20;

// kTooLong: more profiles, fields or EVs than the limits allow.
Result<std::vector<std::byte>> encode_state(const NodeSnapshot& state);

// kUnsupported: a schema we do not know, written by another version. kInvalidArgument: broken.
Result<NodeSnapshot> decode_state(std::span<const std::byte> file);

// Whether two files that encode_state made hold the same, whatever their versions.
bool same_contents(std::span<const std::byte> a, std::span<const std::byte> b);

}  // namespace mrc::node
