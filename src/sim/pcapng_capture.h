// Records what goes over chosen links and writes it as a capture.
#pragma once

#include <cstdint>
#include <ostream>
#include <vector>

#include "fabric/routing.h"
#include "sim/config.h"
#include "sim/packet_tap.h"

namespace mrc::sim {

struct CaptureOptions {
  std::vector<fabric::LinkId> links;
  std::uint32_t snap_bytes = 256;  // of each frame; 0 = all of it
  std::size_t max_packets = 1'000'000;
};

// "t0:3>t1:5/plane:1" and everything else that names links in a fault. Throws InputError.
std::vector<fabric::LinkId> parse_links(const std::string& text, const fabric::Topology& topology);

class Capture final : public PacketTap {
 public:
  // Everything must outlive the capture.
  Capture(const SimConfig& config, const fabric::Routing& routing, CaptureOptions options)
      : config_(config), routing_(routing), options_(std::move(options)) {}

  void on_packet(Time now, fabric::LinkId link, const PacketHead& head,
                 const PacketBody& body) override;

  const std::vector<fabric::LinkId>& links() const { return options_.links; }
  std::size_t packets() const { return records_.size(); }
  std::uint64_t left_out() const { return left_out_; }  // beyond max_packets
  // In the order of time, one interface per link.
  void write(std::ostream& out);

 private:
  struct Record {
    Time at = 0;
    fabric::LinkId link{};
    PacketHead head;
    PacketBody body;
  };

  const SimConfig& config_;
  const fabric::Routing& routing_;
  CaptureOptions options_;
  std::vector<Record> records_;
  std::uint64_t left_out_ = 0;
};

}  // namespace mrc::sim
