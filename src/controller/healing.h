// Decides, from what `mrc map` finds look by look, which parts of a fabric to take out of use and
// which to give back. No clock, no I/O: whoever asks does what is proposed, and says what is
// drained with the next look.
//
// A part goes after several looks in a row that found it at fault, and comes back after many in a
// row that saw it and found nothing; after each return that did not last, after twice as many. In
// between it stays as it is. What is only suspected beside another part, and what no probe
// reached, is neither bad nor sound.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace mrc::controller {

struct HealingPolicy {
  double least_loss = 0.001;  // of one crossing; a part that loses less stays in use
  unsigned deny_after = 3;    // looks in a row
  unsigned allow_after = 10;  // likewise, the first time
  unsigned limit = 2;         // parts that may be out of use at a time by our own decision
};

struct Look {
  struct Fault {
    std::string part;
    double loss = 0;
    bool certain = true;  // no other part would explain it as well
  };
  std::vector<Fault> faults;
  std::set<std::string> in_doubt;  // no answer crossed them, or another part may be it instead
};

struct Proposal {
  enum class Kind : std::uint8_t {
    kDeny,
    kAllow,
    kOverLimit,  // would be denied but for the limit; said once while it lasts
  };
  Kind kind = Kind::kDeny;
  std::string part;
  double loss = 0;     // of the last look; not for kAllow
  unsigned looks = 0;  // in a row that speak for it
};

class Healing {
 public:
  explicit Healing(const HealingPolicy& policy) : policy_(policy) {}

  // `denied`: what is out of use by our decision, `others`: by that of somebody else, who gives it
  // back. The worst come first.
  std::vector<Proposal> take(const Look& look, const std::set<std::string>& denied,
                             const std::set<std::string>& others);
  // What was proposed cannot be done: it is not proposed again for `allow_after` looks.
  void refused(const std::string& part);

 private:
  // How often the time until a return doubles at most.
  static constexpr unsigned kMostDoublings = 5;

  struct Part {
    unsigned bad = 0;      // looks in a row
    unsigned sound = 0;    // likewise
    unsigned returns = 0;  // lately
    unsigned barred = 0;   // looks until it may be proposed again
    double loss = 0;
    bool denied = false;
    bool told = false;  // that it is over the limit
  };

  void note(const Look& look, const std::set<std::string>& denied);
  void forget_the_sound();
  unsigned wanted_until_return(const Part& part) const {
    return policy_.allow_after << part.returns;
  }

  HealingPolicy policy_;
  std::map<std::string, Part> parts_;
};

}  // namespace mrc::controller
