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
constexpr DurationNs kFirstQuestionNs = 10 * kMillisecondNs;
constexpr std::uint8_t kMaxQuestions = 7;  // 1.28 s
// Word not older than this counts as of the last moment.
constexpr DurationNs kTrustNs = kMillisecondNs;
constexpr DurationNs kRemindNs = 10 * kMillisecondNs;

DurationNs distance(unsigned tries) {
  if (tries < kTriesAtFirst) return kRetryNs << std::min(tries, kFirstBackoff);
  const unsigned doublings = (tries - kTriesAtFirst) / kTriesPerDoubling;
  return kRetryNs << std::min(kFirstBackoff + doublings, kMaxBackoff);
}

}  // namespace

void DuePeers::set(std::uint32_t peer, bool due) {
  const std::uint64_t bit = std::uint64_t{1} << (peer % 64);
  if (((bits_[peer / 64] & bit) != 0) == due) return;
  bits_[peer / 64] ^= bit;
  count_ = due ? count_ + 1 : count_ - 1;
}

std::uint32_t DuePeers::next(std::uint32_t from) const {
  for (std::size_t word = from / 64; word < bits_.size(); ++word) {
    std::uint64_t bits = bits_[word];
    if (word == from / 64) bits &= ~std::uint64_t{0} << (from % 64);
    if (bits != 0) return static_cast<std::uint32_t>(word * 64 + std::countr_zero(bits));
  }
  return kNoSlot;
}

PortStatus::PortStatus(unsigned ports, unsigned peers, std::uint16_t first_id)
    : all_(PortMask::first(ports)),
      ours_(all_),
      first_id_(first_id),
      peers_(peers),
      to_tell_(peers),
      to_ask_(peers),
      retries_(peers),
      questions_(peers) {}

bool PortStatus::set_ours(PortId port, bool up) {
  if (ours_.contains(port) == up) return false;
  ours_ = up ? ours_.with(port) : ours_.without(port);
  return true;
}

// With no port called down there is nothing to ask.
void PortStatus::believe(std::uint32_t peer, PortMask ports) {
  peers_[peer].ports = ports;
  if (!called_down(peer).empty()) return;
  questions_.set(peer, kNever);
  to_ask_.set(peer, false);
}

PortStatus::Word PortStatus::hear(std::uint32_t peer, TimeNs now, std::uint16_t id,
                                  PortMask ports) {
  Peer& known = peers_[peer];
  const auto ahead = static_cast<std::int16_t>(id - known.heard_id);
  if (known.heard && ahead <= 0) {
    known.repeated = known.repeated || ahead == 0;
    return ahead == 0 || MRC_BUG(kAnswersOldPortStatus) ? Word::kKnown : Word::kOld;
  }
  const bool same = (ports & all_) == (known.ports & all_);
  known.heard = true;
  known.repeated = false;
  known.heard_at = now;
  known.heard_id = id;
  if (same) return Word::kKnown;
  known.questions = 0;
  to_ask_.set(peer, false);
  questions_.set(peer, MRC_BUG(kNeverAsksDownPorts) ? kNever : now + kFirstQuestionNs);
  believe(peer, ports);
  return Word::kNewPorts;
}

bool PortStatus::hear_through(std::uint32_t peer, TimeNs now, PortId port, DurationNs in_transit) {
  Peer& known = peers_[peer];
  if (known.ports.contains(port) || now - known.heard_at <= kTrustNs + in_transit) return false;
  if (MRC_BUG(kBelievesOldPortStatus)) return false;
  believe(peer, known.ports.with(port));
  return true;
}

bool PortStatus::disregard(std::uint32_t peer) {
  if (peers_[peer].ports == PortMask::first(kMaxPorts)) return false;
  believe(peer, PortMask::first(kMaxPorts));
  return true;
}

bool PortStatus::forget_old(std::uint32_t peer, TimeNs now, bool others) {
  Peer& known = peers_[peer];
  const bool recent = now - known.heard_at <= kTrustNs;
  if (!known.heard || (recent && others)) return false;
  believe(peer, PortMask::first(kMaxPorts));
  known.heard = false;
  return true;
}

void PortStatus::announce(std::uint32_t peer) {
  Peer& told = peers_[peer];
  told.id = told.any_id ? static_cast<std::uint16_t>(told.id + 1) : first_id_;
  told.any_id = true;
  told.pending = true;
  told.tries = 0;
  retries_.set(peer, kNever);
  to_tell_.set(peer, true);
}

void PortStatus::remind(std::uint32_t peer, TimeNs now) {
  const Peer& told = peers_[peer];
  const bool lately = now - told.told_at < kRemindNs;
  if (!told.pending && !lately && !MRC_BUG(kNeverReminds)) announce(peer);
}

void PortStatus::note_told(std::uint32_t peer, TimeNs now) {
  Peer& told = peers_[peer];
  told.told_at = now;
  to_tell_.set(peer, false);
  retries_.set(peer, now + distance(told.tries));
  if (told.tries < kMaxTries) ++told.tries;
}

bool PortStatus::note_answer(std::uint32_t peer, std::uint16_t id) {
  Peer& told = peers_[peer];
  // Exactly half a circle counts as ahead: what we say with our own ids is old there.
  constexpr std::uint16_t kHalfCircle = 0x8000;
  const auto ahead = static_cast<std::uint16_t>(id - told.id);
  if (!told.pending || ahead > kHalfCircle) return false;
  if (ahead > 0) {
    if (MRC_BUG(kOldForEver)) return false;
    told.id = id;
    announce(peer);
    return true;
  }
  told.pending = false;
  to_tell_.set(peer, false);
  retries_.set(peer, kNever);
  return true;
}

void PortStatus::on_timer(TimeNs now) {
  while (retries_.earliest() <= now) {
    const std::uint32_t peer = retries_.earliest_slot();
    retries_.set(peer, kNever);
    to_tell_.set(peer, true);
  }
  while (questions_.earliest() <= now) {
    const std::uint32_t peer = questions_.earliest_slot();
    questions_.set(peer, kNever);
    to_ask_.set(peer, true);
  }
}

void PortStatus::note_asked(std::uint32_t peer, TimeNs now) {
  Peer& asked = peers_[peer];
  to_ask_.set(peer, false);
  if (asked.questions < kMaxQuestions) ++asked.questions;
  questions_.set(peer, now + (kFirstQuestionNs << asked.questions));
}

void PortStatus::remove(std::uint32_t peer) {
  to_tell_.set(peer, false);
  to_ask_.set(peer, false);
  retries_.set(peer, kNever);
  questions_.set(peer, kNever);
  const Peer& gone = peers_[peer];
  if (gone.any_id && static_cast<std::int16_t>(gone.id - first_id_) >= 0)
    first_id_ = static_cast<std::uint16_t>(gone.id + 1);
  peers_[peer] = {};
}

}  // namespace mrc::core
