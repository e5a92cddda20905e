#include <gtest/gtest.h>

#include "sim/host_memory.h"
#include "sim/packet.h"

namespace mrc::sim {
namespace {

wire::Bth bth(wire::Opcode opcode) {
  return {.opcode = opcode,
          .solicited = true,
          .pad = 3,
          .ack_request = true,
          .retransmission = true,
          .has_timestamp = true,
          .destination = QpNumber{0xABCDEF},
          .psn = Psn(0xFEDCBA)};
}

template <typename Stored = StoredBody>
void expect_same(const PacketBody& body) {
  const PacketBody copy = Stored(body).expand();
  EXPECT_EQ(std::get<wire::Packet>(copy.packet), std::get<wire::Packet>(body.packet));
  EXPECT_EQ(copy.local_address, body.local_address);
  EXPECT_EQ(copy.payload_bytes, body.payload_bytes);
}

TEST(StoredWrite, KeepsAWrite) {
  const wire::Write write{.receive_msn = 0x1234,
                          .msn = 0x5678,
                          .timestamp = {0x9ABC, true},
                          .address = 0x0123'4567'89AB'CDEF,
                          .key = kMemoryKey,
                          .message_length = 0x8000'0000,
                          .immediate = task_of_address(0x0123'4567'89AB'CDEF)};
  expect_same<StoredWrite>(
      {wire::Packet{bth(wire::Opcode::kWriteLastImm), write}, 0x0123'4567'89AB'CDEF, 8192});
}

TEST(StoredWrite, OnlyTheLastPacketHasAnImmediate) {
  const std::uint64_t address = task_address(7) + 4096;
  const wire::Write write{.address = address, .key = kMemoryKey, .message_length = 12'288};
  expect_same<StoredWrite>({wire::Packet{bth(wire::Opcode::kWriteMiddle), write}, address, 4096});
}

TEST(StoredBody, KeepsASack) {
  const wire::Sack sack{.mark = wire::PathMark::kAlwaysSkip,
                        .probe_answer = true,
                        .offset_or_probe_id = 0xBEEF,
                        .entropy = 0x1234'5678,
                        .source_context = 0x1111,
                        .destination_context = 0xCDEF,
                        .cumulative = Psn(0xFEDCBA),
                        .cc_type = 0xF,
                        .window_units = 255,
                        .bitmap_offset = -5,
                        .bitmap = 0x8000'0000'0000'0001,
                        .timestamp_ticks = 0x7777,
                        .out_of_order_count = 0x7FFF,
                        .restore_window = true,
                        .window_penalty = 127,
                        .received_units = 0xFF'FFFF};
  expect_same({wire::Packet{bth(wire::Opcode::kSack), sack}, 0, 0});
}

TEST(StoredBody, KeepsTheOtherAnswersAndProbes) {
  expect_same({wire::Packet{bth(wire::Opcode::kAck), wire::Ack{0x1F, 0xABCDEF}}, 0, 0});
  expect_same({wire::Packet{bth(wire::Opcode::kNack),
                            wire::Nack{.reason = wire::NackReason::kTrimmedLastHop,
                                       .entropy = 7,
                                       .psn = Psn(9),
                                       .timestamp_ticks = 3}},
               0, 0});
  expect_same({wire::Packet{bth(wire::Opcode::kProbe), wire::Probe{.probe_id = 0x8001}}, 0, 0});
  expect_same(
      {wire::Packet{bth(wire::Opcode::kEndpointRequest),
                    wire::EndpointRequest{.op = wire::EndpointOp::kEvProbe, .port_status = 0xFFFF}},
       0, 0});
  expect_same({wire::Packet{bth(wire::Opcode::kEndpointResponse),
                            wire::EndpointResponse{.timestamp_ticks = 5}},
               0, 0});
}

TEST(StoredBody, KeepsPacketsOfTheBaseline) {
  const RocePacket roce{.kind = RocePacket::Kind::kNak,
                        .last = true,
                        .connection = 77,
                        .psn = 0xFFFF'FFFF,
                        .payload_bytes = 4096};
  const PacketBody copy = StoredBody({roce, 0x0123'4567'89AB'CDEF, 4096}).expand();
  const auto& back = std::get<RocePacket>(copy.packet);
  EXPECT_EQ(back.kind, roce.kind);
  EXPECT_TRUE(back.last);
  EXPECT_EQ(back.connection, roce.connection);
  EXPECT_EQ(back.psn, roce.psn);
  EXPECT_EQ(copy.local_address, 0x0123'4567'89AB'CDEF);
  EXPECT_EQ(copy.payload_bytes, 4096u);
}

TEST(PacketHead, KeepsArrivalTimesOfHours) {
  PacketHead head;
  for (const Time at : {Time{0}, Time{0x1234'5678}, Time{1} << 47, (Time{1} << 56) - 1}) {
    head.set_arrives_at(at);
    EXPECT_EQ(head.arrives_at(), at);
  }
}

TEST(PacketPool, KeepsWritesAndOthersApart) {
  PacketPool pool;
  const std::uint64_t address = task_address(3);
  const wire::Write write{.address = address, .key = kMemoryKey, .message_length = 64};
  const PacketId data =
      pool.take({wire::Packet{bth(wire::Opcode::kWriteOnly), write}, address, 64});
  const PacketId answer = pool.take({wire::Packet{bth(wire::Opcode::kAck), wire::Ack{}}, 0, 0});
  pool.head(data).bytes = 1;
  pool.head(answer).bytes = 2;
  EXPECT_EQ(pool.head(data).bytes, 1);
  EXPECT_EQ(pool.body(data).payload_bytes, 64u);
  EXPECT_EQ(std::get<wire::Packet>(pool.body(answer).packet).bth.opcode, wire::Opcode::kAck);
  pool.give_back(data);
  EXPECT_EQ(pool.take({wire::Packet{bth(wire::Opcode::kWriteOnly), write}, address, 64}), data);
  EXPECT_EQ(pool.head(data).bytes, 0);
}

}  // namespace
}  // namespace mrc::sim
