/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that recognise the parts that keys of both schema versions have in common. Each
 * function moves *p past the text that it recognises. If it returns false, *p may be anywhere
 * before the end of the text. The NUL at the end matches nothing. Pure.
 */
#ifndef HSDS_KEY_TEXT_H
#define HSDS_KEY_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include <base/mem.h>

static inline bool key_take(const char **p, char c)
{
	if (**p != c)
		return false;
	(*p)++;
	return true;
}

/* Recognises a decimal number without leading zeros, below 2^64. */
static inline bool key_take_number(const char **p, uint64_t *out)
{
	const char *start = *p;
	uint64_t v = 0;
	for (; **p >= '0' && **p <= '9'; (*p)++)
		if (!mul_u64(v, 10, &v) || !add_u64(v, (uint64_t)(**p - '0'), &v))
			return false;
	*out = v;
	return *p > start && (*start != '0' || *p == start + 1);
}

#endif
