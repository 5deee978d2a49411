/* SPDX-License-Identifier: Apache-2.0 */
/* HDF5 files for drafts (tests/data/draft.py), and what the bucket has of them. */
#ifndef TESTS_ENGINE_DRAFT_FILES_H
#define TESTS_ENGINE_DRAFT_FILES_H

#include "data_file.h"
#include "draft_fixture.h"

#define ONE	"draft-one.h5"	   /* 2 objects, 1 chunk */
#define OTHER	"draft-other.h5"   /* 2 objects, 3 chunks, a user block */
#define REFUSED "draft-refused.h5" /* a domain cannot hold it */

enum { END_OF_TIME = 1 << 30 /* seconds, when all garbage is due */ };

/* Heap. */
static inline uint8_t *file_bytes(const char *name, size_t *n)
{
	const struct bytes b = data_file(name);
	*n = b.len;
	return b.data;
}

static inline void world_write_file(struct world *w, const char *file)
{
	size_t n;
	uint8_t *bytes = file_bytes(file, &n);
	world_write(w, bytes, n);
	free(bytes);
}

/* An engine, and a new file with the content of an HDF5 file. */
static inline void world_begin_file(struct world *w, const char *name, const char *file)
{
	world_begin(w, false, 0);
	world_draft(w, name);
	world_write_file(w, file);
}

/* Looks a name up as a program does. The caller unrefs. */
static inline struct names_node *world_find(struct world *w, const char *name)
{
	struct names_node *n;
	bool is_new;
	if (names_resolve_for_open(w->e->bucket.names, name, &n, &is_new, NULL))
		return NULL;
	return n;
}

/* The number of chunks of a domain. */
static inline size_t world_chunks(struct world *w, const char *path)
{
	struct domain *d = gate_domain(w->gate, path);
	struct storage storage;
	size_t n = 0;
	auto_page struct store_page page = {0};
	assert_non_null(d);
	const struct schema_ops *schema = domain_schema(d);
	assert_int_equal(schema_storage_of_root(schema, domain_info(d)->root, &storage, NULL), 0);
	domain_unref(d);
	gate_list(w->gate, storage.prefix, &page);
	for (size_t i = 0; i < page.n; i++)
		n += !strstr(page.items[i].key, ".json") &&
		     !strstr(page.items[i].key, schema->storage->names);
	return n;
}

/* Deletes all garbage, after more than an hour: what names a storage may arrive so late. */
static inline void world_collect(struct world *w)
{
	world_late_ns += INT64_C(3601) * 1000000000;
	garbage_collect(w->e->bucket.garbage, UINT64_C(1000000000) * END_OF_TIME);
}

#endif
