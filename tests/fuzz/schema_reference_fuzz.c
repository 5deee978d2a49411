/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts that refer to HDF5 files, chunk tables and their records. The input is the document of a
 * dataset, a NUL, the document of its chunk table, a NUL, and a record: bytes of the fixed part,
 * then the items of its strings. Properties: each place is within the limits, the file is named, a
 * place is the same each time, and the record is one of the table.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <data/chunk_source.h>
#include <schema/schema.h>

#include "require.h"

#include "schema/hsds/hsds2.h"
#include "schema/hsds/parse_object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char dataset_id[] = "d-00112233-44556677-0002-000000-000000";
static const char table_id[] = "d-00112233-44556677-0004-000000-000001";
static const char root_id[] = "g-00112233-44556677-8899-aabbcc-ddeeff";

static uint32_t number(void *ctx, const struct schema_id *id)
{
	return id->b[15];
}

static struct schema_id id_of(const char *text)
{
	struct schema_id id = {0};
	require(schema_id_parse(text, strlen(text), &id));
	return id;
}

static int parse(struct arena *arena, const char *id_text, const uint8_t *text, size_t n,
		 struct object *out)
{
	const struct schema_numbers numbers = {.number = number};
	const struct schema_id id = id_of(id_text), root = id_of(root_id);
	const int rc = schema_object_parse(arena, arena, &id, &root, text, n, &numbers, NULL, NULL,
					   NULL, out, NULL);
	return rc ? rc : out->kind == OBJECT_DATASET ? 0 : -EIO;
}

struct located {
	char key[SCHEMA_KEY_MAX + 1];
	struct chunk_place place;
	int rc;
};

static void locate(struct located *l, const struct object *o, const struct object *table,
		   uint64_t chunk, unsigned int step, const struct schema_answer *answer)
{
	struct err err = ERR_INIT;
	*l = (struct located){0};
	l->place = (struct chunk_place){.key = l->key, .room = sizeof(l->key)};
	l->rc = hsds2_locate(o, table, chunk, &step, answer, &l->place, &err);
	require(l->rc >= 0 || (l->rc == err.code && err.msg[0]));
}

static void check_place(const struct located *l)
{
	const struct chunk_place *p = &l->place;
	uint64_t end;
	if (l->rc || p->absent)
		return;
	require(p->file && p->file->uri[0]);
	require(p->length > 0 && p->length <= CHUNK_BYTES_MAX);
	require(add_u64(p->offset, p->length, &end));
}

static void check_reference(const struct object *o, const struct object *table,
			    const struct elems *record)
{
	const struct reference *r = o->dataset.reference;
	const struct schema_answer answers[] = {{.record = record}, {.absent = true}};
	const uint64_t n = o->dataset.grid.nchunks;
	const uint64_t chunks[] = {0, n / 2, n - 1};
	for (uint64_t i = 1; i < r->nchunks; i++)
		require(r->chunks[i - 1].number < r->chunks[i].number && r->chunks[i].number < n);
	for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
		struct located a, b;
		locate(&a, o, table, chunks[i], 0, NULL);
		check_place(&a);
		if (a.rc != SCHEMA_NEEDS_RECORD)
			continue;
		require(table && a.place.record < table->dataset.space.nelems);
		for (size_t k = 0; k < 2; k++) {
			locate(&a, o, table, chunks[i], 1, &answers[k]);
			locate(&b, o, table, chunks[i], 1, &answers[k]);
			check_place(&a);
			require(a.rc == b.rc && a.place.offset == b.place.offset &&
				a.place.length == b.place.length && !strcmp(a.key, b.key));
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *first = memchr(data, '\0', size);
	const size_t n = first ? (size_t)(first - data) : size;
	const uint8_t *rest = data + n + (first != NULL);
	size_t left = size - n - (first != NULL);
	const uint8_t *second = left ? memchr(rest, '\0', left) : NULL;
	const size_t table_n = second ? (size_t)(second - rest) : left;
	struct arena *arena = arena_new(64 << 20);
	struct object o = {0}, table = {0};
	struct elems record = {0};
	require(arena);
	const int rc = parse(arena, dataset_id, data, n, &o);
	const int table_rc = parse(arena, table_id, rest, table_n, &table);
	if (!table_rc && second) {
		const uint8_t *bytes = second + 1;
		left -= table_n + 1;
		const size_t fixed = (size_t)min_u64(left, table.dataset.type->size);
		require(!bytes_append(&record.fixed, bytes, fixed));
		require(!bytes_append(&record.heap, bytes + fixed, left - fixed));
	}
	if (!rc && o.dataset.reference && o.dataset.grid.nchunks)
		check_reference(&o, table_rc ? NULL : &table, &record);
	elems_release(&record);
	object_release(&o);
	object_release(&table);
	arena_free(arena);
	return 0;
}
