// From a program's hints to the engine's.
#pragma once

#include "api/handles.h"
#include "core/config.h"

namespace mrc::api {

// Vendor bytes count where they are the rates that public programs pass; others are kept for the
// program, which may have meant them for another card.
core::QpHints hints_of(const mrc_qp_hint_attr& attr);

}  // namespace mrc::api
