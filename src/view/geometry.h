// What of a fabric is drawn: rows of nodes and the cables between them, the same in every plane.
//
// A small fabric is drawn as it is. Of a large one neighbours are folded into one node: hosts of a
// T0 first, then T0s of a pod and T1s of a pod, until there is no more to draw than fits a screen.
// Cables between the same two nodes fold into one. Everything that is told about links is told per
// *lane*: one direction of one drawn cable.
//
// Lanes are numbered densely: 2 * (plane * cables_per_plane + cable), plus 1 for the way down.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/topology.h"
#include "view/json_line.h"

namespace mrc::view {

enum class LaneId : std::uint32_t {};
constexpr std::uint32_t index(LaneId lane) { return static_cast<std::uint32_t>(lane); }

// What may be drawn over all planes before neighbours are folded.
struct FoldLimits {
  std::uint32_t hosts = 1'024;
  std::uint32_t cables = 6'144;  // above T0
};

class Geometry {
 public:
  explicit Geometry(const fabric::Topology& topology, const FoldLimits& limits = {});

  struct Row {
    fabric::NodeKind kind = fabric::NodeKind::kHost;
    std::uint32_t count = 0;  // devices of a plane
    std::uint32_t fold = 1;   // devices in one drawn node
    std::uint32_t first = 0;  // number of its first node; nodes are counted through all rows
    std::uint32_t nodes() const { return (count + fold - 1) / fold; }
  };
  struct Cable {
    std::uint32_t lower = 0;  // nodes
    std::uint32_t upper = 0;
    std::uint32_t links = 0;  // per direction
    fabric::LinkTier tier = fabric::LinkTier::kHost;
  };

  const fabric::Topology& topology() const { return topology_; }
  unsigned planes() const { return topology_.planes(); }
  const std::vector<Row>& rows() const { return rows_; }        // hosts first
  const std::vector<Cable>& cables() const { return cables_; }  // of one plane
  std::uint32_t lane_count() const {
    return static_cast<std::uint32_t>(2 * cables_.size() * planes());
  }
  LaneId lane_of(fabric::LinkId link) const { return lanes_[fabric::index(link)]; }
  const Cable& cable_of(LaneId lane) const { return cables_[index(lane) / 2 % cables_.size()]; }
  // Of all links of a lane together.
  std::uint64_t bits_per_second(LaneId lane) const;

  // {"planes":4,"rows":[...],"cables":[...]}, see docs/view.md.
  void write(JsonLine& line) const;

 private:
  void choose_folds(const FoldLimits& limits);
  void find_cables();
  std::uint32_t node_of(const fabric::Node& node) const;

  fabric::Topology topology_;
  std::vector<Row> rows_;
  std::vector<Cable> cables_;
  std::vector<LaneId> lanes_;  // by link
};

}  // namespace mrc::view
