#include "agreement.h"

#include <algorithm>

#include "mrc.h"

namespace mrc::nccl {
namespace {

std::uint32_t capabilities(std::uint32_t own, std::uint32_t peer) {
  std::uint32_t flags = 0;
  if ((peer & MRC_DEVICE_CAP_TRIM_NACK) == 0) flags |= MRC_QP_CAP_TRIM_NACK_DEST_UNSUPPORTED;
  if ((peer & MRC_DEVICE_CAP_SVC_TIME) == 0) flags |= MRC_QP_CAP_SVC_TIME_DEST_UNSUPPORTED;
  if ((own & peer & MRC_DEVICE_CAP_DYNAMIC_MPR) != 0) flags |= MRC_QP_CAP_DYNAMIC_MPR;
  return flags;
}

}  // namespace

Agreement agree(const Message& own, const Message& peer, const Limits& limits) {
  const bool said = peer.immediates != 0 || peer.window != 0 || peer.capabilities != 0;
  const Message& other = said ? peer : own;
  return {.window = std::min(other.window, limits.window),
          .immediates = std::min(other.immediates, limits.immediates),
          .capabilities = capabilities(own.capabilities, other.capabilities)};
}

}  // namespace mrc::nccl
