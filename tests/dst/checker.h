// Everything the engine does is held against its contract here. Nothing in this class knows how the
// engine works; it knows what was posted, what was delivered, and what the headers promise.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/types.h"
#include "core/endpoint.h"
#include "dst/connection.h"
#include "dst/flight.h"
#include "dst/random.h"

namespace mrc::dst {

struct World;
class Host;

class Checker {
 public:
  explicit Checker(World& world);

  // Each packet an engine hands out. `free` is the mask it was asked with. Returns who sent it; no
  // connection for endpoint operations.
  EndRef on_transmit(const Host& host, PortMask free, const core::TxPacket& tx);

  // What a queue pair looked like before it was given a NACK or something forged.
  void before_arrival(const Host& host, const Flight& flight, const wire::Packet& packet);
  // Each packet an engine was given, with its answer; before the payload is copied.
  struct Received {
    const Flight& flight;
    const core::Arrival& arrival;
    const wire::Packet& packet;
    const core::RxResult& result;
  };
  void on_arrival(Host& host, const Received& received);
  void on_corrupt_arrival(const Host& host, const core::Arrival& arrival,
                          const wire::Packet& packet);

  void on_completion(Host& host, const core::Completion& completion);
  void on_event(Host& host, const core::Event& event);
  // The engines of these hosts begin to talk, perhaps anew: what one said about its ports is
  // history.
  void on_connect(unsigned host_a, unsigned host_b);

  // After the engine said it has nothing more to send: with every port free a deadline must exist
  // while there is work, and now and then all its books are compared.
  void on_idle(Host& host, bool all_ports_free);

  // Around the drain: a healthy network needs no storm of retransmissions.
  void begin_drain();
  void check_drain_effort() const;

  // At the end: both ends agree, everything posted is done, memory equals the reference.
  void check_agreement();
  void check_memory();

  std::uint64_t data_packets() const { return data_packets_; }
  std::uint64_t retransmissions() const { return retransmissions_; }
  std::uint64_t control_packets() const { return control_packets_; }
  std::uint64_t payload_bytes() const { return payload_bytes_; }
  std::uint64_t completions() const { return completions_; }
  std::uint64_t immediates() const { return immediates_; }

 private:
  // transmit
  void check_route(const Host& host, PortMask free, const core::TxPacket& tx) const;
  void check_write(EndRef from, PortMask free, const core::TxPacket& tx);
  void check_write_fields(EndRef from, std::uint64_t packet, const core::TxPacket& tx);
  void check_remote_port(EndRef from, const core::TxPacket& tx) const;
  void check_window(EndRef from, std::uint64_t packet);
  void check_immediates_in_flight(EndRef from, std::uint64_t packet);
  void check_congestion_window(const Host& host, EndRef from, const core::TxPacket& tx);
  void check_sack(EndRef from, const wire::Sack& sack);
  void check_ack(EndRef from, Psn psn, const wire::Ack& ack);
  void check_nack(EndRef from, const wire::Nack& nack);

  // recovery
  void check_retransmission(EndRef from, std::uint64_t packet, PortMask free,
                            const core::TxPacket& tx);
  void check_other_path(EndRef from, std::uint64_t packet, PortMask free,
                        const core::TxPacket& tx) const;
  void check_backoff(EndRef from, const core::QpStatus& status);
  void check_tail_probe(EndRef from, const core::QpStatus& status) const;
  void check_retries_used_up(EndRef ref) const;
  void on_feedback(Host& host, EndRef to, const Received& received);
  bool note_told(EndRef to, const wire::Packet& packet);
  void check_nack_taken(Host& host, EndRef to, const Received& received);
  void note_trim(EndRef to, const core::QpStatus& after);
  void check_tallies(EndRef ref, const core::QpStatus& status) const;
  void check_path_order(EndRef ref, const core::QpStatus& status) const;

  // arrival
  void check_write_arrival(Host& host, const Received& received);
  void check_not_taken(const Host& host, const Received& received);
  void check_stopped(const Host& host, const Received& received);
  void check_new_write(Host& host, EndRef to, std::uint64_t number, const Received& received);
  void check_refused_write(EndRef to, std::uint64_t number, bool legal, const Received& received);
  void take_write(Host& host, EndRef to, std::uint64_t number, const Received& received);
  void check_feedback_arrival(Host& host, const Received& received);

  // completion
  void check_send_completion(EndRef ref, const core::Completion& completion);
  void check_receive_completion(EndRef ref, const core::Completion& completion);
  void check_failure_allowed(EndRef ref, core::CompletionStatus status);
  void check_message_in_memory(EndRef from, std::size_t number);
  void verify_messages(EndRef from, std::size_t end);

  // status
  void check_deadline(Host& host);
  void check_status(Host& host, EndRef ref);
  void check_send_books(EndRef ref, const core::QpStatus& status);
  void check_peer_books(Host& host, EndRef ref, const core::QpStatus& status);
  void check_remote_ports_event(const Host& host, const core::Event& event);
  void check_end(EndRef ref);
  void check_failed_end(EndRef ref);
  void check_paths_recovered(EndRef ref, const core::QpStatus& status);

  World& world_;
  Random random_;
  std::optional<core::QpStatus> before_;  // the receiver of what arrives now
  // What the engine of a host said about the ports of another: (host, peer).
  std::map<std::pair<unsigned, unsigned>, PortMask> remote_ports_;
  // The ports of a host through which something came from the address of another: (host, other).
  std::map<std::pair<unsigned, unsigned>, PortMask> heard_through_;
  // What somebody else told a host about the ports of another: (host, other).
  std::map<std::pair<unsigned, unsigned>, std::set<std::uint32_t>> claimed_ports_;
  // Trim NACKs that a host heard from another; answered: the window became smaller.
  std::map<std::pair<unsigned, unsigned>, Tally> trims_;
  std::uint64_t data_packets_ = 0;
  std::uint64_t retransmissions_ = 0;
  std::uint64_t control_packets_ = 0;
  std::uint64_t payload_bytes_ = 0;
  std::uint64_t completions_ = 0;
  std::uint64_t immediates_ = 0;
};

}  // namespace mrc::dst
