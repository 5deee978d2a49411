/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that grows. Sticky: after an allocation failed the text is "" and stays so, and str_ok()
 * says it; a builder asks once, at the end. Zero-initialised is empty. One thread.
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <base/mem.h>

struct str {
	struct bytes b; /* NUL-terminated whenever data is not NULL; the NUL is not in len */
	bool bad;
};

void str_add(struct str *s, const char *text);
void str_addn(struct str *s, const char *text, size_t n);
void str_addf(struct str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
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
