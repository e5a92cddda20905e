#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>

#include "api/guard.h"
#include "api/handles.h"
#include "api/verbs_types.h"
#include "openmrc_security.h"
#include "seal/stance.h"

namespace mrc::api {
namespace {

// 0, or EIO where the device has nothing to say any more.
int stance_of(const mrc_context& context, seal::Stance& stance) {
  const nic::DeviceReport report = context.device->report();
  if (report.threads == 0) return EIO;
  stance = report.stance;
  return 0;
}

std::string why_not(const seal::Stance& own, std::uint64_t peer_code) {
  const std::optional<seal::Stance> theirs = seal::stance_of_code(peer_code);
  if (theirs) return seal::stance_conflict(own, *theirs);
  return "the peer tells of its security in a way that is unknown here; use the same version at "
         "both ends";
}

}  // namespace
}  // namespace mrc::api

MRC_API_EXPORT int openmrc_query_security(mrc_context* context, uint64_t* code) {
  if (!mrc::api::valid(context) || code == nullptr) return EINVAL;
  return mrc::api::value_on_error([&] {
    mrc::seal::Stance stance;
    const int error = mrc::api::stance_of(*context, stance);
    if (error == 0) *code = mrc::seal::stance_code(stance);
    return error;
  });
}

MRC_API_EXPORT int openmrc_compare_security(mrc_context* context, uint64_t peer_code, char* why,
                                            size_t size) {
  if (!mrc::api::valid(context) || (why == nullptr && size > 0)) return EINVAL;
  if (peer_code == 0) return 0;
  return mrc::api::value_on_error([&] {
    mrc::seal::Stance own;
    const int error = mrc::api::stance_of(*context, own);
    if (error != 0) return error;
    const std::string line = mrc::api::why_not(own, peer_code);
    if (line.empty()) return 0;
    if (size > 0) std::snprintf(why, size, "%s", line.c_str());
    return EPROTO;
  });
}
