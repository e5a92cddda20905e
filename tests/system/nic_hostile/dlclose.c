/* Loads the library, opens a device, closes it and unloads the library, many times. No thread and
 * no descriptor may be left. Usage: dlclose <lib_mrc.so> */
#include <dirent.h>
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>

#include "mrc.h"

#undef ibv_get_device_list

enum { kRounds = 20 };

static int entries(const char* folder) {
  int count = 0;
  DIR* const list = opendir(folder);
  if (list == NULL) return -1;
  while (readdir(list) != NULL)
    ++count;
  closedir(list);
  return count;
}

static void* do_nothing(void* argument) { return argument; }

static int count_threads(void) { return entries("/proc/self/task"); }

/* Threads of the program itself. A sanitizer may keep one of its own from the first thread on. */
static int count_own_threads(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, do_nothing, NULL) != 0) return -1;
  pthread_join(thread, NULL);
  return count_threads();
}

static int use(void* library) {
  struct ibv_device** (*list_devices)(int*) = NULL;
  void (*free_list)(struct ibv_device**) = NULL;
  struct ibv_context* (*open_device)(struct ibv_device*) = NULL;
  int (*close_device)(struct ibv_context*) = NULL;
  struct mrc_context* (*create)(struct ibv_context*, struct mrc_context_attr*) = NULL;
  int (*destroy)(struct mrc_context*) = NULL;
  *(void**)&list_devices = dlsym(library, "ibv_get_device_list");
  *(void**)&free_list = dlsym(library, "ibv_free_device_list");
  *(void**)&open_device = dlsym(library, "ibv_open_device");
  *(void**)&close_device = dlsym(library, "ibv_close_device");
  *(void**)&create = dlsym(library, "mrc_create_context");
  *(void**)&destroy = dlsym(library, "mrc_destroy_context");
  if (!list_devices || !free_list || !open_device || !close_device || !create || !destroy) {
    fprintf(stderr, "a symbol is missing: %s\n", dlerror());
    return 1;
  }
  int count = 0;
  struct ibv_device** const list = list_devices(&count);
  if (list == NULL || count < 1) return 2;
  struct ibv_context* const context = open_device(list[0]);
  free_list(list);
  if (context == NULL) return 3;
  struct mrc_context* const mrc = create(context, NULL);
  if (mrc == NULL) return 4;
  if (destroy(mrc) != 0 || close_device(context) != 0) return 5;
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  const int own_threads = count_own_threads();
  int descriptors = 0;
  for (int round = 0; round < kRounds; ++round) {
    void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    const int problem = use(library);
    if (problem != 0) {
      fprintf(stderr, "round %d: step %d failed\n", round, problem);
      return 1;
    }
    if (dlclose(library) != 0) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    const int threads = count_threads() - own_threads;
    const int open = entries("/proc/self/fd");
    if (round == 0) descriptors = open;
    if (threads != 0 || open != descriptors) {
      fprintf(stderr, "round %d: %d threads left, %d descriptors instead of %d\n", round, threads,
              open, descriptors);
      return 1;
    }
  }
  return 0;
}
