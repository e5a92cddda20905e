#include "api/verbs_real.h"

#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>

#include "api/log.h"
#include "api/verbs_types.h"
#include "os/environment.h"

namespace mrc::api {
namespace {

constexpr const char* kFileName = "libibverbs.so.1";
// Defined by our own library of that name, src/api/shadow.
constexpr const char* kShadowMark = "mrc_shadow_libibverbs";

// None when the file does not exist or is our own shadow.
void* open_real(const char* path) {
  void* handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr || dlsym(handle, kShadowMark) == nullptr) return handle;
  dlclose(handle);
  return nullptr;
}

// Looks through the directories that the loader would search, one by one. Only needed where the
// plain name leads to our shadow.
void* search_directories() {
  void* program = dlopen(nullptr, RTLD_LAZY);
  if (program == nullptr) return nullptr;
  Dl_serinfo size{};
  void* found = nullptr;
  if (dlinfo(program, RTLD_DI_SERINFOSIZE, &size) == 0) {
    const auto memory =
        std::make_unique<std::max_align_t[]>(size.dls_size / sizeof(std::max_align_t) + 1);
    auto* paths = reinterpret_cast<Dl_serinfo*>(memory.get());
    paths->dls_size = size.dls_size;
    paths->dls_cnt = size.dls_cnt;
    if (dlinfo(program, RTLD_DI_SERINFO, paths) == 0) {
      for (unsigned i = 0; i < paths->dls_cnt && found == nullptr; ++i)
        found = open_real((std::string(paths->dls_serpath[i].dls_name) + "/" + kFileName).c_str());
    }
  }
  dlclose(program);
  return found;
}

void* find_library() {
  try {
    const char* named = os::environment("MRC_LIBIBVERBS");
    void* handle = open_real(named != nullptr ? named : kFileName);
    if (handle == nullptr && named == nullptr) handle = search_directories();
    if (handle == nullptr) log(LogLevel::kDebug, "no other libibverbs on this machine");
    return handle;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// Stays open to the end of the process: programs keep pointers into it.
void* library() {
  static void* const kHandle = find_library();
  return kHandle;
}

}  // namespace

void* real_symbol(const char* name) {
  return library() == nullptr ? nullptr : dlsym(library(), name);
}

}  // namespace mrc::api

// For the shadow library, which stands in for symbols that only the real one has.
MRC_API_EXPORT void* mrc_private_real_symbol(const char* name, const char* version);

void* mrc_private_real_symbol(const char* name, const char* version) {
  void* const handle = mrc::api::library();
  return handle == nullptr ? nullptr : dlvsym(handle, name, version);
}
