/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes: their order, names that are there twice, values that are too short, committed types.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <h5/gheap.h>
#include <h5file/h5file.h>

#include "small_file.h"

static struct h5file *open_root(struct small_file *s)
{
	struct h5file *f = NULL;
	struct err err = ERR_INIT;
	small_finish(s, small_end(s));
	if (h5file_open(&s->src.source, NULL, &f, &err))
		fail_msg("%s", err.msg);
	return f;
}

static const struct object *root(const struct h5file *f)
{
	return &tree_object(h5file_tree(f), 0)->o;
}

static void number(struct small_file *s, const char *name, uint32_t v)
{
	const struct dspace scalar = small_scalar();
	small_attr(s, name, dtype_integer(s->arena, 4, false, false, NULL), &scalar, &v);
}

static void in_the_order_of_creation_or_of_the_messages(void **state)
{
	for (int tracked = 0; tracked < 2; tracked++) {
		static struct small_file s;
		small_begin(&s);
		small_object(&s);
		s.header.attr_order_tracked = tracked;
		small_group(&s, false);
		number(&s, "z", 1);
		number(&s, "a/b", 2);
		number(&s, "\xff", 3);
		s.msgs[1].corder = 0;
		s.msgs[2].corder = 2;
		s.msgs[3].corder = 1;
		struct h5file *f = open_root(&s);
		const struct object *o = root(f);
		assert_int_equal(o->nattrs, 3);
		assert_int_equal(o->attrs_ordered, tracked);
		assert_string_equal(o->attrs[0].name, "z");
		assert_string_equal(o->attrs[1].name, tracked ? "\xff" : "a/b");
		assert_string_equal(o->attrs[2].name, tracked ? "a/b" : "\xff");
		assert_int_equal(h5file_problems(f), 0);
		h5file_close(f);
		small_release(&s);
	}
}

static void a_name_that_is_there_twice(void **state)
{
	static struct small_file s;
	small_begin(&s);
	small_object(&s);
	small_group(&s, false);
	number(&s, "a", 1);
	number(&s, "a", 1);
	number(&s, "b", 1);
	struct h5file *f = open_root(&s);
	assert_int_equal(root(f)->nattrs, 2);
	assert_int_equal(h5file_problems(f), 1);
	assert_non_null(strstr(h5file_problem(f, 0)->text, "twice"));
	assert_string_equal(h5file_problem(f, 0)->path, "/");
	h5file_close(f);
	small_release(&s);
}

static void a_value_that_is_too_short(void **state)
{
	static struct small_file s;
	small_begin(&s);
	small_object(&s);
	small_group(&s, false);
	number(&s, "short", 1);
	s.msgs[1].len -= 2;
	number(&s, "whole", 7);
	struct h5file *f = open_root(&s);
	assert_int_equal(root(f)->nattrs, 1);
	assert_string_equal(root(f)->attrs[0].name, "whole");
	assert_int_equal(root(f)->attrs[0].value.fixed.data[0], 7);
	assert_int_equal(h5file_problem(f, 0)->severity, H5FILE_DAMAGED);
	h5file_close(f);
	small_release(&s);
}

/* The committed type has no link, so it gets the last number. */
static void a_committed_type_without_a_link(void **state)
{
	static struct small_file s;
	const uint16_t v = 258;
	small_begin(&s);
	const struct dtype *t = dtype_integer(s.arena, 2, false, false, NULL);
	small_object(&s);
	small_type(&s, t);
	const uint64_t type = small_end(&s), d = small_numbers(&s, 2);
	const struct h5_attr a = {.name = "c",
				  .type = t,
				  .committed = type,
				  .space = small_scalar(),
				  .data = (const uint8_t *)&v,
				  .data_len = 2};
	small_object(&s);
	small_group(&s, false);
	small_link(&s, "d", d);
	struct emit e = small_body(&s);
	h5_attr_encode(&e, &a);
	small_message(&s, H5_MSG_ATTRIBUTE, &e);
	struct h5file *f = open_root(&s);
	const struct tree *tree = h5file_tree(f);
	assert_int_equal(tree_numbers(tree), 3);
	assert_int_equal(root(f)->attrs[0].committed, 2);
	assert_int_equal(tree_object(tree, 2)->o.kind, OBJECT_DATATYPE);
	assert_int_equal(tree_object(tree, 2)->refcount, 1);
	assert_true(tree_object(tree, 2)->linked);
	assert_int_equal(h5file_problems(f), 0);
	h5file_close(f);
	small_release(&s);
}

/* An object with the attributes "00", "01" and so on, strings that are all the same item of n
 * bytes.
 */
static void make_strings(struct small_file *s, size_t n)
{
	static char text[128 << 10];
	struct h5_gheap_writer heap;
	uint64_t addr;
	uint32_t index;
	small_begin(s);
	memset(text, 'x', sizeof(text));
	h5_gheap_init(&heap, s->n, sizeof(text));
	assert_int_equal(h5_gheap_add(&heap, text, n, &addr, &index, NULL), 0);
	assert_int_equal(h5_gheap_finish(&heap, NULL), 0);
	assert_int_equal(small_put(s, heap.out.data, heap.out.len), addr);
	h5_gheap_release(&heap);
	small_object(s);
	small_group(s, false);
	const struct dtype *t =
		dtype_vlen_string(s->arena, DTYPE_PAD_NULLTERM, DTYPE_CSET_ASCII, NULL);
	const struct dspace space = small_scalar();
	uint8_t raw[DTYPE_VLEN_SIZE];
	struct emit e = emit_to(raw, sizeof(raw));
	emit_u32(&e, (uint32_t)n);
	emit_u64(&e, addr);
	emit_u32(&e, index);
	for (unsigned int i = 0; i < 60; i++) {
		const char name[] = {(char)('0' + i / 10), (char)('0' + i % 10), 0};
		small_attr(s, name, t, &space, raw);
	}
	small_finish(s, small_end(s));
}

/* Values that share their bytes take more memory than the file. */
static void values_have_a_limit(void **state)
{
	static struct small_file s;
	const struct h5file_options opt = {.max_tree = 4 << 20};
	for (int fits = 0; fits < 2; fits++) {
		struct h5file *f = NULL;
		struct err err = ERR_INIT;
		make_strings(&s, fits ? 2000 : 120000);
		const int rc = h5file_open(&s.src.source, &opt, &f, &err);
		assert_int_equal(rc, fits ? 0 : -ENOMEM);
		assert_true(fits || strstr(err.msg, "attributes and fill values"));
		h5file_close(f);
		small_release(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_the_order_of_creation_or_of_the_messages),
		cmocka_unit_test(a_name_that_is_there_twice),
		cmocka_unit_test(a_value_that_is_too_short),
		cmocka_unit_test(a_committed_type_without_a_link),
		cmocka_unit_test(values_have_a_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
