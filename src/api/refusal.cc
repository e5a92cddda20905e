#include "api/refusal.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "api/log.h"

namespace mrc::api {
namespace {

constinit thread_local bool reason_given = false;

// What programs meet in the course of things is no refusal.
bool is_refusal(int error) {
  static constexpr std::array kUsual{0, EAGAIN, EINTR, ENOMEM, ETIMEDOUT, EIO};
  return std::find(kUsual.begin(), kUsual.end(), error) == kUsual.end();
}

// Of a file system that takes nothing more. Controllers are told EIO, which could be anything.
bool is_full_disk(int error) { return error == ENOSPC || error == EDQUOT || error == EROFS; }

// "mrc_get_qpn" of "int mrc_get_qpn(mrc_qp*, uint32_t*)".
std::string_view name_of(std::string_view function) {
  function = function.substr(0, function.find('('));
  return function.substr(function.find_last_of(" *:") + 1);
}

}  // namespace

int refused(int error, const char* field, std::int64_t value, const char* rule) {
  reason_given = true;
  log(LogLevel::kInfo, "refused (%s): %s %lld: %s", strerrorname_np(error), field,
      static_cast<long long>(value), rule);
  return error;
}

int refused(int error, const char* what) {
  reason_given = true;
  log(LogLevel::kInfo, "refused (%s): %s", strerrorname_np(error), what);
  return error;
}

void begin_call() { reason_given = false; }

void end_call(int error, std::string_view function) {
  if (is_full_disk(error) && name_of(function).starts_with("mrc_ctl_")) {
    const std::string_view name = name_of(function);
    log(LogLevel::kWarn, "%.*s: the state of the device cannot be written: %s",
        static_cast<int>(name.size()), name.data(), std::strerror(error));
    return;
  }
  if (!is_refusal(error) || reason_given || !logs(LogLevel::kInfo)) return;
  const std::string_view name = name_of(function);
  log(LogLevel::kInfo,
      "refused (%s): %.*s: an argument or a handle is none of ours, missing, or "
      "its state does not allow the call",
      strerrorname_np(error), static_cast<int>(name.size()), name.data());
}

}  // namespace mrc::api
