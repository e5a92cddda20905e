// A simulation as a stream: samples it at intervals that grow with its length, and films packets.
//
// The first kFramesPerEpoch frames come every `period`; then the interval doubles, and so on, so
// that a run of any length has a bounded number of frames, and none has to be taken back when they
// are shown while the simulation runs. An epoch also ends when its lines have kEpochBytes.
//
// Looking changes nothing about the run. Lives at least as long as the run; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/packet_watch.h"
#include "sim/simulation.h"
#include "view/stream.h"

namespace mrc::view {

struct SimSourceOptions {
  std::string title;
  std::string command;
  bool live = false;
  bool acts = false;
  sim::Time period = 1'000'000;
  // Packets are filmed from the start and again from the first fault, until each half is used up.
  std::uint64_t filmed_hops = 40'000;
};

class SimSource final : public sim::PacketWatch {
 public:
  static constexpr unsigned kFramesPerEpoch = 512;
  static constexpr std::size_t kEpochBytes = std::size_t{4} << 20;
  // What hosts think of their paths: of fabrics up to this size, when it changes, and so often.
  static constexpr std::uint32_t kMaxTellingHosts = 256;
  static constexpr unsigned kFramesPerReport = 64;
  static constexpr std::size_t kMaxSenders = 8;  // of a host

  // Before the simulation runs. The header goes to `sink` at once.
  SimSource(sim::Simulation& simulation, SimSourceOptions options, LineSink sink);

  const Geometry& geometry() const { return geometry_; }
  // From now on, so many packet moves more; for a page that slows down to single packets.
  void film(std::uint64_t moves) { moves_left_ = moves; }
  // After the run: the last frame and the end line.
  void finish(const sim::SimResult& result);

 private:
  void on_queued(sim::Time, sim::PacketId) override {}
  void on_started(sim::Time at, fabric::LinkId link, sim::PacketId packet) override;
  void on_lost(sim::Time now, sim::PacketId packet, sim::LossCause cause) override;
  void on_exchanged(sim::Time, sim::PacketId, sim::PacketId) override {}

  sim::Time on_sample(sim::Time now);
  void tell(sim::Time now, const sim::SimResult& result);
  void look_at_links(sim::Time now);
  void look_at_hosts();
  void tell_senders(Nanoseconds now);
  void look_at_flows(const sim::SimResult& result);
  void look_at_faults(Nanoseconds now);
  void look_at_planes(const sim::SimResult& result);
  PacketMove move_of(sim::Time at, fabric::LinkId link, sim::PacketId packet);
  void keep(const PacketMove& move);
  void send(std::string line);

  sim::Simulation& simulation_;
  LineSink sink_;
  Geometry geometry_;
  StreamWriter writer_;
  Frame frame_;                             // the one under way
  std::vector<std::uint64_t> lane_bytes_;   // that left since the frame before
  std::vector<std::uint64_t> plane_bytes_;  // that were placed until the frame before
  std::vector<std::uint32_t> links_down_;   // by lane, scratch
  std::vector<sim::HostGauges> gauges_;     // of each host, now
  std::vector<sim::HostGauges> told_;       // at its last report
  std::vector<sim::TaskId> open_;           // transfers that have not ended
  std::vector<PacketMove> moves_;           // not yet sent
  std::uint64_t moves_left_ = 0;
  std::uint64_t moves_at_fault_ = 0;  // kept for the first fault
  sim::Time period_ = 0;
  unsigned frames_ = 0;    // of this epoch
  std::size_t bytes_ = 0;  // likewise
};

}  // namespace mrc::view
