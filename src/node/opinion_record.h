// What a process thinks of an EV, as it stands in the file that all users of a device may read: 64
// bytes with a checksum, so that a reader notices a record that is being written, or is nobody's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "node/node_state.h"

namespace mrc::node {

inline constexpr std::size_t kOpinionBytes = 64;
using OpinionBytes = std::array<std::byte, kOpinionBytes>;

// One whose state is GOOD is an empty place.
struct OpinionRecord {
  std::uint64_t profile_id = 0;
  NodeState::EvOpinion opinion;
};

OpinionBytes encode_opinion(const OpinionRecord& record);
// None: torn or foreign.
std::optional<OpinionRecord> decode_opinion(std::span<const std::byte, kOpinionBytes> bytes);

}  // namespace mrc::node
