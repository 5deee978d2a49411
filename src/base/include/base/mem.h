/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory: cleanup attributes, overflow-checked arithmetic, growable bytes, and an arena for
 * allocations that are freed together, such as the objects of one domain.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}
#define auto_free __attribute__((cleanup(cleanup_free)))

static inline bool mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
	return !__builtin_mul_overflow(a, b, out);
}
static inline bool add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
	return !__builtin_add_overflow(a, b, out);
}
static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}
static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}
static inline uint64_t div_up_u64(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}
/* Rounds v up to a multiple of align, a power of two. The caller ensures that v + align does not
 * overflow. */
static inline uint64_t align_u64(uint64_t v, uint64_t align)
{
	return (v + align - 1) & ~(align - 1);
}

/* Borrowed bytes. Several pieces make up one body. */
struct piece {
	const void *data;
	size_t n;
};
static inline uint64_t pieces_size(const struct piece *pieces, size_t n)
{
	uint64_t size = 0;
	for (size_t i = 0; i < n; i++)
		size += pieces[i].n;
	return size;
}

/* Growable bytes. Zero-initialised is empty. */
struct bytes {
	uint8_t *data;
	size_t len;
	size_t cap;
};
/* Makes room for n more bytes after len. Fails with -ENOMEM. */
int bytes_reserve(struct bytes *b, size_t n);
int bytes_append(struct bytes *b, const void *data, size_t n);
int bytes_append_zero(struct bytes *b, size_t n);
/* Frees the memory reserved after len. */
void bytes_trim(struct bytes *b);
void bytes_release(struct bytes *b);
#define auto_bytes __attribute__((cleanup(bytes_release)))

/* Makes room for one more element behind the n elements of an array that only this function grows.
 * Returns the array, which may have moved, or NULL if out of memory: then the old one stays. */
void *array_grow(void *array, size_t n, size_t size);

enum { MEM_KEPT = 16 << 20 /* bytes of free memory that glibc keeps at the end of an arena */ };
/* Returns freed memory to the system, also if it lies between blocks in use. Takes time for all of
 * the memory of the process. */
void mem_return_freed(void);

/* An arena: its allocations are freed together. Not thread-safe, but any number of threads may read
 * the allocations. */
struct arena;
/* limit is the number of bytes that may be allocated from it in total, so that a hostile document
 * cannot exhaust the machine's memory. */
struct arena *arena_new(size_t limit);
void arena_free(struct arena *a);
/* Returns n zeroed bytes, aligned to 16, or NULL if out of memory or if the limit is reached. */
void *arena_alloc(struct arena *a, size_t n);
/* The same for n elements of size bytes each. */
void *arena_array(struct arena *a, size_t n, size_t size);
/* Returns a copy of n bytes with a NUL after it. */
char *arena_strndup(struct arena *a, const char *s, size_t n);
size_t arena_used(const struct arena *a);
/* Gives back what was allocated since arena_mark(), if it is at the end of one block; otherwise
 * nothing happens. Nothing may refer to it any more. */
struct arena_mark {
	const void *block;
	size_t in_block, used;
};
struct arena_mark arena_mark(const struct arena *a);
void arena_rewind(struct arena *a, const struct arena_mark *mark);

#endif
