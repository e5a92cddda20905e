// In which order the EVs of a queue pair carry data.
//
// Every EV belongs to one plane (port). Data goes to the plane that has had the least of it, and
// within a plane round its active EVs, in a shuffled order that differs between queue pairs and is
// redrawn every 16 rotations. Where the profile lists them in order (EvOrder::kAsListed), a port
// goes round that list instead, and the shuffled order names who takes the turn of an EV that is
// not GOOD. The EVs of a plane stand in three zones:
//
//   begin        active_end      usable_end      end
//     | active: have turns | backups | out of use: bad or denied |
//
// An EV in use is GOOD, or SKIP: its turn is passed over. One packet revives at most one
// SKIP entry, and passes over it this time; an entry skipped three times lets three turns go by.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/fixed_array.h"
#include "base/prng.h"
#include "base/types.h"
#include "core/ev_profile.h"
#include "core/port_turns.h"

namespace mrc::core {

class Rotation {
 public:
  static constexpr unsigned kMaxSkips = 15;

  // `active_evs` are shared equally among the planes, at least one each; 0 = all. Denied EVs of the
  // profile are out of use. The profile must outlive this.
  // With `turns` they follow the list of a profile that has one, while all EVs are active.
  Rotation(const EvProfile& profile, unsigned active_evs, PortTurns* turns, Prng& prng);

  // --- Who is in use ---
  PortMask ports() const { return ports_; }  // those with an EV in use
  unsigned in_use_count() const { return in_use_count_; }
  bool in_use(EvIndex ev) const { return position(ev) < plane_of(ev).usable_end; }
  bool is_active(EvIndex ev) const { return position(ev) < plane_of(ev).active_end; }
  bool is_only_one_of_its_plane(EvIndex ev) const {
    return plane_of(ev).usable_end - plane_of(ev).begin == 1;
  }
  // Brings an EV into use, GOOD: active if the plane is short of its share, otherwise a backup.
  void join(EvIndex ev, Prng& prng);
  // Takes an EV out of use. A backup of the same plane gets its place in the rotation: `preferred`
  // if that is one, otherwise any.
  void leave(EvIndex ev, EvIndex preferred, Prng& prng);
  // The same while `in`, of the same plane and out of use, comes into use for it: `in` is a backup
  // where there are others, since those have not failed.
  void replace(EvIndex out, EvIndex in, EvIndex preferred, Prng& prng);
  // An EV that must stay in use, though nothing is heard of it, changes places with a backup.
  void step_back(EvIndex ev, EvIndex preferred, Prng& prng);

  // --- SKIP ---
  bool is_good(EvIndex ev) const { return is_good_at(position(ev)); }
  bool is_skipped(EvIndex ev) const { return rows_[index(ev)].skipped; }
  // Of several reasons to skip an EV the longest counts. Nothing for EVs out of use.
  void skip(EvIndex ev, unsigned turns);
  void skip_again(EvIndex ev);  // for as many turns as the last time, at least one
  void revive(EvIndex ev);
  void pass_over(EvIndex ev);  // one turn less

  // --- Turns ---
  // The plane of `candidates` that has had the fewest packets; among equals the next one round.
  PortId least_loaded(PortMask candidates) const;
  // Whether one of the free ports has had no more packets than any of `candidates`, as all have at
  // first. Were only the next one round taken for that, queue pairs that have sent nothing yet
  // would go in an order that is drawn, and the rounds of an all-to-all meet at the receivers.
  bool is_turn_of_any(PortMask free, PortMask candidates) const;
  PortId next_port() const { return PortId{static_cast<std::uint8_t>(next_port_ + 1)}; }
  void charge(PortId port) { charge(planes_[profile_->plane(port)]); }  // one packet more
  // A plane that comes back: what it missed while it was away is not its debt.
  void forgive(PortId port) { planes_[profile_->plane(port)].load = max_load_; }
  // The EV whose turn it is on that plane, kNoEv when `avoid` is all there is. Revives the first
  // SKIP entry it passes.
  EvIndex next(PortId port, EvIndex avoid, Prng& prng);
  // A packet goes out on `ev`, whether it is its turn or not; the turn moves on behind it.
  void use(EvIndex ev);
  // More on the EV of the last packet, which keeps its turn.
  void use_again(EvIndex ev, unsigned packets) { charge(plane_of(ev), packets); }
  // `ev` is the only active EV of its plane and unwanted: a backup takes its place, if there is
  // one.
  EvIndex beside(EvIndex ev);

  // --- Turns of others: packets that are not data look at the order and change nothing in it ---
  bool has_good(PortId port, EvIndex except) const;
  // The first entry of the plane in use from `cursor` on that is GOOD, or the next one of all with
  // `any_state`; moves the cursor behind it. The plane must have an EV in use.
  EvIndex peek(unsigned plane, std::uint16_t& cursor, bool any_state) const;
  bool in_use_on(unsigned plane, EvIndex ev) const {
    return position(ev) < planes_[plane].usable_end;
  }
  bool any_in_use_on(unsigned plane) const {
    return planes_[plane].begin < planes_[plane].usable_end;
  }
  std::uint16_t first_position(unsigned plane) const { return planes_[plane].begin; }
  EvIndex at(std::uint16_t position) const { return EvIndex{order_[position]}; }

  std::size_t memory_bytes() const;  // of what it owns

 private:
  static constexpr std::uint16_t kNowhere = 0xFFFF;
  static constexpr std::uint16_t kPositionMask = 0x7FF;

  struct Row {
    std::uint16_t position : 11 = 0;  // in order_
    bool skipped : 1 = false;
    std::uint16_t turns : 4 = 0;  // while SKIP: how often it is still to be passed over
  };
  static_assert(sizeof(Row) == 2 && kMaxEvsPerQp <= 1U << 11);

  struct Plane {
    std::uint64_t load = 0;  // packets sent on it, and those forgiven
    PortId port{};
    std::uint8_t rotations = 0;  // since the order was drawn; in rotation 0 it is being drawn
    std::uint16_t begin = 0;
    std::uint16_t active_end = 0;
    std::uint16_t usable_end = 0;
    std::uint16_t end = 0;
    std::uint16_t share = 0;   // the most EVs to be active
    std::uint16_t cursor = 0;  // next to be used; begin when nothing is active
  };

  static constexpr std::size_t index(EvIndex ev) { return static_cast<std::size_t>(ev); }
  std::uint16_t position(EvIndex ev) const { return rows_[index(ev)].position; }
  Plane& plane_of(EvIndex ev) { return planes_[profile_->plane(ev)]; }
  const Plane& plane_of(EvIndex ev) const { return planes_[profile_->plane(ev)]; }
  bool is_good_at(unsigned position) const {
    return ((good_bits_[position / 64] >> (position % 64)) & 1) != 0;
  }
  void set_good_at(unsigned position, bool good);

  enum class SkipsInTheWay : std::uint8_t { kReviveFirst, kLeave };
  EvIndex next_drawn(Plane& plane, EvIndex avoid, SkipsInTheWay skips, Prng& prng);
  EvIndex listed_turn(const Plane& plane) const;
  void fill_plane(Plane& plane, unsigned begin, unsigned active_evs, Prng& prng);
  std::uint64_t least_load() const;
  void charge(Plane& plane, unsigned packets = 1);
  std::uint16_t find_good(unsigned from, unsigned to, unsigned except) const;
  std::uint16_t after(const Plane& plane, std::uint16_t position) const;
  void swap_positions(unsigned a, unsigned b);
  void enter_rotation(Plane& plane, unsigned position, Prng& prng);
  void leave_rotation(Plane& plane, unsigned position, Prng& prng);
  bool give_way_to_backup(EvIndex ev, EvIndex preferred, Prng& prng);

  const EvProfile* profile_;
  PortTurns* turns_;                     // none: the order is drawn
  FixedArray<Row> rows_;                 // by EV
  FixedArray<std::uint16_t> order_;      // EVs, see the zones above
  FixedArray<std::uint64_t> good_bits_;  // by position: the EV there is GOOD
  FixedArray<Plane> planes_;
  std::uint64_t max_load_ = 0;
  PortMask ports_;
  std::uint16_t in_use_count_ = 0;
  std::uint8_t next_port_ = 0;  // breaks ties of load; a port - 1
};

}  // namespace mrc::core
