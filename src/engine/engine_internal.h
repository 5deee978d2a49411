/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine's files share, besides its parts (engine/parts.h). */
#ifndef ENGINE_ENGINE_INTERNAL_H
#define ENGINE_ENGINE_INTERNAL_H

#include <hsmount/engine.h>

#include <stdatomic.h>

#include <cache/cache.h>
#include <engine/referred_files.h>
#include <engine/parts.h>
#include <http/stats.h>
#include <names/names.h>
#include <store/store.h>

#include <storage/change.h>
#include <storage/garbage.h>
#include <snapshots/domain_snapshot.h>
#include <snapshots/snapshots.h>

/* What a change of names or of access control lists needs. cancelled may be NULL (garbage_ops.c).
 */
struct change engine_change(struct engine *e, const atomic_bool *cancelled);
/* Returns how garbage is examined and deleted (garbage_ops.c). */
struct garbage_ops change_garbage_ops(struct engine *e);
/* Notes of garbage in the journal (garbage_log.c). */
int garbage_notes_open(struct engine *e, struct journal *j, struct err *err);
/* Takes over what earlier processes have noted. Sends no request. */
void garbage_notes_take(struct engine *e);
int garbage_note(void *engine, uint32_t *record, const struct garbage_note *note, struct err *err);
void garbage_forget(void *engine, uint32_t *record);
int garbage_judge(void *engine, const struct garbage_note *expected, const atomic_bool *cancelled,
		  struct err *err);
/* Notes that the domain at a path is removed, if gets is NULL, or replaced by another one, for
 * garbage_settle(). */
uint32_t garbage_note_change(struct engine *e, const char *path,
			     const struct schema_document *loses,
			     const struct schema_document *gets);

/* Notes that a domain gets another name, for garbage_settle_rename(). */
uint32_t garbage_note_rename(struct engine *e, const char *path, const struct storage *storage);

/* Gives the attributes of a plain object of this version (stat.c). */
void stat_object(const struct engine *e, const struct store_meta *meta, struct engine_stat *st);

#endif
