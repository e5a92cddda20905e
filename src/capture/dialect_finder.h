// Which dialect explains the packets of a capture.
//
// For each field of wire::Dialect there are packets that show its value, such as a SACK that echoes
// the EV of a write. They are counted for each value. A value that some packets show and none
// contradicts is found; without any the field stays open, and with both it is contradicted, as when
// two dialects are mixed. Nothing is guessed: what a capture cannot tell, it is not asked.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/seen_packet.h"
#include "wire/dialect.h"

namespace mrc::capture {

enum class Verdict : std::uint8_t { kFound, kOpen, kContradicted };

struct Evidence {
  std::string value;  // of the field, as wire::set_dialect_field() takes it
  std::uint64_t packets = 0;
};

struct Finding {
  const wire::DialectField* field = nullptr;
  Verdict verdict = Verdict::kOpen;
  std::string value;               // found
  std::vector<Evidence> evidence;  // for every value that was seen
  std::string note;                // why it is open, or what to think of it
};

struct Traffic {
  std::uint64_t frames = 0;
  std::uint64_t mrc = 0;         // packets of MRC
  std::uint64_t verified = 0;    // of these, whose ICRC is right
  std::uint64_t unverified = 0;  // cut by the capture or a switch, or of an unknown ICRC
  std::uint64_t other = 0;
  std::map<std::uint16_t, std::uint64_t> udp_ports;    // destination port of MRC: packets
  std::map<std::uint8_t, std::uint64_t> opcodes;       // packets
  std::map<std::uint8_t, std::uint64_t> nak_codes;     // AETH syndromes of NAKs
  std::map<std::uint8_t, std::uint64_t> nack_reasons;  // of NACKs
  std::uint64_t widest_flight = 0;  // most packets under way that one flow showed
};

class DialectFinder {
 public:
  // All packets twice: first to learn at which UDP ports MRC is spoken, then for what they say.
  void survey(const CapturedFrame& frame);
  void study(const CapturedFrame& frame);

  // In the order of wire::dialect_fields().
  std::vector<Finding> findings() const;
  const Traffic& traffic() const { return traffic_; }
  // The lowest port at which MRC was spoken, as the device's udp_port; none without any.
  std::optional<std::uint16_t> udp_port() const;

 private:
  struct PortCount {
    std::uint64_t verified = 0;
    std::uint64_t alike = 0;  // begins like MRC
    std::uint64_t all = 0;
  };
  struct PacketKey {
    wire::IpAddress from;
    wire::IpAddress to;
    std::uint32_t number = 0;  // PSN or probe id
    bool probe = false;
    bool operator==(const PacketKey&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const PacketKey& key) const;
  };
  static constexpr std::uint32_t kNoFlow = 0xFFFF'FFFF;
  // What of a write or a probe is echoed later.
  struct Sent {
    std::uint16_t port = 0;
    std::uint16_t inner_label = 0;
    std::uint16_t outer_label = 0;
    bool tunnel = false;
    bool v4 = false;
    bool again = false;  // more than one was sent: which one is meant?
    bool stamped = false;
    std::uint16_t ticks = 0;
    bool ends_message = false;
    std::uint16_t msn = 0;
    std::uint32_t flow = kNoFlow;
  };
  // Writes to one queue pair, over whatever planes and addresses: its number and PSNs near each
  // other tell.
  struct Flow {
    std::optional<std::uint16_t> first_msn;
    std::optional<std::uint16_t> first_rqmsn;
    std::uint32_t newest_psn = 0;
    std::uint32_t acknowledged = 0;
    bool has_acknowledged = false;
    unsigned packets = 0;
  };
  using Votes = std::map<std::uint16_t, std::uint64_t>;

  bool speaks_mrc(std::uint16_t port) const;
  void note_process(const SeenPacket& packet, std::uint32_t destination);
  void note_bth(const SeenPacket& packet);
  void note_tunnel(const SeenPacket& packet);
  void on_write(const SeenPacket& packet);
  void on_probe(const SeenPacket& packet);
  void on_ack(const SeenPacket& packet);
  void on_sack(const SeenPacket& packet);
  std::uint32_t flow_of(std::uint32_t destination, std::uint32_t psn);
  void on_nack(const SeenPacket& packet);
  void on_request(const SeenPacket& packet);
  void on_response(const SeenPacket& packet);
  void remember(const PacketKey& key, const Sent& sent);
  void compare_echo(const Sent& sent, std::uint32_t echo);
  void compare_stamp(const Sent& sent, std::uint16_t ticks);
  const Sent* answered(const SeenPacket& answer, std::uint32_t number, bool probe) const;
  void vote(std::string_view field, std::uint16_t value) { ++votes_[field][value]; }
  void count_beginnings(std::map<std::string_view, Votes>& votes) const;
  void judge_bth(std::map<std::string_view, Votes>& votes) const;
  void judge_ports(std::map<std::string_view, Votes>& votes) const;
  std::string note_on(std::string_view field) const;

  Traffic traffic_;
  std::map<std::uint16_t, PortCount> ports_;
  std::optional<std::uint16_t> base_port_;  // the lowest that speaks MRC
  std::unordered_map<PacketKey, Sent, KeyHash> sent_;
  std::vector<Flow> flows_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> flows_to_;  // by queue pair
  std::map<std::string_view, Votes> votes_;
  // BTH byte 1: [top bit][next bit] of packets that end a message, and of others.
  std::array<std::array<std::uint64_t, 4>, 2> bth_bits_{};
  std::map<std::uint32_t, std::uint64_t> port_masks_;
  std::uint64_t stamps_as_sent_ = 0;
  std::uint64_t stamps_advanced_ = 0;
  std::uint64_t tunnels_of_unknown_icrc_ = 0;
};

}  // namespace mrc::capture
