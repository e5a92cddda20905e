// Lines for people about planes that fell silent (nic/plane_watch.h).
#pragma once

#include "nic/device.h"

namespace mrc::api {

void tell_plane_news(nic::Device& device);

}  // namespace mrc::api
