// A capture of two hosts that talk in any dialect, made with our own encoder, and what else is on a
// network.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/codec.h"
#include "wire/frame.h"

namespace mrc::capture::test {

using Bytes = std::vector<std::byte>;

enum class Carriage { kIpv4, kIpv6, kTunnel };

// Writes pcapng by hand, so that the reader is not tested with its twin.
class PcapngText {
 public:
  explicit PcapngText(bool big_endian = false, std::uint16_t link = 1) : big_(big_endian) {
    put32(0x0A0D0D0A), put32(28), put32(0x1A2B3C4D), put16(1), put16(0);
    put32(0xFFFFFFFF), put32(0xFFFFFFFF), put32(28);
    put32(1), put32(20), put16(link), put16(0), put32(0), put32(20);
  }
  void add(std::span<const std::byte> frame, std::size_t captured = SIZE_MAX) {
    const std::size_t length = std::min(captured, frame.size());
    const std::size_t padded = (length + 3) / 4 * 4;
    const auto block = static_cast<std::uint32_t>(32 + padded);
    put32(6), put32(block), put32(0), put32(0), put32(0);
    put32(static_cast<std::uint32_t>(length)), put32(static_cast<std::uint32_t>(frame.size()));
    bytes.insert(bytes.end(), frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(length));
    bytes.resize(bytes.size() + padded - length);
    put32(block);
  }
  // A block of a kind that nobody needs to know.
  void add_unknown() { put32(0x0BAD), put32(16), put32(0x12345678), put32(16); }

  Bytes bytes;

 private:
  void put(std::uint32_t value, unsigned count) {
    for (unsigned i = 0; i < count; ++i)
      bytes.push_back(static_cast<std::byte>(value >> 8 * (big_ ? count - 1 - i : i)));
  }
  void put32(std::uint32_t value) { put(value, 4); }
  void put16(std::uint16_t value) { put(value, 2); }

  bool big_;
};

// One host writes to another, which answers.
class Conversation {
 public:
  Conversation(const wire::Dialect& dialect, Carriage carriage)
      : dialect_(dialect), carriage_(carriage) {}

  std::vector<Bytes> frames;
  bool outer_label_differs = false;  // in tunnels the outer label is what is echoed

  // Several connections that begin, write, and are answered.
  void talk() {
    for (std::uint32_t qp = 0; qp < 3; ++qp) {
      const std::uint32_t number = qp << 16 | 0x100;
      for (std::uint16_t i = 0; i < 12; ++i)
        message(number, 1'000 * (qp + 1) + i, i, static_cast<std::uint16_t>(i / 2), i % 2 == 0);
    }
    endpoint_packets();
  }

  void message(std::uint32_t qp, std::uint32_t psn, std::uint16_t msn, std::uint16_t rqmsn,
               bool immediate) {
    wire::Packet write =
        packet(immediate ? wire::Opcode::kWriteOnlyImm : wire::Opcode::kWriteOnly, qp, psn);
    write.bth.has_timestamp = true;
    write.bth.solicited = immediate;
    const auto ticks = static_cast<std::uint16_t>(psn * 7);
    write.body = wire::Write{
        .receive_msn = rqmsn, .msn = msn, .timestamp = {.ticks = ticks}, .address = 0x1000};
    const std::uint32_t entropy = 0x1234C000 + psn % 977;
    send(write, entropy, true);
    wire::Packet sack = packet(wire::Opcode::kSack, 0x77, psn);
    const auto service = static_cast<std::uint16_t>(dialect_.service_time ? 3 + psn % 5 : 0);
    sack.body = wire::Sack{.entropy = as_read(entropy),
                           .cumulative = Psn(psn),
                           .window_units = window_units,
                           .timestamp_ticks = static_cast<std::uint16_t>(ticks + service)};
    send(sack, 0x2222D000, false);
    wire::Packet ack = packet(wire::Opcode::kAck, 0x77, psn);
    ack.body = wire::Ack{.syndrome = wire::kSyndromeAck, .msn = msn + 1U};
    send(ack, 0x2222D001, false);
  }

  void endpoint_packets() {
    wire::Packet status = packet(wire::Opcode::kEndpointRequest, 2, 5);
    status.body =
        wire::EndpointRequest{.op = wire::EndpointOp::kPortStatusUpdate, .port_status = 0b1111};
    send(status, 0x2222D002, true);
    wire::Packet answer = packet(wire::Opcode::kEndpointResponse, 2, 6);
    answer.body = wire::EndpointResponse{.op = wire::EndpointOp::kEvProbe};
    send(answer, 0x2222D003, false);
  }

  static wire::Packet packet(wire::Opcode opcode, std::uint32_t qp, std::uint32_t psn) {
    wire::Packet made;
    made.bth.opcode = opcode;
    made.bth.destination = QpNumber{qp};
    made.bth.psn = Psn(psn);
    return made;
  }

  void send(const wire::Packet& packet, std::uint32_t entropy, bool forth) {
    const auto qp = static_cast<std::uint32_t>(packet.bth.destination);
    const bool by_port = dialect_.processes == wire::Processes::kByUdpPort;
    wire::FrameFormat format;
    format.dialect = dialect_;
    format.udp_port = static_cast<std::uint16_t>(udp_port + (by_port ? qp >> 16 : 0));
    wire::FrameHeader header;
    const bool v4 = carriage_ == Carriage::kIpv4;
    const auto host = [&](unsigned n) {
      return v4 ? wire::ipv4_address(0x0A000000 | plane << 8 | n)
                : wire::ipv6_address(0xFD00000000000000, n);
    };
    header.source = host(forth ? 1 : 2);
    header.destination = host(forth ? 2 : 1);
    header.dscp = 4;
    header.entropy = entropy;
    if (carriage_ == Carriage::kTunnel) {
      header.srv6 = true;
      header.outer.source = header.source;
      header.outer.carrier = wire::ipv6_address(0xFC00000110008000, 0x1001010000000000);
    }
    Bytes frame(wire::frame_length(format, header, packet, 0));
    frame.resize(wire::build_frame(format, header, packet, {}, frame));
    if (outer_label_differs && header.srv6) {
      frame[wire::kEthernetHeaderLength + 2] = std::byte{0x77};
      frame[wire::kEthernetHeaderLength + 3] = std::byte{0x01};
    }
    frames.push_back(std::move(frame));
  }

  std::uint16_t udp_port = 4791;
  unsigned plane = 0;  // of IPv4
  std::uint8_t window_units = 0;

 private:
  // What the receiver takes for the entropy of a packet.
  std::uint32_t as_read(std::uint32_t entropy) const {
    if (carriage_ == Carriage::kIpv4) return entropy & 0xFFFF;
    const bool outer = outer_label_differs && dialect_.ev_label == wire::EvLabel::kOuter;
    return outer && carriage_ == Carriage::kTunnel ? 0x77010000 | (entropy & 0xFFFF) : entropy;
  }

  wire::Dialect dialect_;
  Carriage carriage_;
};

// UDP to another port, TCP, ARP, and UDP that begins like MRC and is not.
inline std::vector<Bytes> noise() {
  std::vector<Bytes> frames;
  for (unsigned i = 0; i < 40; ++i) {
    Bytes frame(14 + 20 + 8 + 64, static_cast<std::byte>(i * 37));
    frame[12] = std::byte{0x08},
    frame[13] = std::byte{static_cast<std::uint8_t>(i % 8 == 0 ? 6 : 0)};
    frame[14] = std::byte{0x45}, frame[16] = std::byte{0}, frame[17] = std::byte{92};
    frame[20] = frame[21] = std::byte{0};
    frame[23] = std::byte{static_cast<std::uint8_t>(i % 3 == 0 ? 6 : 17)};
    frame[36] = std::byte{0}, frame[37] = std::byte{53};
    frame[38] = std::byte{0}, frame[39] = std::byte{72};
    if (i % 5 == 0) frame[42] = std::byte{0xCA}, frame[43] = std::byte{0};
    frames.push_back(frame);
  }
  return frames;
}

}  // namespace mrc::capture::test
