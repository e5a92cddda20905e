/* Messages of the library for programs that have a log of their own: what OpenMRC offers beside the
 * OCP API, see openmrc_counters.h about the names.
 */
#ifndef OPENMRC_LOG_H
#define OPENMRC_LOG_H

#ifdef __cplusplus
extern "C" {
#endif

enum openmrc_log_level {
  OPENMRC_LOG_ERROR = 1,
  OPENMRC_LOG_WARN = 2,
  OPENMRC_LOG_INFO = 3,
  OPENMRC_LOG_DEBUG = 4
};

/* One message, without a line end. Called by whichever thread has something to say, threads of the
 * library included; it must not call the library. */
typedef void (*openmrc_log_function)(enum openmrc_log_level level, const char* message);

/* From now on messages go there as well as to stderr or MRC_LOG_FILE; NULL ends that. MRC_LOG_LEVEL
 * says which (warnings and errors unless it is set). The function must stay callable until another
 * one is set, and a call of it may still be under way then. Any thread; never fails. */
void openmrc_set_log_function(openmrc_log_function function);

#ifdef __cplusplus
}
#endif

#endif
