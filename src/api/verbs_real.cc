#include "api/verbs_real.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

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
void* open_real(const char* path, int flags = 0) {
  void* handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL | flags);
  if (handle == nullptr || dlsym(handle, kShadowMark) == nullptr) return handle;
  dlclose(handle);
  return nullptr;
}

// Where our shadow lies if this is the library it comes with.
std::string shadow_path() {
  Dl_info info{};
  if (dladdr(kShadowMark, &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string here = info.dli_fname;
  return here.substr(0, here.rfind('/') + 1) + "mrc/verbs/" + kFileName;
}

bool is_same_file(const std::string& one, const std::string& other) {
  struct stat a {};
  struct stat b {};
  return stat(one.c_str(), &a) == 0 && stat(other.c_str(), &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

// Calls `look` with each directory that the loader would search, until it is true.
template <typename Look>
void for_each_directory(const Look& look) {
  void* program = dlopen(nullptr, RTLD_LAZY);
  if (program == nullptr) return;
  Dl_serinfo size{};
  if (dlinfo(program, RTLD_DI_SERINFOSIZE, &size) == 0) {
    const auto memory =
        std::make_unique<std::max_align_t[]>(size.dls_size / sizeof(std::max_align_t) + 1);
    auto* paths = reinterpret_cast<Dl_serinfo*>(memory.get());
    paths->dls_size = size.dls_size;
    paths->dls_cnt = size.dls_cnt;
    bool done = dlinfo(program, RTLD_DI_SERINFO, paths) != 0;
    for (unsigned i = 0; i < paths->dls_cnt && !done; ++i)
      done = look(std::string(paths->dls_serpath[i].dls_name));
  }
  dlclose(program);
}

// By the plain name unless that leads to our shadow, then directory by directory. The shadow is
// told apart before it is loaded: its constructor would ask us for the real library while we look
// for it.
void* search() {
  if (void* loaded = open_real(kFileName, RTLD_NOLOAD)) return loaded;
  const std::string shadow = shadow_path();
  bool shadowed = false;
  for_each_directory([&](const std::string& directory) {
    shadowed = is_same_file(directory + "/" + kFileName, shadow);
    return shadowed;
  });
  void* found = shadowed ? nullptr : open_real(kFileName);
  if (found != nullptr) return found;
  for_each_directory([&](const std::string& directory) {
    const std::string candidate = directory + "/" + kFileName;
    if (!is_same_file(candidate, shadow)) found = open_real(candidate.c_str());
    return found != nullptr;
  });
  return found;
}

void* find_library() {
  try {
    const char* named = os::environment("MRC_LIBIBVERBS");
    void* handle = named != nullptr ? open_real(named) : search();
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
