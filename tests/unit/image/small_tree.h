/* SPDX-License-Identifier: Apache-2.0 */
/* Trees that a test builds object by object, and renders without a schema or a store. The test
 * provides the lists of chunks. All chunks read as zeros. */
#ifndef UNIT_IMAGE_SMALL_TREE_H
#define UNIT_IMAGE_SMALL_TREE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cache/cache.h>
#include <data/tree.h>
#include <image/image.h>

enum { SMALL_OBJECTS = 64 };

struct small_tree {
	struct env env;
	struct cache *cache;
	struct tree *tree;
	struct arena *a; /* of the tree */
	struct chunk_list lists[SMALL_OBJECTS];
	unsigned int prefetches[SMALL_OBJECTS]; /* requests that no reader waits for, by object */
	int code;				/* result of all requests */
	struct image *img;
};

static inline const struct chunk_list *small_list(void *ctx, uint32_t dataset)
{
	struct small_tree *t = ctx;
	return &t->lists[dataset];
}

static inline void small_get(void *ctx, const struct chunk_request *request, chunk_done done,
			     void *arg)
{
	struct small_tree *t = ctx;
	struct chunk_result chunk = {.absent = true, .code = t->code};
	t->prefetches[request->dataset] += request->prefetch;
	done(arg, &chunk);
}

static inline void small_release_tree(struct small_tree *t)
{
	image_unref(t->img);
	tree_free(t->tree);
	t->img = NULL;
}

/* An empty tree: a root group without links. */
static inline void small_begin(struct small_tree *t)
{
	uint32_t number;
	small_release_tree(t);
	memset(t->lists, 0, sizeof(t->lists));
	memset(t->prefetches, 0, sizeof(t->prefetches));
	t->tree = tree_new(8 << 20);
	assert_non_null(t->tree);
	t->a = tree_arena(t->tree);
	assert_int_equal(tree_add(t->tree, &number, NULL), 0);
	struct object *root = tree_edit(t->tree, number);
	*root = (struct object){.kind = OBJECT_GROUP, .id = "g-root"};
	root->group.links = arena_array(t->a, SMALL_OBJECTS, sizeof(struct link));
}

static inline int small_setup(void **state)
{
	struct small_tree *t = calloc(1, sizeof(*t));
	t->env = env_real(NULL, pool_new(0));
	t->env.budget = budget_new(&(struct budget_limits){.bytes = 64 << 20});
	t->cache = cache_new(&t->env, 8, NULL);
	small_begin(t);
	*state = t;
	return 0;
}

static inline int small_teardown(void **state)
{
	struct small_tree *t = *state;
	small_release_tree(t);
	cache_free(t->cache);
	budget_free(t->env.budget);
	pool_free(t->env.pool);
	free(t);
	return 0;
}

/* Adds an object with a hard link in the root group. Its link name and id are "o-" and its number.
 */
static inline struct object *small_add(struct small_tree *t, enum object_kind kind)
{
	uint32_t number;
	char name[16];
	assert_int_equal(tree_add(t->tree, &number, NULL), 0);
	assert_in_range(number, 1, SMALL_OBJECTS - 1);
	snprintf(name, sizeof(name), "o-%u", number);
	struct object *root = tree_edit(t->tree, 0), *o = tree_edit(t->tree, number);
	*o = (struct object){.kind = kind, .id = arena_strndup(t->a, name, strlen(name))};
	root->group.links[root->group.nlinks++] =
		(struct link){.name = o->id, .utf8 = true, .target = number};
	return o;
}

static inline struct attribute *small_attr(struct small_tree *t, struct object *o,
					   const struct dtype *type)
{
	o->nattrs = 1;
	o->attrs = arena_array(t->a, 1, sizeof(*o->attrs));
	o->attrs[0] = (struct attribute){.name = "a", .type = type, .committed = OBJECT_NONE};
	dspace_scalar(&o->attrs[0].space);
	return &o->attrs[0];
}

/* A dataset with n chunks of `chunk` elements. `known` lists its chunks. */
static inline struct dataset *small_dataset(struct small_tree *t, const struct dtype *type,
					    uint64_t n, uint64_t chunk, struct chunk_list known)
{
	const uint64_t dims = n * chunk;
	struct dataset *ds = &small_add(t, OBJECT_DATASET)->dataset;
	ds->type = type;
	ds->committed = OBJECT_NONE;
	ds->requested = LAYOUT_CHUNKED;
	ds->alloc_time = ALLOC_TIME_INCR;
	ds->fill_time = FILL_TIME_IFSET;
	assert_int_equal(dspace_simple(t->a, &ds->space, 1, &dims, NULL, NULL), 0);
	assert_int_equal(grid_init(t->a, &ds->grid, 1, &dims, &chunk, NULL), 0);
	t->lists[tree_numbers(t->tree) - 1] = known;
	return ds;
}

static inline int small_render(struct small_tree *t, struct err *err)
{
	const struct chunk_source chunks = {.list = small_list, .get = small_get, .ctx = t};
	const struct image_options opt = {.domain_dir = ""};
	assert_int_equal(tree_finish(t->tree, NULL), 0);
	return image_new(&t->env, t->cache, t->tree, &chunks, &opt, &t->img, err);
}

#endif
