/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list that survives the process: the storage of domains that have lost their names, until it has
 * been deleted. Each process has one file, which the next process takes over after a crash. See
 * doc/JOURNAL.md.
 *
 * An entry is put before the name is removed from the bucket, so that nothing is forgotten, and put
 * again when it has been removed.
 *
 * Any thread. A lock guards the list of records, and is held while the file is made. The file is
 * not made durable: after a crash of the machine, entries may be missing.
 */
#ifndef JOURNAL_GC_LOG_H
#define JOURNAL_GC_LOG_H

#include <stdint.h>

#include <journal/journal.h>

enum gc_state {
	GC_EXPECTED = 1, /* the name was about to be removed, or to lead elsewhere */
	GC_REMOVED,	 /* it has happened */
	GC_RENAMED,	 /* the domain was about to get another name: the rename may be
			  * half done */
};

struct gc_entry {
	enum gc_state state;
	uint64_t storage; /* see schema_storage.number() */
	/* With GC_EXPECTED: the storage to which the name leads afterwards, or 0 if the name
	 * vanishes. */
	uint64_t next;
	int64_t due_ns;	  /* when it may be deleted, since the epoch */
	const char *path; /* that had the name in the bucket, 1 to GC_PATH bytes */
};

enum {
	GC_PATH = 1024,
	GC_ENTRIES_MAX = 1 << 16, /* entries at a time */
};
#define GC_NONE UINT32_MAX /* no record */

struct gc_log;
/* The journal must stay open until the last call of gc_log_put(). Fails with -ENOMEM or -EMFILE. */
int gc_log_new(struct journal *j, struct gc_log **out, struct err *err);
/* Deletes the file if no entry is left. l may be NULL. */
void gc_log_free(struct gc_log *l);
/* Writes an entry into the record with the number *record. If *record is GC_NONE, the entry gets a
 * record, and *record its number. Fails with -ENOSPC, with -ENAMETOOLONG, and with errors of the
 * disk. After an error, *record is as before. */
int gc_log_put(struct gc_log *l, uint32_t *record, const struct gc_entry *entry, struct err *err);
/* Removes the entry, and sets *record to GC_NONE. *record may be GC_NONE before, too. */
void gc_log_clear(struct gc_log *l, uint32_t *record);

struct gc_log_taken {
	uint32_t entries, damaged; /* entries that could not be read */
	uint32_t set_aside;	   /* files whose beginning is damaged */
	uint32_t later;		   /* files of a later version, which stay */
};
/* Calls fn for each entry in files that no process has open, and deletes these files. fn puts the
 * entry into this list. If it fails, the file stays. An entry may be passed twice if a process was
 * killed during this call. */
int gc_log_take(struct gc_log *l, int (*fn)(void *ctx, const struct gc_entry *entry), void *ctx,
		struct gc_log_taken *out, struct err *err);

#endif
