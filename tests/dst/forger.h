// Somebody who knows everything: queue pair numbers, windows, message numbers, contexts, the path
// and the time of each packet under way, keys. What it sends comes from the peer's address and is
// right in all respects but one, and arrives at once, so that the window is where it was seen. So
// each check is reached and is the only thing that can stop it, and the checker asks for that one
// by name. docs/testing.md, "Outsiders".
#pragma once

#include <cstdint>
#include <optional>

#include "core/endpoint.h"
#include "dst/attack.h"
#include "dst/connection.h"
#include "dst/flight.h"
#include "dst/random.h"
#include "dst/stage.h"

namespace mrc::dst {

struct World;

class Forger {
 public:
  explicit Forger(World& world);

  void start();
  void on_fault();

 private:
  // Whom it is sent to, with what its engine says of itself.
  struct Victim {
    EndRef ref;
    const End& end;
    const Flow& out;  // what it sends
    const Flow& in;   // what it is sent
    core::QpStatus status;
  };

  void schedule_next();
  std::optional<Victim> random_victim();
  // Nothing when there is no such moment: nothing is in flight, no window to be outside of.
  std::optional<Flight> forge(Attack attack, const Victim& victim);
  std::optional<Flight> forge_write(Attack attack, const Victim& victim);
  std::optional<Flight> forge_known_write(Attack attack, const Victim& victim);
  // In `ahead`, how many messages it says end between the edge and it.
  std::optional<Flight> forge_number(Attack attack, const Victim& victim);
  std::optional<std::uint32_t> wrong_number(Attack attack, const Victim& victim,
                                            std::uint64_t packet);
  std::optional<Flight> forge_empty(Attack attack, const Victim& victim);
  std::optional<Flight> forge_sack(Attack attack, const Victim& victim);
  std::optional<Flight> forge_nack(Attack attack, const Victim& victim);
  Flight forge_probe(const Victim& victim);
  std::optional<Flight> forge_ack(Attack attack, const Victim& victim);
  Flight forge_endpoint(Attack attack, const Victim& victim);
  // Acknowledges what was sent and has not arrived: nothing in it is wrong but that it is a lie.
  std::optional<Flight> perfect_lie(const Victim& victim);

  // Packets with nothing wrong.
  Flight to(const Victim& victim, wire::Opcode opcode);
  // A small message that the victim could be sent next, but for its place.
  Flight write(const Victim& victim, std::uint64_t packet);
  // A packet that was sent to the victim and has not arrived, as it was sent; one that no forger
  // has touched before, since two refusals of one packet a round trip apart are believed.
  std::optional<std::uint64_t> missing(const Victim& victim);
  Flight genuine(const Victim& victim, std::uint64_t packet);
  Flight sack(const Victim& victim, std::uint64_t contiguous);
  std::optional<std::uint64_t> in_flight(const Victim& victim);
  void echo(const Victim& victim, std::uint64_t packet, std::uint32_t& entropy,
            std::uint16_t& ticks) const;

  World& world_;
  Random random_;
};

}  // namespace mrc::dst
