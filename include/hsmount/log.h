/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log. The program makes one and passes it to the libraries. A library logs only what no caller
 * can learn from a result, such as a retry or a dangling link that is left out. The front logs each
 * failure once.
 *
 * The rate of lines is limited for each level but debug: LOG_BURST lines at once, then LOG_RATE a
 * second, and no repetition of the previous line within LOG_QUIET_MS. The next line reports how
 * many lines were left out. Any thread may call any function, except for log_set_name(). Every
 * function accepts a log that is NULL, and then logs nothing.
 */
#ifndef HSMOUNT_LOG_H
#define HSMOUNT_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

enum {
	LOG_BURST = 100,     /* lines that may be written at once */
	LOG_RATE = 10,	     /* lines that may be written in each second after that */
	LOG_QUIET_MS = 1000, /* time in which the previous line is not repeated */
};

struct log;

/* Makes a log that writes to standard error. Each line begins with ident, the name of the program,
 * which is copied. Returns NULL if there is no memory. */
struct log *log_new(const char *ident, enum log_level level);
void log_free(struct log *log);

/* Converts "error", "warning", "info" or "debug" into a level. Fails with -EINVAL for other words.
 */
int log_level_parse(const char *word, enum log_level *level);
void log_set_level(struct log *log, enum log_level level);
enum log_level log_get_level(const struct log *log);
/* Sets the mount or bucket that every line names from now on. No other thread may use the log
 * during this call. */
void log_set_name(struct log *log, const char *name);
/* Makes the log write to syslog(3) from now on, because a daemon has no standard error. */
void log_to_syslog(struct log *log);

void log_error(struct log *log, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_warning(struct log *log, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_info(struct log *log, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_debug(struct log *log, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
