// Sealed traffic of one back end: a sealer for each peer, an opener for all of them, and the
// cluster keys in force. What sealing is stands in docs/adr/0025-sealed-packets.md.
//
// A device that seals sends nothing plain and takes nothing plain; one that does not takes nothing
// sealed. Neither ever falls back: whoever has a peer of the other kind is told so, once for each.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"
#include "nic/io/backend.h"
#include "node/config.h"
#include "seal/opener.h"
#include "seal/sealer.h"
#include "wire/drop_reason.h"

namespace mrc::nic {

class Security {
 public:
  // Loads what the device needs to seal. What is wrong, as one line; empty when all is well.
  std::string open(const node::DeviceConfig& config);

  bool seals() const { return opener_.has_value(); }
  seal::Stance stance() const { return seals() ? ring_->stance() : seal::Stance{}; }
  // What follows the transport part of a packet, or is put into it.
  std::size_t added_bytes() const { return seals() ? seal::kSealOverhead : wire::kIcrcLength; }

  // Of packets to this peer; null where they are plain. Stays until rename().
  seal::Sealer* sealer(const PeerName& peer);

  // kNone: plain as it should be, or opened in place; then `transport` is what was in it. The
  // caller checks the ICRC of what is plain.
  DropReason take(const wire::IpAddress& gid, std::span<std::byte> datagram, core::TrimState trim,
                  std::span<const std::byte>& transport);

  // The device has another GID: keys are bound to it.
  void rename(const wire::IpAddress& gid);
  // Once a second: whether the key file has changed. Keys that cannot be read leave those in force.
  void look_after_keys();

  // What people should know, a line each; empties it.
  std::vector<std::string> take_notices() { return std::exchange(notices_, {}); }

 private:
  // Tells one state of a file from another.
  struct FileMark {
    dev_t device = 0;
    ino_t inode = 0;
    timespec changed{};
    friend bool operator==(const FileMark& a, const FileMark& b) {
      return a.device == b.device && a.inode == b.inode && a.changed.tv_sec == b.changed.tv_sec &&
             a.changed.tv_nsec == b.changed.tv_nsec;
    }
  };

  FileMark mark_file() const;
  std::string load_keys();
  void note_other_kind(const wire::IpAddress& gid);
  void notice(std::string line);

  std::string device_;
  std::string key_file_;
  FileMark mark_;
  wire::IpAddress gid_;
  seal::KeyRingRef ring_;
  std::optional<seal::Opener> opener_;
  std::map<PeerName, std::unique_ptr<seal::Sealer>> sealers_;
  std::set<wire::IpAddress> told_;  // of these peers it was said that they are of the other kind
  std::vector<std::string> notices_;
};

}  // namespace mrc::nic
