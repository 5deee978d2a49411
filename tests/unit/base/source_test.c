/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <base/source.h>

struct fake {
	unsigned int reads;
	int answer;
};

static int read_at(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct fake *f = ctx;
	f->reads++;
	return f->answer;
}

static void ranges(void **state)
{
	static const struct {
		uint64_t offset;
		size_t n;
		int rc;
		unsigned int reads;
	} rows[] = {
		{0, 100, 0, 1},		  {100, 0, 0, 0},    {99, 1, 0, 1},
		{0, 101, -EIO, 0},	  {100, 1, -EIO, 0}, {101, 0, -EIO, 0},
		{UINT64_MAX, 1, -EIO, 0},
	};
	uint8_t buf[128];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fake f = {0};
		struct source s = {.size = 100, .read_at = read_at, .ctx = &f};
		struct err err = ERR_INIT;
		assert_int_equal(source_read(&s, rows[i].offset, buf, rows[i].n, &err), rows[i].rc);
		assert_int_equal(err.code, rows[i].rc);
		assert_int_equal(f.reads, rows[i].reads);
	}
}

/* Only -EAGAIN records a range. */
static void wanted(void **state)
{
	struct fake f = {.answer = -EIO};
	struct source s = {.size = 100, .read_at = read_at, .ctx = &f};
	uint8_t buf[8];
	assert_int_equal(source_read(&s, 40, buf, 8, NULL), -EIO);
	assert_int_equal(s.missing_length, 0);
	f.answer = -EAGAIN;
	assert_int_equal(source_read(&s, 42, buf, 7, NULL), -EAGAIN);
	assert_int_equal(s.missing_offset, 42);
	assert_int_equal(s.missing_length, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(ranges), cmocka_unit_test(wanted)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
