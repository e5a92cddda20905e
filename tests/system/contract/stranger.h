/* What the programs of this folder share. They are written from the contract of the MRC API
 * alone, as somebody would who has the headers and no source: every check names the section of the
 * contract that it comes from, and none of them was bent to what a library happens to do. The
 * contract is what OCP's headers, README and examples say call by call; docs/api.md and
 * docs/controller.md have it in short.
 *
 * Exit status of the programs: 0 all held, 1 something did not, 77 there is no MRC device.
 */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <mrc.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NO_DEVICE = 77, PATIENCE_S = 60, UNTOUCHED = 4711 };

static int failures;

/* --- Checks: each goes on after a failure, so that one run shows all of them --- */

static inline void complain(const char* file, int line, const char* section, const char* what,
                            long long wanted, long long came) {
  ++failures;
  fprintf(stderr, "%s:%d: contract %s: %s: expected %lld, came %lld\n", file, line, section, what,
          wanted, came);
}

/* Sections are strings: "6.3", or "api.md" for the overview. */
#define CHECK_CMP(section, got, op, want)                                         \
  do {                                                                            \
    const long long got_ = (long long)(got);                                      \
    const long long want_ = (long long)(want);                                    \
    if (!(got_ op want_))                                                         \
      complain(__FILE__, __LINE__, section, #got " " #op " " #want, want_, got_); \
  } while (0)

#define CHECK_EQ(section, got, want) CHECK_CMP(section, got, ==, want)
#define CHECK(section, condition)                                              \
  do {                                                                         \
    if (!(condition)) complain(__FILE__, __LINE__, section, #condition, 1, 0); \
  } while (0)

/* An MRC call that reports by 0 and errno: success must leave errno alone (section 1). */
#define CHECK_OK(section, call)                                                              \
  do {                                                                                       \
    errno = UNTOUCHED;                                                                       \
    const int rc_ = (call);                                                                  \
    const int errno_ = errno;                                                                \
    if (rc_ != 0) complain(__FILE__, __LINE__, section, #call, 0, rc_);                      \
    if (rc_ != 0) complain(__FILE__, __LINE__, section, "errno of it", 0, errno_);           \
    if (rc_ == 0 && errno_ != UNTOUCHED)                                                     \
      complain(__FILE__, __LINE__, "1", "errno after success of " #call, UNTOUCHED, errno_); \
  } while (0)

#define CHECK_FAILS(section, call, rc, error)                                    \
  do {                                                                           \
    errno = UNTOUCHED;                                                           \
    const int rc_ = (call);                                                      \
    const int errno_ = errno;                                                    \
    if (rc_ != (rc)) complain(__FILE__, __LINE__, section, #call, (rc), rc_);    \
    if (errno_ != (error))                                                       \
      complain(__FILE__, __LINE__, section, "errno of " #call, (error), errno_); \
  } while (0)

/* The classes of section 1: -1 and errno; a positive errno value, which is in errno as well. */
#define CHECK_MINUS(section, call, error) CHECK_FAILS(section, call, -1, error)
#define CHECK_PLUS(section, call, error) CHECK_FAILS(section, call, error, error)

/* For what the rest of a program cannot do without. */
#define NEED(section, condition)                                                       \
  do {                                                                                 \
    if (!(condition)) {                                                                \
      const int errno_ = errno;                                                        \
      complain(__FILE__, __LINE__, section, #condition ": not met; errno", 0, errno_); \
      exit(1);                                                                         \
    }                                                                                  \
  } while (0)

/* --- Time --- */

static inline double now_s(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static inline void nap_ms(long ms) {
  const struct timespec rest = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&rest, NULL);
}

/* --- Devices --- */

/* The first device that has MRC, open; *list is the caller's to free. Ends the program if none. */
static inline struct ibv_context* open_mrc_device(struct ibv_device*** list) {
  *list = ibv_get_device_list(NULL);
  for (int i = 0; *list != NULL && (*list)[i] != NULL; ++i) {
    struct ibv_context* verbs = ibv_open_device((*list)[i]);
    struct mrc_device_attr attr;
    int supported = 0;
    if (verbs == NULL) continue;
    if (mrc_query_device(verbs, &attr, &supported) == 0 && supported) return verbs;
    ibv_close_device(verbs);
  }
  fprintf(stderr, "no MRC device\n");
  exit(NO_DEVICE);
}

/* --- Two processes --- */

/* Forks; both sides get a connected socket on loopback. The parent is told the child's number, the
 * child 0. Before any device is open: what a process made is not its child's to use. */
static inline int two_processes(pid_t* child) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof at;
  const pid_t parent = getpid();
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  NEED("8.8", listener >= 0 && bind(listener, (struct sockaddr*)&at, size) == 0);
  NEED("8.8", listen(listener, 1) == 0);
  NEED("8.8", getsockname(listener, (struct sockaddr*)&at, &size) == 0);
  fflush(NULL);
  *child = fork();
  NEED("8.8", *child >= 0);
  alarm(PATIENCE_S); /* timers are not inherited: one for each */
  if (*child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (*child == 0 && getppid() != parent) _exit(1);
  const int peer = *child == 0 ? socket(AF_INET, SOCK_STREAM, 0) : accept(listener, NULL, NULL);
  NEED("8.8", peer >= 0);
  if (*child == 0) NEED("8.8", connect(peer, (struct sockaddr*)&at, sizeof at) == 0);
  close(listener);
  return peer;
}

/* Both sides say the same number of bytes. */
static inline void swap(int peer, const void* mine, void* theirs, size_t size) {
  NEED("8.8", send(peer, mine, size, MSG_NOSIGNAL) == (ssize_t)size);
  NEED("8.8", recv(peer, theirs, size, MSG_WAITALL) == (ssize_t)size);
}

static inline void meet(int peer) {
  char word = 'x';
  swap(peer, &word, &word, 1);
}

/* 0 when the child found nothing wrong. */
static inline int end_of_child(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* --- Completions --- */

/* Takes `count` of them, `at_a_time` in a call. False when they do not come. */
static inline int take(struct mrc_cq* cq, int count, int at_a_time, struct ibv_wc* wc) {
  const double deadline = now_s() + PATIENCE_S / 2;
  int got = 0;
  while (got < count && now_s() < deadline) {
    const int room = count - got < at_a_time ? count - got : at_a_time;
    const int more = mrc_poll_cq(cq, room, wc + got);
    if (more < 0) return 0;
    got += more;
    if (more == 0) sched_yield();
  }
  return got == count;
}
