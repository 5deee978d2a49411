/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .info.json of a domain, from the keys and sizes of its objects. It has the members that a
 * scan of the service makes, by the same rules: documents count as metadata, and the logical size
 * of data of variable length is that of their chunks. As in a scan that does not know the version
 * of each object, "md5_sum" is missing. Pure.
 */
#include "hsds2.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/checksum.h>
#include <base/mem.h>
#include <codec/chunk.h>
#include <data/tree.h>
#include <json/writer.h>

/* What a dataset has in the bucket, and in an HDF5 file. */
struct stored {
	uint64_t chunks, bytes, linked, linked_bytes;
	bool has_document;
	const struct dataset *description; /* NULL: that of the tree */
};

struct schema_tally {
	const struct tree *tree;
	uint64_t groups, types, metadata_bytes;
	struct stored all;
	struct stored *datasets; /* by number */
	uint32_t *table, mask;	 /* hash table by id: number + 1, or 0 if a slot is free */
};

static bool id_of(const struct schema_tally *t, uint32_t number, struct schema_id *id)
{
	const struct object *o = &tree_object(t->tree, number)->o;
	return o->id && schema_id_parse(o->id, strlen(o->id), id);
}

/* Returns the slot of an id: that of the object, or a free one. */
static uint32_t *slot_of(const struct schema_tally *t, const struct schema_id *id)
{
	uint32_t at = checksum_lookup3(id->b, sizeof(id->b), 0) & t->mask;
	struct schema_id other;
	while (t->table[at] && !(id_of(t, t->table[at] - 1, &other) && schema_id_equal(&other, id)))
		at = (at + 1) & t->mask;
	return &t->table[at];
}

int hsds2_tally_new(const struct tree *tree, struct schema_tally **out, struct err *err)
{
	const uint32_t n = tree_numbers(tree);
	struct schema_tally *t = calloc(1, sizeof(*t));
	struct schema_id id;
	size_t size = 4;
	*out = NULL;
	while (size / 2 < n)
		size *= 2;
	if (!t)
		return err_no_memory(err);
	t->tree = tree;
	t->mask = (uint32_t)(size - 1);
	t->table = calloc(size, sizeof(*t->table));
	t->datasets = calloc((size_t)n + 1, sizeof(*t->datasets));
	if (!t->table || !t->datasets) {
		hsds2_tally_free(t);
		return err_no_memory(err);
	}
	for (uint32_t i = 0; i < n; i++)
		if (id_of(t, i, &id))
			*slot_of(t, &id) = i + 1;
	*out = t;
	return 0;
}

void hsds2_tally_free(struct schema_tally *t)
{
	if (!t)
		return;
	free(t->table);
	free(t->datasets);
	free(t);
}

void hsds2_tally_add(struct schema_tally *t, const char *key, uint64_t size)
{
	struct hsds2_key k;
	hsds2_key_classify(key, &k);
	const uint32_t number = k.cls != HSDS2_KEY_OTHER ? *slot_of(t, &k.id) : 0;
	if (!number)
		return;
	if (k.cls == HSDS2_KEY_OBJECT) {
		t->metadata_bytes += size;
		t->groups += k.id.kind == OBJECT_GROUP;
		t->types += k.id.kind == OBJECT_DATATYPE;
		t->datasets[number - 1].has_document = k.id.kind == OBJECT_DATASET;
		return;
	}
	struct stored *to[] = {&t->all, &t->datasets[number - 1]};
	for (int i = 0; i < 2; i++) {
		to[i]->chunks++;
		to[i]->bytes += size;
	}
}

void hsds2_tally_link(struct schema_tally *t, uint32_t dataset, uint64_t chunks, uint64_t bytes)
{
	struct stored *to[] = {&t->all, &t->datasets[dataset]};
	for (int i = 0; i < 2; i++) {
		to[i]->linked += chunks;
		to[i]->linked_bytes += bytes;
	}
}

void hsds2_tally_describe(struct schema_tally *t, uint32_t dataset, const struct dataset *ds)
{
	t->datasets[dataset].description = ds;
}

/* The bytes of all elements. */
static uint64_t logical_bytes(const struct dataset *ds, const struct stored *s)
{
	const uint64_t size = codec_stored_elem_size(ds->type);
	uint64_t bytes = 0;
	if (ds->space.cls == DSPACE_NULL)
		return 0;
	if (size == 0)
		return s->bytes;
	return mul_u64(ds->space.nelems, size, &bytes) ? bytes : 0;
}

static void put_stored(struct writer *w, const struct stored *s, bool is_dataset, uint64_t logical,
		       uint64_t metadata)
{
	write_member_uint(w, "num_chunks", s->chunks);
	write_member_uint(w, "allocated_bytes", s->bytes);
	if (!is_dataset)
		write_member_uint(w, "metadata_bytes", metadata);
	write_member_uint(w, "logical_bytes", logical);
	write_member_uint(w, "linked_bytes", s->linked_bytes);
	write_member_uint(w, "num_linked_chunks", s->linked);
}

static void put_time(struct writer *w, const char *key, int64_t ns)
{
	write_key(w, key);
	write_time(w, ns);
}

int hsds2_tally_emit(const struct schema_tally *t, const struct schema_scan *scan,
		     struct bytes *out, struct err *err)
{
	struct writer w = {.out = out};
	uint64_t logical = 0;
	write_open(&w, '{');
	put_time(&w, "lastModified", scan->time_ns);
	write_member_uint(&w, "num_groups", t->groups);
	write_member_uint(&w, "num_datatypes", t->types);
	write_member_open(&w, "datasets", '{');
	for (uint32_t i = 0; i < tree_numbers(t->tree); i++) {
		const struct object *o = &tree_object(t->tree, i)->o;
		if (!t->datasets[i].has_document)
			continue;
		const struct dataset *ds = t->datasets[i].description;
		const uint64_t bytes = logical_bytes(ds ? ds : &o->dataset, &t->datasets[i]);
		logical += bytes;
		write_member_open(&w, o->id, '{');
		put_time(&w, "lastModified", scan->time_ns);
		put_stored(&w, &t->datasets[i], true, bytes, 0);
		write_close(&w, '}');
	}
	write_close(&w, '}');
	put_stored(&w, &t->all, false, logical, t->metadata_bytes);
	if (scan->bucket)
		write_member_word(&w, "bucket", scan->bucket);
	put_time(&w, "scan_start", scan->time_ns);
	put_time(&w, "scan_complete", scan->time_ns);
	write_close(&w, '}');
	return w.bad ? err_no_memory(err) : 0;
}
