/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include <base/checksum.h>
#include <h5/claims.h>
#include <h5/free_space.h>
#include "mem_src.h"

#include "hex.h"

/* A free-space manager of a heap, as HDF5 1.10.8 writes it. Its list has 0x63 bytes at 0x156. */
static const char header[] =
	"4653484400001c020000000000000e000000000000000e0000000000000000000000000000000400"
	"500078002000000001000000000056010000000000006300000000000000630000000000000005ce"
	"3efe";
enum { AT = 32, HEADER = 82, LIST = 0x156, LIST_SIZE = 0x63, SIZE = 1024 };

/* Whether the claims end with these bytes claimed. */
static bool claims(struct mem_src *m, uint64_t at, uint64_t n, int expected)
{
	m->file.claims = h5_claims_new(NULL);
	struct err err = ERR_INIT;
	int rc = h5_free_space_claim(&m->file, AT, &err);
	if (rc != expected)
		fail_msg("%d instead of %d: %s", rc, expected, err.msg);
	h5_claim(m->file.claims, at, n, "test", NULL);
	rc = h5_claims_check(m->file.claims, NULL);
	h5_claims_free(m->file.claims);
	m->file.claims = NULL;
	return rc != 0;
}

static void load(uint8_t *file)
{
	size_t n;
	auto_free uint8_t *bytes = hex_bytes(header, &n);
	assert_int_equal(n, HEADER);
	memset(file, 0, SIZE);
	memcpy(file + AT, bytes, n);
}

static void test_claims(void **state)
{
	uint8_t file[SIZE];
	struct mem_src m;
	load(file);
	mem_src_init(&m, file, SIZE);
	assert_false(claims(&m, 0, AT, 0));
	assert_true(claims(&m, AT, 1, 0));
	assert_true(claims(&m, AT + HEADER - 1, 1, 0));
	assert_false(claims(&m, AT + HEADER, LIST - AT - HEADER, 0));
	assert_true(claims(&m, LIST, 1, 0));
	assert_true(claims(&m, LIST + LIST_SIZE - 1, 1, 0));
	assert_false(claims(&m, LIST + LIST_SIZE, 1, 0));
}

static void test_nothing_is_read_without_need(void **state)
{
	uint8_t file[SIZE] = {0};
	struct mem_src m;
	mem_src_init(&m, file, SIZE);
	assert_int_equal(h5_free_space_claim(&m.file, AT, NULL), 0);
	m.file.claims = h5_claims_new(NULL);
	assert_int_equal(h5_free_space_claim(&m.file, H5_UNDEF, NULL), 0);
	assert_int_equal(m.reads, 0);
	h5_claims_free(m.file.claims);
}

static void test_malformed(void **state)
{
	static const struct {
		const char *defect;
		size_t at, n;
		uint64_t value;
		bool mend;
		int rc;
	} rows[] = {
		{"no list", 54, 8, H5_UNDEF, true, 0},
		{"signature", 0, 1, 'X', true, -EIO},
		{"version", 4, 1, 1, true, -EOPNOTSUPP},
		{"checksum", 20, 1, 1, false, -EIO},
		{"list outside of the file", 54, 8, SIZE + 1, true, -EIO},
		{"list passes the end of the file", 70, 8, SIZE - LIST + 1, true, -EIO},
		{"list of 2^64 - 1 bytes", 70, 8, UINT64_MAX, true, -EIO},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t file[SIZE];
		struct mem_src m;
		load(file);
		struct emit e = emit_to(file + AT + rows[i].at, 8);
		emit_uint(&e, rows[i].value, (unsigned int)rows[i].n);
		e = emit_to(file + AT + HEADER - 4, 4);
		if (rows[i].mend)
			emit_u32(&e, checksum_lookup3(file + AT, HEADER - 4, 0));
		mem_src_init(&m, file, SIZE);
		assert_false(claims(&m, LIST, 1, rows[i].rc));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_claims),
		cmocka_unit_test(test_nothing_is_read_without_need),
		cmocka_unit_test(test_malformed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
