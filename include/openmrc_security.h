/* Whether two devices open each other's packets, asked before they talk: what OpenMRC offers beside
 * the OCP API, see openmrc_counters.h about the names.
 *
 * A device seals its packets or does not (docs/configuration.md, security), and takes no packets of
 * the other kind. Two ends that differ, or seal with keys that the other lacks, would lose packets
 * without a word. Programs that exchange queue pair numbers anyhow may exchange this number as well
 * and compare. It says which mode and which keys by number and a few bits of a hash, so it may be
 * sent in the clear; and as it may be forged on the way, it opens nothing.
 *
 * Functions return 0 or a positive errno value, and may be called from any thread.
 */
#ifndef OPENMRC_SECURITY_H
#define OPENMRC_SECURITY_H

#include <stddef.h>
#include <stdint.h>

#include "mrc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Mode and keys of the device now, as a number other than 0. EIO in a child of fork(). */
int openmrc_query_security(struct mrc_context* context, uint64_t* code);

/* 0 when the device and a peer that has told `peer_code` open each other's packets; also for 0, a
 * peer that says nothing: then packets tell. EPROTO when they do not, or when the number comes from
 * a version that knows more: then `why`, with room for `size` bytes, gets a line that names both
 * modes or the keys and the way out, cut to fit. EIO in a child of fork(). */
int openmrc_compare_security(struct mrc_context* context, uint64_t peer_code, char* why,
                             size_t size);

#ifdef __cplusplus
}
#endif

#endif
