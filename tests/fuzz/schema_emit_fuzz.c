/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees of every kind of object, type and value: a domain can hold them, and what is emitted is
 * loaded as an equal tree. The input is the stream of choices of support/random_tree.h.
 */
#include <errno.h>
#include <string.h>

#include <data/tree_diff.h>
#include <bucket/schemas.h>

#include "emitted.h"
#include "random_tree.h"
#include "require.h"
#include "storages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int refused(void *ctx, const struct schema_refusal *r)
{
	return -EOPNOTSUPP;
}

static int differs(void *ctx, const char *path, const char *text)
{
	fprintf(stderr, "%s: %s\n", path, text);
	return -EIO;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct schema_ops *ops = schema_all()[0];
	const struct tree_diff_sink sink = {.difference = differs};
	const unsigned int flags =
		TREE_DIFF_TIMES | TREE_DIFF_FILTERS | TREE_DIFF_GRIDS | TREE_DIFF_ORDER;
	struct tree *again, *t = random_tree(data, size, size);
	struct emitted e;
	struct err err = ERR_INIT;
	uint64_t n;
	require(ops->writer->refusals(t, refused, NULL) == 0);
	require(ops->writer->adopt(t, STORAGE(size), 1700000000000000000, &err) == 0);
	require(emitted_init(&e, t, &err) == 0);
	require(emitted_load(&e, &again, &err) == 0);
	require(tree_problems(again) == 0);
	require(tree_diff(t, again, flags, &sink, NULL, &n, &err) == 0 && n == 0);
	tree_free(again);
	emitted_release(&e);
	tree_free(t);
	return 0;
}
