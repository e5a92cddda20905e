#include "controller/session.h"

#include <fmt/core.h>
#include <infiniband/verbs.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>

#include "node/config.h"
#include "node/node_state.h"

namespace mrc::controller {
namespace {

ibv_context* open_verbs(const std::string& wanted, std::string& name) {
  int count = 0;
  const std::unique_ptr<ibv_device*, void (*)(ibv_device**)> list(ibv_get_device_list(&count),
                                                                  ibv_free_device_list);
  for (int i = 0; list != nullptr && i < count; ++i) {
    name = ibv_get_device_name(list.get()[i]);
    if (!wanted.empty() && name != wanted) continue;
    ibv_context* const verbs = ibv_open_device(list.get()[i]);
    if (verbs == nullptr) {
      throw CtlError(
          fmt::format("{} cannot be opened: {}; try `mrc doctor`", name, std::strerror(errno)));
    }
    mrc_ctl_device_attr attr{};
    int supported = 0;
    if (mrc_ctl_query_device_ex(verbs, nullptr, &attr, &supported) == 0 && supported != 0)
      return verbs;
    ibv_close_device(verbs);
    if (!wanted.empty()) throw CtlError(name + " is not an MRC device");
  }
  throw CtlError(wanted.empty() ? "there is no MRC device; try `mrc doctor`"
                                : fmt::format("there is no device {}", wanted));
}

node::DeviceConfig config_of(const std::string& device) {
  for (const node::DeviceConfig& config : node::load_config().devices) {
    if (config.name == device) return config;
  }
  return {};
}

template <typename Map>
std::vector<std::uint64_t> keys(const Map& map) {
  std::vector<std::uint64_t> ids;
  ids.reserve(map.size());
  for (const auto& [id, profile] : map)
    ids.push_back(id);
  return ids;
}

std::shared_ptr<const node::NodeSnapshot> read_state(const std::string& directory) {
  std::string error;
  const auto state = node::NodeState::open(directory, error);
  if (state == nullptr) throw CtlError(error);
  return state->snapshot();
}

}  // namespace

Session::Session(const std::string& device) {
  verbs_ = open_verbs(device, device_);
  context_ = mrc_create_context(verbs_, nullptr);
  if (context_ == nullptr) {
    const int error = errno;
    ibv_close_device(verbs_);
    throw CtlError(fmt::format("{} cannot be used: {}", device_, std::strerror(error)));
  }
  int supported = 0;
  mrc_ctl_query_device_ex(nullptr, context_, &limits_, &supported);
  const node::DeviceConfig config = config_of(device_);
  directory_ = config.directory;
  control_dscp_ = config.dscp.control;
}

Session::~Session() {
  mrc_destroy_context(context_);
  ibv_close_device(verbs_);
}

unsigned Session::port_count() const {
  return static_cast<unsigned>(std::popcount(limits_.phy_port_mask));
}

ibv_gid Session::gid() const {
  ibv_gid gid{};
  if (ibv_query_gid(verbs_, 1, 0, &gid) != 0) throw CtlError(device_ + " has no GID");
  return gid;
}

std::vector<std::uint64_t> Session::format_ids() const {
  return keys(read_state(directory_)->formats);
}
std::vector<std::uint64_t> Session::ev_ids() const {
  return keys(read_state(directory_)->ev_profiles);
}
std::vector<std::uint64_t> Session::cc_ids() const {
  return keys(read_state(directory_)->cc_profiles);
}

void Session::check(int error, const std::string& what) const {
  if (error == 0) return;
  std::string why = std::strerror(error);
  switch (error) {
    case EPERM:
      why = fmt::format("not permitted: this takes the owner of {} or CAP_NET_ADMIN", directory_);
      break;
    case EBUSY:
      why = "it is in use; queue pairs or profiles that need it must go first";
      break;
    case ENOSPC:
      why = fmt::format("the device holds no more of them, or {} has no room for its state",
                        directory_);
      break;
    case E2BIG:
      why = "more than the device can carry; `mrc ctl show` lists its limits";
      break;
    case ENOENT:
      why = "the profile has no such EV";
      break;
    case EINVAL:
      why = "refused: a value is out of range, or its state does not allow it";
      break;
    default:
      break;
  }
  throw CtlError(fmt::format("{}: {}", what, why));
}

}  // namespace mrc::controller
