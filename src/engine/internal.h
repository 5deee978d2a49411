/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine's files share, besides its parts (engine/parts.h). */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H

#include <hsmount/engine.h>

#include <stdatomic.h>

#include <cache/cache.h>
#include <engine/files.h>
#include <engine/parts.h>
#include <http/stats.h>
#include <names/names.h>
#include <store/store.h>

#include "garbage.h"
#include "snapshots.h"

/* How garbage is examined and deleted (change.c). */
struct garbage_ops change_garbage_ops(struct engine *e);
/* Notes of garbage in the journal (garbage_notes.c). */
int garbage_notes_open(struct engine *e, struct journal *j, struct err *err);
/* Takes over what earlier processes have noted. Sends no request. */
void garbage_notes_take(struct engine *e);
int garbage_note(void *engine, uint32_t *slot, const struct leftover *entry, struct err *err);
void garbage_forget(void *engine, uint32_t *slot);
void garbage_forget_objects(void *engine, struct removed *objects);
int garbage_judge(void *engine, const struct leftover *expected, const atomic_bool *cancelled,
		  struct err *err);
/* Notes that the domain at a path is removed, or replaced by another one (gets, or NULL), for
 * garbage_settle(). */
uint32_t garbage_note_change(struct engine *e, const char *path, const struct domain_info *loses,
			     const struct domain_info *gets);

/* Notes that a domain gets another name, for garbage_settle_rename(). */
uint32_t garbage_note_rename(struct engine *e, const char *path, uint64_t storage);

/* Puts at the same time, of an import that asks for so many, or 0 for the default. More than the
 * connections to the server would only wait for one (import.c). */
unsigned int import_puts(const struct engine *e, unsigned int asked);

/* The attributes of a plain object of this version (stat.c). */
void stat_object(const struct engine *e, const struct store_meta *meta, struct engine_stat *st);

/* Looks a path up. *requested: a time before the request for it; zero if the answer
 * was in the cache. */
int snapshot_resolve(struct engine *e, const char *path, struct names_node **out,
		     struct snapshot_time *requested, struct err *err);
/* The attributes of a domain that was opened. */
void stat_snapshot(struct engine *e, const struct names_node *n, const struct snapshot *s,
		   struct engine_stat *st);
/* The time of a domain whose keys are not all listed may have been read after it was opened;
 * listed: snapshot.listed. */
void stat_large(const struct names_node *n, uint64_t listed, struct engine_stat *st);
/* Opens the snapshot of a domain that was looked up; see snapshots_open(). requested: the result of
 * snapshot_resolve() for this call. */
int domain_snapshot(struct engine *e, struct names_node *n, const struct snapshot_time *requested,
		    struct snapshot **out, struct err *err);
/* The same for a stat: snapshots_recall() does not return the snapshot. cancelled: as in struct
 * store_request. *may_pass: whether a failure has a reason that may pass. */
int domain_snapshot_for_stat(struct engine *e, struct names_node *n, const atomic_bool *cancelled,
			     struct snapshot **out, bool *may_pass, struct err *err);

#endif
