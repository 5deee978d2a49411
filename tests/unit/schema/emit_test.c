/* SPDX-License-Identifier: Apache-2.0 */
/* Documents of new domains: what is emitted is loaded as the same tree. */
#include "schema_test.h"

#include <stdatomic.h>

#include "emitted.h"
#include "random_tree.h"
#include "sampling.h"

#include <data/tree_diff.h>

#define DOMAIN UINT64_C(0x0011223344556677)
#define NOW    (INT64_C(1700000000) * 1000000000 + 123456789)

static int show(void *ctx, const char *path, const char *text)
{
	print_error("%s: %s\n", path, text);
	return 0;
}

static int no_refusal(void *ctx, const struct schema_refusal *r)
{
	fail_msg("object %u: %s", r->object, r->why);
	return 0;
}

/* Emits and loads a tree, and compares both. */
static void check_round_trip(struct tree *t)
{
	const struct tree_diff_sink sink = {.difference = show};
	const unsigned int flags =
		TREE_DIFF_TIMES | TREE_DIFF_FILTERS | TREE_DIFF_GRIDS | TREE_DIFF_ORDER;
	const struct schema_ops *ops = schema_all()[0];
	struct err err = ERR_INIT;
	struct emitted e;
	struct tree *again;
	uint64_t n;
	assert_int_equal(ops->refusals(t, no_refusal, NULL), 0);
	assert_int_equal(ops->adopt(t, DOMAIN, NOW, &err), 0);
	if (emitted_init(&e, t, &err))
		fail_msg("%s", err.msg);
	if (emitted_load(&e, &again, &err))
		fail_msg("%s", err.msg);
	if (tree_problems(again))
		fail_msg("%s", tree_problem(again, 0));
	assert_int_equal(tree_diff(t, again, flags, &sink, NULL, &n, &err), 0);
	for (uint32_t i = 0; n && i < e.n; i++)
		fprintf(stderr, "%.*s\n", (int)e.docs[i].text.len, (char *)e.docs[i].text.data);
	assert_int_equal(n, 0);
	tree_free(again);
	emitted_release(&e);
}

static void random_trees_are_loaded_again(void **state)
{
	for (uint64_t seed = 0; seed < 2000; seed++) {
		struct tree *t = random_tree("", 0, seed);
		check_round_trip(t);
		tree_free(t);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_trees_are_loaded_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
