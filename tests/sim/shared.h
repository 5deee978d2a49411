/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of one mount that write, look up, read, rename and remove the same few plain files at
 * the same time. Each mount has files of its own, so only its programs meet at them.
 *
 * A *session* is an open for writing. It has a *cell* of the file for itself, which it writes again
 * and again: its bytes tell which session wrote them, and how often. Whether the draft was the same
 * one for two sessions tells engine_stat.version. The programs only note what they have done and
 * seen. At the end of a part of a history, the judge (shared_judge.c) says which cells each of them
 * must have seen, and which must be in the bucket:
 *
 *   - All sessions of a name that are open at the same time have one draft, and see all writes that
 *     have returned.
 *   - What was written before a close or an fsync that has succeeded is in the bucket, and every
 *     later reader sees it, until a program of the mount removes, replaces or cuts the file. A
 *     rename takes it along.
 *   - What was removed or replaced comes never back: not by a session that is still open, and not
 *     by the next mount.
 *   - A name is there, or not, as the last call on it has left it (SEMANTICS.md, "Changing names":
 *     a change is visible at once in the mount that made it).
 *   - A commit stores the draft as it was at one moment. What was written after the last commit has
 *     begun is not stored, not even by the next mount.
 *   - What a killed mount leaves in its journal can be read.
 *   - A session can read its file, and meets no conflict, because no other mount changes it.
 *   - A file of which a write has failed replaces nothing (DETAILS.md, "Failed writes").
 *
 * A commit that has failed, or whose mount was killed, is repeated by each later mount until it
 * succeeds (JOURNAL.md, "Recovery"), even if the file was removed by a later mount than the one
 * that has written it.
 *
 * Programs with short calls all use one file, which comes and goes within a second. So an answer
 * that a call has got may be older than a change that is done.
 *
 * Domains among them have no sessions: whether their names are there is all that counts.
 *
 * A promise counts only if no other call that matters for it went on at the same time.
 */
#ifndef SIM_SHARED_H
#define SIM_SHARED_H

#include <base/str.h>

#include "player.h"

enum {
	SHARED_DOMAINS = 3, /* names from here on are those of domains */
	SHARED_NAMES = 5,
	SHARED_SESSIONS = 48, /* of a mount and a part of a history */
	SHARED_WRITES = 12,   /* of a session */
	SHARED_CALLS = 240,
	SHARED_VIEWS = 480,
	SHARED_MARGIN = 100, /* that all programs together may need for a call of each */
	SHARED_TORN = 0xff,  /* of a cell: no bytes that a session has written */
};

/* SHARED_CUT: all bytes of a draft vanish; with `makes`, its open makes the name if it is absent.
 */
enum shared_kind { SHARED_MAKE, SHARED_CUT, SHARED_REMOVE, SHARED_RENAME, SHARED_SAVE };

/* A call that changes a name or a draft, or a SHARED_SAVE: a close or fsync. Until the moment `end`
 * it may happen; UINT64_MAX: at any later moment, too. */
struct shared_call {
	enum shared_kind kind;
	enum { SHARED_NONE, SHARED_DONE, SHARED_MAYBE } outcome;
	bool makes;
	/* SHARED_RENAME: a file that the bucket did not have. It replaces another one when it is
	 * stored (DETAILS.md, "Drafts"). */
	bool is_alone;
	unsigned int name, to;
	unsigned int life; /* of the box */
	int rc;
	uint64_t draft, begin, end;
	uint64_t returned; /* UINT64_MAX: it has not */
};

struct shared_write {
	bool done;
	bool is_common; /* what has failed are bytes that all sessions write */
	uint64_t begin, end;
};

struct shared_session {
	unsigned int name;
	uint64_t draft; /* the version by which the engine knows it */
	uint64_t open_begin, open_end, close_begin;
	struct shared_write writes[SHARED_WRITES];
	unsigned int nwrites;
};

/* What a program has seen of a name, or a session of its draft, between two moments. */
struct shared_view {
	enum { SHARED_LOOK, SHARED_READ, SHARED_DRAFT, SHARED_END } kind;
	unsigned int name;
	const struct shared_session *by; /* of SHARED_DRAFT */
	uint64_t begin, opened, end;	 /* opened: when the open has returned */
	bool is_there, has_cells;
	bool is_lost; /* SHARED_DRAFT: a read has failed with ESTALE */
	uint64_t size;
	uint8_t cells[SHARED_SESSIONS]; /* the number of the write of each session; 0: none */
};

/* The files of a mount. */
struct shared_mount {
	struct shared_session sessions[SHARED_SESSIONS];
	struct shared_call calls[SHARED_CALLS]; /* in the order in which they began */
	struct shared_view views[SHARED_VIEWS];
	unsigned int nsessions, ncalls, nviews;
	bool is_late;	      /* a request has arrived after a later call */
	uint64_t power_lives; /* of the box, as is: */
	unsigned int lives;
	bool has_failed; /* something has, or the mount was killed */
	bool is_sound;	 /* nothing else has happened than kills */
};

struct shared {
	const uint8_t *file; /* a template, which all domains have */
	size_t n;
	struct shared_mount of[ENGINES_MAX];
	unsigned int part;
	bool may_leave;	   /* storage of domains, because a call had no answer */
	unsigned int acts; /* of the last part that was judged */
	struct str faults; /* what is wrong, a line each */
};

struct shared *shared_new(const uint8_t *file, size_t n);
void shared_free(struct shared *p); /* p may be NULL */
/* Makes the folder. */
int shared_set_up(struct engine *e, struct err *err);
/* Runs a program. It ends if its engine is killed. Returns the first error that is no answer. */
int shared_run(struct shared *p, struct player *by, struct err *err);
/* Judges what a killed mount has left in its journal, which no engine uses. bucket: how drafts are
 * read. */
void shared_check_journal(struct shared *p, const struct box *b, const char *journal,
			  const struct engine_options *bucket);
/* Judges the end of a part of a history, and begins the next one. e: an engine that has seen
 * nothing of it. boxes: of the other engines. */
void shared_check(struct shared *p, struct engine *e, const struct box *boxes, unsigned int n);

/* ---- of both files ---- */

/* Where a cell is. */
uint64_t shared_cell_at(unsigned int session);
size_t shared_cell_size(unsigned int session);
enum { SHARED_PATH = 32 };
void shared_path(const struct shared *p, unsigned int mount, unsigned int name,
		 char path[static SHARED_PATH]);
/* Reads an open file; the cells of one that is no domain into a view. */
int shared_read_cells(const struct shared_mount *m, struct engine_file *f, struct shared_view *v,
		      struct err *err);
void shared_judge(struct shared *p, unsigned int mount);

#endif
