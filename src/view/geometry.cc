#include "view/geometry.h"

#include <algorithm>
#include <unordered_map>

namespace mrc::view {
namespace {

using fabric::LinkId;
using fabric::NodeKind;

// The smallest divisor of `count` above `fold` that is a multiple of it, so that no drawn node has
// members of two pods or racks; `count` when there is none.
std::uint32_t next_fold(std::uint32_t fold, std::uint32_t count) {
  for (std::uint32_t wider = 2 * fold; wider < count; wider += fold)
    if (count % wider == 0) return wider;
  return count;
}

std::uint64_t groups(std::uint32_t count, std::uint32_t fold) { return (count + fold - 1) / fold; }

bool leads_up(const fabric::Link& link) { return link.from.kind < link.to.kind; }

}  // namespace

Geometry::Geometry(const fabric::Topology& topology, const FoldLimits& limits)
    : topology_(topology) {
  const fabric::TopologySpec& spec = topology.spec();
  rows_ = {{NodeKind::kHost, spec.hosts}, {NodeKind::kT0, spec.t0}, {NodeKind::kT1, spec.t1}};
  if (topology.three_tier()) rows_.push_back({NodeKind::kT2, spec.t2});
  choose_folds(limits);
  std::uint32_t first = 0;
  for (Row& row : rows_) {
    row.first = first;
    first += row.nodes();
  }
  find_cables();
}

void Geometry::choose_folds(const FoldLimits& limits) {
  const fabric::TopologySpec& spec = topology_.spec();
  Row& hosts = rows_[0];
  Row& t0 = rows_[1];
  Row& t1 = rows_[2];
  if (std::uint64_t{spec.hosts} * spec.planes > limits.hosts) hosts.fold = topology_.hosts_per_t0();
  const std::uint32_t t0_limit = topology_.t0_per_pod();
  const std::uint32_t t1_limit = topology_.t1_per_pod();
  const auto too_many = [&] {
    std::uint64_t cables =
        groups(t0.count, t0.fold) * groups(t1_limit, t1.fold);  // of a T0 within its pod
    if (topology_.three_tier()) cables += groups(t1.count, t1.fold) * topology_.t2_per_group();
    return cables * spec.planes > limits.cables;
  };
  while (too_many() && (t0.fold < t0_limit || t1.fold < t1_limit)) {
    const bool t1_next = t1.fold < t1_limit && (t1.fold <= t0.fold || t0.fold >= t0_limit);
    Row& row = t1_next ? t1 : t0;
    row.fold = next_fold(row.fold, t1_next ? t1_limit : t0_limit);
  }
  // T2s fold with the group they stand in once the T1s do.
  if (topology_.three_tier() && t1.fold > 1) rows_[3].fold = topology_.t2_per_group();
  if (t0.fold > 1) hosts.fold = topology_.hosts_per_t0() * t0.fold;
}

std::uint32_t Geometry::node_of(const fabric::Node& node) const {
  const Row& row = rows_[static_cast<std::size_t>(node.kind)];
  return row.first + node.index / row.fold;
}

void Geometry::find_cables() {
  const std::uint32_t per_plane = topology_.link_count() / planes();
  std::unordered_map<std::uint64_t, std::uint32_t> known;  // by nodes
  std::vector<std::uint32_t> cable_of_link(per_plane);
  for (std::uint32_t i = 0; i < per_plane; ++i) {
    const fabric::Link link = topology_.describe(LinkId{i});
    const bool up = leads_up(link);
    const std::uint32_t lower = node_of(up ? link.from : link.to);
    const std::uint32_t upper = node_of(up ? link.to : link.from);
    const auto [place, is_new] = known.try_emplace(std::uint64_t{lower} << 32 | upper,
                                                   static_cast<std::uint32_t>(cables_.size()));
    if (is_new) cables_.push_back({.lower = lower, .upper = upper, .tier = link.tier});
    cables_[place->second].links += up ? 1 : 0;
    cable_of_link[i] = 2 * place->second + (up ? 0 : 1);
  }
  lanes_.reserve(topology_.link_count());
  for (unsigned plane = 0; plane < planes(); ++plane)
    for (const std::uint32_t lane : cable_of_link)
      lanes_.push_back(LaneId{static_cast<std::uint32_t>(2 * plane * cables_.size()) + lane});
}

std::uint64_t Geometry::bits_per_second(LaneId lane) const {
  const Cable& cable = cable_of(lane);
  return topology_.link_class(cable.tier).bits_per_second * cable.links;
}

void Geometry::write(JsonLine& line) const {
  line.open_object("geometry");
  line.number("planes", planes());
  line.open_list("rows");
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    line.open_object();
    line.text("kind", fabric::node_kind_name(row.kind));
    line.number("count", row.count);
    line.number("fold", row.fold);
    if (i + 1 < rows_.size()) {
      const fabric::LinkClass& up = topology_.link_class(static_cast<fabric::LinkTier>(i));
      line.decimal("gbps", static_cast<std::int64_t>(up.bits_per_second / 1'000'000));
      line.decimal("delay_ns", up.delay_ps);
    }
    line.close_object();
  }
  line.close_list();
  line.open_list("cables");
  for (const Cable& cable : cables_) {
    line.open_list();
    line.number(cable.lower);
    line.number(cable.upper);
    line.number(cable.links);
    line.close_list();
  }
  line.close_list();
  line.close_object();
}

}  // namespace mrc::view
