/* A system that says no: preloaded, it lets calls of libc fail as a plan says, and counts.
 *
 * FAULTY_PLAN    rules, separated by spaces: CALL:WHAT:WHEN
 *                  WHAT  an errno by name, `short` (half of what was asked for, one message of a
 *                        batch), or `step` (clock_gettime: the time of day jumps an hour and back)
 *                  WHEN  a share of the calls such as 0.2; 0.01x500: a row of 500 begins with one
 *                        call in a hundred; @3: the third call and no other
 * FAULTY_SEED    for the shares, default 1
 * FAULTY_COUNTS  a file that takes how often each rule was asked and how often it struck, two
 *                64-bit numbers in the order of the plan; it stays right when the program is killed
 *
 * Example: FAULTY_PLAN="sendmmsg:ENOBUFS:0.2 recvmmsg:short:0.5" LD_PRELOAD=libfaulty_calls.so mrc
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { kMostRules = 64, kShort = -1, kStep = -2, kNothing = 0 };

struct Count {
  _Atomic uint64_t asked;
  _Atomic uint64_t struck;
};

struct Rule {
  char call[24];
  int what;          /* errno, kShort or kStep */
  double share;      /* of the calls; with `row` of the calls that begin one */
  long row;          /* calls in a row */
  uint64_t only;     /* this one; 0 = by share */
  _Atomic long left; /* of the row */
};

static struct Rule rules[kMostRules];
static int rule_count;
static struct Count own_counts[kMostRules];
static struct Count* counts = own_counts;
static uint64_t seed = 1;
static _Atomic uint64_t threads;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct {
  const char* name;
  int value;
} kWhats[] = {
    {"short", kShort},
    {"step", kStep},
    {"EAGAIN", EAGAIN},
    {"ENOBUFS", ENOBUFS},
    {"EINTR", EINTR},
    {"EMFILE", EMFILE},
    {"ENFILE", ENFILE},
    {"ENOMEM", ENOMEM},
    {"EIO", EIO},
    {"ENOSPC", ENOSPC},
    {"EPERM", EPERM},
    {"EACCES", EACCES},
    {"EADDRINUSE", EADDRINUSE},
    {"ENETDOWN", ENETDOWN},
    {"ENETUNREACH", ENETUNREACH},
    {"EHOSTUNREACH", EHOSTUNREACH},
    {"ECONNREFUSED", ECONNREFUSED},
    {"EMSGSIZE", EMSGSIZE},
    {"EINVAL", EINVAL},
};

static void give_up(const char* rule) {
  fprintf(stderr, "faulty_calls: cannot understand '%s'\n", rule);
  abort();
}

/* All that stand below; a misspelt one would never strike. */
static const char* const kCalls[] = {
    "sendmmsg",  "recvmmsg", "sendmsg",        "recvmsg",    "send",           "recv",
    "read",      "pread",    "write",          "epoll_wait", "poll",           "ppoll",
    "socket",    "bind",     "connect",        "accept4",    "setsockopt",     "epoll_create1",
    "epoll_ctl", "eventfd",  "timerfd_create", "open",       "lstat",          "ftruncate",
    "rename",    "fsync",    "mmap",           "getrandom",  "pthread_create", "clock_gettime",
    "opendir",   "listen",   "inotify_init1",
};

static void check_call(const char* name, const char* rule) {
  for (size_t i = 0; i < sizeof kCalls / sizeof kCalls[0]; ++i)
    if (strcmp(kCalls[i], name) == 0) return;
  give_up(rule);
}

static int what_of(const char* name, const char* rule) {
  for (size_t i = 0; i < sizeof kWhats / sizeof kWhats[0]; ++i)
    if (strcmp(kWhats[i].name, name) == 0) return kWhats[i].value;
  give_up(rule);
  return 0;
}

static void add_rule(const char* text) {
  struct Rule* rule = &rules[rule_count];
  char what[24], when[24];
  if (rule_count == kMostRules || sscanf(text, "%23[^:]:%23[^:]:%23s", rule->call, what, when) != 3)
    give_up(text);
  check_call(rule->call, text);
  rule->what = what_of(what, text);
  rule->row = 1;
  int end = 0;
  if (when[0] == '@') {
    sscanf(when, "@%lu%n", &rule->only, &end);
  } else if (sscanf(when, "%lfx%ld%n", &rule->share, &rule->row, &end) < 2) {
    sscanf(when, "%lf%n", &rule->share, &end);
  }
  if (end == 0 || when[end] != '\0') give_up(text);
  ++rule_count;
}

/* Calls nothing that stands below: that would wait for itself. */
static void begin(void) {
  const char* const plan = getenv("FAULTY_PLAN");
  if (plan == NULL) return;
  char* const copy = strdup(plan);
  char* rest = NULL;
  for (char* rule = strtok_r(copy, " ", &rest); rule != NULL; rule = strtok_r(NULL, " ", &rest))
    add_rule(rule);
  free(copy);
  const char* const given = getenv("FAULTY_SEED");
  if (given != NULL) seed = strtoull(given, NULL, 10);
  const char* const path = getenv("FAULTY_COUNTS");
  if (path == NULL) return;
  const int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  void* shared = MAP_FAILED;
  if (file >= 0 && syscall(SYS_ftruncate, file, sizeof own_counts) == 0)
    shared = (void*)syscall(SYS_mmap, NULL, sizeof own_counts, PROT_READ | PROT_WRITE, MAP_SHARED,
                            file, 0);
  if (shared == MAP_FAILED) give_up("FAULTY_COUNTS");
  syscall(SYS_close, file);
  counts = shared;
}

/* A plan that is wrong is told before the program does anything. */
__attribute__((constructor)) static void begin_early(void) { pthread_once(&once, begin); }

static double draw(void) {
  static _Thread_local uint64_t state;
  if (state == 0) state = seed * 0x9E3779B97F4A7C15u + ++threads * 0xD1B54A32D192ED03u;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (double)(state >> 11) / (double)(UINT64_C(1) << 53);
}

static int strikes(struct Rule* rule, uint64_t asked) {
  if (rule->only != 0) return asked == rule->only;
  if (rule->left > 0 && --rule->left >= 0) return 1;
  if (draw() >= rule->share) return 0;
  rule->left = rule->row - 1;
  return 1;
}

/* What happens to this call: kNothing, an errno, kShort or kStep. */
static int fate(const char* call) {
  pthread_once(&once, begin);
  for (int i = 0; i < rule_count; ++i) {
    if (strcmp(rules[i].call, call) != 0) continue;
    if (!strikes(&rules[i], ++counts[i].asked)) continue;
    ++counts[i].struck;
    return rules[i].what;
  }
  return kNothing;
}

#define REAL(name) (__extension__(__typeof__(&name)) next(#name))

static void* next(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == NULL) abort();
  return found;
}

/* An errno leaves the function; `short` changes what is asked for. */
#define FAIL_OR_SHORTEN(call, amount)                  \
  do {                                                 \
    const int what = fate(call);                       \
    if (what > 0) return errno = what, -1;             \
    if (what == kShort && (amount) > 1) (amount) /= 2; \
  } while (0)
#define FAIL(call)                         \
  do {                                     \
    const int what = fate(call);           \
    if (what > 0) return errno = what, -1; \
  } while (0)

int sendmmsg(int fd, struct mmsghdr* messages, unsigned count, int flags) {
  const int what = fate("sendmmsg");
  if (what > 0) return errno = what, -1;
  return REAL(sendmmsg)(fd, messages, what == kShort ? 1 : count, flags);
}

int recvmmsg(int fd, struct mmsghdr* messages, unsigned count, int flags, struct timespec* limit) {
  const int what = fate("recvmmsg");
  if (what > 0) return errno = what, -1;
  return REAL(recvmmsg)(fd, messages, what == kShort ? 1 : count, flags, limit);
}

ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
  FAIL("sendmsg");
  return REAL(sendmsg)(fd, message, flags);
}

ssize_t recvmsg(int fd, struct msghdr* message, int flags) {
  FAIL("recvmsg");
  return REAL(recvmsg)(fd, message, flags);
}

ssize_t send(int fd, const void* from, size_t size, int flags) {
  FAIL_OR_SHORTEN("send", size);
  return REAL(send)(fd, from, size, flags);
}

ssize_t recv(int fd, void* to, size_t size, int flags) {
  FAIL_OR_SHORTEN("recv", size);
  return REAL(recv)(fd, to, size, flags);
}

ssize_t read(int fd, void* to, size_t size) {
  FAIL_OR_SHORTEN("read", size);
  return REAL(read)(fd, to, size);
}

ssize_t pread(int fd, void* to, size_t size, off_t at) {
  FAIL_OR_SHORTEN("pread", size);
  return REAL(pread)(fd, to, size, at);
}

ssize_t write(int fd, const void* from, size_t size) {
  FAIL_OR_SHORTEN("write", size);
  return REAL(write)(fd, from, size);
}

int epoll_wait(int fd, struct epoll_event* events, int most, int timeout) {
  FAIL_OR_SHORTEN("epoll_wait", most);
  return REAL(epoll_wait)(fd, events, most, timeout);
}

int poll(struct pollfd* wanted, nfds_t count, int timeout) {
  FAIL("poll");
  return REAL(poll)(wanted, count, timeout);
}

int ppoll(struct pollfd* wanted, nfds_t count, const struct timespec* timeout,
          const sigset_t* mask) {
  FAIL("ppoll");
  return REAL(ppoll)(wanted, count, timeout, mask);
}

int socket(int domain, int type, int protocol) {
  FAIL("socket");
  return REAL(socket)(domain, type, protocol);
}

/* The types of the addresses are those of the header. */
int bind(int fd, __CONST_SOCKADDR_ARG address, socklen_t length) {
  FAIL("bind");
  return REAL(bind)(fd, address, length);
}

int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t length) {
  FAIL("connect");
  return REAL(connect)(fd, address, length);
}

int listen(int fd, int most) {
  FAIL("listen");
  return REAL(listen)(fd, most);
}

int accept4(int fd, __SOCKADDR_ARG address, socklen_t* length, int flags) {
  FAIL("accept4");
  return REAL(accept4)(fd, address, length, flags);
}

int setsockopt(int fd, int level, int name, const void* value, socklen_t length) {
  FAIL("setsockopt");
  return REAL(setsockopt)(fd, level, name, value, length);
}

int epoll_create1(int flags) {
  FAIL("epoll_create1");
  return REAL(epoll_create1)(flags);
}

int epoll_ctl(int epoll, int operation, int fd, struct epoll_event* event) {
  FAIL("epoll_ctl");
  return REAL(epoll_ctl)(epoll, operation, fd, event);
}

int eventfd(unsigned count, int flags) {
  FAIL("eventfd");
  return REAL(eventfd)(count, flags);
}

int inotify_init1(int flags) {
  FAIL("inotify_init1");
  return REAL(inotify_init1)(flags);
}

int timerfd_create(int clock, int flags) {
  FAIL("timerfd_create");
  return REAL(timerfd_create)(clock, flags);
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode =
      (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  FAIL("open");
  return REAL(open)(path, flags, mode);
}

DIR* opendir(const char* path) {
  const int what = fate("opendir");
  if (what > 0) return errno = what, NULL;
  return REAL(opendir)(path);
}

int lstat(const char* path, struct stat* info) {
  FAIL("lstat");
  return REAL(lstat)(path, info);
}

int ftruncate(int fd, off_t length) {
  FAIL("ftruncate");
  return REAL(ftruncate)(fd, length);
}

int rename(const char* from, const char* to) {
  FAIL("rename");
  return REAL(rename)(from, to);
}

int fsync(int fd) {
  FAIL("fsync");
  return REAL(fsync)(fd);
}

void* mmap(void* at, size_t length, int protection, int flags, int fd, off_t offset) {
  const int what = fate("mmap");
  if (what > 0) return errno = what, MAP_FAILED;
  return REAL(mmap)(at, length, protection, flags, fd, offset);
}

ssize_t getrandom(void* to, size_t size, unsigned flags) {
  FAIL_OR_SHORTEN("getrandom", size);
  return REAL(getrandom)(to, size, flags);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*begins)(void*),
                   void* with) {
  const int what = fate("pthread_create");
  if (what > 0) return what;
  return REAL(pthread_create)(thread, attributes, begins, with);
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  const int result = REAL(clock_gettime)(clock, now);
  static _Atomic unsigned steps;
  if (clock == CLOCK_REALTIME && fate("clock_gettime") == kStep)
    now->tv_sec += ++steps % 2 == 1 ? 3600 : -3600;
  return result;
}
