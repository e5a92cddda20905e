/* How fast RDMA writes are, and whether every byte arrives: a client writes into a server's memory.
 *
 *   write_bw                 the server
 *   write_bw 127.0.0.1       the client; the server's host as a dotted IPv4 address
 *
 * For each message size the server clears its buffer and writes a sync word into the client's
 * memory. The client, which has been watching that word, sends its messages, one in 64 of them with
 * a completion, and writes a sync word into the server's memory when the last one is done. Then the
 * server compares all bytes, and the zones before and behind the buffer.
 *
 * Exit codes: 0 fine, 1 failed, 2 usage, 3 data wrong.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <mrc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "exchange.h"

#define GUARD_BYTES 4096
#define GUARD_VALUE 0xa5
#define MAX_SIZE ((size_t)64 << 20)
#define MAX_ROUNDS 128
#define BYTES_PER_ROUND ((size_t)256 << 20) /* fewer iterations of large messages */

enum exit_code { FINE = 0, FAILED = 1, USAGE = 2, DATA_WRONG = 3 };

struct options {
  const char* host; /* NULL: server */
  const char* device;
  uint16_t tcp_port;
  int gid_index;
  enum ibv_mtu mtu;
  unsigned send_depth;
  unsigned receive_depth;
  unsigned signal_every;
  unsigned iterations;
  size_t sizes[MAX_ROUNDS];
  unsigned rounds;
};

struct session {
  struct options options;
  int peer;
  struct ibv_context* verbs;
  struct ibv_pd* pd;
  struct mrc_context* context;
  struct mrc_cq* cq;
  struct mrc_qp* qp;
  /* guard, data, guard, then the word the peer writes and the word we write from */
  uint8_t* memory;
  size_t memory_size;
  struct ibv_mr* mr;
  struct endpoint ours;
  struct endpoint theirs;
};

static int complain(const char* what, int error) {
  fprintf(stderr, "%s: %s\n", what, strerror(error));
  return -1;
}

static uint8_t* data_of(struct session* s) { return s->memory + GUARD_BYTES; }
static size_t sync_offset(void) { return GUARD_BYTES + MAX_SIZE + GUARD_BYTES; }
static uint64_t* their_word(struct session* s) { return (uint64_t*)(s->memory + sync_offset()); }
static uint64_t* our_word(struct session* s) { return their_word(s) + 1; }

/* Differs with the place, so that data that landed elsewhere is seen, and with the round. */
static uint8_t pattern(size_t position, unsigned round) {
  const uint64_t mixed = (position + 1) * 0x9e3779b97f4a7c15u + round * 0xff51afd7ed558ccdu;
  return (uint8_t)(mixed >> 56);
}

/* --- Set-up --- */

static struct ibv_context* open_device(const char* name) {
  int count = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  struct ibv_context* found = NULL;
  for (int i = 0; list != NULL && i < count && found == NULL; ++i) {
    if (name != NULL && strcmp(name, ibv_get_device_name(list[i])) != 0) continue;
    struct ibv_context* opened = ibv_open_device(list[i]);
    struct mrc_device_attr attr;
    int supported = 0;
    if (opened == NULL) continue;
    if (mrc_query_device(opened, &attr, &supported) == 0 && supported)
      found = opened;
    else
      ibv_close_device(opened);
  }
  if (list != NULL) ibv_free_device_list(list);
  if (found == NULL) fprintf(stderr, "no device %s with MRC\n", name != NULL ? name : "at all");
  return found;
}

static int make_memory(struct session* s) {
  s->memory_size = sync_offset() + 2 * sizeof(uint64_t);
  if (posix_memalign((void**)&s->memory, 4096, s->memory_size) != 0)
    return complain("memory", ENOMEM);
  memset(s->memory, GUARD_VALUE, s->memory_size);
  *their_word(s) = *our_word(s) = 0;
  s->mr = ibv_reg_mr(s->pd, s->memory, s->memory_size,
                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  return s->mr != NULL ? 0 : complain("ibv_reg_mr", errno);
}

static int make_objects(struct session* s) {
  struct mrc_context_attr context_attr = {.mrc_api_version_used = MRC_API_VER_USED,
                                          .mrc_vendor_api_version_used = MRC_VENDOR_API_VER_USED};
  s->verbs = open_device(s->options.device);
  if (s->verbs == NULL) return -1;
  s->pd = ibv_alloc_pd(s->verbs);
  if (s->pd == NULL) return complain("ibv_alloc_pd", errno);
  if (make_memory(s) != 0) return -1;
  s->context = mrc_create_context(s->verbs, &context_attr);
  if (s->context == NULL) return complain("mrc_create_context", errno);
  s->cq = mrc_create_cq(s->context, (int)(s->options.send_depth + s->options.receive_depth), NULL,
                        NULL, 0);
  if (s->cq == NULL) return complain("mrc_create_cq", errno);
  struct mrc_qp_init_attr init = {.send_cq = s->cq,
                                  .recv_cq = s->cq,
                                  .cap = {.max_send_wr = s->options.send_depth,
                                          .max_recv_wr = s->options.receive_depth,
                                          .max_send_sge = 1,
                                          .max_recv_sge = 1},
                                  .pd = s->pd};
  s->qp = mrc_create_qp(s->context, &init);
  return s->qp != NULL ? 0 : complain("mrc_create_qp", errno);
}

static int describe_ourselves(struct session* s) {
  if (mrc_get_qpn(s->qp, &s->ours.qpn) != 0) return complain("mrc_get_qpn", errno);
  if (ibv_query_gid(s->verbs, 1, s->options.gid_index, &s->ours.gid) != 0)
    return complain("ibv_query_gid", errno);
  if (getrandom(&s->ours.psn, sizeof s->ours.psn, 0) < 0) return complain("getrandom", errno);
  s->ours.psn &= 0xffffff;
  s->ours.address = (uintptr_t)s->memory;
  s->ours.rkey = s->mr->rkey;
  return 0;
}

static int connect_qp(struct session* s) {
  return connect_queue_pair(s->qp, &s->ours, &s->theirs,
                            (struct way){s->options.mtu, (uint8_t)s->options.gid_index});
}

/* --- Work --- */

static int post_write(struct session* s, size_t offset, size_t size, int signaled) {
  struct ibv_sge sge = {
      .addr = (uintptr_t)s->memory + offset, .length = (uint32_t)size, .lkey = s->mr->lkey};
  struct ibv_send_wr wr = {.wr_id = size,
                           .sg_list = &sge,
                           .num_sge = 1,
                           .opcode = IBV_WR_RDMA_WRITE,
                           .send_flags = signaled ? IBV_SEND_SIGNALED : 0};
  struct ibv_send_wr* bad = NULL;
  wr.wr.rdma.remote_addr = s->theirs.address + offset;
  wr.wr.rdma.rkey = s->theirs.rkey;
  const int error = mrc_post_send(s->qp, &wr, &bad);
  return error == 0 ? 0 : complain("mrc_post_send", error);
}

/* Waits for one completion. */
static int wait_completion(struct session* s) {
  struct ibv_wc wc;
  int count = 0;
  while (count == 0)
    count = mrc_poll_cq(s->cq, 1, &wc);
  if (count < 0) return complain("mrc_poll_cq", errno);
  if (wc.status == IBV_WC_SUCCESS) return 0;
  fprintf(stderr, "a write failed: %s\n", ibv_wc_status_str(wc.status));
  return -1;
}

/* The word itself goes by RDMA: from our outgoing slot into the peer's incoming one. */
static int send_word(struct session* s, uint64_t value) {
  *our_word(s) = value;
  struct ibv_sge sge = {
      .addr = (uintptr_t)our_word(s), .length = sizeof value, .lkey = s->mr->lkey};
  struct ibv_send_wr wr = {
      .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
  struct ibv_send_wr* bad = NULL;
  wr.wr.rdma.remote_addr = s->theirs.address + sync_offset();
  wr.wr.rdma.rkey = s->theirs.rkey;
  const int error = mrc_post_send(s->qp, &wr, &bad);
  if (error != 0) return complain("mrc_post_send", error);
  return wait_completion(s);
}

/* Watches memory; the library needs no call from us. A peer that has left is seen at the socket. */
static int wait_word(struct session* s, uint64_t value) {
  for (unsigned spins = 1; __atomic_load_n(their_word(s), __ATOMIC_ACQUIRE) != value; ++spins) {
    char byte;
    if (spins % 1024 == 0) sched_yield();
    if (spins % 65536 != 0) continue;
    if (recv(s->peer, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) {
      fprintf(stderr, "the peer has gone\n");
      return -1;
    }
  }
  return 0;
}

static unsigned iterations_of(const struct options* options, size_t size) {
  const size_t limit = size == 0 ? options->iterations : BYTES_PER_ROUND / size;
  return limit < options->iterations ? (unsigned)(limit > 0 ? limit : 1) : options->iterations;
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Only one in `signal_every` asks for a completion, so room is counted in such groups. */
static int write_all(struct session* s, size_t size, unsigned iterations) {
  const unsigned group = s->options.signal_every;
  const unsigned groups_in_flight =
      s->options.send_depth / group > 0 ? s->options.send_depth / group : 1;
  unsigned pending = 0;
  for (unsigned i = 1; i <= iterations; ++i) {
    const int signaled = i % group == 0 || i == iterations;
    if (pending == groups_in_flight) {
      if (wait_completion(s) != 0) return -1;
      --pending;
    }
    if (post_write(s, GUARD_BYTES, size, signaled) != 0) return -1;
    if (signaled) ++pending;
  }
  for (; pending > 0; --pending) {
    if (wait_completion(s) != 0) return -1;
  }
  return 0;
}

static enum exit_code client_round(struct session* s, unsigned round) {
  const size_t size = s->options.sizes[round];
  const unsigned iterations = iterations_of(&s->options, size);
  for (size_t i = 0; i < size; ++i)
    data_of(s)[i] = pattern(i, round);
  if (wait_word(s, 2 * round + 1) != 0) return FAILED;
  const double start = seconds_now();
  if (write_all(s, size, iterations) != 0) return FAILED;
  const double seconds = seconds_now() - start;
  if (send_word(s, 2 * round + 2) != 0) return FAILED;
  printf(" %-12zu %-10u %12.2f %12.6f\n", size, iterations,
         (double)size * iterations / seconds / (1 << 20), iterations / seconds / 1e6);
  fflush(stdout);
  return FINE;
}

static int region_is(const uint8_t* start, size_t size, uint8_t value) {
  for (size_t i = 0; i < size; ++i) {
    if (start[i] != value) return 0;
  }
  return 1;
}

static enum exit_code verify(struct session* s, size_t size, unsigned round) {
  const uint8_t* data = data_of(s);
  for (size_t i = 0; i < size; ++i) {
    if (data[i] == pattern(i, round)) continue;
    fprintf(stderr, "size %zu: byte %zu is %u, not %u\n", size, i, data[i], pattern(i, round));
    return DATA_WRONG;
  }
  if (region_is(s->memory, GUARD_BYTES, GUARD_VALUE) &&
      region_is(data + size, MAX_SIZE - size + GUARD_BYTES, GUARD_VALUE))
    return FINE;
  fprintf(stderr, "size %zu: bytes outside the message were changed\n", size);
  return DATA_WRONG;
}

static enum exit_code server_round(struct session* s, unsigned round) {
  const size_t size = s->options.sizes[round];
  memset(data_of(s), GUARD_VALUE, MAX_SIZE);
  if (send_word(s, 2 * round + 1) != 0) return FAILED;
  if (wait_word(s, 2 * round + 2) != 0) return FAILED;
  return verify(s, size, round);
}

static enum exit_code run_rounds(struct session* s) {
  const int is_client = s->options.host != NULL;
  if (is_client) printf(" %-12s %-10s %12s %12s\n", "#bytes", "#iterations", "MiB/s", "Mmsg/s");
  for (unsigned round = 0; round < s->options.rounds; ++round) {
    const enum exit_code code = is_client ? client_round(s, round) : server_round(s, round);
    if (code != FINE) return code;
  }
  return FINE;
}

/* --- Beginning and end --- */

static enum exit_code run(struct session* s) {
  s->peer = connect_peer(s->options.host, s->options.tcp_port);
  if (s->peer < 0 || make_objects(s) != 0 || describe_ourselves(s) != 0) return FAILED;
  if (exchange_endpoints(s->peer, &s->ours, &s->theirs) != 0 || connect_qp(s) != 0) return FAILED;
  uint32_t theirs = 0;
  if (exchange_word(s->peer, s->options.rounds, &theirs) != 0) return FAILED;
  if (theirs != s->options.rounds) {
    fprintf(stderr, "the peer has other sizes; give both sides the same options\n");
    return USAGE;
  }
  const enum exit_code code = run_rounds(s);
  /* Neither side may leave while the other still needs answers, and both have the same verdict. */
  if (exchange_word(s->peer, code, &theirs) != 0) return code != FINE ? code : FAILED;
  return code != FINE ? code : (enum exit_code)theirs;
}

static int close_all(struct session* s) {
  int failed = 0;
  if (s->qp != NULL) failed |= mrc_destroy_qp(s->qp);
  if (s->cq != NULL) failed |= mrc_destroy_cq(s->cq);
  if (s->context != NULL) failed |= mrc_destroy_context(s->context);
  if (s->mr != NULL) failed |= ibv_dereg_mr(s->mr);
  if (s->pd != NULL) failed |= ibv_dealloc_pd(s->pd);
  if (s->verbs != NULL) failed |= ibv_close_device(s->verbs);
  free(s->memory);
  if (s->peer >= 0) close(s->peer);
  if (failed != 0) fprintf(stderr, "not everything could be closed\n");
  return failed;
}

static int parse_sizes(struct options* options, const char* text) {
  options->rounds = 0;
  while (*text != '\0') {
    char* end = NULL;
    const unsigned long long size = strtoull(text, &end, 10);
    if (end == text || size > MAX_SIZE || options->rounds == MAX_ROUNDS) return -1;
    options->sizes[options->rounds++] = (size_t)size;
    if (*end != ',' && *end != '\0') return -1;
    text = *end == ',' ? end + 1 : end;
  }
  return options->rounds > 0 ? 0 : -1;
}

static int parse_mtu(struct options* options, unsigned bytes) {
  for (enum ibv_mtu mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; ++mtu) {
    if (128u << mtu != bytes) continue;
    options->mtu = mtu;
    return 0;
  }
  return -1;
}

static void print_usage(FILE* out) {
  fprintf(out,
          "usage: write_bw [options] [server, as a dotted IPv4 address]\n"
          "  -d NAME   device (the first with MRC)\n"
          "  -p PORT   TCP port to meet at (18515)\n"
          "  -x INDEX  GID index (3)\n"
          "  -m BYTES  path MTU: 256, 512, 1024, 2048 or 4096 (4096)\n"
          "  -t N      send depth (128)\n"
          "  -r N      receive depth (1)\n"
          "  -Q N      one completion for N messages (64)\n"
          "  -n N      messages per size, fewer for large ones (1000)\n"
          "  -s LIST   sizes in bytes, with commas (1, 2, 4 ... 67108864)\n"
          "Both sides need the same sizes.\n");
}

static int parse_options(int argc, char** argv, struct options* options) {
  int option = 0;
  while ((option = getopt(argc, argv, "d:p:x:m:t:r:Q:n:s:h")) != -1) {
    const unsigned number = optarg != NULL ? (unsigned)strtoul(optarg, NULL, 10) : 0;
    switch (option) {
      case 'd':
        options->device = optarg;
        break;
      case 'p':
        options->tcp_port = (uint16_t)number;
        break;
      case 'x':
        options->gid_index = (int)number;
        break;
      case 'm':
        if (parse_mtu(options, number) != 0) return -1;
        break;
      case 't':
        options->send_depth = number;
        break;
      case 'r':
        options->receive_depth = number;
        break;
      case 'Q':
        options->signal_every = number;
        break;
      case 'n':
        options->iterations = number;
        break;
      case 's':
        if (parse_sizes(options, optarg) != 0) return -1;
        break;
      case 'h':
        print_usage(stdout);
        exit(FINE);
      default:
        return -1;
    }
  }
  if (optind < argc) options->host = argv[optind++];
  const int positive = options->send_depth > 0 && options->signal_every > 0 &&
                       options->iterations > 0 && options->signal_every <= options->send_depth;
  return optind == argc && positive ? 0 : -1;
}

int main(int argc, char** argv) {
  static struct session session = {.options = {.tcp_port = 18515,
                                               .gid_index = 3,
                                               .mtu = IBV_MTU_4096,
                                               .send_depth = 128,
                                               .receive_depth = 1,
                                               .signal_every = 64,
                                               .iterations = 1000},
                                   .peer = -1};
  for (size_t size = 1; size <= MAX_SIZE; size *= 2)
    session.options.sizes[session.options.rounds++] = size;
  if (parse_options(argc, argv, &session.options) != 0) {
    print_usage(stderr);
    return USAGE;
  }
  const enum exit_code code = run(&session);
  return close_all(&session) != 0 && code == FINE ? FAILED : (int)code;
}
