/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source whose bytes follow from their offsets, as a body to store. It checks that one thread at
 * a time reads it, and can fail at an offset.
 */
#ifndef TEST_PATTERNED_SOURCE_H
#define TEST_PATTERNED_SOURCE_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <base/source.h>

struct patterned {
	struct source source;
	uint64_t fail_at; /* a read of this byte fails with `code`, unless that is 0 */
	int code;
	unsigned int failures;
	atomic_bool busy;
};

/* Bodies have many megabytes, so this is fast also where tests are not optimized. */
__attribute__((optimize("O2"), no_sanitize("address", "thread"))) static inline void
patterned_fill(uint8_t *to, uint64_t offset, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (uint8_t)((offset + i + ((offset + i) >> 20)) * 2654435761u >> 24);
}

static inline uint8_t patterned_byte(uint64_t offset)
{
	uint8_t byte;
	patterned_fill(&byte, offset, 1);
	return byte;
}

static inline int patterned_read(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct patterned *p = ctx;
	int rc = 0;
	assert_false(atomic_exchange(&p->busy, true));
	patterned_fill(buf, offset, n);
	if (p->code && p->fail_at >= offset && p->fail_at - offset < n) {
		p->failures++;
		rc = err_set(err, p->code, "the pattern is torn");
	}
	atomic_store(&p->busy, false);
	return rc;
}

static inline void patterned_init(struct patterned *p, uint64_t size)
{
	*p = (struct patterned){.source = {.size = size, .read_at = patterned_read, .ctx = p}};
}

static inline void patterned_assert(const uint8_t *bytes, size_t n, uint64_t size)
{
	assert_int_equal(n, size);
	uint8_t want[1 << 16];
	for (size_t i = 0; i < n; i += sizeof(want)) {
		const size_t some = n - i < sizeof(want) ? n - i : sizeof(want);
		patterned_fill(want, i, some);
		assert_memory_equal(bytes + i, want, some);
	}
}

#endif
