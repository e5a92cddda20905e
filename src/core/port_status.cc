#include "core/port_status.h"

#include <algorithm>
#include <bit>

#include "base/planted_bug.h"

namespace mrc::core {
namespace {

constexpr DurationNs kRetryNs = 20 * kMicrosecondNs;
constexpr unsigned kFirstBackoff = 8;  // 5.12 ms
constexpr unsigned kMaxBackoff = 16;   // 1.3 s
constexpr unsigned kTriesAtFirst = 256;
constexpr unsigned kTriesPerDoubling = 32;  // after that
constexpr std::uint16_t kMaxTries = kTriesAtFirst + kTriesPerDoubling * kMaxBackoff;
// Word not older than this counts as of the last moment.
constexpr DurationNs kTrustNs = kMillisecondNs;

DurationNs distance(unsigned tries) {
  if (tries < kTriesAtFirst) return kRetryNs << std::min(tries, kFirstBackoff);
  const unsigned doublings = (tries - kTriesAtFirst) / kTriesPerDoubling;
  return kRetryNs << std::min(kFirstBackoff + doublings, kMaxBackoff);
}

}  // namespace

PortStatus::PortStatus(unsigned ports, unsigned peers, std::uint16_t first_id)
    : ours_(PortMask::first(ports)),
      next_id_(first_id),
      peers_(peers),
      due_((peers + 63) / 64),
      retries_(peers) {}

bool PortStatus::set_ours(PortId port, bool up) {
  if (ours_.contains(port) == up) return false;
  ours_ = up ? ours_.with(port) : ours_.without(port);
  return true;
}

bool PortStatus::hear(std::uint32_t peer, TimeNs now, std::uint16_t id, PortMask ports) {
  Peer& known = peers_[peer];
  if (known.heard && static_cast<std::int16_t>(id - known.heard_id) <= 0) {
    known.repeated = known.repeated || id == known.heard_id;
    return false;
  }
  known.heard = true;
  known.repeated = false;
  known.heard_at = now;
  known.heard_id = id;
  known.ports = ports;
  return true;
}

bool PortStatus::hear_through(std::uint32_t peer, TimeNs now, PortId port, DurationNs in_transit) {
  Peer& known = peers_[peer];
  if (known.ports.contains(port) || now - known.heard_at <= kTrustNs + in_transit) return false;
  if (MRC_BUG(kBelievesOldPortStatus)) return false;
  known.ports = known.ports.with(port);
  return true;
}

bool PortStatus::disregard(std::uint32_t peer) {
  Peer& known = peers_[peer];
  if (known.ports == PortMask::first(kMaxPorts)) return false;
  known.ports = PortMask::first(kMaxPorts);
  return true;
}

bool PortStatus::forget_old(std::uint32_t peer, TimeNs now, bool others) {
  Peer& known = peers_[peer];
  const bool recent = now - known.heard_at <= kTrustNs;
  if (!known.heard || (recent && others)) return false;
  known.ports = PortMask::first(kMaxPorts);
  known.heard = false;
  return true;
}

void PortStatus::set_due(std::uint32_t peer, bool due) {
  if (is_due(peer) == due) return;
  due_[peer / 64] ^= std::uint64_t{1} << (peer % 64);
  due_count_ = due ? due_count_ + 1 : due_count_ - 1;
}

void PortStatus::announce(std::uint32_t peer) {
  Peer& told = peers_[peer];
  told.id = next_id_++;
  told.pending = true;
  told.tries = 0;
  retries_.set(peer, kNever);
  set_due(peer, true);
}

std::uint32_t PortStatus::next_due(std::uint32_t from) const {
  for (std::size_t word = from / 64; word < due_.size(); ++word) {
    std::uint64_t bits = due_[word];
    if (word == from / 64) bits &= ~std::uint64_t{0} << (from % 64);
    if (bits != 0) return static_cast<std::uint32_t>(word * 64 + std::countr_zero(bits));
  }
  return kNoSlot;
}

void PortStatus::note_told(std::uint32_t peer, TimeNs now) {
  Peer& told = peers_[peer];
  set_due(peer, false);
  retries_.set(peer, now + distance(told.tries));
  if (told.tries < kMaxTries) ++told.tries;
}

bool PortStatus::note_answer(std::uint32_t peer, std::uint16_t id) {
  Peer& told = peers_[peer];
  if (!told.pending || told.id != id) return false;
  told.pending = false;
  set_due(peer, false);
  retries_.set(peer, kNever);
  return true;
}

void PortStatus::on_timer(TimeNs now) {
  while (retries_.earliest() <= now) {
    const std::uint32_t peer = retries_.earliest_slot();
    retries_.set(peer, kNever);
    set_due(peer, true);
  }
}

void PortStatus::remove(std::uint32_t peer) {
  set_due(peer, false);
  retries_.set(peer, kNever);
  peers_[peer] = {};
}

}  // namespace mrc::core
