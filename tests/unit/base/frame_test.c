/* SPDX-License-Identifier: Apache-2.0 */
/* Framed records: what was appended is read again, and nothing else is. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <base/frame.h>

static const char magic[] = "HSMTESTS";

static void fill(struct bytes *b)
{
	assert_int_equal(frame_put_head(b, magic, 3), 0);
	assert_int_equal(frame_append(b, 7, "seven", 5), 0);
	assert_int_equal(frame_append(b, 8, NULL, 0), 0);
}

static void test_round_trip(void **state)
{
	auto_bytes struct bytes b = {0};
	struct cursor body;
	uint16_t type;
	fill(&b);
	struct cursor c = cursor_of(b.data, b.len);
	assert_int_equal(frame_take_head(&c, magic, 3, NULL), 0);
	assert_int_equal(frame_next(&c, &type, &body), 1);
	assert_int_equal(type, 7);
	assert_int_equal(cur_left(&body), 5);
	assert_memory_equal(cur_bytes(&body, 5), "seven", 5);
	assert_int_equal(frame_next(&c, &type, &body), 1);
	assert_int_equal(type, 8);
	assert_int_equal(cur_left(&body), 0);
	assert_int_equal(frame_next(&c, &type, &body), 0);
}

static void test_heads(void **state)
{
	auto_bytes struct bytes b = {0};
	struct err err = ERR_INIT;
	fill(&b);
	struct cursor c = cursor_of(b.data, b.len);
	assert_int_equal(frame_take_head(&c, "HSMOTHER", 3, &err), -EBADMSG);
	c = cursor_of(b.data, b.len);
	assert_int_equal(frame_take_head(&c, magic, 2, &err), -ENOTSUP);
	assert_non_null(strstr(err.msg, "version 3"));
	c = cursor_of(b.data, 0);
	assert_int_equal(frame_take_head(&c, magic, 3, &err), -EBADMSG);
	/* Magic, version 3, and a byte more. A later version may have more. */
	bytes_release(&b);
	assert_int_equal(frame_append(&b, FRAME_HEAD, "HSMOTHER\3\0\0\0x", 13), 0);
	c = cursor_of(b.data, b.len);
	assert_int_equal(frame_take_head(&c, "HSMOTHER", 3, &err), -EBADMSG);
	c = cursor_of(b.data, b.len);
	assert_int_equal(frame_take_head(&c, "HSMOTHER", 2, &err), -ENOTSUP);
}

/* Reads all records. The number of intact ones before the end or the damage. */
static int count(const uint8_t *bytes, size_t n, int *rc)
{
	struct cursor c = cursor_of(bytes, n), body;
	uint16_t type;
	int records = 0;
	while ((*rc = frame_next(&c, &type, &body)) == 1)
		records++;
	return records;
}

static void test_every_cut_and_every_bit(void **state)
{
	auto_bytes struct bytes b = {0};
	const size_t ends[] = {0, 24, 41, 53};
	int rc;
	fill(&b);
	assert_int_equal(b.len, ends[3]);
	for (size_t n = 0; n <= b.len; n++) {
		const int whole = n < ends[1] ? 0 : n < ends[2] ? 1 : n < ends[3] ? 2 : 3;
		assert_int_equal(count(b.data, n, &rc), whole);
		assert_int_equal(rc, n == ends[whole] ? 0 : -EBADMSG);
	}
	for (size_t i = 0; i < 8 * b.len; i++) {
		b.data[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_true(count(b.data, b.len, &rc) < 3);
		assert_int_equal(rc, -EBADMSG);
		b.data[i / 8] ^= (uint8_t)(1 << i % 8);
	}
}

static void emit_number(struct emit *e, const void *ctx)
{
	emit_u32(e, *(const uint32_t *)ctx);
}

static void emit_bad(struct emit *e, const void *ctx)
{
	e->bad = true;
}

/* All ways to make a record give the same bytes. */
static void test_emitted(void **state)
{
	const uint32_t number = 0x01020304;
	auto_bytes struct bytes emitted = {0}, appended = {0};
	uint8_t sealed[FRAME_HEADER + 4] = {[FRAME_HEADER] = 4, 3, 2, 1};
	assert_int_equal(frame_emit(&emitted, 9, emit_number, &number), 0);
	assert_int_equal(frame_append(&appended, 9, "\4\3\2\1", 4), 0);
	frame_seal(sealed, 9, 4);
	assert_int_equal(emitted.len, sizeof(sealed));
	assert_memory_equal(emitted.data, sealed, sizeof(sealed));
	assert_int_equal(appended.len, sizeof(sealed));
	assert_memory_equal(appended.data, sealed, sizeof(sealed));
	assert_int_equal(frame_emit(&emitted, 9, emit_bad, NULL), -E2BIG);
	assert_int_equal(emitted.len, sizeof(sealed));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_heads),
		cmocka_unit_test(test_every_cut_and_every_bit),
		cmocka_unit_test(test_emitted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
