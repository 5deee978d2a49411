/* SPDX-License-Identifier: Apache-2.0 */
/* A domain in a bucket of S3 that is renamed and removed, and a clock. */
#ifndef UNIT_DOMAIN_RENAME_FIXTURE_H
#define UNIT_DOMAIN_RENAME_FIXTURE_H

#include "change_fixture.h"

#include <storage/renames.h>

#include <storage/storage_deletion.h>
#include <storage/storage_names.h>
#include <bucket/schemas.h>

#include "mem_store.h"

#define FROM	  "home/a.h5"
#define TO	  "work/b.h5"
#define HOUR_NS	  (INT64_C(3600) * 1000000000)
#define MINUTE_NS (INT64_C(60) * 1000000000)

static int64_t wall_ns;

static inline int64_t wall(const struct env *env)
{
	return wall_ns;
}

/* A bucket in S3 with the domain FROM. */
static inline void set_up(struct world *w)
{
	wall_ns = INT64_C(1700000000000000000);
	world_init(w, 0);
	w->env.wall = wall;
	store_mem_set_lacks(w->gate->base.inner, STORE_MEM_NO_MOVE, NULL, NULL);
	import_as(w, FROM, 1);
	w->seed = 2;
	world_open_gate(w);
}

/* Another process has the same bucket. */
static inline struct change other_process(struct world *w)
{
	struct change c = change_of(w);
	c.store = w->gate->base.inner;
	return c;
}

static inline int rename_as(struct world *w, const struct change *c, const char *from,
			    const char *to, struct err *err)
{
	struct schema_document *d = look_up(w, from), *target = look_up(w, to);
	struct change_garbage garbage = {0};
	assert_non_null(d);
	world_open_gate(w);
	const int rc = change_rename_domain(c, from, d, to, target, &garbage, err);
	assert_null(garbage.storage.schema);
	schema_document_unref(d);
	schema_document_unref(target);
	return rc;
}

/* Does the same as `rm`, and then deletes the storage. Returns -EBUSY if the storage stays for
 * now. */
static inline int remove_as(struct world *w, const struct change *c, const char *path)
{
	struct schema_document *d = look_up(w, path);
	struct change_garbage garbage;
	struct err err = ERR_INIT;
	uint64_t deleted;
	assert_non_null(d);
	int rc = change_remove_domain(c, path, d, false, &garbage, &err);
	schema_document_unref(d);
	assert_true(rc || garbage.storage.schema);
	return rc ? rc : change_collect(c, path, &garbage, &deleted, &err);
}

static inline struct storage storage_of_domain(struct world *w, const char *path)
{
	struct schema_document *d = look_up(w, path);
	struct storage storage;
	assert_non_null(d);
	assert_int_equal(schema_storage_of_root(schema_all()[0], d->info.root, &storage, NULL), 0);
	schema_document_unref(d);
	return storage;
}

/* The same as a pointer, which is valid in the block. */
#define STORAGE_OF(w, path) ((const struct storage[]){storage_of_domain(w, path)})

static inline void assert_names(struct world *w, const char *one, const char *none)
{
	assert_int_equal(world_objects(w, one), OBJECTS);
	assert_int_equal(world_objects(w, none), 0);
}

/* Removing what is left removes everything. */
static inline void tear_down(struct world *w, const char *last)
{
	const struct change c = other_process(w);
	world_open_gate(w);
	wall_ns += 2 * HOUR_NS;
	assert_int_equal(remove_as(w, &c, last), 0);
	assert_int_equal(world_keys(w, ""), 0);
	world_release(w);
}

/* ---- another process ---- */

static struct world *meeting;
static const char *other_from, *other_to;
static int other_rc;

static inline void rename_meanwhile(struct store *bucket)
{
	const struct change c = other_process(meeting);
	struct schema_document *d = look_up(meeting, other_from);
	struct change_garbage garbage;
	meeting->gate->other_at = 0;
	other_rc = change_rename_domain(&c, other_from, d, other_to, NULL, &garbage, NULL);
	schema_document_unref(d);
}

#endif
