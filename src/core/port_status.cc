#include "core/port_status.h"

#include <algorithm>
#include <bit>

#include "base/planted_bug.h"
#include "base/prng.h"

namespace mrc::core {
namespace {

constexpr DurationNs kRetryNs = 20 * kMicrosecondNs;
constexpr unsigned kFirstBackoff = 8;  // 5.12 ms
constexpr unsigned kMaxBackoff = 16;   // 1.3 s
constexpr unsigned kTriesAtFirst = 256;
constexpr unsigned kTriesPerDoubling = 32;  // after that
constexpr std::uint16_t kMaxTries = kTriesAtFirst + kTriesPerDoubling * kMaxBackoff;
constexpr DurationNs kFirstQuestionNs = kMillisecondNs;  // the one at once not counted
constexpr std::uint8_t kMaxQuestions = 10;               // 1.02 s
constexpr DurationNs kFirstHoldOffNs = 10 * kMillisecondNs;
constexpr std::uint8_t kMaxHoldOffs = 7;  // 1.28 s
constexpr DurationNs kForgivenNs = 10 * kSecondNs;
constexpr std::uint8_t kMostRepeats = 8;
// Behind an id that a controller may have left room for (nic/endpoint_requests.h).
constexpr std::uint16_t kLeastAhead = 512;
constexpr std::uint16_t kGuesses = 0x4000;
constexpr std::uint16_t kHalfCircle = 0x8000;
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

PortStatus::PortStatus(unsigned ports, unsigned peers, std::uint16_t first_id, std::uint64_t secret)
    : all_(PortMask::first(ports)),
      ours_(all_),
      secret_(secret),
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

void PortStatus::ask_now(std::uint32_t peer) {
  Peer& known = peers_[peer];
  known.questions = 0;
  known.unasked = called_down(peer);
  const bool never = MRC_BUG(kNeverAsksDownPorts) || MRC_BUG(kClaimsAreNotAsked);
  to_ask_.set(peer, !known.unasked.empty() && !never);
  const bool later = MRC_BUG(kClaimsAreNotAsked) && !known.unasked.empty();
  questions_.set(peer, later ? known.heard_at + 10 * kFirstQuestionNs : kNever);
}

// It follows from what is believed, so that nothing has to be kept for it and no claim of somebody
// else changes it.
std::uint16_t PortStatus::challenge(std::uint32_t peer) const {
  const std::uint16_t heard_id = peers_[peer].heard_id;
  const std::uint64_t drawn = mix64(secret_ ^ mix64(std::uint64_t{peer} << 16 | heard_id));
  const auto ahead = MRC_BUG(kChallengeIsConstant) ? 0U : static_cast<unsigned>(drawn % kGuesses);
  return static_cast<std::uint16_t>(heard_id + kLeastAhead + ahead);
}

// Who is ahead of the challenge already is led round the circle to ids before it: half of it from
// what is believed, where all it says is old.
std::uint16_t PortStatus::answer_to_claim(std::uint32_t peer, std::uint16_t id) const {
  const std::uint16_t challenged = challenge(peer);
  if (static_cast<std::int16_t>(challenged - id) > 0) return challenged;
  return static_cast<std::uint16_t>(peers_[peer].heard_id + kHalfCircle);
}

PortStatus::Heard PortStatus::hold_off(std::uint32_t peer, std::uint16_t id) {
  Peer& known = peers_[peer];
  known.claims = known.claim_id == id ? known.claims : 0;
  known.claim_id = id;
  if (known.claims >= kMostRepeats) return {Word::kHeldOff, id};
  ++known.claims;
  return {Word::kHeldOff, answer_to_claim(peer, id)};
}

PortStatus::Heard PortStatus::hear(std::uint32_t peer, TimeNs now, std::uint16_t id,
                                   PortMask ports) {
  Peer& known = peers_[peer];
  if (!known.heard) known.heard_id = static_cast<std::uint16_t>(id - 1);
  const auto ahead = static_cast<std::int16_t>(id - known.heard_id);
  if (known.heard && ahead <= 0) {
    known.repeated = known.repeated || ahead == 0;
    if (ahead == 0 || MRC_BUG(kAnswersOldPortStatus)) return {Word::kKnown, id};
    return {Word::kOld, known.heard_id};
  }
  known.heard = true;
  known.repeated = false;
  const PortMask up = known.ports & all_;
  const bool claim = (up & ports) != up && id != static_cast<std::uint16_t>(challenge(peer) + 1);
  if (claim && now < known.held_off_until && !MRC_BUG(kRefutedClaimsCount))
    return hold_off(peer, id);
  const std::uint16_t answer = claim ? answer_to_claim(peer, id) : id;
  if (!claim) known.heard_id = id;
  if ((ports & all_) == up) return {Word::kKnown, answer};
  known.heard_at = now;
  if (claim) known.held_off_until = now + kFirstHoldOffNs;
  believe(peer, ports);
  ask_now(peer);
  return {Word::kNewPorts, answer};
}

void PortStatus::note_refuted(Peer& known, TimeNs now) {
  if (known.refuted_at > known.heard_at) return;  // one claim may name several ports
  if (now - known.refuted_at > kForgivenNs) known.refutations = 0;
  known.refuted_at = now;
  known.held_off_until = now + (kFirstHoldOffNs << known.refutations);
  if (known.refutations < kMaxHoldOffs) ++known.refutations;
}

bool PortStatus::hear_through(std::uint32_t peer, TimeNs now, PortId port, DurationNs in_transit,
                              DurationNs asked_ago) {
  Peer& known = peers_[peer];
  if (known.ports.contains(port)) return false;
  const DurationNs since = now - known.heard_at;
  const bool refuted = asked_ago < since && !MRC_BUG(kRefutationWaits);
  if (!refuted && since <= kTrustNs + in_transit) return false;
  if (MRC_BUG(kBelievesOldPortStatus)) return false;
  if (refuted) note_refuted(known, now);
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
  known.held_off_until = 0;
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

bool PortStatus::note_answer(std::uint32_t peer, TimeNs now, std::uint16_t id) {
  Peer& told = peers_[peer];
  // Exactly half a circle counts as ahead: what we say with our own ids is old there.
  const auto ahead = static_cast<std::uint16_t>(id - told.id);
  if (ahead > kHalfCircle) return false;
  if (!told.pending) {
    const bool lately = told.any_id && now - told.told_at < kRemindNs;
    if (ahead == 0 || lately || MRC_BUG(kStrangersSpeakForUs)) return false;
    told.any_id = true;
  }
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
    peers_[peer].unasked = called_down(peer);
    to_ask_.set(peer, true);
  }
}

void PortStatus::note_asked(std::uint32_t peer, TimeNs now, PortMask ports) {
  Peer& asked = peers_[peer];
  asked.unasked = asked.unasked ^ (asked.unasked & ports);
  if (!unasked(peer).empty()) return;
  to_ask_.set(peer, false);
  questions_.set(peer, now + (kFirstQuestionNs << asked.questions));
  if (asked.questions < kMaxQuestions) ++asked.questions;
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
