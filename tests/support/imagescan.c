/* SPDX-License-Identifier: Apache-2.0 */
/*
 * imagescan BUCKET DOMAIN...: checks that h5file/ finds the objects and the variable-length items
 * of the file of each domain where image/ says that they are, and that its chunks are those of the
 * domain. Prints one line for each domain: the number of objects, of chunks, of chunks with
 * variable-length elements, of their collections, and the domain; or what differs. Exit status: 0;
 * 1 if anything differs.
 */
#include <stdio.h>

#include <domain/domain.h>
#include <schema/schema.h>
#include <store/store.h>
#include <bucket/schemas.h>

#include "image_scan.h"

struct test_bucket {
	struct env env;
	struct store *store;
	struct cache *cache;
};

struct counts {
	uint32_t objects;
	uint64_t chunks;
	struct image_items_found items;
};

/* ---- chunks ---- */

struct comparison {
	const struct image_scan *s;
	const struct chunk_source *source;
	uint32_t dataset;
	struct chunk_result got;
	uint64_t n;
};

/* There are no workers, so the chunk is there when get returns. */
static void take(void *arg, struct chunk_result *chunk)
{
	struct comparison *c = arg;
	c->got = *chunk;
}

static int compare_elems(struct comparison *c, const struct h5file_chunk *chunk, struct err *err)
{
	const struct dataset *ds = &tree_object(c->s->tree, c->dataset)->o.dataset;
	const bool is_cut = h5file_dataset(c->s->file, c->s->map[c->dataset])->layout !=
			    LAYOUT_CHUNKED; /* it has no elements beyond the extent */
	const uint64_t n = is_cut ? chunk->size / ds->type->size : ds->grid.chunk_elems;
	auto_bytes struct bytes stored = {0};
	struct elems found = {0};
	int rc = h5file_chunk_read(c->s->file, chunk, &stored, err);
	if (!rc)
		rc = h5file_chunk_decode(c->s->file, c->s->map[c->dataset], chunk, &stored, &found,
					 err);
	if (!rc && elems_diff(ds->type, n, &c->got.data.elems, &found, c->s->map) < n)
		rc = err_set(err, -EINVAL, "%s: chunk %llu differs",
			     tree_object(c->s->tree, c->dataset)->o.id,
			     (unsigned long long)chunk->number);
	elems_release(&found);
	return rc;
}

static int compare_chunk(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct comparison *c = ctx;
	const struct chunk_request request = {.dataset = c->dataset, .number = chunk->number};
	c->got = (struct chunk_result){0};
	c->source->get(c->source->ctx, &request, take, c);
	int rc = c->got.code;
	if (rc)
		err_copy(err, &c->got.err);
	else if (!c->got.absent)
		rc = compare_elems(c, chunk, err);
	c->n += !rc && !c->got.absent;
	elems_release(&c->got.data.elems);
	return rc;
}

static int check_chunks(const struct image_scan *s, const struct chunk_source *source,
			struct counts *n, struct err *err)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && i < tree_numbers(s->tree); i++) {
		struct comparison c = {.s = s, .source = source, .dataset = i};
		if (!image_scan_has(s, i))
			continue;
		rc = image_scan_cut(s, i, err);
		if (!rc)
			rc = h5file_chunks(s->file, s->map[i], 0, UINT64_MAX, compare_chunk, &c,
					   err);
		n->chunks += c.n;
	}
	return rc;
}

/* ---- domains ---- */

static int check(struct image *img, const struct tree *tree, const struct chunk_source *chunks,
		 struct counts *n, struct err *err)
{
	struct image_scan s = {0};
	int rc = image_scan_open(&s, img, tree, err);
	if (!rc)
		rc = image_scan_headers(&s, &n->objects, err);
	if (!rc)
		rc = image_scan_items(&s, &n->items, err);
	if (!rc)
		rc = check_chunks(&s, chunks, n, err);
	free(n->items.ranges);
	image_scan_close(&s);
	return rc;
}

static int check_domain(struct test_bucket *b, const char *path, struct counts *n, struct err *err)
{
	static const struct image_options opt = {.domain_dir = ""};
	const struct domain_bucket bucket = {
		.env = &b->env, .store = b->store, .schemas = schema_all()};
	struct domain *d = NULL;
	struct image *img = NULL;
	int rc = domain_open(&bucket, path, NULL, &d, err);
	if (rc)
		return rc;
	const struct chunk_source chunks = domain_chunk_source(d);
	rc = image_new(&b->env, b->cache, domain_tree(d), &chunks, &opt, &img, err);
	if (!rc)
		rc = check(img, domain_tree(d), &chunks, n, err);
	image_unref(img);
	domain_unref(d);
	return rc;
}

int main(int argc, char **argv)
{
	struct err err = ERR_INIT;
	struct test_bucket b = {.env = env_real(NULL, pool_new(0))};
	int status = 0;
	b.env.budget = budget_new(&(struct budget_limits){.bytes = 64 << 20, .option = "limit"});
	b.cache = cache_new(&b.env, 8, NULL);
	b.store = argc > 2 ? store_dir_new(&b.env, argv[1], &err) : NULL;
	for (int i = 2; b.store && i < argc; i++) {
		struct counts n = {0};
		err_clear(&err);
		const int rc = check_domain(&b, argv[i], &n, &err);
		if (rc)
			printf("%s: %s\n", argv[i], err.msg);
		else
			printf("%u %llu %llu %llu %s\n", n.objects, (unsigned long long)n.chunks,
			       (unsigned long long)n.items.chunks,
			       (unsigned long long)n.items.collections, argv[i]);
		status |= rc != 0;
	}
	if (!b.store)
		status = 1;
	store_free(b.store);
	cache_free(b.cache);
	budget_free(b.env.budget);
	pool_free(b.env.pool);
	return status;
}
