#include "node/node_state_codec.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "wire/icrc.h"
#include "wire/reader.h"

namespace mrc::node {
namespace {

constexpr std::uint64_t kMagic = 0x4D52'4373'7461'7465;  // "MRCstate"
constexpr std::size_t kChecksumAt = 24;
constexpr std::size_t kHeaderBytes = 28;
constexpr Status kBroken(ErrorCode::kInvalidArgument, "contradicts itself");

constexpr std::uint32_t kSchemaWithoutDrains = 1;
constexpr std::uint32_t kSchemaOfFewExclusions = 2;
constexpr std::size_t kFewExclusions = 32;
constexpr std::uint8_t kEvDenied = 1;
constexpr std::uint8_t kEvPopulated = 2;
constexpr std::uint8_t kEvCompact = 4;  // the compact form differs and follows
constexpr std::uint8_t kEvAssumedBad = 8;
constexpr std::uint8_t kEvFlags = 15;

class Output {
 public:
  void u8(std::uint8_t value) { number(value, 1); }
  void u32(std::uint32_t value) { number(value, 4); }
  void u64(std::uint64_t value) { number(value, 8); }
  void f32(float value) { u32(std::bit_cast<std::uint32_t>(value)); }
  void count(std::size_t value) { u32(static_cast<std::uint32_t>(value)); }
  void ev(const wire::EvValue& value) {
    const auto bytes = std::as_bytes(std::span(value.bytes));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
  void put_u32(std::size_t at, std::uint32_t value) {
    for (unsigned i = 0; i < 4; ++i)
      bytes_[at + i] = static_cast<std::byte>(value >> (24 - 8 * i) & 0xFF);
  }
  std::size_t size() const { return bytes_.size(); }
  std::span<const std::byte> view() const { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void number(std::uint64_t value, unsigned width) {
    std::array<std::byte, 8> bytes;
    for (unsigned i = 0; i < width; ++i)
      bytes.at(i) = static_cast<std::byte>(value >> (8 * (width - 1 - i)) & 0xFF);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.begin() + width);
  }
  std::vector<std::byte> bytes_;
};

std::uint32_t checksum(std::span<const std::byte> file) {
  const std::uint32_t state = wire::crc32_update(0xFFFF'FFFF, file.first(kChecksumAt));
  return ~wire::crc32_update(state, file.subspan(kHeaderBytes));
}

// --- Writing

void write_format(Output& out, const EvFormatProfile& format) {
  out.u8(static_cast<std::uint8_t>(format.state));
  out.u8(static_cast<std::uint8_t>(format.kind));
  out.count(format.field_widths.size());
  for (const std::uint8_t width : format.field_widths)
    out.u8(width);
}

void write_ev_profile(Output& out, const NodeEvProfile& profile) {
  out.u8(static_cast<std::uint8_t>(profile.state));
  out.u8(static_cast<std::uint8_t>(profile.mode));
  out.u64(profile.format_id);
  out.u32(profile.min_active);
  out.u32(profile.event_mask);
  out.u64(profile.seed);
  out.u8(profile.has_min_active ? 1 : 0);
  out.u8(profile.has_event_mask ? 1 : 0);
  out.count(profile.fields.size());
  for (const wire::EvField& field : profile.fields) {
    for (const std::uint32_t number :
         {field.width, field.init_val, field.min_val, field.max_val, field.mask})
      out.u32(number);
  }
  out.count(profile.evs.size());
  for (const ProfileEv& ev : profile.evs) {
    const bool compact = !(ev.compact == ev.value);
    out.u8(static_cast<std::uint8_t>(
        (ev.denied ? kEvDenied : 0) | (ev.populated ? kEvPopulated : 0) |
        (ev.assumed_bad ? kEvAssumedBad : 0) | (compact ? kEvCompact : 0)));
    out.u8(static_cast<std::uint8_t>(ev.port));
    out.ev(ev.value);
    if (compact) out.ev(ev.compact);
  }
}

void write_cc_profile(Output& out, const NodeCcProfile& profile) {
  const core::NsccParameters& nscc = profile.cc.nscc;
  out.u8(static_cast<std::uint8_t>(profile.state));
  out.u8(static_cast<std::uint8_t>(profile.cc.algorithm));
  out.u8(profile.configured ? 1 : 0);
  out.u8(static_cast<std::uint8_t>(profile.trimming));
  out.u8(nscc.disable_qa ? 1 : 0);
  out.u8(nscc.qa_gate);
  for (const std::uint32_t number :
       {nscc.adjust_bytes_threshold, nscc.adjust_period_threshold_ns, nscc.base_rtt_ns,
        nscc.max_cwnd, nscc.qa_threshold_ns, nscc.target_delay_ns})
    out.u32(number);
  for (const float number : {nscc.eta, nscc.fi, nscc.fi_scale, nscc.gamma, nscc.max_md_jump})
    out.f32(number);
}

void write_drained_part(Output& out, const std::string& name, const DrainedPart& part) {
  out.count(name.size());
  for (const char letter : name)
    out.u8(static_cast<std::uint8_t>(letter));
  out.u8(static_cast<std::uint8_t>(part.by));
  out.count(part.exclusions.size());
  for (const PathExclusion& exclusion : part.exclusions) {
    out.u8(static_cast<std::uint8_t>(exclusion.port));
    out.u8(exclusion.hop_count);
    for (const wire::Usid hop : exclusion.hops)
      out.u32(static_cast<std::uint32_t>(hop));
  }
}

// --- Reading

template <typename Enum>
bool read_enum(wire::ByteReader& in, Enum last, Enum& out) {
  const std::uint8_t number = in.u8();
  out = static_cast<Enum>(number);
  return number <= static_cast<std::uint8_t>(last);
}

bool read_bool(wire::ByteReader& in, bool& out) {
  const std::uint8_t number = in.u8();
  out = number != 0;
  return number <= 1;
}

// A count of things that take at least `least` bytes each; refused before memory is taken.
bool read_count(wire::ByteReader& in, std::size_t limit, std::size_t least, std::size_t& out) {
  out = in.u32();
  return out <= limit && out * least <= in.left();
}

bool read_state(wire::ByteReader& in, ProfileState& out) {
  return read_enum(in, ProfileState::kOnline, out) && out != ProfileState::kInit;
}

bool read_format(wire::ByteReader& in, EvFormatProfile& out) {
  std::size_t count = 0;
  if (!read_state(in, out.state) || !read_enum(in, wire::EvKind::kSrv6Segment, out.kind) ||
      !read_count(in, kMaxFormatFields, 1, count))
    return false;
  for (std::size_t i = 0; i < count; ++i)
    out.field_widths.push_back(in.u8());
  if (count == 0) return out.state != ProfileState::kOnline;
  return wire::check_ev_format({out.kind, out.field_widths}).ok();
}

bool read_ev(wire::ByteReader& in, ProfileEv& out) {
  const std::uint8_t flags = in.u8();
  const std::uint8_t port = in.u8();
  if ((flags & ~kEvFlags) != 0 || port > kMaxPorts) return false;
  out.denied = (flags & kEvDenied) != 0;
  out.populated = (flags & kEvPopulated) != 0;
  out.assumed_bad = (flags & kEvAssumedBad) != 0;
  out.port = PortId{port};
  in.copy_to(std::span(out.value.bytes));
  out.compact = out.value;
  if ((flags & kEvCompact) != 0) in.copy_to(std::span(out.compact.bytes));
  return out.populated == (port != 0);
}

bool read_ev_profile(wire::ByteReader& in, NodeEvProfile& out) {
  if (!read_state(in, out.state) || !read_enum(in, EvMode::kGenerated, out.mode)) return false;
  out.format_id = in.u64();
  out.min_active = in.u32();
  out.event_mask = in.u32();
  out.seed = in.u64();
  if (!read_bool(in, out.has_min_active) || !read_bool(in, out.has_event_mask)) return false;
  std::size_t count = 0;
  if (!read_count(in, kMaxFormatFields, 20, count)) return false;
  for (std::size_t i = 0; i < count; ++i) {
    wire::EvField& field = out.fields.emplace_back();
    for (std::uint32_t* number :
         {&field.width, &field.init_val, &field.min_val, &field.max_val, &field.mask})
      *number = in.u32();
  }
  if (!read_count(in, kMaxEvsPerQp, 2 + wire::kEvBytes, count)) return false;
  out.evs.resize(count);
  for (ProfileEv& ev : out.evs) {
    if (!read_ev(in, ev)) return false;
    if (!ev.populated && out.state == ProfileState::kOnline) return false;
  }
  return true;
}

bool read_cc_profile(wire::ByteReader& in, NodeCcProfile& out) {
  core::NsccParameters& nscc = out.cc.nscc;
  if (!read_state(in, out.state) || !read_enum(in, core::CcAlgorithm::kNscc, out.cc.algorithm) ||
      !read_bool(in, out.configured) || !read_enum(in, Trimming::kOn, out.trimming) ||
      !read_bool(in, nscc.disable_qa))
    return false;
  nscc.qa_gate = in.u8();
  for (std::uint32_t* number :
       {&nscc.adjust_bytes_threshold, &nscc.adjust_period_threshold_ns, &nscc.base_rtt_ns,
        &nscc.max_cwnd, &nscc.qa_threshold_ns, &nscc.target_delay_ns})
    *number = in.u32();
  for (float* number : {&nscc.eta, &nscc.fi, &nscc.fi_scale, &nscc.gamma, &nscc.max_md_jump}) {
    *number = std::bit_cast<float>(in.u32());
    if (!std::isfinite(*number)) return false;
  }
  return true;
}

template <typename Profile>
bool read_map(wire::ByteReader& in, std::size_t limit, bool (*read)(wire::ByteReader&, Profile&),
              std::map<std::uint64_t, Profile>& out) {
  std::size_t count = 0;
  if (!read_count(in, limit, 8, count)) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t id = in.u64();
    if (!out.empty() && id <= out.rbegin()->first) return false;
    if (!read(in, out[id]) || in.failed()) return false;
  }
  return !in.failed();
}

bool read_exclusion(wire::ByteReader& in, PathExclusion& out) {
  const std::uint8_t port = in.u8();
  out.port = PortId{port};
  out.hop_count = in.u8();
  if (port == 0 || port > kMaxPorts || out.hop_count > out.hops.size()) return false;
  for (wire::Usid& hop : out.hops) {
    const std::uint32_t number = in.u32();
    if (number > 0xFFFF) return false;
    hop = wire::Usid{static_cast<std::uint16_t>(number)};
  }
  return true;
}

bool read_drained(wire::ByteReader& in, std::map<std::string, DrainedPart>& out) {
  std::size_t parts = 0;
  if (!read_count(in, kMaxDrainedParts, 10, parts)) return false;
  for (std::size_t i = 0; i < parts; ++i) {
    std::size_t length = 0;
    if (!read_count(in, kMaxPartName, 1, length)) return false;
    std::string name;
    for (std::size_t at = 0; at < length; ++at)
      name += static_cast<char>(in.u8());
    if (!is_part_name(name) || (!out.empty() && name <= out.rbegin()->first)) return false;
    DrainedPart& part = out[name];
    std::size_t count = 0;
    if (!read_enum(in, DrainedBy::kWatch, part.by) || !read_count(in, kMaxExclusions, 10, count))
      return false;
    part.exclusions.resize(count);
    for (PathExclusion& exclusion : part.exclusions)
      if (!read_exclusion(in, exclusion)) return false;
  }
  return !in.failed();
}

std::size_t ev_total(const NodeSnapshot& state) {
  std::size_t total = 0;
  for (const auto& [id, profile] : state.ev_profiles)
    total += profile.evs.size();
  return total;
}

bool within_limits(const NodeSnapshot& state) {
  for (const auto& [id, format] : state.formats) {
    if (format.field_widths.size() > kMaxFormatFields) return false;
  }
  for (const auto& [id, profile] : state.ev_profiles) {
    if (profile.fields.size() > kMaxFormatFields || profile.evs.size() > kMaxEvsPerQp) return false;
  }
  for (const auto& [name, part] : state.drained) {
    if (!is_part_name(name) || part.exclusions.size() > kMaxExclusions) return false;
  }
  return state.drained.size() <= kMaxDrainedParts && state.formats.size() <= kMaxFormatProfiles &&
         state.ev_profiles.size() <= kMaxEvProfiles && state.cc_profiles.size() <= kMaxCcProfiles &&
         ev_total(state) <= kMaxNodeEvs;
}

std::uint32_t oldest_schema(const NodeSnapshot& state) {
  if (state.drained.empty()) return kSchemaWithoutDrains;
  for (const auto& [name, part] : state.drained)
    if (part.exclusions.size() > kFewExclusions) return kStateSchema;
  return kSchemaOfFewExclusions;
}

// Every online EV profile that names a format needs that format online.
bool formats_present(const NodeSnapshot& state) {
  for (const auto& [id, profile] : state.ev_profiles) {
    if (profile.state != ProfileState::kOnline || profile.mode == EvMode::kAuto) continue;
    const auto format = state.formats.find(profile.format_id);
    if (format == state.formats.end() || format->second.state != ProfileState::kOnline)
      return false;
  }
  return true;
}

}  // namespace

bool same_contents(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && a.size() >= kHeaderBytes &&
         std::memcmp(a.data() + kHeaderBytes, b.data() + kHeaderBytes, a.size() - kHeaderBytes) ==
             0;
}

Result<std::vector<std::byte>> encode_state(const NodeSnapshot& state) {
  if (!within_limits(state)) return Status(ErrorCode::kTooLong, "more than a device can hold");
  Output out;
  out.reserve(kHeaderBytes + 2 * wire::kEvBytes * ev_total(state));
  out.u64(kMagic);
  out.u32(oldest_schema(state));
  out.u32(0);  // length, below
  out.u64(state.version);
  out.u32(0);  // checksum, below
  out.u32(state.ports_enabled.bits());
  out.count(state.formats.size());
  for (const auto& [id, format] : state.formats) {
    out.u64(id);
    write_format(out, format);
  }
  out.count(state.ev_profiles.size());
  for (const auto& [id, profile] : state.ev_profiles) {
    out.u64(id);
    write_ev_profile(out, profile);
  }
  out.count(state.cc_profiles.size());
  for (const auto& [id, profile] : state.cc_profiles) {
    out.u64(id);
    write_cc_profile(out, profile);
  }
  if (!state.drained.empty()) {
    out.count(state.drained.size());
    for (const auto& [name, part] : state.drained)
      write_drained_part(out, name, part);
  }
  out.put_u32(12, static_cast<std::uint32_t>(out.size() - kHeaderBytes));
  out.put_u32(kChecksumAt, checksum(out.view()));
  return out.take();
}

Result<NodeSnapshot> decode_state(std::span<const std::byte> file) {
  using enum ErrorCode;
  wire::ByteReader in(file);
  if (in.u64() != kMagic || in.failed()) return Status(kInvalidArgument, "not a state file");
  const std::uint32_t schema = in.u32();
  if (in.failed()) return Status(kInvalidArgument, "cut short");
  if (schema < kSchemaWithoutDrains || schema > kStateSchema)
    return Status(kUnsupported, "written by another version");
  const std::uint32_t length = in.u32();
  NodeSnapshot state;
  state.version = in.u64();
  const std::uint32_t sum = in.u32();
  if (in.failed() || length != in.left()) return Status(kInvalidArgument, "cut short");
  if (sum != checksum(file)) return Status(kInvalidArgument, "wrong checksum");
  state.ports_enabled = PortMask(in.u32());
  if (!(state.ports_enabled - PortMask::first(kMaxPorts)).empty()) return kBroken;
  if (!read_map(in, kMaxFormatProfiles, read_format, state.formats) ||
      !read_map(in, kMaxEvProfiles, read_ev_profile, state.ev_profiles) ||
      !read_map(in, kMaxCcProfiles, read_cc_profile, state.cc_profiles))
    return kBroken;
  if (schema != kSchemaWithoutDrains && !read_drained(in, state.drained)) return kBroken;
  if (in.left() != 0) return kBroken;
  if (ev_total(state) > kMaxNodeEvs || !formats_present(state)) return kBroken;
  return state;
}

}  // namespace mrc::node
