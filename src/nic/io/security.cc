#include "nic/io/security.h"

#include <cerrno>
#include <utility>

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
    note_other_kind(gid);
    return DropReason::kSealedPacket;
  }
  const seal::Extent extent =
      trim == core::TrimState::kWhole ? seal::Extent::kWhole : seal::Extent::kTrimmed;
  std::span<std::byte> opened;
  const seal::OpenResult result = opener_->open(seal::gid_of(gid), datagram, extent, opened);
  transport = opened;
  if (result == seal::OpenResult::kOpened) return DropReason::kNone;
  if (result != seal::OpenResult::kPlain) return DropReason::kBadSeal;
  note_other_kind(gid);
  return DropReason::kPlainPacket;
}

// Nothing proves who sent it: what is said is a hint for people and changes nothing.
void Security::note_other_kind(const wire::IpAddress& gid) {
  if (told_.size() >= kMostTold || !told_.insert(gid).second) return;
  if (seals()) {
    notice(device_ + ": plain packets from " + text_of(gid) +
           " are dropped: security is sealed here; set it there too, with the same key");
  } else {
    notice(device_ + ": sealed packets from " + text_of(gid) +
           " are dropped: security is off here; set security = \"sealed\" and the key file of "
           "the cluster");
  }
}

void Security::notice(std::string line) {
  if (notices_.size() < kMostNotices) notices_.push_back(std::move(line));
}

}  // namespace mrc::nic
