// Whether a device has what a spec asks for, whoever made it.
#pragma once

#include "controller/profiles.h"
#include "controller/session.h"

namespace mrc::controller {

// ONLINE, and in nothing different from what create() would make of the spec now. Drawn EVs differ
// each time and do not count, nor do states of EVs. A count that is left to the device fits any:
// the API does not tell which one it would choose.
bool is_on_device(const Session& session, const FormatSpec& spec);
bool is_on_device(const Session& session, const EvSpec& spec);
bool is_on_device(const Session& session, const CcSpec& spec);

}  // namespace mrc::controller
