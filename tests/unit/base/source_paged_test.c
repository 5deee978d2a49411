/* SPDX-License-Identifier: Apache-2.0 */
/* A source with a cache of pages: contents, number of fetches, eviction, pages that arrive later.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>
#include <base/source_paged.h>

enum { PAGES = 5, SIZE = PAGES * SOURCE_PAGE - 100 };

struct fake {
	uint8_t *bytes;
	unsigned int fetches;
	bool away; /* the bytes arrive by source_paged_put() only */
};

static int fetch(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct fake *f = ctx;
	if (f->away)
		return -EAGAIN;
	f->fetches++;
	memcpy(buf, f->bytes + offset, n);
	return 0;
}

static int setup(void **state)
{
	struct fake *f = calloc(1, sizeof(*f));
	f->bytes = malloc(SIZE);
	for (size_t i = 0; i < SIZE; i++)
		f->bytes[i] = (uint8_t)(i * 7 + i / 251);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fake *f = *state;
	free(f->bytes);
	free(f);
	return 0;
}

static void check(struct fake *f, struct source_paged *p, uint64_t offset, size_t n)
{
	auto_free uint8_t *got = malloc(n);
	struct err err = ERR_INIT;
	assert_int_equal(source_read(source_paged_source(p), offset, got, n, &err), 0);
	assert_memory_equal(got, f->bytes + offset, n);
}

static void fetches_a_page_once(void **state)
{
	struct fake *f = *state;
	struct source_paged *p = source_paged_new(SIZE, PAGES, fetch, f);
	for (size_t at = 0; at + 100 <= SIZE; at += 997)
		check(f, p, at, 100);
	check(f, p, SIZE - 1, 1);
	assert_int_equal(f->fetches, PAGES);
	check(f, p, 10, SIZE - 10); /* all are in memory */
	assert_int_equal(f->fetches, PAGES);
	source_paged_free(p);
}

static void evicts_what_is_not_used(void **state)
{
	struct fake *f = *state;
	struct source_paged *p = source_paged_new(SIZE, 2, fetch, f);
	check(f, p, 0, 8);
	for (unsigned int i = 1; i < PAGES; i++) {
		check(f, p, i * SOURCE_PAGE, 8);
		check(f, p, SOURCE_PAGE - 8, 16);
	}
	assert_true(f->fetches > PAGES);
	assert_true(f->fetches <= 3 * PAGES);
	source_paged_free(p);
}

/* The whole pages of a large read go past the cache, in one fetch. */
static void does_not_keep_data(void **state)
{
	struct fake *f = *state;
	struct source_paged *p = source_paged_new(SIZE, PAGES, fetch, f);
	check(f, p, 0, 3 * SOURCE_PAGE);
	assert_int_equal(f->fetches, 1);
	check(f, p, SOURCE_PAGE + 5, 8);
	assert_int_equal(f->fetches, 2);
	check(f, p, 0, 3 * SOURCE_PAGE); /* around the page in memory */
	assert_int_equal(f->fetches, 4);
	source_paged_free(p);
}

/* Fetches what the last read missed. */
static int put_missing(struct fake *f, struct source_paged *p, struct err *err)
{
	const struct source *s = source_paged_source(p);
	uint64_t offset = s->missing_offset, n = s->missing_length;
	source_paged_round(p, &offset, &n);
	assert_int_equal(offset % SOURCE_PAGE, 0);
	assert_true((offset + n) % SOURCE_PAGE == 0 || offset + n == SIZE);
	return source_paged_put(p, offset, f->bytes + offset, n, err);
}

static void pages_arrive_later(void **state)
{
	struct fake *f = *state;
	struct source_paged *p = source_paged_new(SIZE, PAGES, fetch, f);
	uint8_t got[64];
	struct err err = ERR_INIT;
	f->away = true;
	for (uint64_t at = SOURCE_PAGE - 32; at < SIZE - 64; at += SOURCE_PAGE) {
		assert_int_equal(source_read(source_paged_source(p), at, got, 64, &err), -EAGAIN);
		assert_int_equal(put_missing(f, p, &err), 0);
		check(f, p, at, 64);
	}
	check(f, p, 0, SIZE);
	source_paged_free(p);
}

/* A walk that starts again needs all pages again, so evicting one would never end. */
static void too_few_pages_for_what_arrives(void **state)
{
	struct fake *f = *state;
	struct source_paged *p = source_paged_new(SIZE, 1, fetch, f);
	uint8_t got[8];
	struct err err = ERR_INIT;
	f->away = true;
	assert_int_equal(source_read(source_paged_source(p), 0, got, 8, &err), -EAGAIN);
	assert_int_equal(put_missing(f, p, &err), 0);
	assert_int_equal(source_read(source_paged_source(p), SOURCE_PAGE, got, 8, &err), -EAGAIN);
	assert_int_equal(put_missing(f, p, &err), -ENOMEM);
	check(f, p, 0, 8);
	source_paged_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(fetches_a_page_once, setup, teardown),
		cmocka_unit_test_setup_teardown(evicts_what_is_not_used, setup, teardown),
		cmocka_unit_test_setup_teardown(does_not_keep_data, setup, teardown),
		cmocka_unit_test_setup_teardown(pages_arrive_later, setup, teardown),
		cmocka_unit_test_setup_teardown(too_few_pages_for_what_arrives, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
