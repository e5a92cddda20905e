// Which EV a packet takes that is not data: answers, probes of the reverse path, port status.
//
// Nothing tells the fate of an answer, so its path cannot be judged by what happens to it. What is
// known is the last sign of life: an EV whose packet was acknowledged or whose probe was answered.
// Answers draw between that one, while it is not long ago, and all others in turn. They are
// cumulative, so whichever is dead without our knowledge costs every second packet at most. Drawn,
// because turns that SACKs and ACKs share can stay in step: each would always have the same path.
//
// Doubt: when probes and packets have long stayed without any answer, what is called good may be as
// dead as the rest, and the way the peer's answers take as well. The same holds when the peer asks
// again and again and sends nothing new, since then it is our answers that get lost: a queue pair
// that only receives has nothing else to tell it. In doubt answers are also tried on EVs called bad
// and on backups, one after the other, and one answered probe is enough to bring an EV back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/fixed_array.h"
#include "base/prng.h"
#include "base/types.h"
#include "core/ev_profile.h"
#include "core/path_health.h"
#include "core/rotation.h"

namespace mrc::core {

class ReversePaths {
 public:
  ReversePaths(const EvProfile& profile, const Rotation& rotation, std::uint64_t seed);

  // --- Choosing ---
  // As PathSet::choose_control; `usable` are the ports that both ends call up.
  EvIndex choose(const Rotation& rotation, const PathHealth& health, Prng& prng,
                 PortMask free_ports, PortMask usable, PortId preferred);
  // As PathSet::sweep: `usable` does not count.
  EvIndex sweep(const PathHealth& health, PortMask free_ports, PortMask usable);

  // --- Signs of life ---
  EvIndex confirmed() const {
    return confirmed_;
  }  // the EV of the last one, kNoEv before the first
  // A packet on this EV, which is in use, reached the peer and the answer reached us.
  void confirm(EvIndex ev);
  // Something came back. Unless it was about an EV in use, see confirm(), that says nothing of the
  // EVs our answers take: a bad one may answer every probe while they all are dead.
  void note_life();
  void note_silence() {  // a probe was sent or a packet lost
    if (silent_sends_ < kDoubtAfter) ++silent_sends_;
  }
  void on_asked_again();
  void on_peer_progress(unsigned packets = 1) {
    asked_again_ = packets < asked_again_ ? static_cast<std::uint8_t>(asked_again_ - packets) : 0;
  }

  bool in_doubt() const { return hears_nothing() || answers_in_doubt(); }
  bool hears_nothing() const { return silent_sends_ >= kDoubtAfter; }
  bool answers_in_doubt() const { return asked_again_ >= kDoubtAfterQuestions; }

  std::size_t memory_bytes() const { return planes_.memory_bytes(); }  // of what it owns

 private:
  static constexpr std::uint8_t kDoubtAfter = 32;
  // A path that comes back is asked twice and a tail three times at most while answers arrive.
  static constexpr std::uint8_t kDoubtAfterQuestions = 8;
  static constexpr std::uint8_t kMostQuestions = 16;  // so many new packets end the doubt, or fewer
  // A plane gets this many control packets after its last sign of life; then others get a share.
  static constexpr std::uint16_t kTrustedPackets = 8;

  struct Plane {
    std::uint16_t cursor = 0;        // a position of the rotation
    std::uint16_t turn = 0;          // control packets since the last sign of life
    std::uint16_t sweep_cursor = 0;  // an EV of any plane
    EvIndex confirmed = kNoEv;       // the EV of that sign
  };

  bool gives_way(PortId silent, PortMask ports) const;
  PortMask least_hopeless(const Rotation& rotation, const PathHealth& health, PortMask ports,
                          PortMask usable) const;
  EvIndex choose_on(const Rotation& rotation, const PathHealth& health, Prng& prng, unsigned plane,
                    unsigned turn);
  EvIndex next_of_sweep(const PathHealth& health, PortId port);
  PortId draw_port(PortMask candidates, Prng& prng);
  PortId next_swept_port(PortMask candidates);

  const EvProfile* profile_;
  FixedArray<Plane> planes_;
  EvIndex confirmed_ = kNoEv;
  PortId last_swept_;
  std::uint8_t silent_sends_ = 0;  // probes sent and packets lost since the last sign of life
  std::uint8_t asked_again_ = 0;   // questions since an EV in use showed life, less new packets
};

}  // namespace mrc::core
