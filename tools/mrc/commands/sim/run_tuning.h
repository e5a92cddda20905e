// Parameters that only people who tune a transport want, as name=value.
#pragma once

#include <string>

#include "core/config.h"
#include "fabric/queue_policy.h"
#include "sim/config.h"

namespace mrc::tool::simulator {

// Throw InputError with the known names when there is no such parameter.
void set_nscc(const std::string& assignment, core::NsccParameters& parameters);
void set_roce(const std::string& assignment, sim::RoceOptions& options);
void set_seal(const std::string& assignment, sim::SealCost& cost);
void set_queue(const std::string& assignment, fabric::QueueShares& shares);

}  // namespace mrc::tool::simulator
