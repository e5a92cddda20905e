/* The header of libmlx5 where there is one, and the functions of it that public MRC programs use
 * where it is missing or older than they are. lib_mrc.so has them (src/api/verbs_mlx5.cc).
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__has_include_next)
#if __has_include_next(<infiniband/mlx5dv.h>)
#include_next <infiniband/mlx5dv.h>
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* An enumerator of the same value in newer headers. */
#define MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT (1 << 0)

bool mlx5dv_is_supported(struct ibv_device* device);
struct ibv_mr* mlx5dv_reg_dmabuf_mr(struct ibv_pd* pd, uint64_t offset, size_t length,
                                    uint64_t iova, int fd, int access, int mlx5_access);
int mlx5dv_get_data_direct_sysfs_path(struct ibv_context* context, char* buf, size_t buf_len);

#ifdef __cplusplus
}
#endif
