/* SPDX-License-Identifier: Apache-2.0 */
/* Growable bytes. Invariants: len <= cap; data is NULL only if cap is 0. Not thread-safe. */
#include <base/mem.h>

#include <errno.h>
#include <malloc.h>
#include <string.h>

enum { BYTES_MIN = 64, ARRAY_MIN = 16 };

void *array_grow(void *array, size_t n, size_t size)
{
	/* The array has room up to the next power of two, and for ARRAY_MIN elements at least. */
	if (n < ARRAY_MIN ? array != NULL : (n & (n - 1)) != 0)
		return array;
	return reallocarray(array, n < ARRAY_MIN ? ARRAY_MIN : 2 * n, size);
}

int bytes_reserve(struct bytes *b, size_t n)
{
	size_t need, cap;
	uint8_t *data;
	if (__builtin_add_overflow(b->len, n, &need))
		return -ENOMEM;
	if (need <= b->cap)
		return 0;
	/* Doubling keeps the cost of appending linear. Bytes that never grow take no more memory
	 * than they need. */
	if (__builtin_mul_overflow(b->cap, (size_t)2, &cap) || cap < need)
		cap = need;
	if (b->cap && cap < BYTES_MIN)
		cap = BYTES_MIN;
	data = realloc(b->data, cap);
	if (!data)
		return -ENOMEM;
	b->data = data;
	b->cap = cap;
	return 0;
}

int bytes_append(struct bytes *b, const void *data, size_t n)
{
	int r = bytes_reserve(b, n);
	if (r < 0)
		return r;
	if (n)
		memcpy(b->data + b->len, data, n);
	b->len += n;
	return 0;
}

int bytes_append_zero(struct bytes *b, size_t n)
{
	int r = bytes_reserve(b, n);
	if (r < 0)
		return r;
	if (n)
		memset(b->data + b->len, 0, n);
	b->len += n;
	return 0;
}

void bytes_trim(struct bytes *b)
{
	uint8_t *data;
	if (b->len == 0) {
		bytes_release(b);
		return;
	}
	data = b->len < b->cap ? realloc(b->data, b->len) : NULL;
	if (!data)
		return;
	b->data = data;
	b->cap = b->len;
}

void bytes_release(struct bytes *b)
{
	free(b->data);
	*b = (struct bytes){0};
}

void mem_return_freed(void)
{
#ifdef __GLIBC__
	enum {
		ENOUGH = 128 << 10 /* free() looks at the end of an arena only after such a block */
	};
	malloc_trim(0);
	/* malloc_trim() does not return the end of an arena that is not the first one. A smaller
	 * threshold makes free() do it. Threads that free memory meanwhile return more, too. */
	volatile char *block = malloc(ENOUGH);
	mallopt(M_TRIM_THRESHOLD, 0);
	if (block)
		*block = 0; /* or the compiler leaves the block out */
	free((void *)(uintptr_t)block);
	mallopt(M_TRIM_THRESHOLD, MEM_KEPT);
#endif
}
