/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the keys of a domain that only a listing shows (struct schema_mark), such as a Zarr store.
 * They are all below the path of the domain. The listing shows the size of each stored chunk, so no
 * chunk is read, unless all of them are to be decoded. Of shards, the indexes are read. Such a
 * format permits other keys, so these are only counted. Keys below an object that is left out
 * belong to it.
 */
#include "check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <codec/chain.h>
#include <schema/schema.h>
#include <store/store.h>

struct store_check {
	struct domain_check *dc;
	const struct schema_ops *schema;
	char prefix[SCHEMA_KEY_MAX + 1]; /* of the store */
	struct arena *arena;
	struct check_prefix *dirs; /* by prefix */
	uint32_t n;
	uint64_t foreign, foreign_bytes; /* keys of no object */
	uint64_t appeared;		 /* chunks that were written since the open */
	struct check_choice choice;	 /* of a check of all chunks */
};

/* ---- objects ---- */

static int find_dirs(struct store_check *s)
{
	const uint32_t n = tree_numbers(s->dc->tree);
	s->arena = arena_new(SIZE_MAX);
	s->dirs = calloc(n, sizeof(*s->dirs));
	int rc = s->arena && s->dirs ? 0 : err_no_memory(s->dc->c->err);
	for (uint32_t i = 0; !rc && i < n; i++)
		rc = check_prefix_add(s->dc, s->arena, i, s->dirs, &s->n);
	if (!rc)
		qsort(s->dirs, s->n, sizeof(*s->dirs), check_prefix_compare);
	return rc;
}

/* Returns the object whose document is in the nearest directory above a key, or OBJECT_NONE. */
static uint32_t owner_of(const struct store_check *s, const char *key)
{
	char prefix[STORE_KEY_MAX + 1];
	const struct check_prefix wanted = {.prefix = prefix};
	const size_t n = strlen(key);
	if (n >= sizeof(prefix))
		return OBJECT_NONE;
	memcpy(prefix, key, n + 1);
	for (char *slash; (slash = strrchr(prefix, '/'));) {
		slash[1] = '\0';
		const struct check_prefix *found =
			bsearch(&wanted, s->dirs, s->n, sizeof(*s->dirs), check_prefix_compare);
		if (found)
			return found->number;
		*slash = '\0';
	}
	return OBJECT_NONE;
}

/* ---- chunks ---- */

/* Decodes the chunks of the dataset that are parts of one object, of which `first` is the first. Of
 * those in a shard, only the entries in its index are checked, unless all chunks are to be
 * decoded. */
static int check_parts(struct store_check *s, const struct check_chunk *first)
{
	const struct object *o = &tree_object(s->dc->tree, first->dataset)->o;
	struct check_chunk part = *first;
	int rc;
	part.only_place = o->dataset.shard && !s->dc->c->all;
	do {
		struct chunk_place place = {0};
		s->schema->chunk_part(o, part.number, &place);
		part.size = place.length;
		rc = check_choice_add(s->dc, &s->choice, &part);
	} while (!rc && s->schema->next_part(o, &part.number));
	return rc;
}

static int take_chunk(struct store_check *s, const struct check_chunk *chunk, const char *key)
{
	struct domain_check *dc = s->dc;
	const struct object *o = &tree_object(dc->tree, chunk->dataset)->o;
	const struct chunk_list *known = domain_chunks(dc->d, chunk->dataset);
	struct chunk_place place = {0};
	const bool is_part = s->schema->chunk_part(o, chunk->number, &place);
	const uint64_t exact = is_part		  ? place.object_size
			       : o->dataset.shard ? CODEC_UNKNOWN
						  : codec_chunk_size(o->dataset.chain).exact;
	dc->c->result.chunks++;
	dc->c->result.bytes += chunk->size;
	if (known->listed && chunk_list_find(known, chunk->number) == known->n) {
		s->appeared++;
		return 0;
	}
	if (exact != CODEC_UNKNOWN && chunk->size != exact)
		return check_find_at(dc, ENGINE_CHECK_ERROR, chunk->dataset, key,
				     "the chunk has %" PRIu64 " bytes instead of %" PRIu64,
				     chunk->size, exact);
	if (chunk->size == 0)
		return check_find_at(dc, ENGINE_CHECK_ERROR, chunk->dataset, key,
				     "the chunk is empty");
	if (o->dataset.shard)
		return check_parts(s, chunk);
	if (!dc->c->all)
		return 0;
	return is_part ? check_parts(s, chunk) : check_choice_add(dc, &s->choice, chunk);
}

/* ---- keys ---- */

static int take_key(void *ctx, const struct store_item *item)
{
	struct store_check *s = ctx;
	const uint32_t number = owner_of(s, item->key);
	const struct tree_object *to =
		number == OBJECT_NONE ? NULL : tree_object(s->dc->tree, number);
	struct check_chunk chunk = {.dataset = number, .size = item->meta.size};
	if (s->schema->is_domain_document(item->key) || (to && (to->broken || !to->linked)))
		return 0;
	if (to && to->o.kind == OBJECT_DATASET &&
	    s->schema->chunk_of_key(&to->o, item->key, &chunk.number))
		return take_chunk(s, &chunk, item->key);
	s->foreign++;
	s->foreign_bytes += item->meta.size;
	return 0;
}

static int report_counts(struct store_check *s)
{
	struct check *c = s->dc->c;
	int rc = 0;
	if (s->foreign)
		rc = check_find(c, ENGINE_CHECK_NOTE, NULL, NULL,
				"keys that are neither a document nor a chunk of an array: %" PRIu64
				", %" PRIu64 " bytes",
				s->foreign, s->foreign_bytes);
	return rc ? rc : check_appeared(c, s->appeared);
}

static int check_listed(struct store_check *s)
{
	struct err why = ERR_INIT;
	int refused = 0;
	int rc = find_dirs(s);
	if (!rc)
		rc = check_list(s->dc->c, s->dc->e, s->prefix, take_key, s, &refused, &why);
	if (!rc)
		rc = check_choice_end(s->dc, &s->choice);
	if (rc || !refused)
		return rc ? rc : report_counts(s);
	if (refused == -EACCES)
		return check_grid(s->dc, false);
	return check_find(s->dc->c, ENGINE_CHECK_UNCHECKED, NULL, s->prefix,
			  "its keys cannot be listed: %s", why.msg);
}

int check_store(struct domain_check *dc)
{
	struct store_check *s = calloc(1, sizeof(*s));
	if (!s)
		return err_no_memory(dc->c->err);
	const char *path = domain_path(dc->d);
	s->dc = dc;
	s->schema = domain_schema(dc->d);
	snprintf(s->prefix, sizeof(s->prefix), "%s%s", path, path[0] ? "/" : "");
	const int rc = check_listed(s);
	arena_free(s->arena);
	free(s->dirs);
	free(s);
	return rc;
}
