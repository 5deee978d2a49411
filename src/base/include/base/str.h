/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growable text. Zero-initialised, it is empty. Errors are sticky: once an allocation has failed,
 * the text stays "" and str_ok() is false. Code that builds a text therefore checks once, at
 * the end:
 *
 *   auto_str struct str s = {0};
 *   str_addf(&s, "%s/%u", prefix, number);
 *   str_add(&s, suffix);
 *   return str_take(&s); NULL if out of memory
 *
 * The added text must not be part of the text itself. One thread at a time.
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdarg.h>

#include <base/mem.h>

struct str {
	struct bytes b; /* NUL-terminated unless data is NULL; len does not count the NUL */
	bool bad;	/* an allocation has failed */
};

/* Makes room for n bytes, which are then added without another allocation. */
void str_reserve(struct str *s, size_t n);
void str_add(struct str *s, const char *text);
void str_addn(struct str *s, const char *text, size_t n);
void str_addf(struct str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void str_addv(struct str *s, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/* Adds the UTF-8 character at text, of which n > 0 bytes may be read, and returns its length in
 * bytes. A byte that does not begin a character becomes U+FFFD. */
size_t str_add_character(struct str *s, const char *text, size_t n);
/* Adds a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD. */
void str_add_json(struct str *s, const char *text);
/* Compares two elements of an array of texts, for qsort(3) and bsearch(3). */
int str_compare(const void *a, const void *b);
/* Adds foreign text, escaped by printable(). */
void str_add_printable(struct str *s, const char *text);
/* Adds a time as 2024-05-06T07:08:09.123456Z. ns is in nanoseconds since the epoch. */
void str_add_time(struct str *s, int64_t ns);
/* Cuts the text to n bytes, if it is longer. */
void str_cut(struct str *s, size_t n);
/* Returns the text, which is never NULL and is valid until the next change. */
const char *str_text(const struct str *s);
static inline bool str_ok(const struct str *s)
{
	return !s->bad;
}
/* Returns the text, which the caller frees, and empties s. Returns NULL if out of memory. */
char *str_take(struct str *s);
void str_release(struct str *s);
/* Overwrites the text before it is freed, for secrets. */
void str_wipe(struct str *s);
#define auto_str    __attribute__((cleanup(str_release)))
#define auto_secret __attribute__((cleanup(str_wipe)))

#endif
