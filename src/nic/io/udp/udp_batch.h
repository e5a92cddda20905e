// Outgoing datagrams between send() and the system call.
//
// Headers, padding and ICRC lie in an arena, payload stays in the program's memory; a sealed packet
// lies in the arena as a whole. Packets in a row of the same flow, class and size become the
// segments of one message; the last one may be shorter.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "nic/io/udp/udp_icrc.h"
#include "os/socket_address.h"
#include "seal/sealer.h"
#include "wire/frame.h"
#include "wire/packet.h"

namespace mrc::nic {

inline constexpr unsigned kMaxSegments = 64;
inline constexpr std::size_t kMaxBurstBytes = 65'000;   // of one message, all its segments
inline constexpr std::size_t kMaxMessagePieces = 1024;  // the kernel's limit

// Where a datagram goes: the socket it leaves from and the address it is for.
struct UdpFlow {
  std::uint8_t plane = 0;    // index
  std::uint16_t socket = 0;  // index among the plane's send sockets
  os::SocketAddress to;
  FlowAddresses addresses;
  IcrcPrefixes prefixes;
  seal::Sealer* sealer = nullptr;  // none: packets are plain
};

struct UdpMessage {
  os::SocketAddress to;
  std::uint8_t plane = 0;
  std::uint8_t traffic_byte = 0;
  bool open = true;  // another segment may follow
  std::uint16_t socket = 0;
  std::uint16_t segments = 0;
  std::uint32_t segment_bytes = 0;
  std::uint32_t total_bytes = 0;
  std::uint32_t first_piece = 0;
  std::uint32_t piece_count = 0;
};

// What is decided for each packet beside where it goes.
struct UdpPacketRules {
  bool may_join = true;             // the burst before it
  bool header_check = false;        // leaves out a payload of more than kMostAlwaysCovered
  bool takes_header_check = false;  // what we say of ourselves
};

class UdpBatch {
 public:
  UdpBatch(const wire::Dialect& dialect, bool seals);

  // False when there is no room: flush and try again. A payload in more pieces than an empty batch
  // holds never has room.
  bool append(UdpFlow& flow, std::uint8_t traffic_byte, const wire::Packet& packet,
              wire::PayloadPieces payload, const UdpPacketRules& rules);

  // The same for packets of a run (wire::move_on) with their payload in one piece; how many there
  // was room for.
  unsigned append_run(UdpFlow& flow, std::uint8_t traffic_byte, const wire::Packet& first,
                      std::span<const std::byte> payload, unsigned count,
                      const UdpPacketRules& rules);

  bool empty() const { return message_count_ == 0; }
  std::span<const UdpMessage> messages() const { return {messages_.get(), message_count_}; }
  std::span<iovec> pieces(const UdpMessage& message) {
    return {pieces_.get() + message.first_piece, message.piece_count};
  }
  void clear();

 private:
  bool append_sealed(UdpFlow& flow, std::uint8_t traffic_byte, const wire::Packet& packet,
                     wire::PayloadPieces payload, const UdpPacketRules& rules);
  bool joins_last(const UdpFlow& flow, std::uint8_t traffic_byte, std::size_t bytes) const;
  void start_message(const UdpFlow& flow, std::uint8_t traffic_byte, std::size_t bytes);
  void add_piece(UdpMessage& message, std::span<const std::byte> bytes);
  // A packet behind the last one, whose header stands in the arena, of the same message and run.
  struct RunState {
    wire::Icrc icrc;  // what stands before the transport part
    std::size_t header_bytes = 0;
    std::size_t packet_bytes = 0;
    bool header_check = false;
  };
  bool has_room_behind(const RunState& run) const;
  void append_behind(const RunState& run, const std::byte* header_before,
                     const wire::Packet& packet, std::span<const std::byte> payload);

  wire::Dialect dialect_;
  std::unique_ptr<UdpMessage[]> messages_;
  std::unique_ptr<iovec[]> pieces_;
  std::size_t arena_bytes_;
  std::unique_ptr<std::byte[]> arena_;
  std::size_t message_count_ = 0;
  std::size_t piece_count_ = 0;
  std::size_t arena_used_ = 0;
};

}  // namespace mrc::nic
