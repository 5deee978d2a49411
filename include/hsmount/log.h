/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: one object, handed in. Libraries write to it only what no caller can learn from a result
 * (a dangling link that was left out, a retry). The front logs each failure once. Lines are
 * rate-limited per level: a burst of LOG_BURST, then LOG_RATE a second, and the line that came last
 * not again within LOG_QUIET_MS. What was held back is counted in the next line. Thread-safe. A
 * NULL log swallows everything.
 */
#ifndef HSMOUNT_LOG_H
#define HSMOUNT_LOG_H

#include <stdbool.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

enum {
	LOG_BURST = 100,     /* lines at once */
	LOG_RATE = 10,	     /* lines a second after that */
	LOG_QUIET_MS = 1000, /* of the same line */
};

struct log;

/* Heap; NULL without memory. ident: program name in front of each line (copied). use_syslog:
 * syslog(3) instead of stderr. */
struct log *log_new(const char *ident, enum log_level level, bool use_syslog);
void log_free(struct log *log);

/* "error", "warning", "info", "debug" -> level; -EINVAL for other words. */
int log_level_parse(const char *word, enum log_level *level);
void log_set_level(struct log *log, enum log_level level);
enum log_level log_get_level(const struct log *log);
/* After daemonizing stderr is gone: switch over. */
void log_to_syslog(struct log *log);

void log_error(struct log *log, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_warning(struct log *log, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_info(struct log *log, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_debug(struct log *log, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
