/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows. Pure, any thread. */
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <base/utf8.h>

int text_add(struct bytes *out, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *s = NULL;
	int n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -ENOMEM;
	int rc = bytes_append(out, s, (size_t)n);
	free(s);
	return rc;
}

size_t text_character(struct bytes *out, const char *s, size_t n, int *rc)
{
	static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
	size_t len = utf8_length(s, n);
	*rc = len ? bytes_append(out, s, len)
		  : bytes_append(out, replacement, sizeof(replacement) - 1);
	return len ? len : 1;
}

int text_json_string(struct bytes *out, const char *s)
{
	int rc = text_add(out, "\"");
	for (size_t left = strlen(s), n = 0; !rc && left; s += n, left -= n) {
		unsigned char c = (unsigned char)*s;
		n = 1;
		if (c < 0x20)
			rc = text_add(out, "\\u%04x", c);
		else if (c == '"' || c == '\\')
			rc = text_add(out, "\\%c", c);
		else
			n = text_character(out, s, left, &rc);
	}
	return rc ? rc : text_add(out, "\"");
}

int text_seconds(struct bytes *out, uint64_t ns)
{
	enum { NS = 1000000000 };
	return text_add(out, "%" PRIu64 ".%09" PRIu64, ns / NS, ns % NS);
}

int text_fixed(struct bytes *out, double value)
{
	enum { PARTS = 1000000 };
	/* Not by printf's %f: its point depends on the locale. */
	const uint64_t parts = (uint64_t)(value * PARTS + 0.5);
	return text_add(out, "%" PRIu64 ".%06" PRIu64, parts / PARTS, parts % PARTS);
}

int text_time(struct bytes *out, int64_t ns)
{
	enum { NS = 1000000000 };
	int64_t frac = ns % NS;
	time_t seconds = (time_t)(ns / NS);
	if (frac < 0) {
		frac += NS;
		seconds--;
	}
	struct tm tm;
	char date[64];
	if (!gmtime_r(&seconds, &tm) || !strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm))
		return text_add(out, "unknown");
	return text_add(out, "%s.%06dZ", date, (int)(frac / 1000));
}

char *text_take(struct bytes *out)
{
	if (bytes_append_zero(out, 1))
		return NULL;
	char *s = (char *)out->data;
	*out = (struct bytes){0};
	return s;
}
