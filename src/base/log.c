/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log. A line is "ident: name: level: text". Each line is one write(2), so lines of several
 * threads and processes do not mix. One token bucket per level, except debug, limits the rate, so
 * that a failing bucket does not fill the disk. A line that repeats the previous one of its level
 * is held back for LOG_QUIET_MS, because many reads may fail at the same damaged object. Text is
 * made printable, as in err.c: no foreign byte ends a line or controls a terminal.
 *
 * Threading: `lock` guards the token buckets; the level and use_syslog are atomics; the name is
 * constant while threads log. The line is written outside the lock. errno is preserved.
 */
#include <hsmount/log.h>

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include <base/clock.h>
#include <base/printable.h>

enum {
	LOG_LEVELS = LOG_LEVEL_DEBUG + 1,
	TEXT_MAX = 2048,
	NAME_MAX_BYTES = 512,
	NOTE_MAX = 128,	       /* two numbers of 20 digits in their words */
	LINE_MAX_BYTES = 3072, /* all of it; at most PIPE_BUF, so a write to a pipe is atomic */
	NS_PER_S = 1000000000,
	NS_PER_MS = 1000000,
};

static const struct {
	const char *word;
	int priority; /* syslog(3) */
} levels[LOG_LEVELS] = {
	[LOG_LEVEL_ERROR] = {"error", LOG_ERR},
	[LOG_LEVEL_WARNING] = {"warning", LOG_WARNING},
	[LOG_LEVEL_INFO] = {"info", LOG_INFO},
	[LOG_LEVEL_DEBUG] = {"debug", LOG_DEBUG},
};

/* Numbers of lines that were held back. */
struct held {
	uint64_t others, repeats; /* `repeats` are those of the last line written */
};

struct bucket {
	unsigned int tokens;
	uint64_t filled_ns;  /* time up to which tokens were added */
	char last[TEXT_MAX]; /* the last line written */
	uint64_t quiet_ns;   /* time until which its repetition is held back */
	struct held held;    /* since the last line written */
};

struct log {
	char *ident;
	char name[NAME_MAX_BYTES]; /* with ": " at its end; "" if there is none */
	atomic_int level;
	atomic_bool use_syslog;

	pthread_mutex_t lock; /* guards buckets */
	struct bucket buckets[LOG_LEVELS];
};

struct log *log_new(const char *ident, enum log_level level)
{
	struct log *log = calloc(1, sizeof(*log));
	if (!log)
		return NULL;
	log->ident = strdup(ident);
	if (!log->ident)
		goto fail;
	if (pthread_mutex_init(&log->lock, NULL) != 0)
		goto fail;
	atomic_init(&log->level, level);
	atomic_init(&log->use_syslog, false);
	for (int i = 0; i < LOG_LEVELS; i++)
		log->buckets[i] = (struct bucket){.tokens = LOG_BURST, .filled_ns = clock_ns()};
	return log;
fail:
	free(log->ident);
	free(log);
	return NULL;
}

void log_free(struct log *log)
{
	if (!log)
		return;
	/* syslog(3) keeps a pointer to the ident. */
	if (atomic_load(&log->use_syslog))
		closelog();
	pthread_mutex_destroy(&log->lock);
	free(log->ident);
	free(log);
}

int log_level_parse(const char *word, enum log_level *level)
{
	for (int i = 0; i < LOG_LEVELS; i++) {
		if (strcmp(word, levels[i].word) == 0) {
			*level = (enum log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

void log_set_level(struct log *log, enum log_level level)
{
	if (log)
		atomic_store(&log->level, level);
}

enum log_level log_get_level(const struct log *log)
{
	return log ? (enum log_level)atomic_load(&log->level) : LOG_LEVEL_ERROR;
}

void log_set_name(struct log *log, const char *name)
{
	if (!log)
		return;
	const size_t n = printable(log->name, sizeof(log->name) - 2, name);
	memcpy(log->name + n, ": ", 3);
}

void log_to_syslog(struct log *log)
{
	if (!log || atomic_exchange(&log->use_syslog, true))
		return;
	openlog(log->ident, LOG_PID, LOG_DAEMON);
}

/* Takes a token. Returns false if the line must be held back. *held becomes the lines held back
 * before this one. */
static bool admit(struct log *log, enum log_level level, const char text[TEXT_MAX],
		  struct held *held)
{
	struct bucket *b = &log->buckets[level];
	uint64_t now = clock_ns();
	bool repeats, ok;
	pthread_mutex_lock(&log->lock);
	const uint64_t step = NS_PER_S / LOG_RATE;
	uint64_t due = now > b->filled_ns ? (now - b->filled_ns) / step : 0;
	if (due > LOG_BURST - b->tokens) {
		b->tokens = LOG_BURST;
		b->filled_ns = now;
	} else {
		b->tokens += (unsigned int)due;
		b->filled_ns += due * step;
	}
	repeats = now < b->quiet_ns && strcmp(text, b->last) == 0;
	ok = !repeats && b->tokens > 0;
	*held = b->held;
	if (ok) {
		b->tokens--;
		b->held = (struct held){0};
		b->quiet_ns = now + (uint64_t)LOG_QUIET_MS * NS_PER_MS;
		memcpy(b->last, text, strlen(text) + 1);
	} else if (repeats) {
		b->held.repeats++;
	} else {
		b->held.others++;
	}
	pthread_mutex_unlock(&log->lock);
	return ok;
}

static void note_held(char note[NOTE_MAX], const struct held *held)
{
	size_t n = 0;
	note[0] = '\0';
	if (held->repeats > 0)
		n = (size_t)snprintf(note, NOTE_MAX, " (previous line repeated %llu times)",
				     (unsigned long long)held->repeats);
	if (held->others > 0)
		snprintf(note + n, NOTE_MAX - n, " (%llu lines of this level suppressed)",
			 (unsigned long long)held->others);
}

static void vlog(struct log *log, enum log_level level, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

static void vlog(struct log *log, enum log_level level, const char *fmt, va_list ap)
{
	char raw[TEXT_MAX], text[TEXT_MAX], note[NOTE_MAX], line[LINE_MAX_BYTES];
	int saved = errno, n;
	struct held held = {0};
	if (!log || (int)level > atomic_load(&log->level))
		goto out;
	if (vsnprintf(raw, sizeof(raw), fmt, ap) < 0)
		raw[0] = '\0';
	printable(text, sizeof(text), raw);
	if (level != LOG_LEVEL_DEBUG && !admit(log, level, text, &held))
		goto out;
	note_held(note, &held);
	if (atomic_load(&log->use_syslog)) {
		syslog(levels[level].priority, "%s%s: %s%s", log->name, levels[level].word, text,
		       note);
		goto out;
	}
	n = snprintf(line, sizeof(line), "%.256s: %s%s: %s%s\n", log->ident, log->name,
		     levels[level].word, text, note);
	if (n > 0) {
		ssize_t r;
		/* An error is ignored: it cannot be reported. A partial line is not completed,
		 * because the rest could appear inside another line. */
		do
			r = write(STDERR_FILENO, line, (size_t)n);
		while (r < 0 && errno == EINTR);
	}
out:
	errno = saved;
}

#define DEFINE_LOG(name, level)                                                                    \
	void name(struct log *log, const char *fmt, ...)                                           \
	{                                                                                          \
		va_list ap;                                                                        \
		va_start(ap, fmt);                                                                 \
		vlog(log, level, fmt, ap);                                                         \
		va_end(ap);                                                                        \
	}

DEFINE_LOG(log_error, LOG_LEVEL_ERROR)
DEFINE_LOG(log_warning, LOG_LEVEL_WARNING)
DEFINE_LOG(log_info, LOG_LEVEL_INFO)
DEFINE_LOG(log_debug, LOG_LEVEL_DEBUG)
