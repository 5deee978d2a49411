/* SPDX-License-Identifier: Apache-2.0 */
/* The file of checksums as bytes: the files of the fuzz target's corpus, each with its reason, and
 * entries. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "overlay/sums_format.h"

static size_t load(const char *name, uint8_t *bytes, size_t n)
{
	char path[1024];
	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/overlay_sums/%s",
		 getenv("HSMOUNT_SOURCE"), name);
	FILE *f = fopen(path, "rb");
	if (!f)
		fail_msg("%s is missing", path);
	const size_t got = fread(bytes, 1, n, f);
	fclose(f);
	return got;
}

static void headers(void **state)
{
	static const struct {
		const char *name;
		int code;
		bool final;
	} cases[] = {
		{"three-frames", 0, false},
		{"final", 0, true},
		{"no-frames", 0, false},
		{"bad-crc", -EBADMSG, false},
		{"bad-magic", -EBADMSG, false},
		{"header-cut", -EBADMSG, false},
		{"not-zero", -EBADMSG, false},
		{"almost-final", -EBADMSG, false},
		{"later-version", -EBADMSG, false},
	};
	uint8_t bytes[256], again[SUMS_HEADER];
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool final = false;
		const size_t n = load(cases[i].name, bytes, sizeof(bytes));
		assert_int_equal(sums_header_decode(bytes, n, &final), cases[i].code);
		assert_int_equal(final, cases[i].final);
		if (cases[i].code)
			continue;
		sums_header_encode(final, again);
		assert_memory_equal(again, bytes, sizeof(again));
	}
}

static int decode_entry(const char *name, uint32_t frame, struct sum_entry *entry)
{
	uint8_t bytes[256];
	const size_t at = SUMS_HEADER + frame * SUMS_ENTRY;
	assert_true(load(name, bytes, sizeof(bytes)) >= at + SUMS_ENTRY);
	return sum_entry_decode(3, frame, bytes + at, entry);
}

static void entries(void **state)
{
	struct sum_entry e;
	assert_int_equal(decode_entry("three-frames", 0, &e), 0);
	assert_true(e.crc == 0x12345678 && e.length == SUMS_FRAME && !e.unknown);
	assert_int_equal(decode_entry("three-frames", 1, &e), 0);
	assert_true(e.crc == 0 && e.length == 0 && !e.unknown);
	assert_int_equal(decode_entry("three-frames", 2, &e), 0);
	assert_true(e.crc == 1 && e.length == 1 && !e.unknown);
	assert_int_equal(decode_entry("unknown", 0, &e), 0);
	assert_true(e.crc == 0 && e.length == 0 && e.unknown);
	assert_int_equal(decode_entry("unknown-with-crc", 0, &e), -EBADMSG);
	assert_int_equal(decode_entry("unknown-with-length", 0, &e), -EBADMSG);
	assert_int_equal(decode_entry("crc-without-length", 0, &e), -EBADMSG);
	assert_int_equal(decode_entry("frame-too-long", 0, &e), -EBADMSG);
	assert_int_equal(decode_entry("entry-of-another-frame", 1, &e), -EBADMSG);
	assert_int_equal(decode_entry("bad-check", 0, &e), -EBADMSG);
}

/* Whatever the entry: another generation, another frame, and each bit is noticed. */
static void each_bit_counts(void **state)
{
	uint32_t random = 1;
	for (unsigned int i = 0; i < 2000; i++) {
		uint8_t bytes[SUMS_ENTRY];
		struct sum_entry e = {.unknown = i % 8 == 0}, again;
		random = random * 1664525 + 1013904223;
		const uint32_t frame = random >> 12, generation = i % 5;
		if (!e.unknown) {
			e.crc = random * 2654435761u;
			e.length = 1 + (random >> 16) % SUMS_FRAME;
		}
		sum_entry_encode(generation, frame, &e, bytes);
		assert_int_equal(sum_entry_decode(generation, frame, bytes, &again), 0);
		assert_true(e.crc == again.crc && e.length == again.length);
		assert_int_equal(e.unknown, again.unknown);
		for (unsigned int bit = 0; bit < 32; bit++) {
			const uint32_t other = frame ^ 1u << bit;
			assert_int_equal(sum_entry_decode(generation, other, bytes, &again),
					 -EBADMSG);
			assert_int_equal(
				sum_entry_decode(generation ^ 1u << bit, frame, bytes, &again),
				-EBADMSG);
		}
		for (unsigned int bit = 0; bit < 8 * SUMS_ENTRY; bit++) {
			bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_int_equal(sum_entry_decode(generation, frame, bytes, &again),
					 -EBADMSG);
			bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
}

/* A frame without an entry: no changed bit makes one, whatever the generation. */
static void no_entry(void **state)
{
	for (uint32_t generation = 0; generation < 20000; generation++) {
		uint8_t bytes[SUMS_ENTRY] = {0};
		struct sum_entry e;
		assert_int_equal(sum_entry_decode(generation, 0, bytes, &e), 0);
		assert_true(!e.length && !e.unknown);
		for (unsigned int bit = 0; bit < 8 * SUMS_ENTRY; bit++) {
			bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_int_equal(sum_entry_decode(generation, 0, bytes, &e), -EBADMSG);
			bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers),
		cmocka_unit_test(entries),
		cmocka_unit_test(each_bit_counts),
		cmocka_unit_test(no_entry),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
