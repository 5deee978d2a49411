/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <h5/claims.h>
#include <h5/message.h>
#include <h5/shared.h>

#include "sohm_file.h"

enum { A = 373, B = 1017, D = 1717, TYPE = 324, MAX_READS = 64 };

static struct h5_shared *open_shared(struct memory_file *f)
{
	struct err err = ERR_INIT;
	memory_open_sohm(f);
	if (h5_file_open(&f->file, &f->source, &err))
		fail_msg("%s", err.msg);
	struct h5_shared *s = h5_shared_new(&f->file);
	assert_non_null(s);
	return s;
}

/* Resolves the message of a type in the header at addr. */
static int resolve(struct memory_file *f, struct h5_shared *s, uint64_t addr, enum h5_msg_type type,
		   struct cursor *body, uint64_t *committed, struct err *err)
{
	struct h5_ohdr h;
	assert_int_equal(h5_ohdr_decode(&f->file, addr, f->a, &h, NULL), 0);
	const struct h5_msg *m = h5_ohdr_find(&h, type);
	assert_non_null(m);
	assert_true(m->flags & H5_MSG_SHARED);
	struct cursor c = cursor_of(m->body, m->len);
	return h5_shared_resolve(s, type, &c, f->a, body, committed, err);
}

static void test_heap_and_header(void **state)
{
	struct memory_file f;
	struct h5_shared *s = open_shared(&f);
	struct cursor body;
	struct dspace space;
	const struct dtype *type;
	uint64_t committed = 0;
	assert_int_equal(resolve(&f, s, B, H5_MSG_DATASPACE, &body, &committed, NULL), 0);
	assert_int_equal(committed, H5_UNDEF);
	assert_int_equal(h5_dspace_decode(&f.file, &body, f.a, &space, NULL), 0);
	assert_int_equal(space.nelems, 6);
	assert_int_equal(resolve(&f, s, B, H5_MSG_DATATYPE, &body, &committed, NULL), 0);
	assert_int_equal(h5_dtype_decode(&f.file, &body, f.a, &type, NULL), 0);
	assert_int_equal(type->cls, DTYPE_COMPOUND);
	assert_int_equal(committed, H5_UNDEF);
	for (int i = 0; i < 2; i++) { /* from the file, and kept */
		assert_int_equal(resolve(&f, s, D, H5_MSG_DATATYPE, &body, &committed, NULL), 0);
		assert_int_equal(committed, TYPE);
		assert_int_equal(h5_dtype_decode(&f.file, &body, f.a, &type, NULL), 0);
		assert_int_equal(type->cls, DTYPE_INTEGER);
		assert_true(type->integer.big_endian);
	}
	h5_shared_free(s);
	memory_close(&f);
}

/* Decodes the attributes of a dataset; returns their number. */
static unsigned int attributes(struct memory_file *f, struct h5_shared *s, uint64_t addr,
			       struct h5_attr *attrs)
{
	struct h5_ohdr h;
	struct err err = ERR_INIT;
	unsigned int n = 0;
	assert_int_equal(h5_ohdr_decode(&f->file, addr, f->a, &h, NULL), 0);
	for (uint32_t i = 0; i < h.n; i++) {
		struct cursor c = cursor_of(h.msgs[i].body, h.msgs[i].len), body = c;
		uint64_t committed;
		if (h.msgs[i].type != H5_MSG_ATTRIBUTE)
			continue;
		int rc = h.msgs[i].flags & H5_MSG_SHARED
				 ? h5_shared_resolve(s, H5_MSG_ATTRIBUTE, &c, f->a, &body,
						     &committed, &err)
				 : 0;
		if (!rc)
			rc = h5_attr_decode(&f->file, &body, f->a, s, &attrs[n++], &err);
		if (rc)
			fail_msg("%s", err.msg);
	}
	return n;
}

static void test_attributes(void **state)
{
	struct memory_file f;
	struct h5_shared *s = open_shared(&f);
	struct h5_attr a[4], b[4];
	assert_int_equal(attributes(&f, s, A, a), 2);
	assert_int_equal(attributes(&f, s, B, b), 1);
	assert_string_equal(a[0].name, "shape");
	assert_int_equal(a[0].committed, H5_UNDEF);
	assert_int_equal(a[0].space.nelems, 4);
	assert_int_equal(a[0].data_len, 8);
	assert_memory_equal(a[0].data, "\0\0\1\0\2\0\3\0", 8);
	assert_memory_equal(a[0].data, b[0].data, 8);
	assert_string_equal(a[1].name, "c");
	assert_int_equal(a[1].committed, TYPE);
	assert_int_equal(a[1].type->size, 4);
	assert_memory_equal(a[1].data, "\0\0\0\5", 4);
	h5_shared_free(s);
	memory_close(&f);
}

/* Table, list and heaps are claimed; what was resolved before is not claimed again. */
static void test_claims(void **state)
{
	static const struct {
		uint64_t addr;
		int rc;
	} rows[] = {{96, 0}, {97, -EIO}, {164, -EIO}, {165, 0}, {640, 0}, {641, -EIO}, {682, -EIO}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct memory_file f;
		struct cursor body;
		uint64_t committed;
		struct err err = ERR_INIT;
		h5_shared_free(open_shared(&f));
		struct h5_claims *claims = h5_claims_new(NULL);
		f.file.claims = claims;
		struct h5_shared *s = h5_shared_new(&f.file);
		f.file.claims = NULL;
		assert_int_equal(resolve(&f, s, D, H5_MSG_DATATYPE, &body, &committed, NULL), 0);
		assert_int_equal(resolve(&f, s, D, H5_MSG_DATASPACE, &body, &committed, NULL), 0);
		if (h5_shared_claim(s, &err) || h5_claims_check(claims, &err))
			fail_msg("%s", err.msg);
		int rc = h5_claim(claims, rows[i].addr, 1, "test", NULL);
		if (!rc)
			rc = h5_claims_check(claims, NULL);
		assert_int_equal(rc, rows[i].rc);
		h5_shared_free(s);
		h5_claims_free(claims);
		memory_close(&f);
	}
}

static const struct {
	const char *name;
	enum h5_msg_type type;
	const char *hex;
	int rc;
} references[] = {
	{"nothing", H5_MSG_DATATYPE, "", -EIO},
	{"version 4", H5_MSG_DATATYPE, "04024401000000000000", -EOPNOTSUPP},
	{"unknown place", H5_MSG_DATATYPE, "03044401000000000000", -EIO},
	{"no object there", H5_MSG_DATATYPE, "03024501000000000000", -EIO},
	{"undefined address", H5_MSG_DATATYPE, "0302ffffffffffffffff", -EIO},
	{"object without the message", H5_MSG_DATATYPE, "0302a500000000000000", -EIO},
	{"message that is shared, too", H5_MSG_DATATYPE, "0302b506000000000000", -EIO},
	{"type without a heap", H5_MSG_FILL, "03010000000000000000", -EIO},
	{"type over 15 without a heap", H5_MSG_MTIME, "03010000000000000000", -EIO},
	{"unknown heap id", H5_MSG_DATASPACE, "0301ffffffffffffffff", -EOPNOTSUPP},
	{"object past the end of the heap", H5_MSG_DATASPACE, "030100ffff0000001000", -EIO},
	{"heap id cut off", H5_MSG_DATASPACE, "0301000000", -EIO},
};

static void test_wrong_references(void **state)
{
	struct memory_file f;
	struct h5_shared *s = open_shared(&f);
	for (size_t i = 0; i < sizeof(references) / sizeof(references[0]); i++) {
		size_t n;
		uint8_t *bytes = hex_bytes(references[i].hex, &n);
		struct cursor c = cursor_of(bytes, n), body;
		uint64_t committed;
		struct err err = ERR_INIT;
		int rc = h5_shared_resolve(s, references[i].type, &c, f.a, &body, &committed, &err);
		if (rc != references[i].rc || err.code != rc)
			fail_msg("%s: %d (%s)", references[i].name, rc, err.msg);
		free(bytes);
	}
	h5_shared_free(s);
	memory_close(&f);
}

/* More committed types than are kept: all are resolved, again and again. */
static void test_many_committed(void **state)
{
	enum { TYPES = 40, HEADER = 40, FIRST = 100 };
	struct memory_file f;
	memory_open(&f, FIRST + TYPES * HEADER);
	for (size_t i = 0; i < TYPES; i++) {
		const size_t at = FIRST + i * HEADER;
		memory_put(&f, at,
			   "0100010001000000180000000000000003001000000000001008000004000000"
			   "0000200000000000");
		f.bytes[at + 28] = (uint8_t)(i % 4 + 1); /* its size */
		f.bytes[at + 34] = 8;
	}
	struct h5_shared *s = h5_shared_new(&f.file);
	for (size_t round = 0; round < 3; round++)
		for (size_t i = 0; i < TYPES; i++) {
			uint8_t raw[10] = {2, 2, (uint8_t)((FIRST + i * HEADER) & 0xff),
					   (uint8_t)((FIRST + i * HEADER) >> 8)};
			struct cursor c = cursor_of(raw, sizeof(raw)), body;
			uint64_t committed;
			const struct dtype *t;
			assert_int_equal(h5_shared_resolve(s, H5_MSG_DATATYPE, &c, f.a, &body,
							   &committed, NULL),
					 0);
			assert_int_equal(h5_dtype_decode(&f.file, &body, f.a, &t, NULL), 0);
			assert_int_equal(t->size, i % 4 + 1);
			assert_int_equal(committed, FIRST + i * HEADER);
		}
	h5_shared_free(s);
	memory_close(&f);
}

/* A file without shared messages: nothing to claim, and no heap. */
static void test_no_table(void **state)
{
	struct memory_file f;
	memory_open(&f, 64);
	struct h5_shared *s = h5_shared_new(&f.file);
	struct cursor body;
	assert_int_equal(h5_shared_claim(s, NULL), 0);
	assert_int_equal(h5_shared_get(s, H5_MSG_DATATYPE, f.bytes, f.a, &body, NULL), -EIO);
	h5_shared_free(s);
	h5_shared_free(NULL);
	memory_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_heap_and_header), cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_claims),		cmocka_unit_test(test_wrong_references),
		cmocka_unit_test(test_many_committed),	cmocka_unit_test(test_no_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
