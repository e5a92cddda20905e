// Protection domains and memory regions.
#include <cerrno>
#include <memory>

#include "api/guard.h"
#include "api/refusal.h"
#include "api/verbs_real.h"
#include "api/verbs_types.h"
#include "os/own_memory.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace mrc::api {
namespace {

// Rights that exist only for operations MRC does not have are granted and never used: programs ask
// for all of them at once, NCCL among them, and would have no memory at all otherwise.
constexpr unsigned kKnownAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                                  IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB |
                                  IBV_ACCESS_OPTIONAL_RANGE;

// A region is read and written by packets long after the call, so that must be possible now.
bool can_be_used(const void* address, std::size_t length, unsigned access) {
  const bool writes = (access & IBV_ACCESS_LOCAL_WRITE) != 0;
  return os::may_use(address, length, writes ? os::MemoryUse::kWrite : os::MemoryUse::kRead);
}

int check_region(const void* address, std::size_t length, unsigned access) {
  if ((access & (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_MW_BIND)) != 0)
    return refused(EOPNOTSUPP, "access", access, "no ON_DEMAND and no memory windows");
  if ((access & ~kKnownAccess) != 0) return refused(EINVAL, "access", access, "has unknown bits");
  if (length == 0) return refused(EINVAL, "length", 0, "a region has one byte at least");
  constexpr unsigned kWrites = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  if ((access & kWrites) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0)
    return refused(EINVAL, "access", access, "REMOTE_WRITE needs LOCAL_WRITE");
  const auto start = reinterpret_cast<std::uintptr_t>(address);
  if (start + length < start) return EINVAL;
  return can_be_used(address, length, access) ? 0 : EFAULT;
}

int register_region(VerbsPd& pd, void* address, std::size_t length, std::uint64_t io_address,
                    unsigned access, ibv_mr*& out) {
  const int refused = check_region(address, length, access);
  if (refused != 0) return refused;
  if ((access & IBV_ACCESS_ZERO_BASED) != 0) io_address = 0;
  auto made = std::make_unique<VerbsMr>();
  VerbsContext& context = *our_context(pd.pd.context);
  const int error = context.device->register_memory(
      pd.domain, address, length, io_address, (access & IBV_ACCESS_LOCAL_WRITE) != 0,
      (access & IBV_ACCESS_REMOTE_WRITE) != 0, made->keys);
  if (error != 0) return error;
  made->mr = {.context = pd.pd.context,
              .pd = &pd.pd,
              .addr = address,
              .length = length,
              .handle = made->keys.local,
              .lkey = made->keys.local,
              .rkey = made->keys.remote};
  ++pd.children;
  out = &made.release()->mr;
  return 0;
}

ibv_mr* register_region(ibv_pd* pd, void* address, std::size_t length, std::uint64_t io_address,
                        unsigned access) {
  ibv_mr* made = nullptr;
  return null_on_error(made, [&] {
    return register_region(*our_pd(pd), address, length, io_address, access, made);
  });
}

}  // namespace
}  // namespace mrc::api

using mrc::api::forward_or;
using mrc::api::our_context;
using mrc::api::our_pd;

MRC_API_EXPORT ibv_pd* ibv_alloc_pd(ibv_context* context) {
  mrc::api::VerbsContext* ours = our_context(context);
  if (ours == nullptr)
    return forward_or<ibv_pd*>(nullptr, context, MRC_REAL(ibv_alloc_pd), context);
  ibv_pd* made = nullptr;
  return mrc::api::null_on_error(made, [&] {
    auto pd = std::make_unique<mrc::api::VerbsPd>();
    pd->domain = ours->device->new_domain();
    pd->pd = {.context = context, .handle = pd->domain};
    mrc::api::hold(*ours);
    made = &pd.release()->pd;
    return 0;
  });
}

MRC_API_EXPORT int ibv_dealloc_pd(ibv_pd* pd) {
  mrc::api::VerbsPd* ours = our_pd(pd);
  if (ours == nullptr) return forward_or(EINVAL, pd, MRC_REAL(ibv_dealloc_pd), pd);
  if (ours->children != 0) return EBUSY;
  mrc::api::VerbsContext& context = *our_context(pd->context);
  delete ours;
  mrc::api::release(context);
  return 0;
}

MRC_API_EXPORT ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t length, int access) {
  if (our_pd(pd) == nullptr)
    return forward_or<ibv_mr*>(nullptr, pd, MRC_REAL(ibv_reg_mr), pd, address, length, access);
  return mrc::api::register_region(pd, address, length, reinterpret_cast<std::uintptr_t>(address),
                                   static_cast<unsigned>(access));
}

MRC_API_EXPORT ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, size_t length, uint64_t iova,
                                       int access) {
  if (our_pd(pd) == nullptr) {
    return forward_or<ibv_mr*>(nullptr, pd, MRC_REAL(ibv_reg_mr_iova), pd, address, length, iova,
                               access);
  }
  return mrc::api::register_region(pd, address, length, iova, static_cast<unsigned>(access));
}

MRC_API_EXPORT ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, size_t length, uint64_t iova,
                                        unsigned access) {
  if (our_pd(pd) == nullptr) {
    return forward_or<ibv_mr*>(nullptr, pd, MRC_REAL(ibv_reg_mr_iova2), pd, address, length, iova,
                               access);
  }
  return mrc::api::register_region(pd, address, length, iova, access);
}

MRC_API_EXPORT ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova,
                                         int fd, int access) {
  if (our_pd(pd) == nullptr) {
    return forward_or<ibv_mr*>(nullptr, pd, MRC_REAL(ibv_reg_dmabuf_mr), pd, offset, length, iova,
                               fd, access);
  }
  errno = EOPNOTSUPP;
  return nullptr;
}

MRC_API_EXPORT int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, size_t length,
                                int access) {
  if (mr == nullptr || our_context(mr->context) == nullptr) {
    return forward_or(int{IBV_REREG_MR_ERR_INPUT}, mr, MRC_REAL(ibv_rereg_mr), mr, flags, pd,
                      address, length, access);
  }
  errno = EOPNOTSUPP;
  return IBV_REREG_MR_ERR_INPUT;
}

MRC_API_EXPORT int ibv_dereg_mr(ibv_mr* mr) {
  if (mr == nullptr || our_context(mr->context) == nullptr)
    return forward_or(EINVAL, mr, MRC_REAL(ibv_dereg_mr), mr);
  auto* ours = reinterpret_cast<mrc::api::VerbsMr*>(mr);
  const int error = mrc::api::nic_of(mr->context).deregister_memory(ours->keys);
  if (error != 0) return error;
  --our_pd(mr->pd)->children;
  delete ours;
  return 0;
}
