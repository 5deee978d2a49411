/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <stdio.h>

#include <base/emit.h>
#include <h5/claims.h>
#include <h5/symtab.h>

#include "old_file.h"

enum { BTREE = 136, HEAP = 680, NODE = 1504, NODE_SIZE = 8 + 8 * 40 };

static const struct h5_symtab root = {.btree = BTREE, .heap = HEAP};

/* Writes the links as text. */
struct list {
	char text[1024];
	uint64_t n;
	uint64_t stop_after; /* 0: never */
};

static int add(void *ctx, const struct h5_symbol *s, struct err *err)
{
	struct list *l = ctx;
	size_t used = strlen(l->text);
	l->n++;
	if (s->header == H5_UNDEF)
		snprintf(l->text + used, sizeof(l->text) - used, "%s->%s ", s->name, s->path);
	else
		snprintf(l->text + used, sizeof(l->text) - used, "%s=%u ", s->name,
			 (unsigned int)s->header);
	return l->stop_after && l->n == l->stop_after ? 42 : 0;
}

static int walk(struct memory_file *f, struct list *l, struct err *err)
{
	return h5_symtab_find(&f->file, &root, NULL, add, l, err);
}

static void test_message(void **state)
{
	size_t n;
	uint8_t *bytes = hex_bytes("88000000a8020000", &n);
	struct h5_file narrow = h5_file_of(NULL);
	narrow.addr_size = 4;
	struct h5_symtab t;
	struct cursor c = cursor_of(bytes, n);
	assert_int_equal(h5_symtab_decode(&narrow, &c, &t, NULL), 0);
	assert_int_equal(t.btree, BTREE);
	assert_int_equal(t.heap, HEAP);
	c = cursor_of(bytes, n - 1);
	assert_int_equal(h5_symtab_decode(&narrow, &c, &t, NULL), -EIO);
	memset(bytes + 4, 0xff, 4);
	c = cursor_of(bytes, n);
	assert_int_equal(h5_symtab_decode(&narrow, &c, &t, NULL), -EIO);
	free(bytes);
}

static void test_library_group(void **state)
{
	struct memory_file f;
	struct list l = {.n = 0};
	struct err err = ERR_INIT;
	memory_open_old(&f);
	if (walk(&f, &l, &err))
		fail_msg("%s", err.msg);
	assert_string_equal(l.text, "alpha=1832 beta=800 hard=1832 soft->/beta/gone type=4232 ");
	l = (struct list){.n = 0};
	assert_int_equal(
		h5_symtab_find(&f.file, &(struct h5_symtab){840, 1384}, NULL, add, &l, NULL), 0);
	assert_int_equal(l.n, 0);
	memory_close(&f);
}

static void test_callback_ends_the_walk(void **state)
{
	struct memory_file f;
	struct list l = {.stop_after = 2};
	struct err err = ERR_INIT;
	memory_open_old(&f);
	assert_int_equal(walk(&f, &l, &err), 42);
	assert_int_equal(l.n, 2);
	assert_string_equal(err.msg, "");
	memory_close(&f);
}

/* All of the B-tree node, of the symbol table node, of the heap and of its data are claimed. */
static void test_claims(void **state)
{
	static const struct {
		uint64_t addr;
		int rc;
	} rows[] = {{BTREE - 1, 0},	  {BTREE, -EIO},     {BTREE + 543, -EIO},
		    {HEAP, -EIO},	  {HEAP + 31, -EIO}, {HEAP + 32, -EIO},
		    {NODE - 1, 0},	  {NODE, -EIO},	     {NODE + NODE_SIZE - 1, -EIO},
		    {NODE + NODE_SIZE, 0}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct memory_file f;
		struct list l = {.n = 0};
		memory_open_old(&f);
		struct h5_claims *claims = h5_claims_new(NULL);
		f.file.claims = claims;
		assert_int_equal(walk(&f, &l, NULL), 0);
		int rc = h5_claim(claims, rows[i].addr, 1, "test", NULL);
		if (!rc)
			rc = h5_claims_check(claims, NULL);
		if (rc != rows[i].rc)
			fail_msg("%u: %d", (unsigned int)rows[i].addr, rc);
		h5_claims_free(claims);
		memory_close(&f);
	}
}

static const struct file_defect defects[] = {
	{"B-tree without signature", BTREE, "55", -EIO},
	{"B-tree of chunks", BTREE + 4, "01", -EIO},
	{"node above itself", BTREE + 5, "01", -EIO},
	{"level 255", BTREE + 5, "ff", -EIO},
	{"more children than 2K", BTREE + 6, "2100", -EIO},
	{"child that does not exist", BTREE + 6, "0200", -EIO},
	{"child at the B-tree", BTREE + 32, "8800000000000000", -EIO},
	{"child past the end", BTREE + 32, "b913000000000000", -EIO},
	{"child at the undefined address", BTREE + 32, "ffffffffffffffff", -EIO},
	{"the same child twice", BTREE + 6,
	 "0200ffffffffffffffffffffffffffffffff0000000000000000e0050000000000000000000000000000e005",
	 -EIO},
	{"heap without signature", HEAP, "55", -EIO},
	{"heap of version 1", HEAP + 4, "01", -EOPNOTSUPP},
	{"heap of 65 MiB", HEAP + 8, "0000100400000000", -EIO},
	{"heap past the end", HEAP + 8, "0020000000000000", -EIO},
	{"free block past the end of the heap", HEAP + 16, "5800000000000000", -EIO},
	{"data segment at the undefined address", HEAP + 24, "ffffffffffffffff", -EIO},
	{"symbol table node without signature", NODE, "55", -EIO},
	{"symbol table node of version 2", NODE + 4, "02", -EOPNOTSUPP},
	{"more symbols than 2K", NODE + 6, "0900", -EIO},
	{"symbol that does not exist", NODE + 6, "0600", -EIO},
	{"empty name", NODE + 8, "00", -EIO},
	{"name outside of the heap", NODE + 8, "0002", -EIO},
	{"name at 2^64 - 1", NODE + 8, "ffffffffffffffff", -EIO},
	{"names not in order", NODE + 8, "38", -EIO},
	{"the same name twice", NODE + 8, "08", -EIO},
	{"undefined address", NODE + 16, "ffffffffffffffff", -EIO},
	{"type 3", NODE + 24, "03", -EIO},
	{"path outside of the heap", NODE + 8 + 3 * 40 + 24, "ff", -EIO},
};

static void test_defects(void **state)
{
	for (size_t i = 0; i < sizeof(defects) / sizeof(defects[0]); i++) {
		struct memory_file f;
		struct list l = {.n = 0};
		struct err err = ERR_INIT;
		memory_open_old(&f);
		memory_put(&f, defects[i].at, defects[i].hex);
		int rc = walk(&f, &l, &err);
		if (rc != defects[i].rc || err.code != rc)
			fail_msg("%s: %d (%s)", defects[i].name, rc, err.msg);
		memory_close(&f);
	}
}

/*
 * A group of 32 * 32 * 8 links in three levels: heap at 64, its data, nodes. Name i has 8 bytes
 * with its NUL, at offset 8 + 8 i.
 */
enum {
	FANOUT = 32,
	PER_NODE = 8,
	LEAVES = FANOUT * FANOUT,
	LINKS = LEAVES * PER_NODE,
	DATA = 128,
	DATA_SIZE = 8 + 8 * LINKS,
	SYMBOLS = DATA + DATA_SIZE,
	TREE_SIZE = 24 + 32 * 16 + 8,
	TREES = SYMBOLS + LEAVES * NODE_SIZE,
	BIG_SIZE = TREES + (FANOUT + 1) * TREE_SIZE,
};

static void put_heap(struct memory_file *f)
{
	struct emit e = emit_to(f->bytes, f->size);
	e.pos = 64;
	emit_bytes(&e, "HEAP\0\0\0\0", 8);
	emit_u64(&e, DATA_SIZE);
	emit_u64(&e, 1);
	emit_u64(&e, DATA);
	for (int i = 0; i < LINKS; i++)
		snprintf((char *)f->bytes + DATA + 8 + 8 * i, 8, "%07d", i);
}

static void put_symbols(struct memory_file *f, int leaf)
{
	struct emit e = emit_to(f->bytes, f->size);
	e.pos = SYMBOLS + (size_t)leaf * NODE_SIZE;
	emit_bytes(&e, "SNOD\1\0\10\0", 8);
	for (int i = 0; i < PER_NODE; i++) {
		emit_u64(&e, 8 + 8 * ((uint64_t)leaf * PER_NODE + (uint64_t)i));
		emit_u64(&e, 1000);
		emit_zero(&e, 24);
	}
	assert_false(e.bad);
}

/* Tree node `number` in the file has `FANOUT` children of `size` bytes from `first`. */
static void put_tree(struct memory_file *f, int number, uint8_t level, uint64_t first,
		     uint64_t size)
{
	struct emit e = emit_to(f->bytes, f->size);
	e.pos = TREES + (size_t)number * TREE_SIZE;
	emit_bytes(&e, "TREE\0", 5);
	emit_u8(&e, level);
	emit_u16(&e, FANOUT);
	emit_u64(&e, H5_UNDEF);
	emit_u64(&e, H5_UNDEF);
	for (uint64_t i = 0; i < FANOUT; i++) {
		emit_u64(&e, 0);
		emit_u64(&e, first + i * size);
	}
	assert_false(e.bad);
}

static int count(void *ctx, const struct h5_symbol *s, struct err *err)
{
	char name[8];
	snprintf(name, sizeof(name), "%07d", (*(int *)ctx)++);
	return strcmp(name, s->name) == 0 ? 0 : err_set(err, -EBADMSG, "%s", s->name);
}

/* Each node and the heap are read once; a claim of the heap reads its header again. */
static void test_many_links(void **state)
{
	struct memory_file f;
	struct err err = ERR_INIT;
	int n = 0;
	memory_open(&f, BIG_SIZE);
	put_heap(&f);
	for (int i = 0; i < LEAVES; i++)
		put_symbols(&f, i);
	for (int i = 0; i < FANOUT; i++)
		put_tree(&f, 1 + i, 0, SYMBOLS + (uint64_t)i * FANOUT * NODE_SIZE, NODE_SIZE);
	put_tree(&f, 0, 1, TREES + TREE_SIZE, TREE_SIZE);
	const struct h5_symtab t = {.btree = TREES, .heap = 64};
	struct h5_claims *claims = h5_claims_new(NULL);
	f.file.claims = claims;
	if (h5_symtab_find(&f.file, &t, NULL, count, &n, &err) || h5_claims_check(claims, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(n, LINKS);
	assert_int_equal(f.source.reads, 2 + LEAVES + FANOUT + 1 + 1);
	assert_true(f.source.bytes <= BIG_SIZE + 32);
	h5_claims_free(claims);
	memory_close(&f);
}

/* Names that are ends of one long name are in order, but would take quadratic time. */
static void test_names_share_bytes(void **state)
{
	enum { LONG = 8 * LINKS };
	struct memory_file f;
	struct err err = ERR_INIT;
	memory_open(&f, BIG_SIZE);
	put_heap(&f);
	memset(f.bytes + DATA + 8, 'a', LONG - 1);
	for (int i = 0; i < LEAVES; i++) {
		put_symbols(&f, i);
		for (int k = 0; k < PER_NODE; k++) {
			const int link = i * PER_NODE + k;
			struct emit e = emit_to(f.bytes, f.size);
			e.pos = SYMBOLS + (size_t)i * NODE_SIZE + 8 + (size_t)k * 40;
			emit_u64(&e, (uint64_t)(8 + LONG - 2 - 7 * link));
		}
	}
	put_tree(&f, 0, 0, SYMBOLS, NODE_SIZE);
	const struct h5_symtab t = {.btree = TREES, .heap = 64};
	struct list l = {.n = 0};
	assert_int_equal(h5_symtab_find(&f.file, &t, NULL, add, &l, &err), -EIO);
	assert_true(l.n > 100);
	memory_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_message),
		cmocka_unit_test(test_library_group),
		cmocka_unit_test(test_callback_ends_the_walk),
		cmocka_unit_test(test_claims),
		cmocka_unit_test(test_defects),
		cmocka_unit_test(test_many_links),
		cmocka_unit_test(test_names_share_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
