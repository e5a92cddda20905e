// Functions of libmlx5 that programs for MRC cards refer to without linking that library, since
// theirs brings it along: our devices are none of its; the real one answers for all others.
#include <dlfcn.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "api/verbs_real.h"
#include "api/verbs_types.h"

// The header of libmlx5 is not needed to build us.
// NOLINTBEGIN(bugprone-easily-swappable-parameters)
MRC_API_EXPORT bool mlx5dv_is_supported(ibv_device* device);
MRC_API_EXPORT ibv_mr* mlx5dv_reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length,
                                            std::uint64_t iova, int fd, int access,
                                            int mlx5_access);
MRC_API_EXPORT int mlx5dv_get_data_direct_sysfs_path(ibv_context* context, char* buffer,
                                                     std::size_t length);

namespace mrc::api {
namespace {

// Asked only for devices of real cards, whose provider libmlx5 is; stays open.
void* mlx5_symbol(const char* name) {
  static void* const kLibrary = dlopen("libmlx5.so.1", RTLD_LAZY | RTLD_LOCAL);
  return kLibrary == nullptr ? nullptr : dlsym(kLibrary, name);
}

template <typename Function>
Function* mlx5_function(Function* /*ours*/, const char* name) {
  return reinterpret_cast<Function*>(mlx5_symbol(name));
}

}  // namespace
}  // namespace mrc::api

using mrc::api::forward_or;
using mrc::api::mlx5_function;
using mrc::api::our_context;
using mrc::api::our_device;
using mrc::api::our_pd;

bool mlx5dv_is_supported(ibv_device* device) {
  if (device == nullptr || our_device(device) != nullptr) return false;
  const auto real = mlx5_function(mlx5dv_is_supported, "mlx5dv_is_supported");
  return real != nullptr && real(device);
}

ibv_mr* mlx5dv_reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length,
                             std::uint64_t iova, int fd, int access, int mlx5_access) {
  if (our_pd(pd) != nullptr) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  const auto real = mlx5_function(mlx5dv_reg_dmabuf_mr, "mlx5dv_reg_dmabuf_mr");
  return forward_or<ibv_mr*>(nullptr, pd, real, pd, offset, length, iova, fd, access, mlx5_access);
}

int mlx5dv_get_data_direct_sysfs_path(ibv_context* context, char* buffer, std::size_t length) {
  if (our_context(context) != nullptr) return EOPNOTSUPP;
  const auto real =
      mlx5_function(mlx5dv_get_data_direct_sysfs_path, "mlx5dv_get_data_direct_sysfs_path");
  return forward_or(EINVAL, context, real, context, buffer, length);
}
// NOLINTEND(bugprone-easily-swappable-parameters)
