/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors with a reason. A message is always printable and NUL-terminated, whatever foreign bytes
 * went into it. A struct err belongs to one thread at a time.
 */
#include <hsmount/err.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/printable.h>

/* Room for a formatted text before it is escaped. Escaping never shortens, so what does not fit
 * here would have been cut from err.msg as well. */
enum { RAW_MAX = 2 * ERR_MAX };

/* Joins raw and tail as "raw: tail". */
static void join(char raw[RAW_MAX], const char *tail)
{
	size_t n = strlen(raw);

	snprintf(raw + n, RAW_MAX - n, "%s%s", n ? ": " : "", tail);
}

static void record(struct err *err, int code, const char *tail, const char *fmt, va_list ap)
	__attribute__((format(printf, 4, 0)));

/* Sets err to code and the text, with ": tail" behind it unless tail is empty; tail may be err's
 * own message. */
static void record(struct err *err, int code, const char *tail, const char *fmt, va_list ap)
{
	char raw[RAW_MAX];

	/* Only an argument in an impossible encoding makes this fail. */
	if (vsnprintf(raw, sizeof(raw), fmt, ap) < 0)
		raw[0] = '\0';
	if (tail[0])
		join(raw, tail);
	err->code = code;
	if (!tail[0])
		err->again_ms = 0;
	printable(err->msg, sizeof(err->msg), raw);
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return code;
	va_start(ap, fmt);
	record(err, code, "", fmt, ap);
	va_end(ap);
	return code;
}

int err_wrap(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return code;
	va_start(ap, fmt);
	/* A callee that failed without words leaves no code either. */
	record(err, err->code ? err->code : code, err->msg, fmt, ap);
	va_end(ap);
	return err->code;
}

int err_errno(struct err *err, int code, const char *fmt, ...)
{
	char why[128];
	va_list ap;

	if (!err)
		return code;
	va_start(ap, fmt);
	record(err, code, strerror_r(-code, why, sizeof(why)), fmt, ap);
	va_end(ap);
	return code;
}

void err_copy(struct err *to, const struct err *from)
{
	if (to && from && to != from)
		*to = *from;
}
