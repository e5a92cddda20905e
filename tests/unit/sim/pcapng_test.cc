#include "sim/pcapng.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "fabric/input_error.h"
#include "sim/pcapng_capture.h"
#include "sim/pcapng_frame.h"
#include "sim/simulation.h"
#include "wire/frame.h"

namespace mrc::sim {
namespace {

struct Block {
  std::uint32_t type = 0;
  std::string body;
};

std::uint32_t word(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i)
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes.at(at + i))) << (8 * i);
  return value;
}

std::vector<Block> blocks_of(const std::string& file) {
  std::vector<Block> blocks;
  for (std::size_t at = 0; at < file.size();) {
    const std::uint32_t length = word(file, at + 4);
    EXPECT_EQ(length % 4, 0u);
    EXPECT_EQ(word(file, at + length - 4), length);
    blocks.push_back({word(file, at), file.substr(at + 8, length - 12)});
    at += length;
  }
  return blocks;
}

TEST(Pcapng, WritesBlocksThatSayTheirLengthTwice) {
  std::ostringstream out;
  PcapngWriter writer(out);
  EXPECT_EQ(writer.add_interface("a", 100), 0u);
  EXPECT_EQ(writer.add_interface("longer name", 0), 1u);
  const std::vector<std::byte> bytes(5, std::byte{0xAB});
  writer.add_packet(1, 0x1'0000'0002 * fabric::kPicosecondsPerNs + 999, bytes, 99);
  const std::vector<Block> blocks = blocks_of(out.str());
  ASSERT_EQ(blocks.size(), 4u);
  EXPECT_EQ(blocks[0].type, 0x0A0D'0D0Au);
  EXPECT_EQ(word(blocks[0].body, 0), 0x1A2B'3C4Du);
  EXPECT_EQ(blocks[1].type, 1u);
  EXPECT_EQ(word(blocks[1].body, 4), 100u);
  EXPECT_EQ(blocks[3].type, 6u);
  EXPECT_EQ(word(blocks[3].body, 0), 1u);
  EXPECT_EQ(word(blocks[3].body, 4), 1u);
  EXPECT_EQ(word(blocks[3].body, 8), 2u);
  EXPECT_EQ(word(blocks[3].body, 12), 5u);
  EXPECT_EQ(word(blocks[3].body, 16), 99u);
  EXPECT_EQ(blocks[3].body.substr(20), std::string(5, '\xAB') + std::string(3, '\0'));
}

SimConfig capture_config() {
  SimConfig config;
  config.topology = {.planes = 2, .hosts = 16, .t0 = 4, .t1 = 4};
  config.workload.name = "incast";
  config.workload.senders = 12;
  config.workload.bytes = 300'001;
  return config;
}

// Builds the frame of every packet on every link and holds it against what the simulator says.
class FrameCheck : public PacketTap {
 public:
  FrameCheck(const SimConfig& config, const fabric::Routing& routing)
      : config_(config), routing_(routing) {}

  void on_packet(Time, fabric::LinkId link, const PacketHead& head,
                 const PacketBody& body) override {
    const std::vector<std::byte> frame = frame_on_link(config_, routing_, link, head, body);
    constexpr std::size_t kCheckSequence = 4;
    EXPECT_EQ(frame.size() + kCheckSequence, head.bytes);
    ++frames_;
    if (config_.transport == Transport::kRoce) return;
    wire::FrameHeader header;
    wire::Packet packet;
    std::span<const std::byte> payload;
    const DropReason reason = wire::parse_frame({}, frame, header, packet, payload);
    if (head.corrupt) {
      const bool whole = head.trim == PacketTrim::kWhole;
      EXPECT_EQ(reason == DropReason::kBadIcrc, whole);  // There is none behind a trimmed packet.
      ++corrupt_;
      return;
    }
    ASSERT_EQ(reason, DropReason::kNone);
    check(link, head, body, header, packet, payload);
  }

  std::uint64_t frames_ = 0;
  std::uint64_t corrupt_ = 0;
  std::uint64_t trimmed_ = 0;
  std::set<std::uint8_t> code_points_;
  std::set<unsigned> usids_left_;
  bool marked_ = false;

 private:
  void check(fabric::LinkId link, const PacketHead& head, const PacketBody& body,
             const wire::FrameHeader& header, const wire::Packet& packet,
             std::span<const std::byte> payload) {
    EXPECT_EQ(packet.bth.psn, std::get<wire::Packet>(body.packet).bth.psn);
    EXPECT_EQ(header.entropy, head.entropy);
    EXPECT_EQ(header.trim == wire::TrimMark::kNone, head.trim == PacketTrim::kWhole);
    EXPECT_EQ(header.ecn == wire::Ecn::kCe, head.congestion_experienced);
    trimmed_ += head.trim != PacketTrim::kWhole ? 1 : 0;
    marked_ = marked_ || head.congestion_experienced;
    code_points_.insert(header.dscp);
    const bool whole = head.trim == PacketTrim::kWhole;
    EXPECT_EQ(payload.size(), whole ? body.payload_bytes : 0);
    ASSERT_TRUE(header.srv6);
    // The switch at the far end finds its own number in front, a host its port's.
    const fabric::Node to = routing_.topology().describe(link).to;
    EXPECT_EQ(wire::active_usid(header.outer.carrier), routing_.usid_of(to));
    usids_left_.insert(wire::usid_count(header.outer.carrier));
  }

  const SimConfig& config_;
  const fabric::Routing& routing_;
};

TEST(PcapngFrame, IsWhatTheSimulatorSentOnEveryLink) {
  SimConfig config = capture_config();
  config.verify = true;
  config.faults = {"t0:1/t1:1/plane:0 corrupt 5% @0"};
  Simulation simulation(config);
  FrameCheck check(config, simulation.routing());
  for (std::uint32_t i = 0; i < simulation.topology().link_count(); ++i)
    simulation.tap(fabric::LinkId{i}, check);
  const SimResult result = simulation.run();
  EXPECT_TRUE(result.complete);
  EXPECT_GT(check.frames_, result.network.packet_hops);
  EXPECT_GT(check.corrupt_, 0u);
  EXPECT_GT(check.trimmed_, 0u);
  EXPECT_EQ(check.usids_left_, (std::set<unsigned>{1, 2, 3, 4}));
  const wire::DscpMap dscp;
  for (const std::uint8_t code_point : {dscp.control, dscp.trimmable, dscp.trimmed_last_hop})
    EXPECT_TRUE(check.code_points_.contains(code_point)) << unsigned{code_point};
}

TEST(PcapngFrame, OfRoceHasTheSizeOnTheWire) {
  SimConfig config = capture_config();
  config.transport = Transport::kRoce;
  Simulation simulation(config);
  FrameCheck check(config, simulation.routing());
  for (std::uint32_t i = 0; i < simulation.topology().link_count(); ++i)
    simulation.tap(fabric::LinkId{i}, check);
  simulation.run();
  EXPECT_GT(check.frames_, 0u);
}

TEST(Capture, IsInTheOrderOfTimeAndCutToSize) {
  const SimConfig config = capture_config();
  Simulation simulation(config);
  CaptureOptions options;
  options.links = parse_links("t0:1/t1:*/plane:1", simulation.topology());
  options.snap_bytes = 100;
  ASSERT_EQ(options.links.size(), 8u);
  Capture capture(config, simulation.routing(), options);
  for (const fabric::LinkId link : capture.links())
    simulation.tap(link, capture);
  simulation.run();
  std::ostringstream out;
  capture.write(out);
  std::uint64_t packets = 0;
  std::uint64_t last = 0;
  std::map<std::uint32_t, std::uint64_t> by_interface;
  for (const Block& block : blocks_of(out.str())) {
    if (block.type != 6) continue;
    ++packets;
    ++by_interface[word(block.body, 0)];
    const std::uint64_t at = std::uint64_t{word(block.body, 4)} << 32 | word(block.body, 8);
    EXPECT_GE(at, last);
    last = at;
    EXPECT_LE(word(block.body, 12), 100u);
    EXPECT_GE(word(block.body, 16), word(block.body, 12));
  }
  EXPECT_EQ(packets, capture.packets());
  EXPECT_EQ(by_interface.size(), 8u);
}

TEST(Capture, StopsAtItsLimitAndCountsTheRest) {
  const SimConfig config = capture_config();
  Simulation simulation(config);
  CaptureOptions options;
  options.links = parse_links("host:0/plane:0", simulation.topology());
  options.max_packets = 10;
  Capture capture(config, simulation.routing(), options);
  for (const fabric::LinkId link : capture.links())
    simulation.tap(link, capture);
  simulation.run();
  EXPECT_EQ(capture.packets(), 10u);
  EXPECT_GT(capture.left_out(), 0u);
}

TEST(Capture, RefusesLinksThatDoNotExist) {
  const fabric::Topology topology(capture_config().topology);
  for (const char* text : {"", "t0:9/t1:0/plane:0", "t0:1/t0:2/plane:0", "cable 7", "t0:1 down @0"})
    EXPECT_THROW(parse_links(text, topology), fabric::InputError) << text;
}

}  // namespace
}  // namespace mrc::sim
