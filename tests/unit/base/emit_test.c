/* SPDX-License-Identifier: Apache-2.0 */
/* The bounded emitter: bytes, counting, bounds, patches. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <base/checksum.h>
#include <base/emit.h>

/* Calls each writer once: 45 bytes. */
static void encode(struct emit *e)
{
	size_t from;
	emit_u8(e, 0x01);
	from = e->pos;
	emit_u16(e, 0x0302);
	emit_u24(e, 0xff060504); /* the high byte is dropped */
	emit_u32(e, 0x0a090807);
	emit_u64(e, UINT64_C(0x1817161514131211));
	emit_uint(e, UINT64_C(0xffffffffff252423), 3);
	emit_uint(e, 77, 0);
	emit_bytes(e, "xyz", 3);
	emit_bytes(e, NULL, 0);
	emit_align(e, from, 8);
	emit_zero(e, 12);
	emit_zero(e, 0);
	emit_patch_u32(e, 1, 0x44434241);
	emit_patch_u32(e, 29, 0x99);
	emit_checksum(e, from);
	emit_zero(e, 4);
}

enum { FROM = 1, SUMMED = 37, TOTAL = 45 };
static const uint8_t encoded[SUMMED] = {
	0x01, 'A',  'B',  'C',	'D',  0x06, 0x07, 0x08, 0x09, 0x0a, 0x11, 0x12, 0x13,
	0x14, 0x15, 0x16, 0x17, 0x18, 0x23, 0x24, 0x25, 'x',  'y',  'z',  0,	0,
	0,    0,    0,	  0x99, 0,    0,    0,	  0,	0,    0,    0,
};

static void bytes(void **state)
{
	uint8_t buf[TOTAL + 1], sum[4];
	struct emit e = emit_to(buf, sizeof(buf)), s = emit_to(sum, sizeof(sum));
	memset(buf, 0xee, sizeof(buf));
	encode(&e);
	assert_false(e.bad);
	assert_int_equal(e.pos, TOTAL);
	assert_memory_equal(buf, encoded, SUMMED);
	emit_u32(&s, checksum_lookup3(encoded + FROM, SUMMED - FROM, 0));
	assert_memory_equal(buf + SUMMED, sum, sizeof(sum));
	assert_int_equal(buf[TOTAL], 0xee);
}

static void counting_agrees(void **state)
{
	struct emit e = emit_count();
	encode(&e);
	assert_false(e.bad);
	assert_int_equal(e.pos, TOTAL);
}

static void every_shorter_buffer_fails(void **state)
{
	uint8_t buf[TOTAL];
	for (size_t cap = 0; cap < TOTAL; cap++) {
		struct emit e = emit_to(buf, cap);
		memset(buf, 0xee, sizeof(buf));
		encode(&e);
		assert_true(e.bad);
		assert_true(e.pos <= cap);
		for (size_t i = cap; i < TOTAL; i++)
			assert_int_equal(buf[i], 0xee);
	}
}

static void bad_is_sticky(void **state)
{
	uint8_t buf[4] = {0};
	struct emit e = emit_to(buf, sizeof(buf));
	emit_u8(&e, 1);
	emit_u32(&e, 0xffffffff);
	emit_u8(&e, 2);
	emit_patch_u32(&e, 0, 0xffffffff);
	assert_true(e.bad);
	assert_int_equal(e.pos, 1);
	assert_memory_equal(buf, "\1\0\0\0", 4);
}

static void misuse_is_bad(void **state)
{
	uint8_t buf[16];
	struct emit e = emit_to(buf, sizeof(buf));
	emit_u32(&e, 0);
	emit_patch_u32(&e, 1, 0); /* its last byte is not written yet */
	assert_true(e.bad);
	e = emit_to(buf, sizeof(buf));
	emit_patch_u32(&e, SIZE_MAX, 0);
	assert_true(e.bad);
	e = emit_to(buf, sizeof(buf));
	emit_uint(&e, 0, 9);
	assert_true(e.bad);
	e = emit_to(buf, sizeof(buf));
	emit_checksum(&e, 1);
	assert_true(e.bad);
	e = emit_to(buf, sizeof(buf));
	emit_align(&e, 1, 8);
	assert_true(e.bad);
	e = emit_to(NULL, 16); /* a buffer that is NULL is an error, not counting */
	emit_u8(&e, 0);
	assert_true(e.bad);
	e = emit_count();
	emit_zero(&e, SIZE_MAX);
	emit_u8(&e, 0);
	assert_true(e.bad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes),
		cmocka_unit_test(counting_agrees),
		cmocka_unit_test(every_shorter_buffer_fails),
		cmocka_unit_test(bad_is_sticky),
		cmocka_unit_test(misuse_is_bad),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
