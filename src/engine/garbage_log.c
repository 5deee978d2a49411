/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of garbage in the journal, and what a process does with those of an earlier one. Any
 * thread. */
#include "engine_internal.h"

#include <inttypes.h>

/* The journal keeps the numbers of storages, which are of the schema of new domains. If a name
 * vanishes, the number of the storage to which it leads then is 0. */
static uint64_t number_of(const struct storage *s)
{
	return s->schema ? s->schema->storage->number(s->prefix) : 0;
}

int garbage_note(void *engine, uint32_t *record, const struct garbage_note *note, struct err *err)
{
	const struct engine *e = engine;
	const struct gc_entry entry = {.state = note->state,
				       .storage = number_of(&note->storage),
				       .next = number_of(&note->next),
				       .due_ns = note->due_ns,
				       .path = note->path};
	return e->gc_log ? gc_log_put(e->gc_log, record, &entry, err) : 0;
}

void garbage_forget(void *engine, uint32_t *record)
{
	const struct engine *e = engine;
	if (e->gc_log)
		gc_log_clear(e->gc_log, record);
}

void garbage_forget_objects(void *engine, struct gc_objects *objects)
{
	const struct engine *e = engine;
	gc_objects_forget(e->gc_log, objects);
}

uint32_t garbage_note_change(struct engine *e, const char *path,
			     const struct schema_document *loses,
			     const struct schema_document *gets)
{
	struct storage storage, next = {.schema = NULL};
	uint32_t record = GC_NONE;
	if (schema_storage_of(loses, &storage) &&
	    (!gets || (schema_storage_of(gets, &next) && !same_storage(&next, &storage))))
		garbage_expect(e->bucket.garbage, path, &storage, &next, &record);
	return record;
}

uint32_t garbage_note_rename(struct engine *e, const char *path, const struct storage *storage)
{
	const struct garbage_note n = {.state = GC_RENAMED, .storage = *storage, .path = path};
	uint32_t record = GC_NONE;
	/* Without the note, the rename is finished by the next program that renames the domain. */
	garbage_note(e, &record, &n, NULL);
	return record;
}

/* If the path leads to the storage that was noted, only that process can have changed it. If it
 * leads to something else, another program may have renamed the domain before. */
int garbage_judge(void *engine, const struct garbage_note *expected, const atomic_bool *cancelled,
		  struct err *err)
{
	struct engine *e = engine;
	const struct change c = {.env = &e->bucket.env,
				 .store = e->bucket.store,
				 .schema = bucket_new_domains(&e->bucket),
				 .cancelled = cancelled};
	int rc = change_has_storage(&c, expected->path, &expected->storage, err);
	if (rc)
		return rc < 0 ? rc : GARBAGE_STAYS;
	rc = expected->next.schema ? change_has_storage(&c, expected->path, &expected->next, err)
				   : 0;
	return rc < 0 ? rc : rc ? GARBAGE_REMOVED : GARBAGE_UNCLEAR;
}

int garbage_notes_open(struct engine *e, struct journal *j, struct err *err)
{
	return gc_log_new(j, &e->gc_log, err);
}

static int inherit(void *ctx, const struct gc_entry *entry)
{
	struct engine *e = ctx;
	const struct schema_ops *schema = bucket_new_domains(&e->bucket);
	struct garbage_note note = {.state = entry->state,
				    .storage = schema_storage_of_number(schema, entry->storage),
				    .due_ns = entry->due_ns,
				    .path = entry->path};
	if (entry->next)
		note.next = schema_storage_of_number(schema, entry->next);
	return store_key_ok(entry->path) ? garbage_inherit(e->bucket.garbage, &note, NULL) : 0;
}

static int inherit_objects(void *ctx, struct gc_objects *objects)
{
	struct engine *e = ctx;
	if (store_key_ok(gc_objects_get(objects)->path))
		garbage_add_objects(e->bucket.garbage, objects);
	else
		gc_objects_close(objects);
	return 0;
}

static void warn(const struct engine *e, const char *what, const struct gc_log_taken *taken, int rc,
		 const struct err *err)
{
	if (rc)
		log_warning(e->bucket.log, "notes of removed %s in the journal: %s", what,
			    err->msg);
	if (taken->damaged || taken->set_aside || taken->later)
		log_warning(e->bucket.log,
			    "notes of removed %s in the journal: %" PRIu32
			    " damaged entries, %" PRIu32 " unreadable files (set aside), %" PRIu32
			    " files of a later version; some storage may remain in the bucket",
			    what, taken->damaged, taken->set_aside, taken->later);
}

void garbage_notes_take(struct engine *e)
{
	struct gc_log_taken taken;
	struct err err = ERR_INIT;
	if (!e->gc_log)
		return;
	int rc = gc_log_take(e->gc_log, inherit, e, &taken, &err);
	if (taken.entries)
		log_info(e->bucket.log,
			 "storage of removed domains is left to delete, or renames are left to "
			 "finish: %" PRIu32,
			 taken.entries);
	warn(e, "domains", &taken, rc, &err);
	rc = gc_objects_take_left(e->gc_log, inherit_objects, e, &taken, &err);
	if (taken.entries)
		log_info(e->bucket.log,
			 "objects that %" PRIu32 " commits have removed are left to delete",
			 taken.entries);
	warn(e, "objects", &taken, rc, &err);
}
