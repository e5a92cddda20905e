/* Counters of a queue pair: what OpenMRC offers beside the OCP API.
 *
 * The names begin with openmrc_, so that they can never be those of a later release of the OCP API,
 * and a program that includes only mrc.h sees nothing of this.
 *
 * Versions. The structure grows at its end and only there. A program sets `size` to the sizeof it
 * was compiled with. The library fills as much of that as it knows, sets the rest to 0, and writes
 * into `size` how many bytes it has filled: it does not count what lies beyond. So old programs run
 * with new libraries, and new programs with old ones.
 *
 * Functions return 0 or a positive errno value, and may be called from any thread.
 */
#ifndef OPENMRC_COUNTERS_H
#define OPENMRC_COUNTERS_H

#include <stdint.h>

#include "mrc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Goes up when fields are added. */
#define OPENMRC_COUNTERS_VERSION 2

/* Counters only grow, and begin anew when the queue pair is reset. */
struct openmrc_qp_counters {
  uint32_t size; /* in: sizeof of this structure; out: how much of it was filled */
  uint32_t reserved;

  /* As a sender. */
  uint64_t packets_sent;       /* write packets, retransmissions included */
  uint64_t bytes_sent;         /* their payload */
  uint64_t retransmitted;      /* packets sent again, for whatever reason */
  uint64_t lost_by_path_order; /* a later packet on the same path arrived */
  uint64_t lost_by_time;       /* packets sent well after it on other paths arrived */
  uint64_t lost_by_timeout;    /* nothing came back at all */
  uint64_t speculative;        /* late, and sent again before it was known to be lost */
  uint64_t trimmed;            /* NACKs for packets whose payload a switch took away */
  uint64_t refused;            /* other packets that the receiver sent back */
  uint64_t spurious;           /* declared lost, and had arrived */
  uint64_t marked;             /* answers that told of congestion on a path */
  uint64_t probes_sent;
  uint64_t timeouts; /* expiries of the retry timer that used up a try */
  uint64_t messages_completed;
  uint64_t sacks_received;

  /* As a receiver. */
  uint64_t packets_received; /* write packets, each once */
  uint64_t bytes_received;   /* payload in memory */
  uint64_t duplicates;
  uint64_t immediates; /* delivered to the program */
  uint64_t sacks_sent;
  uint64_t nacks_sent;
  uint64_t acks_sent;

  /* Paths (EVs) by state at this moment; all 0 before the queue pair has a profile. */
  uint32_t paths_good;
  uint32_t paths_skipped; /* in use, and passed over for a turn */
  uint32_t paths_assumed_bad;
  uint32_t paths_denied; /* by the controller */

  /* Since version 2: how it stands as a sender at this moment. */
  uint64_t window_bytes;         /* congestion window; queue pairs to one peer may share it */
  uint64_t window_used_bytes;    /* in flight of all that share it */
  uint64_t round_trip_ns;        /* smoothed; 0 before the first */
  uint32_t packets_in_flight;    /* sent, neither acknowledged nor declared lost */
  uint32_t packets_to_resend;    /* declared lost, not yet sent again */
  uint32_t messages_outstanding; /* posted, not yet complete */
  uint32_t reserved_2;
};

/* Works in every state. Takes the lock of the engine for as long as it takes to look at each path:
 * for reports, not for every message. EINVAL: no queue pair, or a size smaller than that of version
 * 1; EIO in a child of fork(). A call that fails has changed nothing. */
int openmrc_query_qp_counters(struct mrc_qp* qp, struct openmrc_qp_counters* counters);

#ifdef __cplusplus
}
#endif

#endif
