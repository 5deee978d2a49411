/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The headers of objects: address, version and birth time of groups, datasets and committed
 * datatypes of both header versions; the way back from the address to the object.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include <h5file/h5file.h>

#include "data_file.h"
#include "small_file.h"

enum { BIRTH = 1700000000, USER_BLOCK = 512 };

static struct h5file *open_source(struct source *s)
{
	struct h5file *f = NULL;
	struct err err = ERR_INIT;
	if (h5file_open(s, NULL, &f, &err))
		fail_msg("%s", err.msg);
	return f;
}

static void check(const struct h5file *f, uint32_t number, uint64_t addr, int64_t birth)
{
	struct h5file_header h;
	assert_true(h5file_header(f, number, &h));
	assert_int_equal(h.addr, addr);
	assert_int_equal(h.version, 2);
	assert_int_equal(h.birth_ns, birth * 1000000000);
	assert_int_equal(h5file_at(f, addr), number);
}

/* / has "d" (numbers, without times) and "t" (a committed datatype with times). */
struct addrs {
	uint64_t root, d, t;
};

static struct addrs make(struct small_file *s)
{
	struct addrs a;
	small_begin(s);
	a.d = small_numbers(s, 10);
	small_object(s);
	s->header.has_times = true;
	s->header.btime = BIRTH;
	s->header.mtime = BIRTH + 1;
	small_type(s, dtype_integer(s->arena, 4, false, false, NULL));
	a.t = small_end(s);
	small_object(s);
	s->header.has_times = true;
	s->header.btime = UINT32_MAX;
	small_group(s, false);
	small_link(s, "d", a.d);
	small_link(s, "t", a.t);
	a.root = small_end(s);
	small_finish(s, a.root);
	return a;
}

static void check_all(const struct h5file *f, struct addrs a)
{
	struct h5file_header h;
	check(f, 0, a.root, UINT32_MAX);
	check(f, 1, a.d, 0);
	check(f, 2, a.t, BIRTH);
	assert_false(h5file_header(f, 3, &h));
	assert_false(h5file_header(f, OBJECT_NONE, &h));
	assert_int_equal(h5file_at(f, a.d + 8), OBJECT_NONE);
	assert_int_equal(h5file_at(f, 0), OBJECT_NONE);
	assert_int_equal(h5file_at(f, H5_UNDEF), OBJECT_NONE);
}

static void version_2(void **state)
{
	static struct small_file s;
	const struct addrs a = make(&s);
	struct h5file *f = open_source(&s.src.source);
	check_all(f, a);
	h5file_close(f);
	small_release(&s);
}

/* Addresses do not count the user block. */
static void behind_a_user_block(void **state)
{
	static struct small_file s;
	static uint8_t bytes[USER_BLOCK + SMALL_MAX];
	struct mem_src src;
	const struct addrs a = make(&s);
	memcpy(bytes + USER_BLOCK, s.bytes, s.n);
	mem_src_init(&src, bytes, USER_BLOCK + s.n);
	struct h5file *f = open_source(&src.source);
	assert_int_equal(h5file_base(f), USER_BLOCK);
	check_all(f, a);
	h5file_close(f);
	small_release(&s);
}

/* The address of a broken object is still known. */
static void a_broken_object(void **state)
{
	static struct small_file s;
	struct h5file_header h;
	const struct addrs a = make(&s);
	s.bytes[a.d + 8] ^= 1;
	struct h5file *f = open_source(&s.src.source);
	assert_int_equal(h5file_at(f, a.d), 1);
	assert_true(tree_object(h5file_tree(f), 1)->broken);
	assert_false(h5file_header(f, 1, &h));
	check(f, 2, a.t, BIRTH);
	h5file_close(f);
	small_release(&s);
}

/* Counts the objects of a file with headers of version 1, and those of them with a time. */
static void count_old(const char *name, uint32_t *old, uint32_t *with_time)
{
	auto_bytes struct bytes b = data_file(name);
	struct mem_src src;
	mem_src_init(&src, b.data, b.len);
	struct h5file *f = open_source(&src.source);
	for (uint32_t i = 0; i < tree_numbers(h5file_tree(f)); i++) {
		struct h5file_header h;
		assert_true(h5file_header(f, i, &h));
		assert_int_equal(h.version, b.data[h5file_base(f) + h.addr] == 1 ? 1 : 2);
		assert_int_equal(h5file_at(f, h.addr), i);
		if (h.version != 1)
			continue;
		assert_int_equal(h.birth_ns, 0);
		++*old;
		*with_time += tree_object(h5file_tree(f), i)->o.modified_ns != 0;
	}
	h5file_close(f);
}

/* h5py wrote these files. A modification time is no birth time. */
static void version_1(void **state)
{
	uint32_t old = 0, with_time = 0;
	count_old("paths.h5", &old, &with_time);
	assert_int_equal(old, 5);
	count_old("draft-refused.h5", &old, &with_time);
	assert_int_equal(with_time, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_2),
		cmocka_unit_test(behind_a_user_block),
		cmocka_unit_test(a_broken_object),
		cmocka_unit_test(version_1),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
