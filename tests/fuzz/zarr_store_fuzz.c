/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The documents of a Zarr store: one on each line, as its key, a space and its text. The first key
 * says what marks the store. Whatever the documents are, a tree is made or refused; a tree does not
 * depend on the order in which the documents come; and it can be laid out as a file.
 */
#include <errno.h>
#include <string.h>

#include <base/budget.h>
#include <base/pool.h>
#include <data/tree_diff.h>
#include <image/image.h>

#include "require.h"
#include "schema/zarr/model.h"

enum { LINES_MAX = 64, TREE_LIMIT = 256 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct line {
	const char *key; /* with a NUL */
	const char *text;
	size_t n;
};

struct input {
	char *bytes;
	uint32_t n;
	struct line lines[LINES_MAX];
};

static void split(struct input *in, const uint8_t *data, size_t size)
{
	in->bytes = malloc(size + 1);
	require(in->bytes);
	memcpy(in->bytes, data, size);
	in->bytes[size] = '\0';
	in->n = 0;
	for (char *at = in->bytes, *end = at + size; at < end && in->n < LINES_MAX;) {
		char *eol = memchr(at, '\n', (size_t)(end - at));
		if (!eol)
			eol = end;
		char *space = memchr(at, ' ', (size_t)(eol - at));
		if (space) {
			*space = '\0';
			in->lines[in->n++] = (struct line){
				.key = at, .text = space + 1, .n = (size_t)(eol - space - 1)};
		}
		at = eol + 1;
	}
}

/* Whether the key of a line occurs again: then the last document counts. */
static bool occurs_twice(const struct input *in)
{
	for (uint32_t i = 0; i < in->n; i++)
		for (uint32_t k = 0; k < i; k++)
			if (strcmp(in->lines[i].key, in->lines[k].key) == 0)
				return true;
	return false;
}

/* The text is in a block of exactly its size. */
static int add(struct zarr_model *m, const struct line *l)
{
	struct err err = ERR_INIT;
	char *exact = malloc(l->n ? l->n : 1);
	require(exact);
	memcpy(exact, l->text, l->n);
	const int rc = zarr_model_add(m, l->key, "", exact, l->n, &err);
	free(exact);
	require(rc == err.code && (rc == 0 || rc == -EIO || rc == -EOPNOTSUPP));
	return rc;
}

static int count(void *ctx, const char *key)
{
	size_t n;
	require(zarr_document_of_key(key, &n) > ZARR_NONE);
	require(zarr_model_has(ctx, key));
	return 0;
}

/* NULL if the store cannot be shown. */
static struct tree *load(const struct input *in, bool backwards)
{
	size_t len;
	struct err err = ERR_INIT;
	struct tree *t = tree_new(TREE_LIMIT);
	struct zarr_model *m = zarr_model_new(t, zarr_document_of_key(in->lines[0].key, &len));
	const struct zarr_finish f = {.store = "s"};
	int rc = 0;
	require(t && m);
	for (uint32_t i = 0; !rc && i < in->n; i++)
		rc = add(m, &in->lines[backwards ? in->n - 1 - i : i]);
	if (!rc)
		rc = zarr_model_consolidated(m, count, m);
	if (!rc)
		rc = zarr_model_finish(m, &f, &err);
	/* The arena of the tree has a limit. */
	require(rc == 0 || rc == -EIO || rc == -EOPNOTSUPP || rc == -ENOMEM);
	zarr_model_free(m);
	if (!rc)
		return t;
	tree_free(t);
	return NULL;
}

/* ---- as a file ---- */

static const struct chunk_list none = {.listed = true};

static const struct chunk_list *list_none(void *ctx, uint32_t dataset)
{
	return &none;
}

static void get_none(void *ctx, const struct chunk_request *request, chunk_done done, void *arg)
{
	struct chunk_result result = {.absent = true};
	done(arg, &result);
}

static void render(const struct tree *t)
{
	struct env env = env_real(NULL, NULL);
	struct err err = ERR_INIT;
	struct image *img;
	env.budget = budget_new(&(struct budget_limits){.bytes = 64 << 20});
	struct cache *cache = cache_new(&env, 2, NULL);
	const struct chunk_source chunks = {.list = list_none, .get = get_none};
	const struct image_options opt = {.domain_dir = ""};
	require(cache);
	const int rc = image_new(&env, cache, t, &chunks, &opt, &img, &err);
	if (rc && rc != -ENOMEM && rc != -EFBIG && rc != -E2BIG)
		fprintf(stderr, "%s\n", err.msg);
	require(!rc || rc == -ENOMEM || rc == -EFBIG || rc == -E2BIG);
	if (!rc)
		image_unref(img);
	cache_free(cache);
	budget_free(env.budget);
}

static int print_difference(void *ctx, const char *path, const char *text)
{
	fprintf(stderr, "%s: %s\n", path, text);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in;
	split(&in, data, size);
	struct tree *a = in.n ? load(&in, false) : NULL;
	const bool twice = occurs_twice(&in);
	struct tree *b = in.n && !twice ? load(&in, true) : NULL;
	if (a)
		render(a);
	if (a && b) {
		const struct tree_diff_sink sink = {.difference = print_difference};
		uint64_t n = 0;
		require(tree_diff(a, b, TREE_DIFF_FILTERS | TREE_DIFF_GRIDS | TREE_DIFF_ORDER,
				  &sink, NULL, &n, NULL) == 0);
		require(n == 0);
	}
	require(twice || !a == !b);
	tree_free(a);
	tree_free(b);
	free(in.bytes);
	return 0;
}
