/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of garbage in the journal, and what a process does with those of an earlier one. Any
 * thread. */
#include "engine_internal.h"

#include <inttypes.h>

int garbage_note(void *engine, uint32_t *record, const struct garbage_note *note, struct err *err)
{
	const struct engine *e = engine;
	const struct gc_event event = {.type = note->state,
				       .storage = note->storage.prefix,
				       .next = note->next.prefix,
				       .path = note->path,
				       .since_ns = note->since_ns,
				       .document = note->document};
	return gc_log_put(e->bucket.gc_log, record, &event, err);
}

void garbage_forget(void *engine, uint32_t *record)
{
	const struct engine *e = engine;
	gc_log_clear(e->bucket.gc_log, record);
}

uint32_t garbage_note_rename(struct engine *e, const char *path, const struct storage *storage)
{
	const struct garbage_note n = {
		.state = GC_RENAMED, .storage = *storage, .path = path, .document = ""};
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
	return gc_log_new(j, &e->bucket.gc_log, err);
}

/* Returns whether the texts of an event are those of a path and of storages of this bucket. */
static bool read_note(const struct schema_ops *schema, const struct gc_event *event,
		      struct garbage_note *out)
{
	*out = (struct garbage_note){.state = event->type,
				     .since_ns = event->since_ns,
				     .path = event->path,
				     .document = event->document};
	if (!store_key_ok(event->path))
		return false;
	if (event->type == GC_OBJECTS)
		return !schema_storage_of_root(schema, event->storage, &out->storage, NULL);
	return schema_storage_of_prefix(schema, event->storage, &out->storage) &&
	       (!event->next[0] || schema_storage_of_prefix(schema, event->next, &out->next));
}

struct inheritance {
	struct engine *e;
	uint32_t invalid;
};

static void inherit(void *ctx, const struct gc_event *event, uint32_t number)
{
	struct inheritance *i = ctx;
	struct garbage_note note;
	if (read_note(bucket_new_domains(&i->e->bucket), event, &note)) {
		garbage_inherit(i->e->bucket.garbage, &note, number);
		return;
	}
	i->invalid++;
	gc_log_clear(i->e->bucket.gc_log, &number);
}

unsigned int engine_take_removed(struct engine *e)
{
	struct inheritance i = {.e = e};
	struct gc_log_taken taken;
	struct err err = ERR_INIT;
	if (!e->bucket.gc_log)
		return 0;
	if (gc_log_take(e->bucket.gc_log, inherit, &i, &taken, &err))
		log_warning(e->bucket.log, "notes of what is to be deleted, in the journal: %s",
			    err.msg);
	if (taken.entries)
		log_info(e->bucket.log,
			 "storage or objects are left to delete, or renames are left to finish: "
			 "%" PRIu32,
			 taken.entries);
	if (i.invalid || taken.damaged || taken.later)
		log_warning(e->bucket.log,
			    "notes of what is to be deleted, in the journal: %" PRIu32
			    " invalid, %" PRIu32 " damaged files (%" PRIu32 " set aside), %" PRIu32
			    " files of a later version; some storage may remain in the bucket",
			    i.invalid, taken.damaged, taken.set_aside, taken.later);
	return taken.held;
}
