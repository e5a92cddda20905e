#include "collective/rendezvous.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "collective/failure.h"

namespace mrc::collective {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

// Changes whenever a message changes its meaning.
constexpr unsigned kProtocol = 1;
constexpr auto kRetryEvery = std::chrono::milliseconds(50);

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

void Rendezvous::gather_members(double timeout_s) {
  const Listener listener = open_listener(place_);
  std::vector<bool> present(place_.ranks);
  present[0] = true;
  while (members_.size() + 1 < place_.ranks) {
    std::optional<Exchange> exchange;
    try {
      exchange.emplace(listener.accept(timeout_s));
    } catch (const Failure& failure) {
      if (failure.kind() != FailureKind::kTimeout) throw;
      const auto missing = std::find(present.begin(), present.end(), false) - present.begin();
      throw Failure(fmt::format("{} of {} ranks came within {:.0f} s; rank {} is missing",
                                members_.size() + 1, place_.ranks, timeout_s, missing),
                    FailureKind::kTimeout);
    }
    const json hello = exchange->receive(timeout_s);
    const auto rank = number_in(hello, "rank", place_.ranks - 1);
    std::string problem;
    if (number_in(hello, "mrc_collective", UINT32_MAX) != kProtocol)
      problem = "another version of the collectives";
    else if (!rank || number_in(hello, "ranks", kMaxRanks) != place_.ranks)
      problem = fmt::format("rank 0 was started for {} ranks", place_.ranks);
    else if (present[*rank])
      problem = fmt::format("rank {} is there already", *rank);
    if (!problem.empty()) {
      exchange->send({{"error", problem}});
      throw Failure(fmt::format("{} does not belong here: {}", exchange->peer(), problem));
    }
    present[*rank] = true;
    exchange->name_peer(fmt::format("rank {} ({})", *rank, exchange->peer()));
    members_.push_back({std::move(*exchange), *rank});
  }
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
  for (;;) {
    try {
      Exchange exchange = Exchange::connect(place_.root_host, place_.root_port, timeout_s);
      exchange.name_peer(fmt::format("rank 0 ({})", exchange.peer()));
      exchange.send(
          {{"mrc_collective", kProtocol}, {"rank", place_.rank}, {"ranks", place_.ranks}});
      members_.push_back({std::move(exchange), 0});
      return;
    } catch (const Failure& failure) {
      if (failure.kind() == FailureKind::kInterrupted || Clock::now() >= deadline) throw;
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
