/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors with a reason. A message is always printable and NUL-terminated, whatever foreign bytes it
 * contains. A struct err belongs to one thread at a time.
 */
#include <hsmount/err.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/printable.h>

/* Bytes of a text before it is escaped. Escaping does not shorten it, so a text that does not fit
 * here does not fit into err.msg either. */
enum { RAW_MAX = 2 * ERR_MAX };

static void record(struct err *err, int code, const char *tail, const char *fmt, va_list ap)
	__attribute__((format(printf, 4, 0)));

/* Sets err's code, and its message to "text: tail", or to the text if tail is empty. tail may be
 * err's own message. */
static void record(struct err *err, int code, const char *tail, const char *fmt, va_list ap)
{
	char raw[RAW_MAX];
	/* Fails only for a wide string that cannot be converted. */
	if (vsnprintf(raw, sizeof(raw), fmt, ap) < 0)
		raw[0] = '\0';
	if (tail[0]) {
		size_t n = strlen(raw);
		snprintf(raw + n, RAW_MAX - n, "%s%s", n ? ": " : "", tail);
	}
	err->code = code;
	printable(err->msg, sizeof(err->msg), raw);
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;
	if (!err)
		return code;
	err->retry_after_ms = 0;
	va_start(ap, fmt);
	record(err, code, "", fmt, ap);
	va_end(ap);
	return code;
}

int err_no_memory(struct err *err)
{
	return err_set(err, -ENOMEM, "out of memory");
}

int err_wrap(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;
	if (!err)
		return code;
	/* If the callee has not set err, its code is 0 and its message is empty. */
	if (!err->code)
		err->retry_after_ms = 0;
	va_start(ap, fmt);
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
	err->retry_after_ms = 0;
	va_start(ap, fmt);
	record(err, code, code == -ENOMEM ? "out of memory" : strerror_r(-code, why, sizeof(why)),
	       fmt, ap);
	va_end(ap);
	return code;
}

void err_copy(struct err *to, const struct err *from)
{
	if (to && from && to != from)
		*to = *from;
}
