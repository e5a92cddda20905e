// Every packet type in every queue pair state: a table of what happens to it, what is answered and
// which state follows. Nothing a peer sends may crash the engine, land outside a region, or move a
// queue pair to another state unless the table says so.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/endpoint.h"
#include "core/rtt.h"
#include "support/engine_driver.h"

namespace mrc::test {
namespace {

using core::QpState;
using wire::Opcode;

constexpr QpNumber kQp{100};
constexpr QpNumber kPeerQp{200};
constexpr auto kContext = static_cast<std::uint16_t>(kQp);
constexpr auto kPeerContext = static_cast<std::uint16_t>(kPeerQp);
constexpr Address kPeer{0xFD00, 1};
constexpr Address kStranger{0xFD00, 99};
constexpr std::uint64_t kRegionBase = 0x10000;
constexpr std::uint64_t kRegionLength = 0x2000;
constexpr std::uint32_t kMtu = 1024;
constexpr std::uint32_t kReceivePsn = 100;
constexpr std::uint32_t kSendPsn = 500;
constexpr TimeNs kSentAt = kMicrosecondNs;

// Where a packet goes: a queue pair in some state, or a number that is none.
enum class Target : std::uint8_t {
  kReset,
  kInit,
  kRtr,
  kRts,     // nothing in flight
  kFlight,  // RTS with one write, PSN 500, in flight
  kError,
  kDestroyed,
  kNumber0,
  kNumber1,
  kEndpoint,  // number 2
  kCount,
};
constexpr std::size_t kTargetCount = static_cast<std::size_t>(Target::kCount);
constexpr const char* kTargetNames[kTargetCount] = {
    "RESET", "INIT",      "RTR",      "RTS",      "RTS with a packet in flight",
    "ERROR", "destroyed", "number 0", "number 1", "number 2"};

// What became of a packet. `answers` names the packets that leave at once, in any order: one letter
// each, S SACK, A transport ACK, N transport NAK, K NACK, R endpoint response, E endpoint request,
// W data.
struct Cell {
  DropReason drop;
  const char* answers = "";
  bool fails = false;  // the queue pair goes to ERROR
};

char letter_of(const wire::Packet& packet) {
  switch (packet.bth.opcode) {
    case Opcode::kSack:
      return 'S';
    case Opcode::kAck:
      return std::get<wire::Ack>(packet.body).syndrome == wire::kSyndromeAck ? 'A' : 'N';
    case Opcode::kNack:
      return 'K';
    case Opcode::kProbe:
      return 'P';
    case Opcode::kEndpointRequest:
      return 'E';
    case Opcode::kEndpointResponse:
      return 'R';
    default:
      return 'W';
  }
}

// One row of the table.
struct Row {
  const char* name;
  wire::Packet packet;
  std::uint32_t payload_length = 0;
  core::TrimState trim = core::TrimState::kWhole;
  core::CallerRefusal refusal = core::CallerRefusal::kNone;
  std::array<Cell, kTargetCount> cells;
};

// --- Packets ---

wire::Packet write(Opcode opcode, std::uint32_t position, std::uint32_t message_length) {
  wire::Write body;
  body.address = kRegionBase + std::uint64_t{position} * kMtu;
  body.message_length = message_length;
  body.immediate = wire::has_immediate(opcode) ? 7 : 0;
  return {.bth = {.opcode = opcode, .has_timestamp = true, .psn = Psn(kReceivePsn + position)},
          .body = body};
}

wire::Packet ack(std::uint8_t syndrome, std::uint32_t msn) {
  return {.bth = {.opcode = Opcode::kAck, .psn = Psn(kSendPsn)},
          .body = wire::Ack{.syndrome = syndrome, .msn = msn}};
}

wire::Packet sack(std::uint32_t cumulative) {
  return {.bth = {.opcode = Opcode::kSack, .psn = Psn(cumulative)},
          .body = wire::Sack{.source_context = kPeerContext,
                             .destination_context = kContext,
                             .cumulative = Psn(cumulative),
                             .bitmap_offset = 1}};
}

wire::Packet probe_answer() {
  wire::Packet packet = sack(kSendPsn - 1);
  std::get<wire::Sack>(packet.body).probe_answer = true;
  std::get<wire::Sack>(packet.body).offset_or_probe_id = 0x7777;
  return packet;
}

wire::Packet nack(wire::NackReason reason) {
  return {.bth = {.opcode = Opcode::kNack, .psn = Psn(kSendPsn)},
          .body = wire::Nack{.reason = reason,
                             .source_context = kPeerContext,
                             .destination_context = kContext,
                             .psn = Psn(kSendPsn),
                             .timestamp_ticks = core::ticks_at(kSentAt)}};
}

wire::Packet probe() {
  return {.bth = {.opcode = Opcode::kProbe},
          .body = wire::Probe{
              .probe_id = 9, .source_context = kPeerContext, .destination_context = kContext}};
}

wire::Packet request(wire::EndpointOp op) {
  return {.bth = {.opcode = Opcode::kEndpointRequest, .psn = Psn(5)},
          .body = wire::EndpointRequest{.op = op, .port_status = 0b11}};
}

wire::Packet response(wire::EndpointOp op) {
  return {.bth = {.opcode = Opcode::kEndpointResponse, .psn = Psn(5)},
          .body = wire::EndpointResponse{.op = op}};
}

// --- The table ---

constexpr Cell kUnknown{DropReason::kUnknownQp};
constexpr Cell kNotReady{DropReason::kQpNotReady};
constexpr Cell kStale{DropReason::kStaleFeedback};

// Packets of a queue pair: nothing before RTR, nothing in ERROR, nobody at the reserved numbers.
// The cells are those of RTR, RTS and RTS with a packet in flight; `error` that of ERROR.
constexpr std::array<Cell, kTargetCount> at_qp(Cell rtr, Cell rts, Cell flight,
                                               Cell error = kNotReady) {
  return {kNotReady, kNotReady, rtr, rts, flight, error, kUnknown, kUnknown, kUnknown, kUnknown};
}
// What answers our own packets: nothing in RTR, where none was sent.
constexpr std::array<Cell, kTargetCount> feedback(Cell rts, Cell flight) {
  return at_qp(kNotReady, rts, flight, kNotReady);
}
// Data: the same in RTR and RTS. In ERROR the sender is told that nothing will come of it.
constexpr std::array<Cell, kTargetCount> data(Cell cell) {
  return at_qp(cell, cell, cell, {DropReason::kQpNotReady, "K"});
}
// Endpoint operations: only at number 2. A queue pair has no use for them in any state.
constexpr std::array<Cell, kTargetCount> at_endpoint(Cell cell) {
  return {kNotReady, kNotReady, kNotReady, kUnknown, kUnknown,
          kNotReady, kUnknown,  kUnknown,  kUnknown, cell};
}

Row plain(const char* name, const wire::Packet& packet, std::uint32_t payload_length,
          const std::array<Cell, kTargetCount>& cells) {
  return {.name = name, .packet = packet, .payload_length = payload_length, .cells = cells};
}

std::vector<Row> data_rows() {
  using core::CallerRefusal;
  using core::TrimState;
  using enum DropReason;
  constexpr std::uint32_t kTwo = kMtu + 100;
  constexpr std::uint32_t kThree = 2 * kMtu + 100;
  const wire::Packet only = write(Opcode::kWriteOnly, 0, 64);
  const wire::Packet cut = write(Opcode::kWriteOnly, 0, 0);
  std::vector<Row> rows = {
      plain("First", write(Opcode::kWriteFirst, 0, kThree), kMtu, data({kNone, "S"})),
      plain("Middle", write(Opcode::kWriteMiddle, 1, kThree), kMtu, data({kNone, "S"})),
      plain("Last", write(Opcode::kWriteLast, 2, kThree), 100, data({kNone, "S"})),
      plain("Last, imm", write(Opcode::kWriteLastImm, 1, kTwo), 100, data({kNone, "S"})),
      plain("Only", only, 64, data({kNone, "SA"})),
      plain("Only, imm", write(Opcode::kWriteOnlyImm, 0, 64), 64, data({kNone, "SA"})),
      plain("Only, trimmed", cut, 0, data({kTrimmed, "K"})),
      plain("Only, trimmed at the last hop", cut, 0, data({kTrimmed, "K"})),
      plain("Only, no buffer", only, 64, data({kNoBuffer, "K"})),
      plain("Only, no resource", only, 64, data({kNoBuffer, "K"})),
  };
  rows[6].trim = TrimState::kTrimmed;
  rows[7].trim = TrimState::kTrimmedLastHop;
  rows[8].refusal = CallerRefusal::kNoPacketBuffer;
  rows[9].refusal = CallerRefusal::kNoResource;
  return rows;
}

std::vector<Row> control_rows() {
  using wire::EndpointOp;
  using wire::NackReason;
  using enum DropReason;
  constexpr Cell kUsed{kNone};
  constexpr Cell kFatal{kNone, "", true};
  constexpr Cell kNobodyAsked{kUnknownProbe};
  return {
      plain("ACK", ack(wire::kSyndromeAck, 1), 0, feedback(kStale, kUsed)),
      plain("NAK", ack(wire::kSyndromeNakRemoteAccess, 0), 0, feedback(kStale, {kUnproven, "W"})),
      plain("SACK", sack(kSendPsn), 0, feedback(kStale, kUsed)),
      plain("answer to a probe", probe_answer(), 0,
            at_qp(kNobodyAsked, kNobodyAsked, kNobodyAsked, kNotReady)),
      plain("NACK", nack(NackReason::kTrimmedLastHop), 0, feedback(kStale, {kNone, "W"})),
      plain("fatal NACK", nack(NackReason::kUnexpectedEvent), 0, feedback(kStale, kFatal)),
      plain("probe", probe(), 0,
            at_qp({kNone, "S"}, {kNone, "S"}, {kNone, "S"}, {DropReason::kQpNotReady, "K"})),
      plain("port status", request(EndpointOp::kPortStatusUpdate), 0, at_endpoint({kNone, "R"})),
      plain("EV probe", request(EndpointOp::kEvProbe), 0, at_endpoint({kNone, "R"})),
      // Somebody has spoken in our name: we say what is so.
      plain("answer to a port status", response(EndpointOp::kPortStatusUpdate), 0,
            at_endpoint({kNone, "E"})),
      plain("answer to an EV probe", response(EndpointOp::kEvProbe), 0, at_endpoint(kNobodyAsked)),
  };
}

std::vector<Row> table() {
  std::vector<Row> rows = data_rows();
  const std::vector<Row> control = control_rows();
  rows.insert(rows.end(), control.begin(), control.end());
  return rows;
}

// --- The engine in a given state ---

struct Outcome {
  core::RxResult result;
  std::string answers;
};

class Subject : public EngineWorld {
 public:
  explicit Subject(Target target) : target_(target) {
    const core::EvEntry entries[] = {{.entropy = 0x1000, .port = PortId{1}},
                                     {.entropy = 0x1001, .port = PortId{2}}};
    profile_ = core::EvProfile::create(entries).value();
    core::EndpointConfig config;
    config.address = {0xFD00, 0x100};
    config.port_count = 2;
    if (!driver_.start(config).ok()) std::abort();
    const core::MemoryRegion region{
        .address = kRegionBase, .length = kRegionLength, .domain = {}, .remote_write = true};
    SeededKeys keys(7);
    key_ = endpoint().register_memory(region, keys).value();
    bring_up();
  }

  core::Endpoint& endpoint() { return driver_.engine(); }
  QpState state() const {
    const auto status = driver_.engine().query_qp(kQp);
    return status.ok() ? status.value().state : QpState::kReset;
  }

  // Feeds the packet of a row, addressed to the target, and collects what leaves at once.
  Outcome feed(const Row& row, Address source, PortId port) {
    const wire::Packet packet = address(row.packet);
    const core::Arrival arrival = arrive(row, source, port);
    Outcome outcome;
    now_ += kMicrosecondNs;
    driver_.deliver(now_, arrival, packet,
                    [&](const core::RxResult& result) { outcome.result = result; });
    outcome.answers = answers();
    return outcome;
  }
  std::string feed_corrupt(const Row& row) {
    driver_.deliver_corrupt(now_, arrive(row, kPeer, PortId{1}), address(row.packet));
    return answers();
  }

  // Lets every timer of the next while run; nothing but a crash can go wrong here.
  void idle(DurationNs duration) {
    const TimeNs end = now_ + duration;
    while (driver_.step(now_, end)) {
    }
  }

  // For the driver.
  PortMask free_ports() const { return PortMask::first(2); }
  void send(const core::TxPacket& tx, PortMask) {
    letters_.insert(letter_of(tx.packet));
    if (wire::is_write(tx.packet.bth.opcode)) sent_entropy_ = tx.entropy;
  }

 private:
  void bring_up() {
    ASSERT_TRUE(endpoint().create_qp({.number = kQp, .domain = {}}).ok());
    if (target_ == Target::kReset) return;
    core::QpInit init;
    init.ev_profile = &profile_;
    init.cc.algorithm = core::CcAlgorithm::kNone;
    ASSERT_TRUE(endpoint().init_qp(kQp, init).ok());
    ASSERT_TRUE(endpoint().post_receive(kQp, {.id = 1}).ok());
    if (target_ == Target::kInit) return;
    core::QpReadyToReceive rtr;
    rtr.remote = kPeer;
    rtr.remote_qp = kPeerQp;
    rtr.first_psn = Psn(kReceivePsn);
    rtr.path_mtu = kMtu;
    ASSERT_TRUE(endpoint().ready_to_receive(kQp, rtr).ok());
    if (target_ == Target::kRtr) return;
    ASSERT_TRUE(endpoint().ready_to_send(now_, kQp, {.first_psn = Psn(kSendPsn)}).ok());
    if (target_ == Target::kFlight) {
      ASSERT_TRUE(endpoint().post_send(now_, kQp, {.id = 1, .length = 64}).ok());
      ASSERT_EQ(answers(), "W");
    }
    if (target_ == Target::kError) {
      ASSERT_TRUE(endpoint().fail_qp(now_, kQp).ok());
    }
    if (target_ == Target::kDestroyed) {
      ASSERT_TRUE(endpoint().destroy_qp(kQp).ok());
    }
  }

  wire::Packet address(wire::Packet packet) const {
    QpNumber number = kQp;
    if (target_ == Target::kNumber0) number = QpNumber{0};
    if (target_ == Target::kNumber1) number = QpNumber{1};
    if (target_ == Target::kEndpoint) number = kEndpointQp;
    packet.bth.destination = number;
    if (auto* body = std::get_if<wire::Write>(&packet.body)) body->key = key_;
    if (auto* body = std::get_if<wire::Sack>(&packet.body)) body->entropy = sent_entropy_;
    if (auto* body = std::get_if<wire::Nack>(&packet.body)) body->entropy = sent_entropy_;
    return packet;
  }

  static core::Arrival arrive(const Row& row, Address source, PortId port) {
    return {.source = source,
            .port = port,
            .entropy = 0x7000,
            .trim = row.trim,
            .refusal = row.refusal,
            .payload_length = row.payload_length};
  }

  // What leaves now.
  std::string answers() {
    letters_.clear();
    driver_.pump(now_);
    return {letters_.begin(), letters_.end()};
  }

  Target target_;
  core::EvProfile profile_;
  EngineDriver<Subject> driver_{*this};
  Rkey key_{};
  TimeNs now_ = kSentAt;
  std::multiset<char> letters_;
  std::uint32_t sent_entropy_ = 0;
};

std::string sorted(const char* letters) {
  const std::string text = letters;
  const std::multiset<char> set(text.begin(), text.end());
  return {set.begin(), set.end()};
}

void expect_inside_region(const core::Placement& placement) {
  if (placement.length == 0) return;
  EXPECT_GE(placement.address, kRegionBase);
  EXPECT_LE(placement.address + placement.length, kRegionBase + kRegionLength);
}

// Feeds one packet in one state and compares everything with the cell.
void check(const Row& row, Target target, Address source, PortId port, const Cell& cell) {
  SCOPED_TRACE(std::string(row.name) + " at " + kTargetNames[static_cast<std::size_t>(target)]);
  Subject subject(target);
  const QpState before = subject.state();
  const auto drop_index = static_cast<std::size_t>(cell.drop);
  const std::uint64_t count = subject.endpoint().counters().drops[drop_index];
  const Outcome outcome = subject.feed(row, source, port);
  EXPECT_STREQ(drop_reason_name(outcome.result.drop), drop_reason_name(cell.drop));
  EXPECT_EQ(subject.endpoint().counters().drops[drop_index], count + 1);
  EXPECT_EQ(outcome.answers, sorted(cell.answers));
  EXPECT_EQ(subject.state(), cell.fails ? QpState::kError : before);
  if (cell.drop != DropReason::kNone) {
    EXPECT_EQ(outcome.result.placement.length, 0U);
  }
  expect_inside_region(outcome.result.placement);
  subject.idle(kMillisecondNs);
  EXPECT_EQ(subject.state(), cell.fails ? QpState::kError : before);
}

template <typename Check>
void for_each_cell(Check check_cell) {
  for (const Row& row : table()) {
    for (std::size_t i = 0; i < kTargetCount; ++i) {
      check_cell(row, static_cast<Target>(i), row.cells[i]);
    }
  }
}

// --- Tests ---

TEST(StateTable, EveryOpcodeHasARow) {
  std::set<Opcode> opcodes;
  for (const Row& row : table())
    opcodes.insert(row.packet.bth.opcode);
  EXPECT_EQ(opcodes.size(), 12U);
}

TEST(StateTable, PacketsOfThePeerFollowTheTable) {
  for_each_cell([](const Row& row, Target target, const Cell& cell) {
    check(row, target, kPeer, PortId{2}, cell);
  });
}

TEST(StateTable, PortsThatDoNotExistAreRefusedFirst) {
  for (const PortId port : {PortId{0}, PortId{3}, PortId{17}, PortId{255}}) {
    for_each_cell([port](const Row& row, Target target, const Cell&) {
      check(row, target, kPeer, port, {DropReason::kBadPort});
    });
  }
}

// A stranger may send EV probes, which need no queue pair, and nothing else.
TEST(StateTable, StrangersReachNoQueuePair) {
  for_each_cell([](const Row& row, Target target, const Cell& cell) {
    Cell expected = cell;
    const bool connected = target == Target::kRtr || target == Target::kRts ||
                           target == Target::kFlight || target == Target::kError;
    const auto* request_body = std::get_if<wire::EndpointRequest>(&row.packet.body);
    const bool port_status =
        request_body != nullptr && request_body->op == wire::EndpointOp::kPortStatusUpdate;
    if (connected || (port_status && target == Target::kEndpoint)) {
      expected = {DropReason::kWrongSource};
    }
    const auto* answer = std::get_if<wire::EndpointResponse>(&row.packet.body);
    const bool for_endpoint = answer != nullptr && target == Target::kEndpoint;
    if (for_endpoint) expected = {DropReason::kUnknownProbe};
    check(row, target, kStranger, PortId{1}, expected);
  });
}

TEST(StateTable, CorruptPacketsAreCountedAndNothingElse) {
  for_each_cell([](const Row& row, Target target, const Cell&) {
    SCOPED_TRACE(std::string(row.name) + " at " + kTargetNames[static_cast<std::size_t>(target)]);
    Subject subject(target);
    const QpState before = subject.state();
    EXPECT_EQ(subject.feed_corrupt(row), "");
    const auto index = static_cast<std::size_t>(DropReason::kBadIcrc);
    EXPECT_EQ(subject.endpoint().counters().drops[index], 1U);
    subject.idle(kMillisecondNs);
    EXPECT_EQ(subject.state(), before);
  });
}

// The whole table twice in one life, in every order of two: no pair of packets breaks the engine.
TEST(StateTable, AnyTwoPacketsInARowAreSurvived) {
  const std::vector<Row> rows = table();
  for (std::size_t target = 0; target < kTargetCount; ++target) {
    for (const Row& first : rows) {
      for (const Row& second : rows) {
        Subject subject(static_cast<Target>(target));
        expect_inside_region(subject.feed(first, kPeer, PortId{1}).result.placement);
        expect_inside_region(subject.feed(second, kPeer, PortId{2}).result.placement);
        subject.idle(100 * kMicrosecondNs);
      }
    }
  }
}

TEST(StateTable, PlacementsStayInsideTheRegionForAnyAddressAndLength) {
  Prng prng(11);
  const std::vector<Row> rows = data_rows();
  unsigned placed = 0;
  for (int i = 0; i < 20'000; ++i) {
    Row row = rows[prng.below(6)];
    auto& body = std::get<wire::Write>(row.packet.body);
    const std::uint64_t near = kRegionBase + prng.below(0x3000) - 0x800;
    body.address = prng.below(4) == 0 ? prng.next64() : near;
    row.payload_length = prng.below(4) == 0 ? prng.next32() : prng.below(kMtu + 8);
    body.message_length = prng.below(2) == 0 ? row.payload_length : body.message_length;
    Subject subject(Target::kRtr);
    const core::Placement placement = subject.feed(row, kPeer, PortId{1}).result.placement;
    expect_inside_region(placement);
    placed += placement.length > 0 ? 1 : 0;
  }
  EXPECT_GT(placed, 1000U);  // the addresses and lengths are not all absurd
}

}  // namespace
}  // namespace mrc::test
