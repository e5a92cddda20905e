// The other end of `mrc doctor --peer`: says what this host's device is, and echoes datagrams that
// show how large a packet may be on the way.
//
// Over TCP both sides say what their devices are (device_facts.h) and who is not trusted is
// bounded. An echo is as long as what it answers, and goes to nobody who does not know the number
// that TCP told, so that strangers have no use for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "collective/exchange.h"
#include "commands/doctor/check.h"
#include "device_facts.h"
#include "node/config.h"

namespace mrc::nic {
class Device;
}

namespace mrc::tool::doctor {

constexpr std::uint16_t kResponderPort = 18'517;

class Responder {
 public:
  // Opens the device, which answers probes from here on. Throws Failure when it does not open.
  explicit Responder(const node::DeviceConfig& config);

  // Whether what a visitor says first is a question for us.
  static bool is_question(const nlohmann::json& first);
  // Tells a visitor who asked, and answers until it hangs up.
  void answer(collective::Exchange& visitor) const;

  std::string gid() const;

 private:
  std::shared_ptr<nic::Device> device_;
  std::optional<DeviceFacts> facts_;  // nothing: see facts_of()
};

// Until Ctrl-C. Throws Failure when the port is taken or the device does not open.
void serve(const node::DeviceConfig& config, std::uint16_t port);

// Asks the responder of a host. Its GID, or nothing where none answers; what is found either way.
std::string ask_responder(const node::DeviceConfig& config, const PeerHost& peer,
                          unsigned payload_bytes, Findings& findings);

}  // namespace mrc::tool::doctor
