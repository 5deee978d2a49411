/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An arena: allocations that are freed together. Memory is taken from the front of blocks. Block
 * sizes double up to a maximum, so a small domain costs little and a large one needs few calls. An
 * allocation that is large itself gets its own block, and the current block stays in use.
 *
 * Invariants: the unused bytes of a block are zero, so allocations need no clearing. used <= limit,
 * where `used` is the sum of the requested sizes, each rounded up to ALIGN. With the address
 * sanitizer, memory that was not handed out is poisoned and a gap follows each allocation, so an
 * overrun within a block is detected.
 */
#include <base/mem.h>

#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#endif

#ifdef ARENA_ASAN
#include <sanitizer/asan_interface.h>
#define poison(p, n)   ASAN_POISON_MEMORY_REGION(p, n)
#define unpoison(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define poison(p, n)   ((void)(p), (void)(n))
#define unpoison(p, n) ((void)(p), (void)(n))
#endif

enum {
	ALIGN = 16,
	BLOCK_MIN = 4 << 10,
	BLOCK_MAX = 256 << 10,
#ifdef ARENA_ASAN
	GAP = ALIGN,
#else
	GAP = 0,
#endif
};

struct block {
	struct block *next;
	size_t used, cap; /* bytes of data */
	_Alignas(ALIGN) uint8_t data[];
};
_Static_assert(sizeof(struct block) % ALIGN == 0, "data begins aligned");
_Static_assert(_Alignof(max_align_t) >= ALIGN, "calloc aligns blocks");

struct arena {
	size_t limit, used;
	size_t next_cap;
	struct block *blocks; /* the first one is in use */
};

struct arena *arena_new(size_t limit)
{
	struct arena *a = calloc(1, sizeof(*a));
	if (a) {
		a->limit = limit;
		a->next_cap = BLOCK_MIN;
	}
	return a;
}

void arena_free(struct arena *a)
{
	if (!a)
		return;
	while (a->blocks) {
		struct block *b = a->blocks;
		a->blocks = b->next;
		unpoison(b->data, b->cap);
		free(b);
	}
	free(a);
}

static struct block *block_new(size_t cap)
{
	struct block *b = calloc(1, sizeof(*b) + cap);
	if (!b)
		return NULL;
	b->cap = cap;
	poison(b->data, cap);
	return b;
}

/* Returns a block with n free bytes. n is a multiple of ALIGN. */
static struct block *block_for(struct arena *a, size_t n)
{
	struct block *b = a->blocks;
	if (b && n <= b->cap - b->used)
		return b;
	if (b && n > a->next_cap / 4) {
		b = block_new(n);
		if (b) {
			b->next = a->blocks->next;
			a->blocks->next = b;
		}
		return b;
	}
	b = block_new(n > a->next_cap ? n : a->next_cap);
	if (!b)
		return NULL;
	b->next = a->blocks;
	a->blocks = b;
	if (a->next_cap < BLOCK_MAX)
		a->next_cap *= 2;
	return b;
}

void *arena_alloc(struct arena *a, size_t n)
{
	/* Allocations of zero bytes have distinct addresses, too. */
	size_t requested = n ? n : 1;
	size_t size;
	struct block *b;
	uint8_t *p;
	if (requested > a->limit || requested > SIZE_MAX / 2)
		return NULL;
	size = align_u64(requested, ALIGN);
	if (size > a->limit - a->used)
		return NULL;
	b = block_for(a, size + GAP);
	if (!b)
		return NULL;
	p = b->data + b->used;
	b->used += size + GAP;
	a->used += size;
	unpoison(p, n);
	return p;
}

void *arena_array(struct arena *a, size_t n, size_t size)
{
	size_t total;
	return __builtin_mul_overflow(n, size, &total) ? NULL : arena_alloc(a, total);
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
	char *copy = n < SIZE_MAX ? arena_alloc(a, n + 1) : NULL;
	if (copy && n)
		memcpy(copy, s, n);
	return copy;
}

size_t arena_used(const struct arena *a)
{
	return a->used;
}

struct arena_mark arena_mark(const struct arena *a)
{
	return (struct arena_mark){
		.block = a->blocks, .in_block = a->blocks ? a->blocks->used : 0, .used = a->used};
}

void arena_rewind(struct arena *a, const struct arena_mark *mark)
{
	struct block *b = a->blocks;
	/* A large allocation has a block of its own: then the sums differ. */
	if (!b || b != mark->block || b->used - mark->in_block < a->used - mark->used)
		return;
	uint8_t *from = b->data + mark->in_block;
	const size_t n = b->used - mark->in_block;
	unpoison(from, n);
	memset(from, 0, n);
	poison(from, n);
	b->used = mark->in_block;
	a->used = mark->used;
}
