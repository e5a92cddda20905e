#include <cerrno>
#include <cstdio>
#include <optional>

#include "api/handles.h"
#include "api/verbs_types.h"
#include "openmrc_dialect.h"
#include "os/dialect_conflict.h"
#include "wire/dialect.h"

namespace mrc::api {
namespace {

const wire::Dialect& dialect_of(const mrc_context& context) {
  return context.device->config().dialect;
}

}  // namespace
}  // namespace mrc::api

MRC_API_EXPORT int openmrc_query_dialect(mrc_context* context, uint64_t* code) {
  if (!mrc::api::valid(context) || code == nullptr) return EINVAL;
  *code = mrc::wire::dialect_code(mrc::api::dialect_of(*context));
  return 0;
}

MRC_API_EXPORT int openmrc_compare_dialect(mrc_context* context, uint64_t peer_code, char* why,
                                           size_t size) {
  if (!mrc::api::valid(context) || (why == nullptr && size > 0)) return EINVAL;
  const mrc::wire::Dialect& own = mrc::api::dialect_of(*context);
  const std::optional<mrc::wire::Dialect> theirs =
      peer_code == 0 ? mrc::wire::kOpenMrc : mrc::wire::dialect_of_code(peer_code);
  if (!theirs) {
    if (size > 0) {
      std::snprintf(why, size,
                    "the peer speaks a dialect that is unknown here (code 0x%llx); use the same "
                    "version at both ends",
                    static_cast<unsigned long long>(peer_code));
    }
    return EPROTO;
  }
  const mrc::wire::DialectField* const field = mrc::wire::first_conflict(own, *theirs);
  if (field == nullptr) return 0;
  if (size > 0) mrc::os::describe_conflict("the peer", own, *theirs, *field, {why, size});
  return EPROTO;
}
