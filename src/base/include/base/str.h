/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that grows. Zero-initialised is empty. Sticky: once an allocation has failed, the text is ""
 * and stays so, whatever is added, and str_ok() is false; so a builder asks once, at the end:
 *
 *   auto_str struct str s = {0};
 *   str_addf(&s, "%s/%u", prefix, number);
 *   str_add(&s, suffix);
 *   return str_take(&s);            NULL: out of memory
 *
 * What is added must not lie in the text itself. One thread.
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdarg.h>

#include <base/mem.h>

struct str {
	struct bytes b; /* NUL-terminated whenever data is not NULL; the NUL is not in len */
	bool bad;	/* an allocation has failed */
};

void str_add(struct str *s, const char *text);
void str_addn(struct str *s, const char *text, size_t n);
void str_addf(struct str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void str_addv(struct str *s, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/* One character of UTF-8 at text, of which n > 0 bytes may be read; what is none becomes U+FFFD.
 * Returns how many bytes of text it was. */
size_t str_add_character(struct str *s, const char *text, size_t n);
/* A JSON string with its quotes; bytes that are not UTF-8 become U+FFFD. */
void str_add_json(struct str *s, const char *text);
/* Foreign text for a person, as printable() has it. */
void str_add_printable(struct str *s, const char *text);
/* Nanoseconds since the epoch as 2024-05-06T07:08:09.123456Z. */
void str_add_time(struct str *s, int64_t ns);
/* Leaves the first n bytes, n <= s->b.len. */
void str_cut(struct str *s, size_t n);
/* Never NULL; borrowed until the next change. */
const char *str_text(const struct str *s);
static inline bool str_ok(const struct str *s)
{
	return !s->bad;
}
/* The text on the heap, the caller's; NULL when bad. The str is empty afterwards. */
char *str_take(struct str *s);
void str_release(struct str *s);
/* Overwrites before it frees: for texts that held a secret. */
void str_wipe(struct str *s);
#define auto_str    __attribute__((cleanup(str_release)))
#define auto_secret __attribute__((cleanup(str_wipe)))

#endif
