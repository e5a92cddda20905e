// Why a queue pair failed, in words for a person.
#pragma once

#include <string>

#include "core/event.h"
#include "wire/ip_address.h"

namespace mrc::nic {

class QueuePairImpl;
struct PumpState;

// Under the engine lock, when the failure is told.
std::string explain_failure(const QueuePairImpl& qp, const PumpState& state,
                            const core::Event& event);

std::string address_text(const wire::IpAddress& address);

}  // namespace mrc::nic
