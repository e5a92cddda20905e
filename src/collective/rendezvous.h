// Where ranks meet: a TCP connection from each to rank 0. Whoever else connects is turned away;
// with a key of the job (placement.h), whoever does not know it. Before data moves they tell each
// other their addresses over it; afterwards it stands for being alive. A rank that hangs up without
// having said that it is done, or says that it failed, ends all others with a Failure that names
// it.
//
// Not thread safe.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collective/exchange.h"
#include "collective/placement.h"

namespace mrc::collective {

class Rendezvous {
 public:
  // Returns when all ranks are there; rank 0 gives up after `timeout_s`.
  Rendezvous(const Placement& place, double timeout_s);

  // What each rank says, by rank. All of them must call it.
  std::vector<nlohmann::json> all_gather(const nlohmann::json& own);

  // Throws Failure when a rank is gone or has failed. Never waits.
  void check();
  // Readable when check() has something to look at.
  const std::vector<int>& descriptors() const { return descriptors_; }

  // Tells the others why we end before our time. Does not throw.
  void tell_failure(const std::string& why) noexcept;
  // Waits until every rank is done; nobody hangs up before.
  void finish();

 private:
  struct Member {
    Exchange exchange;
    unsigned rank = 0;
    bool done = false;
  };

  void gather_members(double timeout_s);
  // Whether a caller is done with: a member now, or turned away, of which `away` is told.
  bool settle(Exchange& caller, std::string& away);
  std::string problem_of(const nlohmann::json& hello) const;
  bool has_member(unsigned rank) const;
  unsigned missing_rank() const;
  void sort_members();
  void join(double timeout_s);
  void take_word(Member& member);

  Placement place_;
  double timeout_s_;
  std::vector<Member> members_;  // rank 0: all others, by rank; else rank 0 alone
  std::vector<int> descriptors_;
};

}  // namespace mrc::collective
