#include "api/plane_news.h"

#include <new>
#include <vector>

#include "api/log.h"
#include "base/plane.h"
#include "os/clock.h"
#include "wire/ip_address.h"

namespace mrc::api {
namespace {

void tell(const nic::Device& device, PortMask up, const nic::PlaneNews& news) {
  const auto planes = static_cast<unsigned>(device.config().planes.size());
  const auto peer = wire::format_address(news.peer);
  const unsigned plane = plane_of(news.port);
  const char* const name = device.config().name.c_str();
  const int length = static_cast<int>(peer.view().size());
  if (!news.lost) {
    log(LogLevel::kWarn, "%s: %.*s answers on plane %u again", name, length, peer.view().data(),
        plane);
    return;
  }
  const unsigned left = (up - news.silent).count();
  log(LogLevel::kWarn,
      "%s: no answers from %.*s on plane %u (port %u of %u) for a second: a cable, a switch, the "
      "peer's port, or a host that is out of processor time; %u other%s carr%s its traffic",
      name, length, peer.view().data(), plane, plane + 1, planes, left, left == 1 ? "" : "s",
      left == 1 ? "ies" : "y");
}

}  // namespace

void tell_plane_news(nic::Device& device) {
  PortMask up;
  for (const PortId port : PortMask::first(static_cast<unsigned>(device.config().planes.size())))
    up = device.port_active(port) ? up.with(port) : up;
  try {
    for (const nic::PlaneNews& news : device.planes().take(os::monotonic_now(), up))
      tell(device, up, news);
  } catch (const std::bad_alloc&) {
    return;  // the news are lost, nothing else is
  }
}

}  // namespace mrc::api
