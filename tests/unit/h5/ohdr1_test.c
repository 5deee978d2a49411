/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <h5/claims.h>
#include <h5/ohdr.h>

#include "old_file.h"

static int decode(struct memory_file *f, uint64_t addr, struct h5_ohdr *h, struct err *err)
{
	memset(h, 0xa5, sizeof(*h));
	return h5_ohdr_decode(&f->file, addr, f->a, h, err);
}

static void assert_kind(const struct h5_ohdr *h, enum object_kind expected)
{
	enum object_kind kind;
	assert_true(h5_ohdr_kind(h, &kind));
	assert_int_equal(kind, expected);
}

static void test_continued_group(void **state)
{
	struct memory_file f;
	struct h5_ohdr h;
	memory_open_old(&f);
	assert_int_equal(decode(&f, 96, &h, NULL), 0);
	assert_int_equal(h.version, 1);
	assert_int_equal(h.refcount, 1);
	assert_false(h.has_times || h.has_phase || h.attr_order_tracked);
	assert_int_equal(h.n, 2);
	assert_int_equal(h.msgs[0].type, H5_MSG_SYMBOL_TABLE);
	assert_int_equal(h.msgs[0].len, 16);
	assert_int_equal(h.msgs[0].body[0], 136);
	assert_int_equal(h.msgs[1].type, H5_MSG_ATTRIBUTE);
	assert_ptr_equal(h5_ohdr_find(&h, H5_MSG_ATTRIBUTE), &h.msgs[1]);
	assert_null(h5_ohdr_find(&h, H5_MSG_LINK));
	assert_kind(&h, OBJECT_GROUP);
	memory_close(&f);
}

static void test_dataset_and_datatype(void **state)
{
	struct memory_file f;
	struct h5_ohdr h;
	uint32_t attributes = 0;
	memory_open_old(&f);
	assert_int_equal(decode(&f, 1832, &h, NULL), 0);
	assert_int_equal(h.refcount, 2);
	assert_kind(&h, OBJECT_DATASET);
	for (uint32_t i = 0; i < h.n; i++) {
		assert_int_not_equal(h.msgs[i].type, H5_MSG_NIL);
		attributes += h.msgs[i].type == H5_MSG_ATTRIBUTE;
		assert_int_equal(h.msgs[i].corder, 0);
	}
	assert_int_equal(attributes, 8);
	assert_int_equal(decode(&f, 4232, &h, NULL), 0);
	assert_kind(&h, OBJECT_DATATYPE);
	h.n = 0;
	assert_false(h5_ohdr_kind(&h, &(enum object_kind){0}));
	memory_close(&f);
}

/* Its chunks are claimed: the prefix and 24 bytes, and the continuation of 80 bytes. */
static void test_claims(void **state)
{
	static const struct {
		uint64_t addr;
		int rc;
	} rows[] = {{95, 0},   {96, -EIO},   {135, -EIO},  {136, 0},
		    {4151, 0}, {4152, -EIO}, {4231, -EIO}, {4232, 0}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct memory_file f;
		struct h5_ohdr h;
		memory_open_old(&f);
		struct h5_claims *claims = h5_claims_new(NULL);
		f.file.claims = claims;
		assert_int_equal(decode(&f, 96, &h, NULL), 0);
		int rc = h5_claim(claims, rows[i].addr, 1, "test", NULL);
		if (!rc)
			rc = h5_claims_check(claims, NULL);
		assert_int_equal(rc, rows[i].rc);
		h5_claims_free(claims);
		memory_close(&f);
	}
}

/* Changes of the root group's header. */
static const struct file_defect defects[] = {
	{"version 0", 96, "00", -EIO},
	{"version 3", 96, "03", -EIO},
	{"more messages than there are", 98, "0500", -EIO},
	{"chunk past the end of the file", 104, "00200000", -EIO},
	{"chunk of 4 GiB", 104, "ffffffff", -EIO},
	{"chunk that ends in the head of a message", 104, "1c000000", -EIO},
	{"message longer than its chunk", 114, "1800", -EIO},
	{"message that is not a multiple of 8", 4154, "0f00", -EIO},
	{"continuation to the header", 120, "60000000000000002800000000000000", -EIO},
	{"continuation past the end", 120, "3813000000000000f000000000000000", -EIO},
	{"continuation of 0 bytes", 128, "0000000000000000", -EIO},
	{"continuation at the undefined address", 120, "ffffffffffffffff5000000000000000", -EIO},
	{"unknown type that must be known", 4152, "2a00100080", -EOPNOTSUPP},
	{"type over 255 that must be known", 4152, "2a01100080", -EOPNOTSUPP},
};

static void test_defects(void **state)
{
	for (size_t i = 0; i < sizeof(defects) / sizeof(defects[0]); i++) {
		struct memory_file f;
		struct h5_ohdr h;
		struct err err = ERR_INIT;
		memory_open_old(&f);
		memory_put(&f, defects[i].at, defects[i].hex);
		int rc = decode(&f, 96, &h, &err);
		if (rc != defects[i].rc || err.code != rc || h.n)
			fail_msg("%s: %d (%s)", defects[i].name, rc, err.msg);
		memory_close(&f);
	}
}

/* The recorded number of messages may be too small, and unknown messages are kept. */
static void test_tolerated(void **state)
{
	struct memory_file f;
	struct h5_ohdr h;
	memory_open_old(&f);
	memory_put(&f, 98, "0100");
	memory_put(&f, 4152, "2a01");
	assert_int_equal(decode(&f, 96, &h, NULL), 0);
	assert_int_equal(h.n, 2);
	assert_int_equal(h.msgs[0].type, 0xff);
	memory_close(&f);
}

static void test_every_truncation(void **state)
{
	struct memory_file f;
	struct h5_ohdr h;
	memory_open_old(&f);
	for (f.source.size = 0; f.source.size < 4232; f.source.size++)
		assert_int_equal(decode(&f, 96, &h, NULL), -EIO);
	assert_int_equal(decode(&f, 96, &h, NULL), 0);
	memory_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_continued_group), cmocka_unit_test(test_dataset_and_datatype),
		cmocka_unit_test(test_claims),		cmocka_unit_test(test_defects),
		cmocka_unit_test(test_tolerated),	cmocka_unit_test(test_every_truncation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
