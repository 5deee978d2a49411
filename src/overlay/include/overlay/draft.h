/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A draft: one file that programs write. What they write is on disk, in a spool, and in the
 * journal, until the caller has committed it to the bucket and drops the draft.
 *
 *   draft_create() -> writes, reads … -> draft_seal() -> the commit reads the snapshot
 *                          ^                                        |
 *                          +---- draft_snapshot_close() <-----------+--> draft_drop()
 *
 * Programs may go on writing while a commit reads the snapshot: the snapshot does not change. The
 * caller keeps the snapshot open until it needs its bytes no more; until then they survive, too.
 *
 * Any thread may call any function but draft_close() and draft_drop(), after which no other call is
 * allowed. Reads never wait for a disk that a write waits for. Each byte that a read returns is one
 * that the file had during the call.
 *
 * Errors of changes: -ENOSPC: the spool or the disk is full; -EFBIG; -ENOMEM: the budget has no
 * memory for the list of what was written; -EIO; -EROFS: the draft was opened for recovery. Nothing
 * is accepted that does not have its room: draft_sync() and the closing functions do not fail for
 * want of space.
 */
#ifndef OVERLAY_DRAFT_H
#define OVERLAY_DRAFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/source.h>
#include <journal/journal.h>

struct draft;
struct draft_snapshot;

/* Reads what lies beneath a draft of kind DRAFT_CHANGE: all n bytes, within about->beneath. It is
 * called without a lock, in the thread of the reader, by several threads at a time. */
struct draft_beneath {
	int (*read)(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err);
	void *ctx;
};

/* ---- life ---- */

/* Copies the strings. Fails with -ENAMETOOLONG if they do not fit into the description of a
 * draft. */
int draft_create(struct journal *j, const struct draft_about *about,
		 const struct draft_beneath *beneath, struct draft **out, struct err *err);
/* Opens a draft that an earlier process has left. It can be read, sealed and dropped, but not
 * changed. If `beneath` is NULL, reads of what lies beneath fail with -EIO. Fails with -ENOENT,
 * with -EBUSY if another process has it open, with -ENOTSUP if a later version has written it, with
 * -EBADMSG if it is damaged, and with -ENODATA if nothing of it was durable when the machine
 * stopped. After the last two it has been set aside. */
int draft_open(struct journal *j, const char *id, const struct draft_beneath *beneath,
	       struct draft **out, struct err *err);
/* Allows that a commit of a draft of draft_open() is noted, with draft_mark() and with a plan. The
 * bytes of the draft still cannot change. The first note cuts off records of the map that do not
 * count; until then, the files stay as they are. Each mark is durable when draft_mark() returns.
 * Fails with -EINVAL if the draft has a plan, which must be completed. */
int draft_resume(struct draft *d, struct err *err);
/* Leaves the draft in the journal. d may be NULL. There must be no snapshot. */
void draft_close(struct draft *d);
/* Deletes the draft, and closes it in any case. There must be no snapshot. */
int draft_drop(struct draft *d, struct err *err);

const char *draft_id(const struct draft *d);
/* The strings are valid until draft_describe(). */
const struct draft_about *draft_get_about(const struct draft *d);
/* Changes the path and the name, because the file was renamed, or the version. After the commit of
 * a snapshot, the version is the new one, and draft_beneath.read() may read it instead of the old
 * one: where it is read, both have the same bytes. No other thread may use draft_get_about(). */
int draft_describe(struct draft *d, const char *path, const char *name, const char *version,
		   struct err *err);

/* Returns whether this process has made the draft, and each write so far was behind all others, as
 * those of a program that copies a file. */
bool draft_is_appended(const struct draft *d);

/* ---- bytes ---- */

int draft_write(struct draft *d, uint64_t offset, const void *buf, size_t n, struct err *err);
/* *got is the number of bytes that were read, less than n only at the end of the file. */
int draft_read(struct draft *d, uint64_t offset, void *buf, size_t n, size_t *got, struct err *err);
int draft_resize(struct draft *d, uint64_t size, struct err *err);
/* `mode` is as for fallocate(2): 0 or FALLOC_FL_ZERO_RANGE, with or without FALLOC_FL_KEEP_SIZE, or
 * FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE. Fails with -EOPNOTSUPP for other modes, and if the
 * disk cannot punch holes. */
int draft_allocate(struct draft *d, int mode, uint64_t offset, uint64_t n, struct err *err);
/* `whence` is SEEK_DATA or SEEK_HOLE. What lies beneath is data. Fails with -ENXIO as lseek(2)
 * does. */
int draft_seek(struct draft *d, uint64_t offset, int whence, uint64_t *found);

enum draft_extent_kind { DRAFT_HOLE, DRAFT_WRITTEN, DRAFT_BENEATH };

/* A range of the file whose bytes have the same origin. Zero-initialised at first. */
struct draft_extent {
	uint64_t start, end;
	enum draft_extent_kind kind;
};
/* Finds the range from x->end on. Returns false if the file ends there. Adjacent ranges differ in
 * their kind, unless the file changes meanwhile. */
bool draft_next_extent(struct draft *d, struct draft_extent *x);

struct draft_stat {
	uint64_t size;
	uint64_t changes; /* increases with every change */
	uint64_t spooled; /* bytes of the spool */
	uint64_t memory;  /* bytes for the list of what was written */
	uint64_t mark;
	/* For a draft that was opened for recovery: nothing has changed since the last
	 * draft_seal(); … and since the draft_seal() before the mark got its last value. */
	bool is_sealed, is_marked;
};
void draft_get_stat(struct draft *d, struct draft_stat *out);

/* Notes a number in the journal for the recovery, such as which commits have begun. The last one
 * counts; without any, the mark is 0. If bit DRAFT_MARK_RUNNING is set, a commit of the bytes so
 * far may be repeated by a later process. Then the next change is noted before it overwrites any of
 * them. */
enum { DRAFT_MARK_RUNNING = 0 };
int draft_mark(struct draft *d, uint64_t mark, struct err *err);
/* Notes for people why the draft could not be committed. If `why` is NULL, an earlier note is
 * removed. Any draft, but one thread at a time. A failure is ignored. See journal_item.why. */
void draft_note_why(struct draft *d, const char *why);
/* Makes all that was written before durable: it survives a crash of the machine. */
int draft_sync(struct draft *d, struct err *err);

/* ---- snapshots ---- */

/* Makes a snapshot of the file as it is now or, if there is a plan (journal/plan.h), as it was for
 * the plan. Fails with -EBUSY if there is a snapshot already. */
int draft_seal(struct draft *d, struct draft_snapshot **out, struct err *err);
/* Several threads may read the source at a time. Its reads never return -EAGAIN. */
struct source *draft_snapshot_source(struct draft_snapshot *s);
/* Returns whether a byte of [start, end) was changed since the snapshot that
 * draft_snapshot_accept() was called for, or since the draft was made. */
bool draft_snapshot_is_changed(const struct draft_snapshot *s, uint64_t start, uint64_t end);
/* Returns the first such byte of [start, end), or end if there is none. The number of steps is in
 * proportion to the ranges that were changed, not to the length. */
uint64_t draft_snapshot_next_changed(const struct draft_snapshot *s, uint64_t start, uint64_t end);
/* Returns the first byte of [start, end) that does not come from what lies beneath, because it was
 * written or cut off since the draft was made; or end if there is none. */
uint64_t draft_snapshot_next_written(const struct draft_snapshot *s, uint64_t start, uint64_t end);
/* Returns whether no byte of [start, end) comes from what lies beneath, and the file has all of
 * them. */
bool draft_snapshot_holds(const struct draft_snapshot *s, uint64_t start, uint64_t end);
/* To be called when the bucket has all of the snapshot: the changes before it do not count any
 * more. */
void draft_snapshot_accept(struct draft_snapshot *s);
/* Returns draft_stat.changes at the time of the snapshot. */
uint64_t draft_snapshot_changes(const struct draft_snapshot *s);
void draft_snapshot_close(struct draft_snapshot *s); /* s may be NULL */

#endif
