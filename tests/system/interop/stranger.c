/* A program as a stranger writes it for MRC cards: the headers and libraries of a vendor's prefix,
 * the older names, sysfs, functions of libmlx5 without that library. interop_test.py builds it
 * against the compat prefix, in several ways, and reads what it prints.
 *
 * Usage: stranger devices|sysfs|writing|child, or stranger symbols VARIABLE PREFIX NAME@VERSION...
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <mrc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int failed(const char* what) {
  printf("failed: %s: %s\n", what, strerror(errno));
  return 1;
}

/* The questions that a plug-in for NCCL asks each device before it uses it. */
static int ask(struct ibv_device* device) {
  struct ibv_context* verbs = ibv_open_device(device);
  if (verbs == NULL) return failed("open");
  struct mrc_attr attr;
  int supported = 0;
  memset(&attr, 0, sizeof attr);
  if (mrc_query_device(verbs, &attr, &supported) != 0) return failed("query");
  struct ibv_pd* pd = ibv_alloc_pd(verbs);
  if (pd == NULL) return failed("domain");
  char path[64] = "";
  const int direct = mlx5dv_get_data_direct_sysfs_path(verbs, path, sizeof path);
  errno = 0;
  struct ibv_mr* mr =
      mlx5dv_reg_dmabuf_mr(pd, 0, 0, 0, -1, 0, MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT);
  printf("%s mrc=%d mlx5=%d direct=%s dmabuf=%s\n", ibv_get_device_name(device), supported,
         mlx5dv_is_supported(device), strerrorname_np(direct),
         mr == NULL ? strerrorname_np(errno) : "made");
  return ibv_dealloc_pd(pd) != 0 || ibv_close_device(verbs) != 0;
}

static int devices(void) {
  int count = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  if (list == NULL) return failed("list");
  int bad = 0;
  for (int i = 0; i < count && bad == 0; ++i)
    bad = ask(list[i]);
  ibv_free_device_list(list);
  return bad;
}

static void print_file(const char* name, FILE* file) {
  char line[128] = "";
  if (file != NULL && fgets(line, sizeof line, file) != NULL) printf("%s: %s", name, line);
  if (file == NULL) printf("%s: %s\n", name, strerror(errno));
  if (file != NULL) fclose(file);
}

static int sysfs(void) {
  DIR* folder = opendir("/sys/class/infiniband");
  for (struct dirent* entry = NULL; folder != NULL && (entry = readdir(folder)) != NULL;)
    if (entry->d_name[0] != '.') printf("device: %s\n", entry->d_name);
  if (folder != NULL) closedir(folder);
  char* path = realpath("/sys/class/infiniband/mrc0/device", NULL);
  printf("path: %s\n", path == NULL ? strerror(errno) : path);
  free(path);
  char type[16] = "";
  const int fd = open("/sys/class/infiniband/mrc0/ports/1/gid_attrs/types/0", O_RDONLY);
  printf("type: %s\n", fd >= 0 && read(fd, type, 7) == 7 ? type : strerror(errno));
  if (fd >= 0) close(fd);
  print_file("gid", fopen("/sys/class/infiniband/mrc0/ports/1/gids/0", "r"));
  print_file("last gid", fopen("/sys/class/infiniband/mrc0/ports/1/gids/3", "r"));
  print_file("no such gid", fopen("/sys/class/infiniband/mrc0/ports/1/gids/4", "r"));
  printf("other device: %d\n", access("/sys/class/infiniband/mrc77", F_OK));
  return 0;
}

static const char* name_of_error(int failed) { return failed ? strerrorname_np(errno) : "done"; }

static const char* try_open(const char* path, int flags) {
  const int fd = open(path, flags, 0600);
  const char* const outcome = name_of_error(fd < 0);
  if (fd >= 0) close(fd);
  return outcome;
}

static const char* try_fopen(const char* path, const char* mode) {
  FILE* file = fopen(path, mode);
  const char* const outcome = name_of_error(file == NULL);
  if (file != NULL) fclose(file);
  return outcome;
}

/* What sysfs says of a device cannot be written. */
static int writing(void) {
  static const char gid[] = "/sys/class/infiniband/mrc0/ports/1/gids/0";
  printf("write %s %s %s\n", try_open(gid, O_WRONLY), try_open(gid, O_RDWR),
         try_open(gid, O_RDONLY | O_TRUNC));
  printf("stream %s %s %s %s\n", try_fopen(gid, "w"), try_fopen(gid, "a"), try_fopen(gid, "r+"),
         try_fopen(gid, "r"));
  printf("make %s\n", try_open("/sys/class/infiniband/mrc0/mine", O_CREAT | O_RDONLY));
  printf("may %s\n", name_of_error(access(gid, W_OK) != 0));
  printf("elsewhere %s\n", try_open("/dev/null", O_WRONLY));
  return 0;
}

/* In a child, where another thread may have held any lock when fork() was called. */
static int child(void) {
  const pid_t pid = fork();
  if (pid == 0) {
    char link[PATH_MAX];
    struct stat info;
    DIR* folder = opendir("/sys/class/infiniband");
    if (folder != NULL) closedir(folder);
    const int bad = stat("/sys/class/infiniband/mrc0", &info) != 0 ||
                    access("/sys/class/infiniband/mrc0/node_type", R_OK) != 0 ||
                    readlink("/sys/class/infiniband/mrc0/device", link, sizeof link) < 0;
    _exit(bad || strcmp(try_open("/sys/class/infiniband/mrc0/node_type", O_RDONLY), "done") != 0);
  }
  int status = 1;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return failed("child");
  printf("child %d %d\n", (int)pid, status);
  return 0;
}

/* Opens the library that a variable names and looks functions up as shims do. */
static int symbols(const char* variable, int count, char** names) {
  const char* file = getenv(variable);
  void* library = file == NULL ? NULL : dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    printf("failed: %s: %s\n", variable, file == NULL ? "not set" : dlerror());
    return 1;
  }
  for (int i = 0; i < count; ++i) {
    char* version = strchr(names[i], '@');
    if (version != NULL) *version++ = '\0';
    const void* found =
        version == NULL ? dlsym(library, names[i]) : dlvsym(library, names[i], version);
    if (found == NULL) printf("missing: %s\n", names[i]);
  }
  printf("looked up: %d\n", count);
  return 0;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "devices") == 0) return devices();
  if (strcmp(what, "sysfs") == 0) return sysfs();
  if (strcmp(what, "writing") == 0) return writing();
  if (strcmp(what, "child") == 0) return child();
  if (strcmp(what, "symbols") == 0 && argc > 2) return symbols(argv[2], argc - 3, argv + 3);
  return failed("usage");
}
