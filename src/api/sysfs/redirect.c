/* For programs under `mrc run` that ask sysfs about RDMA devices, where the kernel knows nothing of
 * ours: what is asked of /sys/class/infiniband is looked up in a tree of the same shape first,
 * which `mrc run` made (MRC_SYSFS_DIR). What the tree does not have, and everything else, goes to
 * the real files; nothing there is changed or hidden.
 *
 * Preloaded, so that it stands before libc. It holds no state but what it has looked up, and calls
 * nothing but libc, since programs call these functions before main() and in children of fork().
 * Our devices can be read only; the folder must be ours or root's.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define MRC_EXPORT __attribute__((visibility("default")))

/* Without libc, whose stat() is ours here. */
#ifdef SYS_newfstatat
#define MRC_FSTATAT SYS_newfstatat
#else
#define MRC_FSTATAT SYS_fstatat64
#endif

static const char class_folder[] = "/sys/class/infiniband";

/* Ours or root's, and nobody else can write to it: as what we preload. */
static int is_trusted(const char* tree) {
  struct stat info;
  if (syscall(MRC_FSTATAT, AT_FDCWD, tree, &info, 0) != 0 || !S_ISDIR(info.st_mode)) return 0;
  if ((info.st_mode & S_IWOTH) != 0) return 0;
  return info.st_uid == 0 || info.st_uid == getuid() || info.st_uid == geteuid();
}

/* The path to ask instead, written to `other`, or the path itself. Keeps errno. */
static const char* look_up(const char* path, char other[PATH_MAX]) {
  const size_t length = sizeof class_folder - 1;
  if (path == NULL || strncmp(path, class_folder, length) != 0) return path;
  if (path[length] != '\0' && path[length] != '/') return path;
  const char* const tree = secure_getenv("MRC_SYSFS_DIR");
  if (tree == NULL || tree[0] != '/') return path;
  const int before = errno;
  const int written = snprintf(other, PATH_MAX, "%s/class/infiniband%s", tree, path + length);
  /* A device that is in the tree is there whole: what it does not have does not exist. Those of
   * real cards are links there, and are asked as they are. */
  const char* const name = path + length + (path[length] == '/' ? 1 : 0);
  const size_t rest = strlen(name) - strcspn(name, "/");
  int found = 0;
  if (written > 0 && written < PATH_MAX && is_trusted(tree)) {
    struct stat info;
    char* const end = other + ((size_t)written - rest);
    const char kept = *end;
    *end = '\0';
    found = syscall(MRC_FSTATAT, AT_FDCWD, other, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISDIR(info.st_mode);
    *end = kept;
  }
  errno = before;
  return found ? other : path;
}

/* What sysfs says of devices cannot be written, by root neither. Sets errno. */
static int is_refused(int writes, int is_ours) {
  if (!writes || !is_ours) return 0;
  errno = EACCES;
  return 1;
}

static int opens_to_write(int flags) {
  return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
}

static int mode_writes(const char* mode) {
  return mode != NULL && (mode[0] == 'w' || mode[0] == 'a' || strchr(mode, '+') != NULL);
}

/* The function that would be called without us; NULL where libc has none. All of them are looked up
 * when we are loaded: dlsym() takes a lock, which in a child of fork() somebody may hold who is not
 * there. Only who calls before that, from a constructor, finds a slot empty. */
static char missing;
static void* next(const char* name, void** slot) {
  void* found = __atomic_load_n(slot, __ATOMIC_RELAXED);
  if (found == NULL) {
    found = dlsym(RTLD_NEXT, name);
    if (found == NULL) found = &missing;
    __atomic_store_n(slot, found, __ATOMIC_RELAXED);
  }
  return found == &missing ? NULL : found;
}

#define MRC_SLOT(name)      \
  static void* slot_##name; \
  __attribute__((constructor)) static void find_##name(void) { next(#name, &slot_##name); }

/* A function whose argument at the place of `path` is one; `writes` when it would change a file. */
#define MRC_REDIRECT_TO(writes, type, name, parameters, failure, ...)       \
  MRC_SLOT(name)                                                            \
  MRC_EXPORT type name parameters;                                          \
  type name parameters {                                                    \
    char other[PATH_MAX];                                                   \
    type(*real) parameters = (type(*) parameters)next(#name, &slot_##name); \
    const char* const found = look_up(path, other);                         \
    if (is_refused(writes, found == other)) return failure;                 \
    if (real == NULL) {                                                     \
      errno = ENOSYS;                                                       \
      return failure;                                                       \
    }                                                                       \
    return real(__VA_ARGS__);                                               \
  }
#define MRC_REDIRECT(...) MRC_REDIRECT_TO(0, __VA_ARGS__)
#define MRC_PATH found

MRC_REDIRECT_TO(mode_writes(mode), FILE*, fopen, (const char* path, const char* mode), NULL,
                MRC_PATH, mode)
MRC_REDIRECT_TO(mode_writes(mode), FILE*, fopen64, (const char* path, const char* mode), NULL,
                MRC_PATH, mode)
MRC_REDIRECT(DIR*, opendir, (const char* path), NULL, MRC_PATH)
MRC_REDIRECT_TO((mode & W_OK) != 0, int, access, (const char* path, int mode), -1, MRC_PATH, mode)
MRC_REDIRECT_TO((mode & W_OK) != 0, int, faccessat,
                (int folder, const char* path, int mode, int flags), -1, folder, MRC_PATH, mode,
                flags)
MRC_REDIRECT(int, stat, (const char* path, struct stat* out), -1, MRC_PATH, out)
MRC_REDIRECT(int, lstat, (const char* path, struct stat* out), -1, MRC_PATH, out)
MRC_REDIRECT(int, stat64, (const char* path, struct stat64* out), -1, MRC_PATH, out)
MRC_REDIRECT(int, lstat64, (const char* path, struct stat64* out), -1, MRC_PATH, out)
MRC_REDIRECT(int, fstatat, (int folder, const char* path, struct stat* out, int flags), -1, folder,
             MRC_PATH, out, flags)
MRC_REDIRECT(int, fstatat64, (int folder, const char* path, struct stat64* out, int flags), -1,
             folder, MRC_PATH, out, flags)
MRC_REDIRECT(int, statx,
             (int folder, const char* path, int flags, unsigned int mask, struct statx* out), -1,
             folder, MRC_PATH, flags, mask, out)
/* By these names programs that were linked with an older libc call stat(). */
MRC_REDIRECT(int, __xstat, (int version, const char* path, struct stat* out), -1, version, MRC_PATH,
             out)
MRC_REDIRECT(int, __lxstat, (int version, const char* path, struct stat* out), -1, version,
             MRC_PATH, out)
MRC_REDIRECT(int, __xstat64, (int version, const char* path, struct stat64* out), -1, version,
             MRC_PATH, out)
MRC_REDIRECT(int, __lxstat64, (int version, const char* path, struct stat64* out), -1, version,
             MRC_PATH, out)
MRC_REDIRECT(ssize_t, readlink, (const char* path, char* out, size_t size), -1, MRC_PATH, out, size)
MRC_REDIRECT(ssize_t, readlinkat, (int folder, const char* path, char* out, size_t size), -1,
             folder, MRC_PATH, out, size)
MRC_REDIRECT(char*, realpath, (const char* path, char* out), NULL, MRC_PATH, out)
MRC_REDIRECT(char*, canonicalize_file_name, (const char* path), NULL, MRC_PATH)
MRC_REDIRECT(int, scandir,
             (const char* path, struct dirent*** list, int (*filter)(const struct dirent*),
              int (*compare)(const struct dirent**, const struct dirent**)),
             -1, MRC_PATH, list, filter, compare)
/* ls asks these. */
MRC_REDIRECT(ssize_t, getxattr, (const char* path, const char* name, void* out, size_t size), -1,
             MRC_PATH, name, out, size)
MRC_REDIRECT(ssize_t, lgetxattr, (const char* path, const char* name, void* out, size_t size), -1,
             MRC_PATH, name, out, size)
/* What the compiler makes of calls whose sizes it knows, and of open() without a mode. */
MRC_REDIRECT(ssize_t, __readlink_chk, (const char* path, char* out, size_t size, size_t room), -1,
             MRC_PATH, out, size, room)
MRC_REDIRECT(char*, __realpath_chk, (const char* path, char* out, size_t room), NULL, MRC_PATH, out,
             room)
MRC_REDIRECT_TO(opens_to_write(flags), int, __open_2, (const char* path, int flags), -1, MRC_PATH,
                flags)
MRC_REDIRECT_TO(opens_to_write(flags), int, __open64_2, (const char* path, int flags), -1, MRC_PATH,
                flags)
MRC_REDIRECT_TO(opens_to_write(flags), int, __openat_2, (int folder, const char* path, int flags),
                -1, folder, MRC_PATH, flags)
MRC_REDIRECT_TO(opens_to_write(flags), int, __openat64_2, (int folder, const char* path, int flags),
                -1, folder, MRC_PATH, flags)

/* The mode is only there when a file may be made; read otherwise it is garbage that nobody uses. */
#define MRC_MODE(mode, flags)                     \
  mode_t mode = 0;                                \
  if (((flags) & (O_CREAT | __O_TMPFILE)) != 0) { \
    va_list rest;                                 \
    va_start(rest, flags);                        \
    mode = va_arg(rest, mode_t);                  \
    va_end(rest);                                 \
  }

#define MRC_OPEN(name)                                                \
  MRC_SLOT(name)                                                      \
  MRC_EXPORT int name(const char* path, int flags, ...);              \
  int name(const char* path, int flags, ...) {                        \
    char other[PATH_MAX];                                             \
    MRC_MODE(mode, flags)                                             \
    int (*real)(const char*, int, ...) =                              \
        (int (*)(const char*, int, ...))next(#name, &slot_##name);    \
    const char* const found = look_up(path, other);                   \
    if (is_refused(opens_to_write(flags), found == other)) return -1; \
    return real(found, flags, mode);                                  \
  }

#define MRC_OPENAT(name)                                                \
  MRC_SLOT(name)                                                        \
  MRC_EXPORT int name(int folder, const char* path, int flags, ...);    \
  int name(int folder, const char* path, int flags, ...) {              \
    char other[PATH_MAX];                                               \
    MRC_MODE(mode, flags)                                               \
    int (*real)(int, const char*, int, ...) =                           \
        (int (*)(int, const char*, int, ...))next(#name, &slot_##name); \
    const char* const found = look_up(path, other);                     \
    if (is_refused(opens_to_write(flags), found == other)) return -1;   \
    return real(folder, found, flags, mode);                            \
  }

MRC_OPEN(open)
MRC_OPEN(open64)
MRC_OPENAT(openat)
MRC_OPENAT(openat64)
