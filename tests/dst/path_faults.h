// What befalls paths, planes and ports for a while: episodes that begin, and end before the quiet
// phase.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dst/network.h"
#include "dst/random.h"

namespace mrc::dst {

struct World;

class PathFaults {
 public:
  explicit PathFaults(World& world);

  void start();
  void on_fault(Fault kind);
  // A planned episode begins, or one in force ends.
  void on_turn(std::uint32_t episode);
  // Ends everything, except that a pair may be left with one path for ever.
  void heal();

 private:
  enum class Effect : std::uint8_t {
    kDead,
    kSlow,
    kMarks,
    kMtu,
    kCorrupts,
    kPlane,
    kPort,       // told to the host
    kSurvivors,  // of the pair in `key`
  };
  enum class Phase : std::uint8_t { kPlanned, kInForce, kOver };
  struct Episode {
    Effect effect = Effect::kDead;
    Fault kind = Fault::kBlackhole;
    PathKey key;
    Phase phase = Phase::kPlanned;
  };
  // When an episode begins, from now on, and how long it lasts.
  struct Span {
    DurationNs after_ns = 0;
    DurationNs length_ns = 0;
  };

  std::optional<PathKey> random_path();
  void schedule_next(Fault kind);
  void plan(const Episode& episode, const Span& span);
  void begin(Episode& episode);
  void end(Episode& episode);
  void flap(const PathKey& key);
  void swizzle();
  void plan_last_plane();
  void leave_for_ever(const PathKey& key);
  void leave_one_path(unsigned from, unsigned to);

  World& world_;
  Random random_;
  std::vector<Episode> episodes_;
  std::optional<PathKey> last_plane_;
};

}  // namespace mrc::dst
