#include "names.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "log.h"

namespace mrc::nccl {

bool loaded_by_old_name() {
  Dl_info info{};
  // The path is the one by which the file was opened: links in it are not followed.
  if (dladdr(kName, &info) == 0 || info.dli_fname == nullptr) return false;
  const char* const slash = std::strrchr(info.dli_fname, '/');
  const char* const file = slash != nullptr ? slash + 1 : info.dli_fname;
  return std::strcmp(file, "libnccl-net-mrc.so") == 0 ||
         std::strcmp(file, "librccl-net-mrc.so") == 0;
}

void warn_of_old_name_once() {
  static constinit std::atomic<bool> told{false};
  if (!loaded_by_old_name() || told.exchange(true)) return;
  log_warning(
      "loaded by its old file name, which the next release does not have: "
      "set NCCL_NET_PLUGIN=openmrc NCCL_NET=OpenMRC (libnccl-net-openmrc.so)");
}

}  // namespace mrc::nccl
