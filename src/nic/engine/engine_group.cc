#include "nic/engine/engine_group.h"

#include <algorithm>
#include <utility>

#include "nic/engine/engine.h"
#include "nic/telemetry_publisher.h"

namespace mrc::nic {

EngineGroup::EngineGroup(std::unique_ptr<node::NodeState> state) : node(std::move(state)) {}

EngineGroup::~EngineGroup() { stop(); }

Engine& EngineGroup::least_loaded() const {
  const auto fewer = [](const auto& a, const auto& b) { return a->qp_count() < b->qp_count(); };
  return **std::min_element(engines.begin(), engines.end(), fewer);
}

void EngineGroup::report_overrun(unsigned from) const {
  for (const auto& engine : engines)
    if (engine->index() != from) engine->report_overrun();
}

void EngineGroup::stop() {
  for (const auto& engine : engines)
    engine->stop();
}

GroupLock::GroupLock(const EngineGroup& group) : group_(&group) {
  for (const auto& engine : group.engines)
    engine->lock();
}

GroupLock::~GroupLock() {
  for (const auto& engine : group_->engines)
    engine->unlock();
}

}  // namespace mrc::nic
