/* SPDX-License-Identifier: Apache-2.0 */
/*
 * imagescan BUCKET DOMAIN...: checks that h5file/ finds the objects of the file of each domain
 * where image/ says that they are. Prints one line for each domain: the number of objects and the
 * domain, or what differs. Exit status: 0; 1 if anything differs.
 */
#include <stdio.h>

#include <domain/domain.h>
#include <schema/schema.h>
#include <store/store.h>

#include "image_scan.h"

struct bucket {
	struct env env;
	struct store *store;
	struct cache *cache;
};

static int check(struct bucket *b, struct image *img, const struct tree *tree, uint32_t *n,
		 struct err *err)
{
	struct image_scan s = {0};
	int rc = image_scan_open(&s, img, tree, err);
	if (!rc)
		rc = image_scan_headers(&s, n, err);
	image_scan_close(&s);
	return rc;
}

static int check_domain(struct bucket *b, const char *path, uint32_t *n, struct err *err)
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
		rc = check(b, img, domain_tree(d), n, err);
	image_free(img);
	domain_unref(d);
	return rc;
}

int main(int argc, char **argv)
{
	struct err err = ERR_INIT;
	struct bucket b = {.env = env_real(NULL, pool_new(0))};
	int status = 0;
	b.env.budget = budget_new(&(struct budget_limits){.bytes = 64 << 20, .option = "limit"});
	b.cache = cache_new(&b.env, 8, NULL);
	b.store = argc > 2 ? store_dir_new(&b.env, argv[1], &err) : NULL;
	for (int i = 2; b.store && i < argc; i++) {
		uint32_t n = 0;
		err_clear(&err);
		const int rc = check_domain(&b, argv[i], &n, &err);
		if (rc)
			printf("%s: %s\n", argv[i], err.msg);
		else
			printf("%u %s\n", n, argv[i]);
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
