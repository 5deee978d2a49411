/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows. Pure, any thread. */
#include "text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

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

int text_json_string(struct bytes *out, const char *s)
{
	int rc = text_add(out, "\"");
	for (; !rc && *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c < 0x20)
			rc = text_add(out, "\\u%04x", c);
		else if (c == '"' || c == '\\')
			rc = text_add(out, "\\%c", c);
		else
			rc = bytes_append(out, s, 1);
	}
	return rc ? rc : text_add(out, "\"");
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
