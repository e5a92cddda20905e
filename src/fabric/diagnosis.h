// From the results of loops to the parts that are at fault. A pure function.
//
// Model: every part loses a share of what crosses it, each crossing by itself; a loop is answered
// when nothing on its way lost it. Parts are taken for sound until the results say otherwise: again
// and again the one part is found whose loss makes the results most likely, until no further part
// makes them much more likely than they are. A part that is down is one that loses everything, so
// dead and grey links, and several at once, are one case. The fewest parts explain the results: a
// T1 that no T0 reaches is one dead T1 and not as many cut cables.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fabric/loop.h"
#include "fabric/topology.h"

namespace mrc::fabric {

struct LoopResult {
  Loop loop;
  std::uint64_t sent = 0;
  std::uint64_t answered = 0;
};

// A part that loses at least this share of what crosses it is called down.
inline constexpr double kDownLoss = 0.5;

struct Finding {
  Part part;
  double loss = 0;  // of one crossing, the mean of both directions; the most likely value
  double loss_low = 0;
  double loss_high = 0;  // between these with 95 % confidence
  // How much more likely the results are with this part at fault than without, as natural
  // logarithm.
  double evidence = 0;
  // Parts that would explain the results as well; more hosts would tell them apart.
  std::vector<Part> or_else;

  bool down() const { return loss >= kDownLoss; }
  // Nothing got through at all.
  bool silent() const { return loss > 0.999; }
};

struct DiagnosisSettings {
  // A part is at fault when that much speaks for it (see Finding); 10 is wrong once in about twenty
  // thousand sound parts.
  double evidence = 10;
  // What a sound loop may lose.
  double sound_loss = 1e-4;
};

struct Diagnosis {
  std::vector<Finding> findings;  // the strongest first
  std::vector<Part> seen;         // an answer crossed them
  std::vector<Part> unseen;       // no answer crossed them, and no finding names them
  bool healthy() const { return findings.empty(); }
};

// Results of loops that the fabric does not have must have been refused before.
Diagnosis diagnose(const Topology& topology, std::span<const LoopResult> results,
                   const DiagnosisSettings& settings = {});

}  // namespace mrc::fabric
