/* Whether two devices understand each other, asked before they talk: what OpenMRC offers beside the
 * OCP API, see openmrc_counters.h about the names.
 *
 * Public facts leave some choices of the wire open, and each device has made its own (its dialect,
 * docs/interop.md). Two ends that differ in one of them would lose packets without a word. Programs
 * that exchange queue pair numbers anyhow may exchange this number as well and compare.
 *
 * Functions return 0 or a positive errno value, and may be called from any thread.
 */
#ifndef OPENMRC_DIALECT_H
#define OPENMRC_DIALECT_H

#include <stddef.h>
#include <stdint.h>

#include "mrc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The choices of the device that both ends must have made alike, as a number other than 0. */
int openmrc_query_dialect(struct mrc_context* context, uint64_t* code);

/* 0 when the device understands a peer that has told `peer_code`; 0 as a code stands for a peer
 * that says nothing, which is taken for one of the default dialect. EPROTO when it does not, or
 * when the number comes from a version that knows more: then `why`, with room for `size` bytes,
 * gets a line that names the field and its two values, cut to fit. */
int openmrc_compare_dialect(struct mrc_context* context, uint64_t peer_code, char* why,
                            size_t size);

#ifdef __cplusplus
}
#endif

#endif
