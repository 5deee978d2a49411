/* SPDX-License-Identifier: Apache-2.0 */
/* Opens with a hint, and domains of more keys than one page of a listing has. */
#ifndef TESTS_DOMAIN_REVALIDATE_H
#define TESTS_DOMAIN_REVALIDATE_H

#include "domain_fixture.h"
#include <bucket/schemas.h>

struct cost {
	uint64_t gets, heads, lists, bytes;
};

static inline struct cost spent(struct fixture *f)
{
	struct store_counts c;
	store_count_read(f->store, &c);
	return (struct cost){c.calls[STORE_GET], c.calls[STORE_HEAD], c.calls[STORE_LIST],
			     c.bytes_in};
}

static inline struct domain *open_bucket(struct fixture *f, const struct domain_bucket *bucket,
					 const struct domain_hint *hint, struct cost *cost)
{
	const struct cost before = spent(f);
	struct domain *d = NULL;
	struct err err = ERR_INIT;
	if (domain_open(bucket, "d.h5", hint, &d, &err))
		fail_msg("%s", err.msg);
	const struct cost after = spent(f);
	*cost = (struct cost){after.gets - before.gets, after.heads - before.heads,
			      after.lists - before.lists, after.bytes - before.bytes};
	return d;
}

/* Opens with a hint; *cost: the requests. */
static inline struct domain *open_with(struct fixture *f, const struct domain_hint *hint,
				       struct cost *cost)
{
	const struct domain_bucket bucket = {
		.env = &f->env, .store = f->store, .schemas = schema_all()};
	return open_bucket(f, &bucket, hint, cost);
}

static inline struct domain *open_again(struct fixture *f, struct domain *previous,
					struct cost *cost)
{
	const struct domain_hint hint = {.previous = previous};
	return open_with(f, &hint, cost);
}

static inline const struct object *find(const struct domain *d, const char *id)
{
	for (uint32_t i = 0; i < tree_count(domain_tree(d)); i++)
		if (strcmp(tree_object(domain_tree(d), tree_nth(domain_tree(d), i))->o.id, id) == 0)
			return &tree_object(domain_tree(d), tree_nth(domain_tree(d), i))->o;
	return NULL;
}

/* Adds chunks of one dataset, more than one page of a listing. */
static inline void put_many_chunks(struct fixture *f)
{
	char key[128];
	for (int i = 0; i <= DOMAIN_LISTING; i++) {
		snprintf(key, sizeof(key), SMALL_PREFIX "/d/0002-000000-000001/%d_0", i);
		assert_int_equal(call_put(f->store, key, "x", 1, NULL, NULL, NULL), 0);
	}
}

static inline void put_groups(struct fixture *f, int n)
{
	char *root = malloc((size_t)n * 128), key[128], text[512];
	int len = sprintf(root, "{" SMALL_HEAD(SMALL_ROOT) ",'links':{");

	assert_non_null(root);
	for (int i = 0; i < n; i++) {
		snprintf(key, sizeof(key), SMALL_PREFIX "/g/0005-000000-%06x/.group.json", i);
		snprintf(text, sizeof(text),
			 "{'id':'g-11111111-22222222-0005-000000-%06x','root':'" SMALL_ROOT
			 "','created':1,'lastModified':1,'links':{},'attributes':{}}",
			 i);
		assert_int_equal(small_put(f->store, key, text), 0);
		len += sprintf(root + len,
			       "%s'n%d':{'class':'H5L_TYPE_HARD','created':1,"
			       "'id':'g-11111111-22222222-0005-000000-%06x'}",
			       i ? "," : "", i, i);
	}
	sprintf(root + len, "},'attributes':{}}");
	assert_int_equal(small_put(f->store, SMALL_PREFIX "/.group.json", root), 0);
	free(root);
}

/* Adds so many groups that a listing is cheaper than a head for each object. */
enum { MANY = 1200 };

static inline void put_many_groups(struct fixture *f)
{
	put_groups(f, MANY);
}

#endif
