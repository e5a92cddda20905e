// Writes sample packets of every type.
//
//   wire_sample_writer corpus <folder>   seeds for the decoder targets, one folder each
//   wire_sample_writer pcap <file>       a capture of plain IPv4 and IPv6 frames; prints a line for
//                                        each with opcode, destination QP, PSN and pad count
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "unit/wire/frame_samples.h"

namespace {

namespace fs = std::filesystem;
namespace wire = mrc::wire;
namespace test = mrc::wire::test;
using test::Bytes;

void write_file(const fs::path& path, const Bytes& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  std::string text(bytes.size(), '\0');
  if (!bytes.empty()) std::memcpy(text.data(), bytes.data(), bytes.size());
  file << text;
}

std::string opcode_name(wire::Opcode opcode) {
  switch (opcode) {
    case wire::Opcode::kWriteFirst:
      return "write_first";
    case wire::Opcode::kWriteMiddle:
      return "write_middle";
    case wire::Opcode::kWriteLast:
      return "write_last";
    case wire::Opcode::kWriteLastImm:
      return "write_last_imm";
    case wire::Opcode::kWriteOnly:
      return "write_only";
    case wire::Opcode::kWriteOnlyImm:
      return "write_only_imm";
    case wire::Opcode::kAck:
      return "ack";
    case wire::Opcode::kEndpointRequest:
      return "endpoint_request";
    case wire::Opcode::kEndpointResponse:
      return "endpoint_response";
    case wire::Opcode::kSack:
      return "sack";
    case wire::Opcode::kNack:
      return "nack";
    case wire::Opcode::kProbe:
      return "probe";
  }
  return "unknown";
}

wire::Packet sample_packet(wire::Opcode opcode, std::uint32_t payload_length) {
  test::Random random(static_cast<std::uint64_t>(opcode));
  return test::random_packet(random, opcode, payload_length);
}

std::uint32_t sample_length(wire::Opcode opcode) {
  return wire::is_write(opcode) ? static_cast<std::uint32_t>(opcode) % 16 : 0;
}

Bytes with_choice(unsigned choice, const Bytes& bytes) {
  Bytes input{static_cast<std::byte>(choice)};
  input.insert(input.end(), bytes.begin(), bytes.end());
  return input;
}

Bytes text_bytes(std::string_view text) {
  Bytes bytes;
  for (const char c : text)
    bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

void write_frames(const fs::path& folder) {
  constexpr const char* kNames[] = {"ipv4", "ipv6", "srv6", "srv6_segment"};
  for (std::size_t i = 0; i < std::size(test::kAllEncapsulations); ++i) {
    const auto kind = test::kAllEncapsulations[i];
    for (const wire::Opcode opcode : test::kAllOpcodes) {
      const std::uint32_t length = sample_length(opcode);
      const bool ethernet = static_cast<unsigned>(opcode) % 2 == 0;
      const wire::FrameFormat format{.ethernet = ethernet};
      const Bytes frame =
          test::frame_bytes(format, test::frame_header(kind), sample_packet(opcode, length),
                            test::numbered_bytes(length));
      write_file(folder / (std::string(kNames[i]) + "_" + opcode_name(opcode)),
                 with_choice(ethernet ? 3 : 2, frame));
    }
    Bytes cut =
        test::frame_bytes({}, test::frame_header(kind),
                          sample_packet(wire::Opcode::kWriteFirst, 64), test::numbered_bytes(64));
    cut.resize(wire::trim_frame({}, cut, i % 2 == 0));
    write_file(folder / (std::string(kNames[i]) + "_trimmed"), with_choice(1, cut));
  }
}

void write_transports(const fs::path& folder) {
  for (const wire::Opcode opcode : test::kAllOpcodes) {
    const std::uint32_t length = sample_length(opcode);
    const Bytes bytes =
        test::transport_bytes(sample_packet(opcode, length), test::numbered_bytes(length));
    write_file(folder / "transport" / opcode_name(opcode), bytes);
    if (!wire::is_write(opcode)) continue;
    write_file(folder / "trimmed" / opcode_name(opcode), bytes);
    const std::size_t kept = wire::trimmed_length(sample_packet(opcode, length).bth.has_timestamp);
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(kept));
    write_file(folder / "trimmed" / (opcode_name(opcode) + "_cut"), cut);
  }
}

void write_srv6(const fs::path& folder) {
  const Bytes path = test::hex("fc000001100080001001010000000000");
  const Bytes segment = test::hex("fc000001123400000000000000000000 01");
  const auto join = [](Bytes a, const Bytes& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  const Bytes start = join(path, segment);
  int number = 0;
  for (const char* text :
       {"fc00:1:1000:8000:1001:100::", "::", "1::2", "1:2:3:4:5:6:7:8", "::ffff", "10.0.0.255",
        "1:2:3:4:5:6:7::", "2001:DB8::1:0:0:1", "1:2:3:4:5:6:7:8::"}) {
    write_file(folder / ("text_" + std::to_string(number++)), join(start, text_bytes(text)));
  }
  const Bytes full = test::hex("fc000001000100020003000400050006");
  write_file(folder / "full", join(full, segment));
  write_file(folder / "empty", Bytes{});
  write_file(folder / "routing_header",
             join(start, test::hex("2902040100000000 fc000001123400000000000000000000")));
}

void write_evs(const fs::path& folder) {
  const std::string open16 = "8f 00000000 0000ffff 00000000 00000000";
  const std::string fixed32 = "9f cafecafe 00000000 00000000 00000000";
  const std::string masked16 = "8f 00001000 00000f0f 00000001 000000ff";
  const std::string value = "f3b0425600000000000000000000000000000000000000000000000000000000";
  write_file(folder / "structured", test::hex("09 10 10 02" + open16 + open16 + value + value));
  write_file(folder / "masked", test::hex("09 10 10 02" + masked16 + masked16 + value + value));
  write_file(folder / "udp_port", test::hex("04 10 01" + open16 + value + value));
  write_file(folder / "srv6",
             test::hex("0e 20 10 10 03" + fixed32 + open16 + masked16 + value + value));
  write_file(folder / "srv6_subset", test::hex("0e 20 10 10 01" + fixed32 + value));
  write_file(folder / "segment", test::hex("0f 20 df 01 02" + fixed32 + open16 + value + value));
  write_file(folder / "too_wide", test::hex("0d 10 10 10 03" + open16 + open16 + open16 + value));
  write_file(folder / "empty", Bytes{});
}

void little_endian(Bytes& out, std::uint32_t value, unsigned width) {
  for (unsigned i = 0; i < width; ++i)
    out.push_back(static_cast<std::byte>(value >> (8 * i) & 0xFF));
}

void write_pcap(const fs::path& path) {
  Bytes out;
  little_endian(out, 0xA1B2C3D4, 4);
  little_endian(out, 2, 2);
  little_endian(out, 4, 2);
  little_endian(out, 0, 4);
  little_endian(out, 0, 4);
  little_endian(out, 65535, 4);
  little_endian(out, 1, 4);  // Ethernet
  std::uint32_t number = 0;
  for (const auto kind : {test::Encapsulation::kIpv4, test::Encapsulation::kIpv6}) {
    for (const wire::Opcode opcode : test::kAllOpcodes) {
      const std::uint32_t length = sample_length(opcode);
      const wire::Packet packet = sample_packet(opcode, length);
      const Bytes frame =
          test::frame_bytes({}, test::frame_header(kind), packet, test::numbered_bytes(length));
      const auto size = static_cast<std::uint32_t>(frame.size());
      for (const std::uint32_t word : {++number, 0u, size, size})
        little_endian(out, word, 4);
      out.insert(out.end(), frame.begin(), frame.end());
      std::uint32_t icrc = 0;
      for (std::size_t i = 4; i > 0; --i) {
        icrc = icrc << 8 | std::to_integer<std::uint32_t>(frame[frame.size() - i]);
      }
      std::printf("%u %u %u %u 0x%08x\n", static_cast<unsigned>(opcode),
                  static_cast<unsigned>(packet.bth.destination), packet.bth.psn.value(),
                  static_cast<unsigned>(packet.bth.pad), icrc);
    }
  }
  write_file(path, out);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 3 ? argv[1] : "";
  if (what == "corpus") {
    write_frames(fs::path(argv[2]) / "frame");
    write_transports(argv[2]);
    write_srv6(fs::path(argv[2]) / "srv6");
    write_evs(fs::path(argv[2]) / "ev");
    return 0;
  }
  if (what == "pcap") {
    write_pcap(argv[2]);
    return 0;
  }
  std::fprintf(stderr, "usage: wire_sample_writer corpus <folder> | pcap <file>\n");
  return 2;
}
