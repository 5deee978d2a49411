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

#include <base/str.h>
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
int garbage_note(void *engine, uint32_t *record, const struct garbage_note *note, struct err *err);
void garbage_forget(void *engine, uint32_t *record);
int garbage_judge(void *engine, const struct garbage_note *expected, const atomic_bool *cancelled,
		  struct err *err);
/* Notes that a domain gets another name, for garbage_settle_rename(). */
uint32_t garbage_note_rename(struct engine *e, const char *path, const struct storage *storage);

/* Appends a line for each removed file below a directory that can be brought back: when it was
 * removed, and its path in the directory (removed_files.c). Returns 0, or -ENODATA if there is
 * none. */
int undelete_list(struct engine *e, const char *dir, struct str *out);
/* Brings the removed file back whose path in a directory is this text of n bytes. Fails as
 * engine_undelete(), and with -EINVAL. */
int undelete_in(struct engine *e, const char *dir, const void *text, size_t n, struct err *err);
/* Sets the access control list of a path from its JSON text (set_acls.c). `name` is that of the
 * attribute, and flags are those of setxattr(2). */
int acls_set(struct engine *e, const char *path, const char *name, const void *value, size_t size,
	     int flags, struct err *err);

/* Gives the attributes of a plain object of this version (stat.c). */
void stat_object(const struct engine *e, const struct store_meta *meta, struct engine_stat *st);

#endif
