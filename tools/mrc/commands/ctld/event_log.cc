#include "commands/ctld/event_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "controller/profiles.h"
#include "controller/words.h"
#include "text.h"
#include "wire/srv6.h"

namespace mrc::tool::ctld {
namespace {

// The device a uSID stands for in the usual plan.
std::string device_words(wire::Usid usid) {
  const wire::UsidPlan plan;
  const auto number = static_cast<unsigned>(usid);
  const auto inside = [&](const wire::UsidRange& range) {
    return number >= range.first && number - range.first < range.count;
  };
  if (inside(plan.t0)) return fmt::format("t0:{}", number - plan.t0.first);
  if (inside(plan.t1)) return fmt::format("t1:{}", number - plan.t1.first);
  if (inside(plan.t2)) return fmt::format("t2:{}", number - plan.t2.first);
  if (inside(plan.host_port)) return fmt::format("host port {}", number - plan.host_port.first);
  return fmt::format("uSID {:#06x}", number);
}

}  // namespace

std::string path_words(const mrc_ctl_ev& ev, bool srv6) {
  std::string text = fmt::format("port {}", ev.port);
  if (!srv6) return text;
  wire::IpAddress carrier;
  std::copy_n(std::begin(ev.val), carrier.bytes.size(), carrier.bytes.begin());
  for (unsigned i = 0; i < wire::usid_count(carrier); ++i)
    text += (i == 0 ? ", " : " ") + device_words(wire::usid_at(carrier, i));
  return text;
}

std::string EventLog::line(const mrc_ctl_ev_event& event) {
  ++events_;
  const bool srv6 = controller::shows_addresses(*session_, event.profile_id);
  const std::string ev = controller::ev_text(event.ev, srv6);
  return fmt::format("EV profile {}: EV {} ({}) is {}{}", event.profile_id, ev,
                     path_words(event.ev, srv6), controller::ev_state_text(event.state),
                     controller::lost_events_text(event));
}

}  // namespace mrc::tool::ctld
