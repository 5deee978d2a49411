/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that write, append to, read, rename and remove plain objects: files that are no HDF5
 * files. All engines of a history use the same few names, in a folder of their own. Each of these
 * programs makes a few calls. In an engine they run one after the other, because HDF5's locks,
 * which keep the other programs of a history apart, are missing here.
 *
 * A file consists of records, of which each is written once. So its bytes tell which program wrote
 * what; and a mixture of two contents, or a part of one, is none that anybody has made.
 *
 *   close, fsync    the name gets this content, if it still has what the program has opened. If the
 *                   call fails, that may happen later, as long as the condition holds: the next
 *                   mounts repeat a commit (JOURNAL.md, "Recovery" and "Conflicts")
 *   rename          the new name gets a copy, then the old name vanishes, if it still is that
 *                   (DETAILS.md, "Changing names"). If the call fails, it may end between the two
 *   remove, read, list
 *
 * Which of these contents a name may have, and at which moment, is a question of order.h.
 */
#ifndef SIM_PLAIN_H
#define SIM_PLAIN_H

#include <base/str.h>

#include "player.h"

#define PLAIN_DIR "plain"
enum { PLAIN_NAMES = 3, PLAIN_RECORDS = 1024, PLAIN_DRAFTS = 64 };

/* What was refused. The journal must have it. */
struct plain_draft {
	unsigned int name, engine;
	uint64_t tag;	 /* 0: somebody has dropped it */
	uint64_t moment; /* of the refusal */
};

struct plain {
	/* Contents, from 1: one, and a record at its end. The first one is empty. */
	struct {
		uint16_t before, record;
	} contents[PLAIN_RECORDS];
	unsigned int ncontents, nrecords;
	unsigned int names; /* that are used */
	struct order order; /* of this part of the history */
	uint16_t first[ORDER_REGISTERS];
	struct plain_draft refused[PLAIN_DRAFTS];
	unsigned int nrefused;
	unsigned int acts; /* of the last part that was judged */
	struct str faults; /* what is wrong, a line each */
};

struct plain *plain_new(uint64_t seed);
void plain_free(struct plain *p); /* p may be NULL */
/* Makes the folder. */
int plain_set_up(struct engine *e, struct err *err);
/* Runs a program. It ends if its engine is killed. Returns the first error that does not tell what
 * other programs have done. */
int plain_run(struct plain *p, struct player *by, struct err *err);
/* Somebody has dropped the drafts of an engine. */
void plain_dropped(struct plain *p, unsigned int engine);
/* Judges the end of a part of a history, and begins the next one. e: an engine that has seen
 * nothing of it. boxes: of the other engines. order_matters: false if the service checks no
 * conditions. Returns false if the search was too large. */
bool plain_check(struct plain *p, struct engine *e, const struct box *boxes, unsigned int n,
		 bool order_matters);

#endif
