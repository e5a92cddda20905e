#include "commands/key/open_capture.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

#include "capture/seen_packet.h"
#include "failure.h"
#include "file_bytes.h"
#include "os/descriptor.h"
#include "seal/opener.h"
#include "wire/datagram_frame.h"

namespace mrc::tool {
namespace {

// What was secret is in it, so it is the caller's alone.
void write_bytes(const std::string& path, std::span<const std::byte> bytes) {
  const os::Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  bool good = file.valid();
  while (good && !bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    good = written > 0;
    if (good) bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  if (!good) throw Failure(fmt::format("{}: {}", path, std::strerror(errno)), FailureKind::kUsage);
}

enum class Outcome { kPlain, kClosed, kOpened };

// The frame as it would be had its packet been sent plain. Whatever stands between the headers and
// `transport`, a view into it, is gone; the lengths of the headers follow.
void rewrite(const wire::FrameFormat& format, const wire::FrameHeader& header,
             std::span<const std::byte> transport, std::span<std::byte> frame) {
  const bool whole = header.trim == wire::TrimMark::kNone;
  const std::vector<std::byte> kept(transport.begin(), transport.end());
  const std::size_t icrc_length = whole ? wire::kIcrcLength : 0;
  std::size_t at = wire::build_frame_headers(format, header, kept.size() + icrc_length, frame);
  std::copy(kept.begin(), kept.end(), frame.begin() + static_cast<std::ptrdiff_t>(at));
  at += kept.size();
  if (whole) {
    wire::Icrc icrc = wire::begin_icrc(format, header, kept.size());
    icrc.add_transport(kept);
    wire::store_icrc(icrc.value(), frame.subspan(at, wire::kIcrcLength));
    at += wire::kIcrcLength;
  }
  std::fill(frame.begin() + static_cast<std::ptrdiff_t>(at), frame.end(), std::byte{0});
}

Outcome open_frame(const seal::KeyRing& ring, const capture::CapturedFrame& seen,
                   std::span<std::byte> frame) {
  using enum capture::LinkType;
  capture::SeenPacket packet;
  if (capture::look_at(seen, packet) == capture::Seen::kOther) return Outcome::kPlain;
  wire::FrameFormat format;
  format.ethernet = seen.link == static_cast<std::uint16_t>(kEthernet);
  format.udp_port = packet.destination_port;
  if (!format.ethernet && seen.link != static_cast<std::uint16_t>(kRaw)) return Outcome::kPlain;
  wire::FrameHeader header;
  std::span<const std::byte> found;
  if (wire::find_datagram(format, frame, header, found) != DropReason::kNone)
    return Outcome::kPlain;
  if (seal::transport_version(found) != seal::kSealedVersion) return Outcome::kPlain;
  const auto at = static_cast<std::size_t>(found.data() - frame.data());
  const auto datagram = frame.subspan(at, found.size());
  const seal::Flow flow{.source = seal::gid_of(header.source),
                        .destination = seal::gid_of(header.destination)};
  const bool whole = header.trim == wire::TrimMark::kNone;
  const std::vector<std::byte> before(datagram.begin(), datagram.end());
  std::span<std::byte> transport;
  const auto result = seal::open_captured(
      ring, flow, datagram, whole ? seal::Extent::kWhole : seal::Extent::kTrimmed, transport);
  if (result != seal::OpenResult::kOpened) {
    std::copy(before.begin(), before.end(), datagram.begin());
    return Outcome::kClosed;
  }
  rewrite(format, header, transport, frame);
  return Outcome::kOpened;
}

}  // namespace

OpenedCapture open_capture(const seal::KeyRing& ring, const std::string& from,
                           const std::string& to) {
  const std::vector<std::byte> file = read_file(from);
  std::vector<std::byte> copy = file;
  OpenedCapture counts;
  capture::CaptureFile frames(file);
  capture::CapturedFrame seen;
  while (frames.next(seen)) {
    ++counts.frames;
    const auto at = static_cast<std::size_t>(seen.bytes.data() - file.data());
    const Outcome outcome = open_frame(ring, seen, std::span(copy).subspan(at, seen.bytes.size()));
    if (outcome != Outcome::kPlain) ++counts.sealed;
    if (outcome == Outcome::kOpened) ++counts.opened;
  }
  counts.damage = frames.problem();
  if (counts.frames == 0 && counts.damage.starts_with("no capture"))
    throw Failure(fmt::format("{}: {}", from, counts.damage), FailureKind::kUsage);
  write_bytes(to, copy);
  return counts;
}

}  // namespace mrc::tool
