// What the loops of several hosts say together, once or again and again.
//
// Each host counts its own loops (loop.h); whoever has the counts of all of them draws the
// conclusions (diagnosis.h). Pure functions and values: who probes, and when, is decided elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "fabric/diagnosis.h"
#include "fabric/topology.h"

namespace mrc::fabric {

struct HostResults {
  TopologySpec fabric;  // as that host knows it
  unsigned host = 0;
  std::vector<LoopResult> loops;  // all of that host
};

struct Survey {
  Diagnosis diagnosis;
  std::vector<unsigned> hosts;  // that probed, each once
  std::uint64_t loops = 0;
  std::uint64_t sent = 0;
  std::uint64_t answered = 0;
};

// Whether devices and cables are the same; rates and delays do not matter here.
bool same_shape(const TopologySpec& a, const TopologySpec& b);

// Results of the same loop count together. InputError when there are none, or when they are of
// fabrics of different shapes.
Survey survey(const std::vector<HostResults>& results);

struct WindowSettings {
  double every_s = 1;    // from one look to the next
  double window_s = 10;  // how far back looks count
};

// The last looks at a fabric that is watched.
class SurveyWindow {
 public:
  explicit SurveyWindow(const WindowSettings& settings) : settings_(settings) {}

  void add(std::vector<HostResults> look);
  // Losses need many probes, so all that the window holds count for them; what is down is down in
  // the last look already. There must have been a look.
  Survey survey() const;

 private:
  WindowSettings settings_;
  std::deque<std::vector<HostResults>> looks_;  // the oldest first
};

// What a look tells that those before it did not.
struct News {
  std::vector<Finding> faults;      // new ones, and those that got worse
  std::vector<std::string> healed;  // names of parts
};

class ChangeTracker {
 public:
  News update(const Diagnosis& diagnosis);

 private:
  enum class Severity { kLossy, kDown, kSilent };
  static Severity severity_of(const Finding& finding);

  std::map<std::string, Severity> known_;  // parts at fault by name
};

}  // namespace mrc::fabric
