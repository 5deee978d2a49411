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

static inline uint8_t patterned_byte(uint64_t offset)
{
	return (uint8_t)((offset + (offset >> 20)) * 2654435761u >> 24);
}

static inline int patterned_read(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct patterned *p = ctx;
	uint8_t *to = buf;
	int rc = 0;
	assert_false(atomic_exchange(&p->busy, true));
	for (size_t i = 0; i < n; i++)
		to[i] = patterned_byte(offset + i);
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
	for (size_t i = 0; i < n; i++)
		if (bytes[i] != patterned_byte(i))
			fail_msg("byte %zu: %u", i, bytes[i]);
}

#endif
