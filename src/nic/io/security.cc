#include "nic/io/security.h"

#include <array>
#include <bit>
#include <cerrno>
#include <utility>

#include "os/host_bug.h"
#include "wire/codec.h"

namespace mrc::nic {
namespace {

// Whoever can send from many addresses could fill memory and logs otherwise.
constexpr std::size_t kMostTold = 256;
constexpr std::size_t kMostNotices = 16;

std::string text_of(const wire::IpAddress& address) {
  return std::string(wire::format_address(address).view());
}

}  // namespace

std::string Security::open(const node::DeviceConfig& config) {
  device_ = config.name;
  gid_ = config.planes.front().address;
  if (config.security == node::SecurityMode::kOff) return {};
  key_file_ = config.key_file;
  const std::string error = load_keys();
  if (!error.empty()) {
    errno = EKEYREJECTED;  // callers tell it from what goes wrong in a network
    return device_ + ": security = sealed: " + error;
  }
  opener_.emplace(ring_, seal::gid_of(gid_));
  return {};
}

std::string Security::load_keys() {
  const Result<const seal::Crypto*> crypto = seal::Crypto::load();
  if (!crypto.ok()) return crypto.status().what();
  mark_ = mark_file();
  const seal::KeyFileResult file = seal::load_key_file(key_file_);
  if (!file.ok()) return file.error;
  ring_ = std::make_shared<const seal::KeyRing>(*crypto.value(), file.keys);
  return {};
}

Security::FileMark Security::mark_file() const {
  struct stat info {};
  if (::stat(key_file_.c_str(), &info) != 0) return {};
  return {.device = info.st_dev, .inode = info.st_ino, .changed = info.st_ctim};
}

void Security::look_after_keys() {
  if (!seals() || mark_file() == mark_) return;
  const std::string error = load_keys();
  if (!error.empty()) return notice(device_ + ": the keys in force stay: " + error);
  opener_->set_ring(ring_);
  for (auto& [peer, sealer] : sealers_)
    sealer->set_ring(ring_);
  notice(device_ + ": the cluster keys were read again from " + key_file_);
}

void Security::rename(const wire::IpAddress& gid) {
  gid_ = gid;
  if (!seals()) return;
  sealers_.clear();
  opener_.emplace(ring_, seal::gid_of(gid_));
}

seal::Sealer* Security::sealer(const PeerName& peer) {
  if (!seals()) return nullptr;
  std::unique_ptr<seal::Sealer>& sealer = sealers_[peer];
  if (sealer == nullptr) {
    const seal::Flow flow{.source = seal::gid_of(gid_), .destination = seal::gid_of(peer.gid)};
    sealer = std::make_unique<seal::Sealer>(ring_, flow);
  }
  return sealer.get();
}

DropReason Security::take(const wire::IpAddress& gid, std::span<std::byte> datagram,
                          core::TrimState trim, std::span<const std::byte>& transport) {
  if (!seals()) {
    if (seal::transport_version(datagram) != seal::kSealedVersion) return DropReason::kNone;
    note(gid, Trouble::kSealed);
    return DropReason::kSealedPacket;
  }
  const seal::Extent extent =
      trim == core::TrimState::kWhole ? seal::Extent::kWhole : seal::Extent::kTrimmed;
  std::span<std::byte> opened;
  const seal::OpenResult result = opener_->open(seal::gid_of(gid), datagram, extent, opened);
  transport = opened;
  switch (result) {
    case seal::OpenResult::kOpened:
      return DropReason::kNone;
    case seal::OpenResult::kPlain:
      if (MRC_HOST_BUG(kSealedTakesPlain)) {
        transport = datagram;
        return DropReason::kNone;
      }
      note(gid, Trouble::kPlain);
      return DropReason::kPlainPacket;
    case seal::OpenResult::kUnknownKey:
      note(gid, Trouble::kUnknownKey);
      return DropReason::kBadSeal;
    case seal::OpenResult::kBadHeaderTag:
      note(gid, Trouble::kWrongSecret);
      return DropReason::kBadSeal;
    default:
      return DropReason::kBadSeal;
  }
}

// Nothing proves who sent it: what is said is a hint for people and changes nothing.
void Security::note(const wire::IpAddress& gid, Trouble trouble) {
  if (told_.size() >= kMostTold || !told_.emplace(gid, trouble).second) return;
  // Of a peer whose packets open otherwise, one that does not is damaged or somebody else's.
  if (trouble == Trouble::kWrongSecret && opener_->has_opened(seal::gid_of(gid))) return;
  notice(line_about(gid, trouble));
  unaware_.push_back(gid);
}

std::string Security::line_about(const wire::IpAddress& gid, Trouble trouble) const {
  const std::string from = " packets from " + text_of(gid);
  const std::string way_out(seal::kSameKeyFile);
  switch (trouble) {
    case Trouble::kPlain:
      return device_ + ": plain" + from +
             " are dropped: security is sealed here; set it there too, with the same key";
    case Trouble::kSealed:
      return device_ + ": sealed" + from +
             " are dropped: security is off here; set security = \"sealed\" and the key file of "
             "the cluster";
    case Trouble::kUnknownKey:
      return device_ + ": sealed" + from + " are dropped: their key is not in " + key_file_ +
             way_out;
    case Trouble::kWrongSecret:
      break;
  }
  return device_ + ": sealed" + from +
         " are dropped: their key has another secret than the one in " + key_file_ +
         ", or another host sends in that name" + way_out;
}

void Security::notice(std::string line) {
  if (notices_.size() < kMostNotices) notices_.push_back(std::move(line));
}

std::size_t sealed_bytes(const wire::Packet& packet, std::size_t payload_length) {
  return seal::Sealer::sealed_length(header_length(packet), payload_length,
                                     wire::pad_length(payload_length));
}

std::size_t seal_packet(seal::Sealer& sealer, const wire::Dialect& dialect,
                        const wire::Packet& packet, wire::PayloadPieces payload,
                        std::span<std::byte> out) {
  std::array<std::byte, wire::kMaxTransportHeader> header;
  wire::Packet padded = packet;
  padded.bth.pad = wire::pad_length(wire::payload_bytes(payload));
  const std::size_t header_bytes = wire::build_transport(padded, header, dialect);
  return sealer.seal({header.data(), header_bytes}, payload, padded.bth.pad, out);
}

Route hint_route(const wire::IpAddress& gid, PortMask up) {
  const int port = up.bits() == 0 ? 1 : std::countr_zero(up.bits()) + 1;
  return {.peer = {.gid = gid}, .port = static_cast<PortId>(port)};
}

wire::Packet hint_packet() {
  wire::Packet packet;
  packet.bth.opcode = wire::Opcode::kAck;
  packet.bth.destination = QpNumber{0};  // nobody's
  packet.body = wire::Ack{};
  return packet;
}

}  // namespace mrc::nic
