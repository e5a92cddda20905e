// A device opened as a controller program opens it, through the C API.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "mrc_ctl.h"

namespace mrc::controller {

// A refused call, as one line for a person.
class CtlError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Session {
 public:
  // The device of that name; empty: the first MRC device.
  explicit Session(const std::string& device);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  mrc_context* context() const { return context_; }
  const std::string& device() const { return device_; }
  // Where the device keeps what is set.
  const std::string& directory() const { return directory_; }
  // Of control packets, as requests to other nodes take it.
  std::uint8_t control_dscp() const { return control_dscp_; }
  const mrc_ctl_device_attr& limits() const { return limits_; }
  unsigned port_count() const;
  ibv_gid gid() const;

  // The API has no list of profiles, as ids are the controller's own; these come from the state.
  std::vector<std::uint64_t> format_ids() const;
  std::vector<std::uint64_t> ev_ids() const;
  std::vector<std::uint64_t> cc_ids() const;

  // Throws CtlError with what the errno means here, unless it is 0.
  void check(int error, const std::string& what) const;

 private:
  std::string device_;
  std::string directory_;
  std::uint8_t control_dscp_ = 0;
  ibv_context* verbs_ = nullptr;
  mrc_context* context_ = nullptr;
  mrc_ctl_device_attr limits_{};
};

}  // namespace mrc::controller
