#include "nic/io/wire/wire_process.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace mrc::nic {
namespace {

constexpr unsigned kMaxProcesses = 256;

// The two ends of a cable have different GIDs, hosts of different labs different cables.
std::string claim_name(const node::DeviceConfig& config) {
  const node::PlaneConfig& first = config.planes[0];
  const std::string text = std::string(wire::format_address(first.address).view()) + " " +
                           (first.wire_path.empty() ? first.interface : first.wire_path);
  std::uint64_t hash = 0xCBF2'9CE4'8422'2325;
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100'0000'01B3;
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), hash, 16).ptr;
  return "mrc-wire-" + std::string(digits.data(), end) + "-";
}

}  // namespace

bool WireProcess::take(const node::DeviceConfig& config) {
  const std::string prefix = claim_name(config);
  os::Descriptor claim(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  for (unsigned number = 0; number < kMaxProcesses && config.udp_port + number <= 0xFFFF;
       ++number) {
    const std::string name = prefix + std::to_string(number);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    const void* const untyped = &address;
    number_ = static_cast<ProcessNumber>(number);
    if (::bind(claim.get(), static_cast<const sockaddr*>(untyped), length) == 0) {
      claim_ = node::node_files::LifeDescriptor(std::move(claim));
      return true;
    }
    // Where the system gives no such addresses, nobody shares a cable.
    if (errno != EADDRINUSE) return number == 0;
  }
  return false;
}

}  // namespace mrc::nic
