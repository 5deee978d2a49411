/* SPDX-License-Identifier: Apache-2.0 */
/* Objects: object_release() frees the memory outside of the arena once; resolvers resolve
 * references. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <data/object.h>

static void release_frees_elems(void **state)
{
	struct attribute attrs[2] = {{.name = "a"}, {.name = "b"}};
	struct object o = {.kind = OBJECT_DATASET, .nattrs = 2, .attrs = attrs};
	/* The leak checker reports memory that is not freed. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(bytes_append_zero(&attrs[i].value.fixed, 10), 0);
		assert_int_equal(bytes_append_zero(&attrs[i].value.heap, 10), 0);
	}
	assert_int_equal(bytes_append_zero(&o.dataset.fill.fixed, 10), 0);
	assert_int_equal(bytes_append_zero(&o.dataset.fill.heap, 10), 0);
	object_release(&o);
	assert_null(attrs[1].value.fixed.data);
	assert_null(o.dataset.fill.heap.data);
	object_release(&o);
}

static void release_of_a_group_leaves_links(void **state)
{
	struct link link = {.name = "x"};
	struct object o = {.kind = OBJECT_GROUP, .group = {.nlinks = 1, .links = &link}};
	object_release(&o);
	assert_int_equal(o.group.nlinks, 1);
}

static uint64_t resolve_length(void *ctx, const char *text, size_t n)
{
	return *(uint64_t *)ctx + n;
}

static void resolvers(void **state)
{
	uint64_t base = 100;
	struct object_resolver r = {resolve_length, &base}, none = {0};
	assert_int_equal(object_resolve(&r, "g-1", 3), 103);
	assert_int_equal(object_resolve(&none, "g-1", 3), 0);
	assert_int_equal(object_resolve(NULL, "g-1", 3), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(release_frees_elems),
		cmocka_unit_test(release_of_a_group_leaves_links),
		cmocka_unit_test(resolvers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
