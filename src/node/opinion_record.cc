#include "node/opinion_record.h"

#include "wire/icrc.h"
#include "wire/reader.h"
#include "wire/writer.h"

namespace mrc::node {
namespace {

constexpr std::size_t kSumAt = kOpinionBytes - 4;

std::uint32_t sum_of(std::span<const std::byte, kOpinionBytes> bytes) {
  return ~wire::crc32_update(0xFFFF'FFFF, bytes.first<kSumAt>());
}

}  // namespace

OpinionBytes encode_opinion(const OpinionRecord& record) {
  OpinionBytes bytes{};
  wire::ByteWriter out(bytes);
  out.u64(record.profile_id);
  out.u8(static_cast<std::uint8_t>(record.opinion.state));
  out.u8(static_cast<std::uint8_t>(record.opinion.port));
  out.copy_from(std::span(record.opinion.value.bytes));
  out.zeros(kSumAt - out.written());
  out.u32(sum_of(bytes));
  return bytes;
}

std::optional<OpinionRecord> decode_opinion(std::span<const std::byte, kOpinionBytes> bytes) {
  wire::ByteReader in(bytes);
  OpinionRecord record;
  record.profile_id = in.u64();
  const std::uint8_t state = in.u8();
  const std::uint8_t port = in.u8();
  in.copy_to(std::span(record.opinion.value.bytes));
  in.skip(in.left() - 4);
  if (in.u32() != sum_of(bytes)) return std::nullopt;
  if (state > static_cast<std::uint8_t>(core::EvState::kDenied) || port > kMaxPorts)
    return std::nullopt;
  record.opinion.state = static_cast<core::EvState>(state);
  record.opinion.port = PortId{port};
  return record;
}

}  // namespace mrc::node
