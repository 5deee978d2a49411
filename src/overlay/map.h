/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The map of a draft: the record of what was written where, from which its layers can be made again
 * after a crash. The format is in map.c and in doc/JOURNAL.md.
 */
#ifndef OVERLAY_MAP_H
#define OVERLAY_MAP_H

#include <base/budget.h>
#include <base/source.h>

#include "layers.h"

enum map_type {
	MAP_START = 1, /* the first record; length is the size of the file at first */
	MAP_BEGIN,     /* the generation is the newest one from now on */
	MAP_WRITE,     /* [offset, offset + length) has been written */
	MAP_SIZE,      /* length is the new size */
	MAP_ZERO,      /* [offset, offset + length) has become zero */
	MAP_SEAL,      /* a commit reads the generations up to this one; length is the file size */
	MAP_FOLD,      /* the newest generation has been copied into the one below */
	MAP_MARK,      /* length is the mark that was passed to draft_mark() */
	MAP_SYNC,      /* all that was written before is durable */
};

enum {
	MAP_RECORD = 32,
	MAP_MAGIC = 0x32504d48, /* "HMP2": the generation of the first record */
};

struct map_record {
	enum map_type type;
	uint32_t sequence; /* the number of the record in the file, which the file does not have */
	uint32_t generation; /* the newest one; 0 in MAP_MARK and MAP_SYNC */
	uint64_t offset, length;
};

void map_encode(const struct map_record *r, uint8_t bytes[MAP_RECORD]);
/* Fails with -EBADMSG if it is not an intact record. `sequence` is its number in the file. */
int map_decode(const uint8_t bytes[MAP_RECORD], uint32_t sequence, struct map_record *r);

/* The contents of a map, in the caller's structs. */
struct map_state {
	struct layers *layers;
	struct frames_memory *memory;
	struct budget_charge *charge; /* of memory->allowed */
	uint64_t mark;		      /* the last one; 0 without any */
	/* Something has changed since the last MAP_SEAL; and since that before the mark got its
	 * last value. */
	bool since_seal, since_mark;
	uint32_t records; /* that count */
};

/* Reads a map. After a crash of the daemon alone (`same_boot`), all records count, except for one
 * that is torn at the end. After a crash of the machine, those up to the last MAP_SYNC count.
 * layers, memory and charge->bytes are zero at first, and the caller releases them in any case.
 * Fails with -EBADMSG if the map is damaged, with -ENODATA if no record counts, with -ENOMEM, and
 * with errors of the source. */
int map_replay(struct source *bytes, bool same_boot, struct map_state *s, struct err *err);

/* ---- appending ---- */

/* The map of a live draft. Its own lock orders the records and is held while one of them is
 * written. */
struct map_file {
	int fd;
	struct room *room;
	pthread_mutex_t lock;
	uint64_t before; /* bytes that the file had when it was opened again; they are not in
			  * `taken` */
	uint64_t taken;	 /* of the room */
	uint32_t records;
	uint32_t promised; /* records of writes that have room, but are not written yet */
	struct map_record last;
	bool is_torn; /* a write has failed that was to lengthen `last` */
};

/* Makes the map in a directory, with its first record. */
int map_create(struct map_file *m, int dir, struct room *room, uint64_t size, struct err *err);
/* Opens the map of a draft that an earlier process has left, and cuts it after the records that
 * count, to append others. The caller has replayed it. */
int map_open_again(struct map_file *m, int dir, struct room *room, uint32_t records,
		   struct err *err);
/* Closes the file and gives its room back, or leaves it taken if the draft is left. */
void map_close(struct map_file *m, bool is_left);
/* Appends a record. A write that continues the last record makes that one longer instead: it is not
 * durable yet, because MAP_SYNC would follow it. MAP_WRITE requires a map_promise() before. Fails
 * with -ENOSPC, -EFBIG or -EIO. Any thread. */
int map_append(struct map_file *m, enum map_type type, uint32_t generation, uint64_t offset,
	       uint64_t length, struct err *err);
/* Takes the room of a record of a write, before its bytes are accepted. Fails with -ENOSPC or
 * -EFBIG. */
int map_promise(struct map_file *m, struct err *err);
/* To be called if the write has failed. Otherwise map_append() of MAP_WRITE keeps the promise. */
void map_break_promise(struct map_file *m);
/* Makes the records durable. */
int map_sync(struct map_file *m, struct err *err);

#endif
