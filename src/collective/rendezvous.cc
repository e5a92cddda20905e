#include "collective/rendezvous.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <list>
#include <optional>
#include <thread>
#include <utility>

#include "collective/failure.h"
#include "os/interrupt.h"
#include "os/notice.h"

namespace mrc::collective {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

// Changes whenever a message changes its meaning.
constexpr unsigned kProtocol = 1;
constexpr auto kRetryEvery = std::chrono::milliseconds(50);
// A rank says at once who it is.
constexpr auto kHelloPatience = std::chrono::seconds(5);
constexpr std::size_t kMaxHelloBytes = 4'096;
constexpr std::size_t kMaxCallers = 64;
constexpr int kPollMs = 100;

// Nobody waits in silence: what is missing is told after 2 s, then after 4, 8 and so on.
class LongWait {
 public:
  template <typename What>
  void tell(const What& what) {
    const auto now = Clock::now();
    if (now < next_) return;
    next_ = now + (now - start_);
    os::notice(fmt::format("{}, {:.0f} s so far", what(),
                           std::chrono::duration<double>(now - start_).count()));
  }

 private:
  static constexpr auto kFirst = std::chrono::seconds(2);
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_ + kFirst;
};

bool says(const json& message, const char* word) {
  const auto found = message.find(word);
  return found != message.end() && found->is_boolean() && found->get<bool>();
}

Listener open_listener(const Placement& place) {
  return place.listener >= 0 ? Listener::inherited(place.listener) : Listener(place.root_port);
}

std::optional<unsigned> number_in(const json& message, const char* key, unsigned most) {
  const auto found = message.find(key);
  if (found == message.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto value = found->get<std::uint64_t>();
  if (value > most) return std::nullopt;
  return static_cast<unsigned>(value);
}

// Connections of which it is not known yet whether they are ranks. None of them keeps others
// waiting: who is silent is dropped after kHelloPatience, or for the next one where there are many.
class Callers {
 public:
  explicit Callers(const Listener& listener) : listener_(listener) {}

  // Until somebody calls or speaks, for a while; takes new ones in.
  void wait() {
    std::vector<pollfd> wanted = {{listener_.descriptor(), POLLIN, 0}};
    for (const Caller& caller : callers_)
      wanted.push_back({caller.exchange.descriptor(), POLLIN, 0});
    const int ready = ::poll(wanted.data(), wanted.size(), kPollMs);
    if (os::Interrupt::raised()) throw Failure("interrupted", FailureKind::kInterrupted);
    if (ready <= 0 || (wanted.front().revents & POLLIN) == 0) return;
    if (callers_.size() == kMaxCallers) callers_.pop_front();
    callers_.push_back({listener_.accept(1), Clock::now() + kHelloPatience});
  }

  // Drops those of which `is_done` says so, and the silent ones.
  template <typename IsDone>
  void remove_if(const IsDone& is_done) {
    callers_.remove_if([&](Caller& caller) {
      if (caller.exchange.readable() && is_done(caller.exchange)) return true;
      return Clock::now() >= caller.until;
    });
  }

 private:
  struct Caller {
    Exchange exchange;
    Clock::time_point until;
  };
  const Listener& listener_;
  std::list<Caller> callers_;
};

}  // namespace

Rendezvous::Rendezvous(const Placement& place, double timeout_s)
    : place_(place), timeout_s_(timeout_s) {
  if (place.ranks == 1) return;
  if (place.is_root()) {
    gather_members(timeout_s);
  } else {
    join(timeout_s);
  }
  for (const Member& member : members_)
    descriptors_.push_back(member.exchange.descriptor());
}

bool Rendezvous::has_member(unsigned rank) const {
  return rank == 0 || std::any_of(members_.begin(), members_.end(),
                                  [&](const Member& member) { return member.rank == rank; });
}

unsigned Rendezvous::missing_rank() const {
  unsigned rank = 1;
  while (has_member(rank))
    ++rank;
  return rank;
}

// Why a caller that speaks our protocol cannot be let in, or nothing.
std::string Rendezvous::problem_of(const json& hello) const {
  if (hello.value("mrc_collective", json()) != kProtocol)
    return "another version of the collectives";
  if (hello.value("key", json(std::string())) != place_.job_key)
    return "another key of the job (MRC_JOB_KEY)";
  const auto rank = number_in(hello, "rank", place_.ranks - 1);
  if (!rank || number_in(hello, "ranks", kMaxRanks) != place_.ranks)
    return fmt::format("rank 0 was started for {} ranks", place_.ranks);
  if (has_member(*rank)) return fmt::format("rank {} is there already", *rank);
  return {};
}

// What comes from the network ends nobody: only who knows the key of the job and contradicts it
// shows that the job was started wrongly.
bool Rendezvous::settle(Exchange& caller, std::string& away) {
  json hello;
  try {
    std::optional<json> received = caller.receive_now(kMaxHelloBytes);
    if (!received) return false;
    hello = std::move(*received);
    if (!hello.contains("mrc_collective"))
      throw Failure(fmt::format("{} does not speak our protocol", caller.peer()));
    if (const std::string problem = problem_of(hello); !problem.empty()) {
      away = fmt::format("{} does not belong here: {}", caller.peer(), problem);
      caller.send({{"error", problem}});
      const bool knows_key =
          !place_.job_key.empty() && hello.value("key", json()) == place_.job_key;
      if (!knows_key) return true;
    }
  } catch (const Failure& failure) {
    if (failure.kind() == FailureKind::kInterrupted) throw;
    away = failure.what();
    return true;
  }
  if (!away.empty()) throw Failure(away);
  const unsigned rank = hello.at("rank").get<unsigned>();
  caller.name_peer(fmt::format("rank {} ({})", rank, caller.peer()));
  members_.push_back({std::move(caller), rank});
  return true;
}

void Rendezvous::gather_members(double timeout_s) {
  const Listener listener = open_listener(place_);
  Callers callers(listener);
  const auto patience = std::chrono::duration<double>(timeout_s);
  auto deadline = Clock::now() + patience;
  unsigned turned_away = 0;
  std::string last_away;
  LongWait wait;
  while (members_.size() + 1 < place_.ranks) {
    if (timeout_s > 0 && Clock::now() >= deadline) {
      std::string why = fmt::format("{} of {} ranks came within {:.0f} s; rank {} is missing",
                                    members_.size() + 1, place_.ranks, timeout_s, missing_rank());
      if (turned_away > 0)
        why += fmt::format("; {} turned away, the last: {}", turned_away, last_away);
      throw Failure(why, FailureKind::kTimeout);
    }
    callers.wait();
    wait.tell([&] {
      return fmt::format("{} of {} ranks are there; waiting for rank {}", members_.size() + 1,
                         place_.ranks, missing_rank());
    });
    callers.remove_if([&](Exchange& caller) {
      std::string away;
      const std::size_t before = members_.size();
      if (!settle(caller, away)) return false;
      if (members_.size() > before) {
        deadline = Clock::now() + patience;
      } else {
        ++turned_away;
        last_away = away;
      }
      return true;
    });
  }
  sort_members();
}

void Rendezvous::sort_members() {
  std::vector<Member> sorted;
  sorted.reserve(members_.size());
  for (unsigned rank = 1; rank < place_.ranks; ++rank) {
    const auto at = std::find_if(members_.begin(), members_.end(),
                                 [&](const Member& member) { return member.rank == rank; });
    sorted.push_back({std::move(at->exchange), rank});
  }
  members_ = std::move(sorted);
}

// Rank 0 may be started after us.
void Rendezvous::join(double timeout_s) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(timeout_s);
  LongWait wait;
  for (;;) {
    try {
      Exchange exchange = Exchange::connect(place_.root_host, place_.root_port, timeout_s);
      exchange.name_peer(fmt::format("rank 0 ({})", exchange.peer()));
      json hello = {{"mrc_collective", kProtocol}, {"rank", place_.rank}, {"ranks", place_.ranks}};
      if (!place_.job_key.empty()) hello["key"] = place_.job_key;
      exchange.send(hello);
      members_.push_back({std::move(exchange), 0});
      return;
    } catch (const Failure& failure) {
      if (failure.kind() == FailureKind::kInterrupted || Clock::now() >= deadline) throw;
      wait.tell([&] { return fmt::format("waiting for rank 0 ({})", failure.what()); });
    }
    std::this_thread::sleep_for(kRetryEvery);
  }
}

std::vector<json> Rendezvous::all_gather(const json& own) {
  std::vector<json> all(place_.ranks);
  all[place_.rank] = own;
  if (place_.ranks == 1) return all;
  if (!place_.is_root()) {
    Exchange& root = members_.front().exchange;
    root.send({{"own", own}});
    json answer = root.receive(timeout_s_);
    const auto found = answer.find("all");
    if (found == answer.end() || !found->is_array() || found->size() != place_.ranks)
      throw Failure(root.peer() + " does not keep to the protocol of the collectives");
    return found->get<std::vector<json>>();
  }
  for (Member& member : members_) {
    json message = member.exchange.receive(timeout_s_);
    const auto found = message.find("own");
    if (found == message.end())
      throw Failure(member.exchange.peer() + " does not keep to the protocol of the collectives");
    all[member.rank] = std::move(*found);
  }
  for (Member& member : members_)
    member.exchange.send({{"all", all}});
  return all;
}

void Rendezvous::take_word(Member& member) {
  const json message = member.exchange.receive(timeout_s_);
  if (!says(message, "done"))
    throw Failure(member.exchange.peer() + " does not keep to the protocol of the collectives");
  member.done = true;
}

void Rendezvous::check() {
  for (Member& member : members_) {
    if (!member.done && member.exchange.readable()) take_word(member);
  }
}

void Rendezvous::tell_failure(const std::string& why) noexcept {
  for (Member& member : members_) {
    try {
      member.exchange.send({{"error", why}});
    } catch (const std::exception&) {
      // It is gone as well; the first failure is the one to tell about.
    }
  }
}

void Rendezvous::finish() {
  const json done = {{"done", true}};
  if (!place_.is_root() && !members_.empty()) members_.front().exchange.send(done);
  for (Member& member : members_) {
    while (!member.done) {
      const json message = member.exchange.receive(0);
      member.done = says(message, "done");
    }
  }
  if (!place_.is_root()) return;
  for (Member& member : members_)
    member.exchange.send(done);
}

}  // namespace mrc::collective
