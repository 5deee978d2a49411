/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of what is to be deleted later: the storage of domains that have lost their names,
 * objects that commits have removed from domains, and renames that may be half done. It survives
 * the process: see doc/JOURNAL.md.
 *
 * An entry is the last event of its number. It lasts until gc_log_clear(). Each process has one
 * file, to which it appends events. The next process takes the entries over after a crash.
 *
 * Any thread. A lock guards the file, and is held while it is written and synced.
 */
#ifndef JOURNAL_GC_LOG_H
#define JOURNAL_GC_LOG_H

#include <journal/gc_event.h>
#include <journal/journal.h>

enum { GC_ENTRIES_MAX = 1 << 16 /* entries at a time */ };
#define GC_NONE UINT32_MAX /* no entry */

struct gc_log;
/* The journal must stay open until the last call of gc_log_put(). Fails with -ENOMEM or -EMFILE. */
int gc_log_new(struct journal *j, struct gc_log **out, struct err *err);
/* Deletes the file if no entry is left. l may be NULL. */
void gc_log_free(struct gc_log *l);
/* Appends an event of the entry *number. If that is GC_NONE, the event is of a new entry, and
 * *number becomes its number. When the call returns, GC_OBJECTS is durable; other events are not,
 * but survive the process. Fails with -ENOSPC, with -ENAMETOOLONG, and with errors of the disk.
 * After an error, *number is as before. If l is NULL, nothing happens. */
int gc_log_put(struct gc_log *l, uint32_t *number, const struct gc_event *event, struct err *err);
/* Ends the entry, and sets *number to GC_NONE. *number may be GC_NONE before, too. */
void gc_log_clear(struct gc_log *l, uint32_t *number);

/* An event that was read. */
struct gc_kept {
	struct gc_event event; /* points to `bytes` */
	struct bytes bytes;
};
/* Reads the last event of an entry. */
int gc_log_get(struct gc_log *l, uint32_t number, struct gc_kept *out, struct err *err);
void gc_kept_release(struct gc_kept *kept);
#define auto_gc_kept __attribute__((cleanup(gc_kept_release)))

struct gc_log_taken {
	uint32_t entries;
	uint32_t damaged;   /* files of which a part could not be read */
	uint32_t set_aside; /* of these: they are damaged before their end */
	uint32_t later;	    /* files of a later version, which stay */
	uint32_t held;	    /* files of other processes that are running */
};
/* Copies each entry in files that no process has open into this log, calls fn with it, and deletes
 * these files. If an entry cannot be copied, its file stays. So an entry may be passed twice, also
 * if a process was killed during this call. */
int gc_log_take(struct gc_log *l,
		void (*fn)(void *ctx, const struct gc_event *event, uint32_t number), void *ctx,
		struct gc_log_taken *out, struct err *err);

#endif
