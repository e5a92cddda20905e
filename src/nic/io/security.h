// Sealed traffic of one back end: a sealer for each peer, an opener for all of them, and the
// cluster keys in force. What sealing is stands in docs/adr/0025-sealed-packets.md.
//
// A device that seals sends nothing plain and takes nothing plain; one that does not takes nothing
// sealed. Neither ever falls back: whoever has a peer of the other kind, or with another secret, is
// told so, once for each. The peer gets one packet of our kind, that it can be said there as well.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"
#include "nic/io/backend.h"
#include "node/config.h"
#include "seal/opener.h"
#include "seal/sealer.h"
#include "wire/drop_reason.h"
#include "wire/frame.h"
#include "wire/packet.h"

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

  // Hosts whose packets are of no use to us and do not know it: one hint_packet() is due to each,
  // as many as there ever are addresses in notices. Empties it.
  std::vector<wire::IpAddress> take_unaware() { return std::exchange(unaware_, {}); }

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
  // What is wrong with the packets of a peer.
  enum class Trouble : std::uint8_t { kPlain, kSealed, kUnknownKey, kWrongSecret };
  void note(const wire::IpAddress& gid, Trouble trouble);
  std::string line_about(const wire::IpAddress& gid, Trouble trouble) const;
  void notice(std::string line);

  std::string device_;
  std::string key_file_;
  FileMark mark_;
  wire::IpAddress gid_;
  seal::KeyRingRef ring_;
  std::optional<seal::Opener> opener_;
  std::map<PeerName, std::unique_ptr<seal::Sealer>> sealers_;
  std::set<std::pair<wire::IpAddress, Trouble>> told_;
  std::vector<wire::IpAddress> unaware_;
  std::vector<std::string> notices_;
};

// The bytes of a packet when it is sealed.
[[nodiscard]] std::size_t sealed_bytes(const wire::Packet& packet, std::size_t payload_length);
// Writes a sealed packet, padding and all, and returns its length; 0 as Sealer::seal().
[[nodiscard]] std::size_t seal_packet(seal::Sealer& sealer, const wire::Dialect& dialect,
                                      const wire::Packet& packet, wire::PayloadPieces payload,
                                      std::span<std::byte> out);

// For a peer that cannot use our packets, to say of which kind they are; nobody else does anything
// with it.
[[nodiscard]] wire::Packet hint_packet();
// Where it goes, over a port that is up: to the first process of the host, as packets do not say
// which one sent them.
[[nodiscard]] Route hint_route(const wire::IpAddress& gid, PortMask up);

}  // namespace mrc::nic
