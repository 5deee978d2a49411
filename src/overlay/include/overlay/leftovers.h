/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list that survives the process: the storage of domains that have lost their names, until it has
 * been deleted. Each process has one file, which the next process takes over after a crash. See
 * doc/JOURNAL.md.
 *
 * An entry is put before the name is removed from the bucket, so that nothing is forgotten, and put
 * again when it has been removed.
 *
 * Any thread. A lock guards the list of slots, and is held while the file is made. The file is not
 * made durable: after a crash of the machine, entries may be missing.
 */
#ifndef OVERLAY_LEFTOVERS_H
#define OVERLAY_LEFTOVERS_H

#include <stdint.h>

#include <overlay/journal.h>

enum leftover_state {
	LEFTOVER_EXPECTED = 1, /* the name was about to be removed, or to lead elsewhere */
	LEFTOVER_REMOVED,      /* it has happened */
	LEFTOVER_RENAMED,      /* the domain was about to get another name: the rename may be
				* half done */
};

struct leftover {
	enum leftover_state state;
	uint64_t storage; /* see schema_ops.domain_of_root() */
	/* LEFTOVER_EXPECTED: the storage to which the name leads then; 0: the name vanishes. */
	uint64_t next;
	int64_t due_ns;	  /* when it may be deleted, since the epoch */
	const char *path; /* that had the name in the bucket, 1 to LEFTOVER_PATH bytes */
};

enum {
	LEFTOVER_PATH = 1024,
	LEFTOVERS_MAX = 1 << 16, /* entries at a time */
};
#define LEFTOVER_NONE UINT32_MAX /* no slot */

struct leftovers;
/* The journal must stay open until leftovers_put() is called no more. -ENOMEM, -EMFILE. */
int leftovers_new(struct journal *j, struct leftovers **out, struct err *err);
/* Deletes the file if no entry is left. NULL is allowed. */
void leftovers_free(struct leftovers *l);
/* Writes an entry into *slot, which is LEFTOVER_NONE for a new one. -ENOSPC, -ENAMETOOLONG; errors
 * of the disk. *slot stays as it is then. */
int leftovers_put(struct leftovers *l, uint32_t *slot, const struct leftover *entry,
		  struct err *err);
/* Removes an entry. *slot: LEFTOVER_NONE afterwards, and allowed. */
void leftovers_clear(struct leftovers *l, uint32_t *slot);

struct leftovers_taken {
	uint32_t entries, damaged; /* entries that could not be read */
	uint32_t set_aside;	   /* files whose beginning is damaged */
	uint32_t later;		   /* files of a later version, which stay */
};
/* Calls fn for each entry in files that no process has open, and deletes these files. fn puts the
 * entry into this list. If it fails, the file stays. An entry may be passed twice if a process was
 * killed during this call. */
int leftovers_take(struct leftovers *l, int (*fn)(void *ctx, const struct leftover *entry),
		   void *ctx, struct leftovers_taken *out, struct err *err);

#endif
