/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a commit of a draft, and what the journal notes about it. */
#ifndef DRAFTS_COMMIT_STATE_H
#define DRAFTS_COMMIT_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <base/str.h>
#include <overlay/draft.h>

struct log;

/* Each attempt begins with COMMIT_NONE, also one with the number of an earlier attempt. Beside each
 * state is what the journal says of the commit, and what the bucket may have of it. */
enum commit_state {
	COMMIT_NONE,  /* as before; nothing */
	COMMIT_BEGUN, /* running; objects in its storage, to which nothing leads, or a part of the
		       * change of a domain */
	COMMIT_SENT,  /* running; the plain object */
	COMMIT_CLEARING, /* running; nothing under the name: the domain that had it may be gone */
	COMMIT_SHOWN,	 /* running; the domain, or the plain object without the old domain */
	COMMIT_ENDED,	 /* ended; all of it */
	COMMIT_FAILED,	 /* running; any of this. The next attempt makes it again */
	COMMIT_STALE,	 /* running; any of this, but something else has the name. A later process
			  * makes it again */
	COMMIT_REFUSED,	 /* refused; something else has the name for good, and nobody can have seen
			  * this commit, which is not made again */
	COMMIT_UNFIT,	 /* as before; nothing: a domain cannot hold the file that was changed */
};

/* What the mark of a draft (draft_mark()) says about its commits. All is 0 if none has begun. */
struct commit_record {
	uint32_t number; /* of the last commit that has begun, from 1 */
	/* Commits before it that have failed, and may have left objects in their storage. */
	uint32_t failed;
	enum commit_state state; /* COMMIT_NONE, COMMIT_BEGUN, COMMIT_ENDED or COMMIT_REFUSED */
	bool is_last; /* no program has the file open: it is stored even if it is not complete */
};
uint64_t commit_record_encode(const struct commit_record *m);
struct commit_record commit_record_decode(uint64_t mark);
struct commit_record commit_record_of(struct draft *d);
/* Returns whether the last commit has begun and has not ended, also if it was refused. */
bool commit_is_running(const struct commit_record *m);
/* Says why a draft whose last commit does not run is still in the journal. note is
 * journal_item.why. */
void commit_left_why(const struct draft_stat *stat, const char *note, struct str *out);

/* An attempt to make a commit. */
struct commit_run {
	struct draft *draft;
	bool is_last; /* see struct commit_record */
	enum commit_state state;
	uint32_t number;
	/* The storage of the commits [oldest, end) may have objects that no domain has. */
	uint32_t oldest, end;
};
/* Goes to the next state. Debug builds check this with the next two functions. */
void commit_go(struct commit_run *r, enum commit_state to);
/* Returns the state of a commit that has failed with rc, and that is not refused. */
enum commit_state commit_failure(int rc);
/* Returns whether something else has the name. */
bool commit_is_conflict(enum commit_state s);
bool commit_may_follow(enum commit_state from, enum commit_state to);
/* Returns whether the journal has what the state promises. */
bool commit_check(const struct commit_run *r);
/* Notes COMMIT_BEGUN, COMMIT_ENDED or COMMIT_REFUSED in the journal, and goes there. After an
 * error, the state is as before. A draft of an earlier process without draft_resume() is read-only:
 * its mark stays, which says that the commit has begun. */
int commit_note(struct commit_run *r, enum commit_state to, struct err *err);
/* Notes COMMIT_ENDED, and goes there in any case: the commit has succeeded. If the journal cannot
 * be written, the log has a warning. Then the next mount makes the commit once more or, if a domain
 * was changed, finds no plan, and leaves the draft. */
void commit_end(struct commit_run *r, struct log *log);

#endif
