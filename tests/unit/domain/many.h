/* SPDX-License-Identifier: Apache-2.0 */
/* Domains of many objects whose ids are spread, as those of the service. */
#ifndef TESTS_DOMAIN_MANY_H
#define TESTS_DOMAIN_MANY_H

#include "gate.h"
#include "revalidate.h"

#include <base/checksum.h>

/* The last digits of the id of the i-th group. */
static inline void spread_id(unsigned int i, char id[32])
{
	const uint32_t a = checksum_lookup3(&i, sizeof(i), 1),
		       b = checksum_lookup3(&i, sizeof(i), 2);
	snprintf(id, 32, "%04x-%06x-%06x", a >> 16, (a & 0xffff) << 8 | b >> 24, b & 0xffffff);
}

static inline void put_spread_group(struct fixture *f, unsigned int i, int version)
{
	char key[128], text[512], id[32];
	spread_id(i, id);
	snprintf(key, sizeof(key), SMALL_PREFIX "/g/%s/.group.json", id);
	snprintf(text, sizeof(text),
		 "{'id':'g-11111111-22222222-%s','root':'" SMALL_ROOT
		 "','created':1,'lastModified':%d,'links':{},'attributes':{}}",
		 id, version);
	assert_int_equal(small_put(f->store, key, text), 0);
}

/* Makes the root group one of n groups. */
static inline void put_spread_root(struct fixture *f, unsigned int n)
{
	char *root = malloc((size_t)n * 128 + 1024), id[32];
	assert_non_null(root);
	int len = sprintf(root, "{" SMALL_HEAD(SMALL_ROOT) ",'links':{");
	for (unsigned int i = 0; i < n; i++) {
		spread_id(i, id);
		len += sprintf(root + len,
			       "%s'n%u':{'class':'H5L_TYPE_HARD','created':1,"
			       "'id':'g-11111111-22222222-%s'}",
			       i ? "," : "", i, id);
	}
	sprintf(root + len, "},'attributes':{}}");
	assert_int_equal(small_put(f->store, SMALL_PREFIX "/.group.json", root), 0);
	free(root);
}

struct spread {
	unsigned int i;
	char id[32];
};

static inline int compare_spread(const void *a, const void *b)
{
	return strcmp(((const struct spread *)a)->id, ((const struct spread *)b)->id);
}

/* Puts the groups in the order of their keys, because the store in memory moves all keys that come
 * after a new one. */
static inline void put_spread(struct fixture *f, unsigned int n)
{
	struct spread *all = calloc(n, sizeof(*all));
	assert_non_null(all);
	for (unsigned int i = 0; i < n; i++) {
		all[i].i = i;
		spread_id(i, all[i].id);
	}
	qsort(all, n, sizeof(*all), compare_spread);
	for (unsigned int i = 0; i < n; i++)
		put_spread_group(f, all[i].i, 1);
	free(all);
	put_spread_root(f, n);
}

#endif
