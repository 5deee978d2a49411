/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the keys in the bucket below the prefix of a domain: documents, chunks, the service's
 * summary, and keys that belong to none of these. The listing is read page by page. It is sorted by
 * key, so the keys of one object come one after the other. The size of a chunk without filters must
 * be exact.
 */
#include "check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/search.h>
#include <codec/chain.h>
#include <domain/documents.h>
#include <engine/parts.h>
#include <schema/schema.h>
#include <storage/storage_names.h>
#include <store/store.h>

enum {
	PAGE_ITEMS = 1 << 16,	/* S3 returns at most 1,000 */
	SUMMARY_MAX = 64 << 20, /* bytes */
};

struct tally {
	uint64_t n, bytes;
};

struct inventory {
	struct domain_check *dc;
	const struct schema_ops *schema;
	char prefix[SCHEMA_KEY_MAX + 1];
	char summary[SCHEMA_KEY_MAX + 1];    /* its key; "" if there is none */
	char user_block[SCHEMA_KEY_MAX + 1]; /* its key; "" if there is none */
	struct arena *arena;
	struct check_prefix *entries; /* by prefix; without the root group */
	uint32_t n;
	bool *is_table; /* by number; true for a chunk table to which a dataset refers */
	/* The object of the previous key. */
	uint32_t current;
	struct tally beside; /* its keys that are neither its document nor its chunks */
	/* The number of documents of objects, and of chunks that were written since the open. */
	uint64_t documents, appeared;
	struct tally orphans; /* keys of objects without a link */
	uint64_t orphan_objects;
	struct tally unknown; /* keys of no object */
	struct check_choice choice;
};

/* ---- the objects by prefix ---- */

int check_prefix_compare(const void *x, const void *y)
{
	const struct check_prefix *a = x, *b = y;
	return strcmp(a->prefix, b->prefix);
}

int check_prefix_add(struct domain_check *dc, struct arena *arena, uint32_t number,
		     struct check_prefix *v, uint32_t *n)
{
	char key[SCHEMA_KEY_MAX + 1];
	if (domain_object_key(dc->d, number, key, sizeof(key)) <= 0)
		return 0;
	const char *slash = strrchr(key, '/');
	const char *prefix = arena_strndup(arena, key, slash ? (size_t)(slash - key) + 1 : 0);
	if (!prefix)
		return err_no_memory(dc->c->err);
	v[(*n)++] = (struct check_prefix){.prefix = prefix, .number = number};
	return 0;
}

static int find_prefixes(struct inventory *v)
{
	const struct tree *t = v->dc->tree;
	const uint32_t root = tree_nth(t, 0);
	v->arena = arena_new(SIZE_MAX);
	v->entries = calloc(tree_numbers(t), sizeof(*v->entries));
	v->is_table = calloc(tree_numbers(t), sizeof(*v->is_table));
	int rc = v->arena && v->entries && v->is_table ? 0 : err_no_memory(v->dc->c->err);
	for (uint32_t i = 0; !rc && i < tree_count(t); i++) {
		const struct object *o = &tree_object(t, tree_nth(t, i))->o;
		const struct reference *r = o->kind == OBJECT_DATASET ? o->dataset.reference : NULL;
		if (r && r->layout == REFERENCE_TABLE && r->table < tree_numbers(t))
			v->is_table[r->table] = true;
	}
	for (uint32_t i = 0; !rc && i < tree_numbers(t); i++)
		if (i != root)
			rc = check_prefix_add(v->dc, v->arena, i, v->entries, &v->n);
	if (!rc)
		qsort(v->entries, v->n, sizeof(*v->entries), check_prefix_compare);
	return rc;
}

/* Returns the object to which a key belongs, or OBJECT_NONE for the root group or none. */
static uint32_t object_of(const struct inventory *v, const char *key)
{
	const uint32_t low = LOWER_BOUND(i, v->n, strcmp(v->entries[i].prefix, key) <= 0);
	if (low == 0)
		return OBJECT_NONE;
	const struct check_prefix *e = &v->entries[low - 1];
	return strncmp(key, e->prefix, strlen(e->prefix)) == 0 ? e->number : OBJECT_NONE;
}

/* ---- chunks ---- */

/* Returns true if the domain, which was opened earlier, can deliver the chunk. */
static bool was_seen(struct inventory *v, const struct check_chunk *chunk)
{
	const struct chunk_list *known = domain_chunks(v->dc->d, chunk->dataset);
	if (!known->listed)
		return !known->unknown;
	const uint64_t place = chunk_list_find(known, chunk->number);
	if (place == known->n) {
		v->appeared++;
		return false;
	}
	/* A chunk that cannot be measured is among the problems of the domain. */
	return !known->decoded || known->decoded[place] != UINT64_MAX;
}

static int take_chunk(struct inventory *v, const struct check_chunk *chunk, const char *key)
{
	struct check *c = v->dc->c;
	const struct dataset *ds = &tree_object(v->dc->tree, chunk->dataset)->o.dataset;
	const uint64_t exact = codec_chunk_size(ds->chain).exact;
	c->result.chunks++;
	c->result.bytes += chunk->size;
	if (!was_seen(v, chunk))
		return 0;
	if (exact != CODEC_UNKNOWN && chunk->size != exact)
		return check_find_at(v->dc, ENGINE_CHECK_ERROR, chunk->dataset, key,
				     "the chunk has %" PRIu64 " bytes instead of %" PRIu64,
				     chunk->size, exact);
	return check_choice_add(v->dc, &v->choice, chunk);
}

/* Counts a chunk of a chunk table. Its records are read together with the chunks of the dataset. */
static int take_table_chunk(struct inventory *v, const struct check_chunk *chunk, const char *key)
{
	const struct dataset *ds = &tree_object(v->dc->tree, chunk->dataset)->o.dataset;
	const uint64_t exact = codec_chunk_size(ds->chain).exact;
	v->dc->c->result.chunks++;
	v->dc->c->result.bytes += chunk->size;
	if (exact == CODEC_UNKNOWN || chunk->size == exact)
		return 0;
	return check_find(v->dc->c, ENGINE_CHECK_ERROR, NULL, key,
			  "the chunk of a chunk table has %" PRIu64 " bytes instead of %" PRIu64,
			  chunk->size, exact);
}

/* ---- keys ---- */

static void count(struct tally *t, const struct store_item *item)
{
	t->n++;
	t->bytes += item->meta.size;
}

/* Reports the other keys of the current object, when the keys of the next one begin. */
static int end_object(struct inventory *v)
{
	const uint32_t number = v->current;
	const struct tally beside = v->beside;
	v->current = OBJECT_NONE;
	v->beside = (struct tally){0};
	if (number == OBJECT_NONE || beside.n == 0)
		return 0;
	return check_find_at(v->dc, ENGINE_CHECK_NOTE, number, NULL,
			     "keys that are no chunk within its extent: %" PRIu64 ", %" PRIu64
			     " bytes",
			     beside.n, beside.bytes);
}

static bool is_document(const struct inventory *v, uint32_t number, const char *key)
{
	char own[SCHEMA_KEY_MAX + 1];
	return domain_object_key(v->dc->d, number, own, sizeof(own)) >= 0 && strcmp(own, key) == 0;
}

/* Returns whether a key is that of an object of this program whose name below the storage begins
 * with `name`. name may be NULL. */
static bool is_own(const struct inventory *v, const char *key, const char *name)
{
	const size_t n = strlen(v->prefix);
	return name && strncmp(key, v->prefix, n) == 0 && strncmp(key + n, name, strlen(name)) == 0;
}

/* Reports the note of a rename that has not ended: both names may lead to the domain. */
static int check_rename(struct inventory *v, const char *key, const struct rename_record *r)
{
	if (!rename_is_open(r->state) && r->state != RENAME_REFUSED)
		return 0;
	return check_find(v->dc->c, ENGINE_CHECK_NOTE, NULL, key,
			  "a rename from /%s to /%s is running, was interrupted, or was refused; "
			  "the next rename of the domain finishes it",
			  r->from, r->to);
}

static int check_names(struct inventory *v, const char *key)
{
	const struct document_place place = {
		.env = &v->dc->e->bucket.env, .store = v->dc->e->bucket.store, .schema = v->schema};
	auto_names struct storage_names names = {0};
	const char *path;
	struct err why = ERR_INIT;
	if (!schema_storage_of(domain_document(v->dc->d), &names.storage))
		return 0;
	int rc = storage_names_read(&place, &names, &why);
	if (rc)
		return check_find(v->dc->c,
				  rc == -EIO ? ENGINE_CHECK_ERROR : ENGINE_CHECK_UNCHECKED, NULL,
				  key, "the domain cannot be renamed or removed: %s", why.msg);
	path = names.rename.state == RENAME_NONE ? NULL : names.rename.from;
	/* Nothing is put at the end of a rename: it has ended if the old name is gone. */
	rc = path ? document_names_storage(&place, path, &names.storage, &why) : 0;
	return rc ? check_rename(v, key, &names.rename) : 0;
}

/* Takes a key of the root group, or of no object. */
static int take_other(struct inventory *v, const struct store_item *item)
{
	if (is_own(v, item->key, v->schema->storage->names))
		return check_names(v, item->key);
	if (is_own(v, item->key, v->schema->storage->deletion))
		return check_find(v->dc->c, ENGINE_CHECK_NOTE, NULL, item->key,
				  "a deletion of this storage is running or was interrupted; after "
				  "an hour it does not count any more");
	if (strcmp(item->key, v->user_block) == 0 || /* the open has read it */
	    is_own(v, item->key, v->schema->storage->copy))
		return 0;
	if (is_own(v, item->key, v->schema->storage->user_blocks))
		return check_find(v->dc->c, ENGINE_CHECK_NOTE, NULL, item->key,
				  "a user block that the root group does not name, %" PRIu64
				  " bytes",
				  item->meta.size);
	if (is_document(v, tree_nth(v->dc->tree, 0), item->key))
		v->documents++;
	else if (strcmp(item->key, v->summary) != 0)
		count(&v->unknown, item);
	return 0;
}

static int take_key(void *ctx, const struct store_item *item)
{
	struct inventory *v = ctx;
	const uint32_t number = object_of(v, item->key);
	if (number != v->current) {
		int rc = end_object(v);
		if (rc)
			return rc;
		v->current = number;
	}
	if (number == OBJECT_NONE)
		return take_other(v, item);
	const struct tree_object *to = tree_object(v->dc->tree, number);
	struct check_chunk chunk = {.dataset = number, .size = item->meta.size};
	const bool document = is_document(v, number, item->key);
	v->documents += document;
	if (v->is_table[number] && !to->linked && !to->broken) {
		if (!document && v->schema->chunk_of_key(&to->o, item->key, &chunk.number))
			return take_table_chunk(v, &chunk, item->key);
		if (!document)
			count(&v->orphans, item);
		return 0;
	}
	if (!to->linked && !to->missing) {
		v->orphan_objects += document;
		count(&v->orphans, item);
		return 0;
	}
	if (document || to->broken)
		return 0;
	if (to->o.kind == OBJECT_DATASET &&
	    v->schema->chunk_of_key(&to->o, item->key, &chunk.number))
		return take_chunk(v, &chunk, item->key);
	count(&v->beside, item);
	return 0;
}

int check_list(struct check *c, struct engine *e, const char *prefix,
	       int (*fn)(void *ctx, const struct store_item *item), void *ctx, int *refused,
	       struct err *why)
{
	struct store *store = e->bucket.store;
	auto_request struct store_request *req = store_request_new(store, STORE_LIST);
	char after[STORE_KEY_MAX + 1] = "";
	int rc = req ? 0 : err_no_memory(c->err);
	*refused = 0;
	for (bool more = true; !rc && more;) {
		store_request_reset(req, STORE_LIST);
		store_request_key(req, prefix);
		req->list.complete = true;
		req->list.max = PAGE_ITEMS;
		if (after[0])
			store_request_start_after(req, after);
		store_run(store, req);
		*refused = store_failure(&req->answer, why);
		if (*refused)
			return 0;
		const struct store_page *page = &req->answer.page;
		for (size_t i = 0; !rc && i < page->n; i++)
			rc = fn(ctx, &page->items[i]);
		more = page->more;
		if (more)
			snprintf(after, sizeof(after), "%s", page->next);
	}
	return rc;
}

static int list_all(struct inventory *v)
{
	struct err why = ERR_INIT;
	int refused;
	const int rc = check_list(v->dc->c, v->dc->e, v->prefix, take_key, v, &refused, &why);
	if (rc || !refused)
		return rc ? rc : end_object(v);
	return check_find(v->dc->c, ENGINE_CHECK_UNCHECKED, NULL, v->prefix,
			  "its keys cannot be listed: %s", why.msg);
}

/* ---- the summary ---- */

static int compare_total(struct inventory *v, const char *what, uint64_t stated, uint64_t real)
{
	if (stated == real)
		return 0;
	return check_find(v->dc->c, ENGINE_CHECK_NOTE, NULL, v->summary,
			  "the summary is stale: it states %s %" PRIu64 " instead of %" PRIu64,
			  what, stated, real);
}

/* Reads the summary. *found becomes true if it exists and is valid. */
static int read_summary(struct inventory *v, struct schema_info *info, bool *found)
{
	struct store *store = v->dc->e->bucket.store;
	auto_request struct store_request *req = store_request_new(store, STORE_GET);
	struct err why = ERR_INIT;
	*found = false;
	if (!req)
		return err_no_memory(v->dc->c->err);
	if (!v->summary[0])
		return 0;
	store_request_key(req, v->summary);
	req->max = SUMMARY_MAX;
	store_run(store, req);
	if (store_failure(&req->answer, &why))
		return check_find(v->dc->c, ENGINE_CHECK_UNCHECKED, NULL, v->summary,
				  "the summary cannot be read: %s", why.msg);
	if (store_absence(&req->answer))
		return 0;
	const struct bytes *body = &req->answer.body;
	if (v->schema->info_parse(body->data, body->len, info, &why))
		return check_find(v->dc->c, ENGINE_CHECK_NOTE, NULL, v->summary,
				  "the summary is damaged: %s", why.msg);
	*found = true;
	return 0;
}

static int compare_summary(struct inventory *v, const struct schema_info *info)
{
	int rc = compare_total(v, "objects", info->num_objects, v->documents);
	if (!rc)
		rc = compare_total(v, "chunks", info->num_chunks, v->dc->c->result.chunks);
	return rc ? rc
		  : compare_total(v, "bytes of chunks", info->allocated_bytes,
				  v->dc->c->result.bytes);
}

/* ---- all of it ---- */

int check_appeared(struct check *c, uint64_t n)
{
	return n ? check_find(c, ENGINE_CHECK_WARNING, NULL, NULL,
			      "chunks that were written during the check, and were not checked: "
			      "%" PRIu64,
			      n)
		 : 0;
}

static int report_tallies(struct inventory *v)
{
	struct check *c = v->dc->c;
	int rc = 0;
	if (v->orphans.n)
		rc = check_find(c, ENGINE_CHECK_NOTE, NULL, NULL,
				"objects without a link: %" PRIu64 ", with %" PRIu64
				" keys of %" PRIu64 " bytes",
				v->orphan_objects, v->orphans.n, v->orphans.bytes);
	if (!rc && v->unknown.n)
		rc = check_find(c, ENGINE_CHECK_NOTE, NULL, NULL,
				"keys that belong to no object: %" PRIu64 ", %" PRIu64 " bytes",
				v->unknown.n, v->unknown.bytes);
	return rc ? rc : check_appeared(c, v->appeared);
}

/* Finds the prefix of all keys of the domain, and the keys of its summary and its user block.
 * Returns false if the domain has no such prefix. */
static bool find_keys(struct inventory *v)
{
	const struct schema_document *document = domain_document(v->dc->d);
	struct storage storage;
	if (!schema_storage_of(document, &storage))
		return false;
	snprintf(v->prefix, sizeof(v->prefix), "%s", storage.prefix);
	if (v->schema->info_key(document, v->summary, sizeof(v->summary)) <= 0)
		v->summary[0] = '\0';
	if (!v->schema->user_block_key ||
	    v->schema->user_block_key(v->dc->tree, v->user_block, sizeof(v->user_block)) <= 0)
		v->user_block[0] = '\0';
	return true;
}

int check_keys(struct domain_check *dc)
{
	struct schema_info info;
	bool found = false;
	struct inventory *v = calloc(1, sizeof(*v));
	if (!v)
		return err_no_memory(dc->c->err);
	v->dc = dc;
	v->schema = domain_schema(dc->d);
	v->current = OBJECT_NONE;
	int rc = 0;
	if (find_keys(v)) {
		rc = find_prefixes(v);
		if (!rc)
			rc = read_summary(v, &info, &found);
		if (!rc)
			rc = list_all(v);
		if (!rc)
			rc = check_choice_end(dc, &v->choice);
		if (!rc && found)
			rc = compare_summary(v, &info);
		if (!rc)
			rc = report_tallies(v);
	}
	arena_free(v->arena);
	free(v->entries);
	free(v->is_table);
	free(v);
	return rc;
}
