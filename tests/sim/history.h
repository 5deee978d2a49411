/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A history: what a few engines do with a few names, and what came of it. Actors are threads. Each
 * uses one engine, and carries out its operations one by one; turns.h has which operations of one
 * engine use a name at the same time. Operations are made from a seed, or are
 * those of a named history (scripts.c); then the seed decides only their interleaving.
 */
#ifndef SIM_HISTORY_H
#define SIM_HISTORY_H

#include "acls.h"
#include "checks.h"
#include "content.h"
#include "engine_box.h"
#include "folders.h"
#include "foreign.h"
#include "hold.h"
#include "links.h"
#include "list.h"
#include "mem_store.h"
#include "mixed.h"
#include "plain.h"
#include "session.h"
#include "shared.h"
#include "stores.h"

enum { NAMES_MAX = 6, OPS_MAX = 48, ACTORS_MAX = 6, PARTS_MAX = 64 };

/* Names are numbers in histories, from 0. */
extern const char *const history_names[NAMES_MAX];

enum { HISTORY_PLAIN = 8 };

enum op_kind {
	OP_CREATE, /* a new file replaces what has the name */
	OP_CHANGE, /* r+ */
	OP_IMPORT, /* by a process of its own: see imports.h */
	OP_REMOVE,
	OP_RENAME,
	OP_MKDIR, /* of a folder of its own */
	OP_LIST,  /* of the folder of a name: see list.h */
	OP_CUT,	  /* truncate(2) of a domain, and an open with O_TRUNC that is closed at once */
	OP_READ,
	OP_CHECK,   /* of the whole bucket: see checks.h */
	OP_HOLD,    /* of a file of its own: see hold.h */
	OP_PLAIN,   /* of plain objects: see plain.h */
	OP_FOLDERS, /* of folders of its own: see folders.h */
	OP_FOREIGN, /* of a domain that another program writes, too: see foreign.h */
	OP_ACLS,    /* of access control lists: see acls.h */
	OP_MIXED,   /* of domains and plain objects under the same names: see mixed.h */
	OP_LINKS,   /* of a domain that refers to a file of the bucket: see links.h */
	OP_STORES,  /* of what other programs have put: see stores.h */
	OP_SHARED,  /* of files that several programs of a mount write: see shared.h */
	OP_WAIT,    /* time passes, and garbage that is due is deleted */
	OP_CLOCK,   /* somebody sets the clock of the machine */
	OP_RESTART, /* unmount and mount */
	OP_DROP,    /* a kill; what waits in the journal is dropped before the next mount */
	OP_RECOVER, /* a kill; what waits is committed, if that is possible: see recover.h */
	OP_KILL,    /* while nothing is done */
	OP_KINDS
};

enum change_kind {
	CHANGE_COUNT,	   /* an attribute is incremented: equal bytes by two writers */
	CHANGE_TAG,	   /* an attribute gets a value that no other operation has */
	CHANGE_CELL,	   /* an element is incremented */
	CHANGE_X0,	   /* the other elements of the same chunk get a value of their own */
	CHANGE_X1,	   /* another chunk */
	CHANGE_GROW,	   /* a new chunk */
	CHANGE_GROW_EQUAL, /* a new chunk with the same bytes by all */
	CHANGE_GROW_EMPTY, /* new rows that are not written */
	CHANGE_SHRINK,
	CHANGE_LINK,   /* a group is added, or removed */
	CHANGE_SPARE,  /* a chunk of a dataset that others may remove */
	CHANGE_UNLINK, /* this dataset is removed */
	CHANGE_TWO,    /* a chunk and an attribute */
	/* Those from here on need a library. */
	CHANGE_NOTE,	/* an attribute of variable length comes, or gets another text */
	CHANGE_UNNOTE,	/* it is removed; or comes, if there is none */
	CHANGE_WORD,	/* an element of variable length */
	CHANGE_EXTRA,	/* a dataset comes */
	CHANGE_MOVE,	/* its link moves to another group; or it comes */
	CHANGE_REPLACE, /* another one takes its link; or it comes */
	CHANGE_UNEXTRA, /* it is removed; or comes */
	CHANGE_SWAP,	/* two of them exchange their links; or one comes */
	CHANGE_TALLER,	/* /grid gets a row of chunks */
	CHANGE_WIDER,	/* a column of them */
	CHANGE_LARGER,	/* both, and only their common chunk is written */
	CHANGE_SMALLER, /* it loses both */
	CHANGE_ALIEN,	/* the tag, and a dataset that a domain cannot hold */
	CHANGE_KINDS
};

/* How a program reads and writes files. */
enum op_program {
	PROGRAM_BYTES,	/* without a library; each file that it makes has the same structures */
	PROGRAM_OLDEST, /* with libhdf5 and the structures of its oldest format */
	PROGRAM_LATEST,
	PROGRAMS
};

enum op_status {
	OP_NONE,    /* certainly without an effect */
	OP_DONE,    /* acknowledged */
	OP_REFUSED, /* another writer was faster; without an effect */
	OP_MAYBE,   /* it failed, or its engine was killed */
};

struct op {
	enum op_kind kind;
	unsigned int actor, engine;
	unsigned int name, to; /* to: of OP_RENAME */
	enum change_kind change;
	enum op_program program;
	enum session_flush flush; /* before the end of a session */
	bool replaces;		  /* OP_IMPORT: with --replace */
	bool opens;		  /* OP_CUT: with O_TRUNC; otherwise to another size than 0 */
	bool again;		  /* a close that fails is repeated before the file is closed */
	bool looks;		  /* OP_READ: the kernel looks the name up before the open;
				   * OP_CUT: opens the file for writing, and nothing else */
	enum play plays;
	unsigned int dies; /* 0, or: the program is killed after so many writes by libhdf5 */
	enum fault fault;
	unsigned int at;   /* which request has the fault */
	const char *on;	   /* see line_arm() */
	bool all;	   /* see line_arm() */
	unsigned int many; /* requests that fail one after another; 0 is one */
	struct disk_fault disk;
	bool keeps_power; /* the machine goes on if its fault kills the engine */
	/* It happens while the operation before, a change by the same engine, has the file open: a
	 * rename of this file. */
	bool inside;
	/* Steps between the open and the close, or between two reads; OP_WAIT: seconds. */
	unsigned int waits;
	unsigned int follows; /* 0, or: it begins when operation follows - 1 has ended */
	/* OP_CHANGE: 0, or: so many seconds pass between the open and its first read. Meanwhile
	 * others of its mount may use the name. */
	unsigned int sleeps;
	/* OP_CHANGE: 0, or: when close(2) has succeeded, a child of the program has the file open
	 * until operation stays - 1 has ended, or for some time. */
	unsigned int stays;
	/* OP_CREATE: if the close fails, the program writes the file again and closes it, at most
	 * so often. */
	unsigned int rewrites;
	/* OP_CHANGE: 0, or: it does not close its file before operation outlasts - 1 has ended. */
	unsigned int outlasts;
	/* Filled in. */
	enum op_status status;
	bool was_open; /* the file was opened */
	/* The name, and the new one of a rename, right after the operation: in the engine that has
	 * made it. 0: nobody has looked, or in vain. */
	struct {
		uint64_t at;
		bool is_there;
	} after_name, after_to;
	bool is_absent;	   /* the name was not there when it was opened */
	bool mixed;	   /* two reads of one open file disagree */
	bool hit;	   /* the fault has happened */
	bool was_repeated; /* a request of the engine, or its commit, was sent again meanwhile */
	bool goes_on;	   /* it has failed, and its engine goes on with its draft */
	bool armed;	   /* its fault is that of the line now */
	bool left_draft;   /* of a program on names of its own */
	bool left;	   /* others may use its names: see turns.h */
	int rc;
	/* Moments: the operation begins, the file is open, it begins to close, the operation ends.
	 */
	uint64_t begin, shown, opened, closes,
		end;		   /* shown: the engine has returned from the open */
	uint64_t begin_ns, end_ns; /* by the clock */
	/* When what it writes was stored, if it is OP_DONE: `end`, or when somebody has committed
	 * its draft. */
	uint64_t stored;
	int64_t made_from, made_until; /* its draft was made between, by the clock of its machine */
	unsigned int powers;	       /* that its machine had lost when it began */
	bool is_written;	       /* and the engine lived when all was written */
	bool was_recovered;	       /* somebody has committed its draft */
	bool is_tidy;		       /* OP_IMPORT: nothing unfinished is left */
	bool loses_draft; /* OP_RECOVER: a draft is gone and not stored, or there and stored */
	uint64_t uid;	  /* of the file that it creates or changes */
	struct content before, after;
	struct hold *hold;
	struct list list;
	struct check_findings check;
};

/* Names, and one for each kind of names that programs share. */
enum { TURN_PLAIN = NAMES_MAX, TURN_FOLDERS, TURN_FOREIGN, TURN_ACLS, TURN_MIXED, TURN_NAMES };

/* Who uses a name in an engine: see turns.h. */
struct turn {
	bool used, written;
	unsigned int readers, movers;
};

struct turns {
	pthread_mutex_t lock; /* guards all of them */
	pthread_cond_t changed;
	struct turn of[ENGINES_MAX][TURN_NAMES];
};

struct history {
	uint64_t seed;
	uint64_t order;	  /* the seed of the order of requests */
	const char *name; /* of a named history, or "random" */
	unsigned int engines, actors;
	unsigned int switches; /* locks of struct baton_plan */
	unsigned int workers;  /* of each engine */
	/* Bit i: the name i exists at first; or bit HISTORY_PLAIN + i: as a plain object. */
	unsigned int present;
	bool quiet;	 /* without faults */
	bool one_by_one; /* each operation follows the one before */
	/* The machine of the engine `swept` loses its power at one of its first so many changes of
	 * the journal and the bucket (box_sweep()), which the seed chooses. 0: it does not. */
	unsigned int sweep, swept;
	/* The service: enum store_mem_lacks; and whether its requests are repeated, as those to S3.
	 */
	unsigned int lacks;
	bool repeats, is_busy;
	struct op ops[OPS_MAX];
	unsigned int nops;
	/* Filled in. */
	struct world world;
	struct box boxes[ENGINES_MAX];
	struct turns turns;
	struct plain *plain;
	struct folders *folders;
	struct foreign *foreign;
	struct acls *acls;
	struct mixed *mixed;
	struct links *links;
	struct stores *stores;
	struct shared *shared;
	uint64_t first[NAMES_MAX];	    /* uids of the files that exist at first; 0: none */
	struct content contents[NAMES_MAX]; /* of these */
	/* A history of many operations has several parts. Between two of them all engines end, and
	 * somebody drops what waits in the journals. */
	unsigned int part, parts;
	/* Operations of each part that are not done: bit i is the i-th that the seed has made. */
	uint64_t left_out[PARTS_MAX];
	unsigned int
		left;	/* storages without a name that there were at the beginning of the part */
	bool torn;	/* an earlier part may have left plain objects */
	bool may_leave; /* an earlier part may have left objects */
	unsigned int revivals;
};

/* The value that only one operation writes; also the uid of a file that it creates. */
uint64_t history_tag(const struct history *h, unsigned int op);
/* The content that a file had at first. */
void history_first(const struct history *h, uint64_t uid, struct content *out);
/* The folder that an OP_MKDIR makes. */
enum { HISTORY_DIR = 32 };
void history_dir(const struct op *op, char path[static HISTORY_DIR]);
/* Whether the next operation happens inside of this one. */
bool history_has_inside(const struct history *h, const struct op *op);
/* The names that the draft of an operation may have got while it was written: bit i is the name i.
 */
unsigned int history_names_of(const struct history *h, const struct op *op);
/* The names that the draft of a failed operation may have: bit i is the name i. 0: it has no draft
 * in an engine that goes on. */
unsigned int history_draft_names(const struct history *h, const struct op *op);
void history_text(const struct op *op, char *text, size_t size);

/* Chooses the service. */
void history_service(struct history *h, struct rng *r);
/* Chooses how long the pages of the service are. */
void history_pages(struct history *h);
/* Chooses the programs. */
void history_programs(struct history *h);
/* Makes a history of this many operations from its seed. 0: the seed decides. */
void history_make(struct history *h, uint64_t seed, unsigned int nops);
/* Whether a random history may have operations of the kind OP_MIXED. */
bool history_may_be_mixed(const struct history *h);
/* Makes the operations of its next part. */
void history_make_part(struct history *h);
void history_remove_op(struct history *h, unsigned int i);
/* Removes the operations of this part that are left out. */
void history_leave_out(struct history *h);
/* ---- scripts.c ---- */

unsigned int scripts_count(void);
const char *scripts_name(unsigned int i);
/* The number of the named history of a seed. */
unsigned int scripts_of(uint64_t seed);
/* The i-th named history with a seed. */
void scripts_make(struct history *h, unsigned int i, uint64_t seed);

/* Runs it: afterwards all engines are closed, and everything that was late has arrived. file: a
 * template. */
void history_run(struct history *h, const uint8_t *file, size_t n, struct log *log, bool trace);
/* The next part, after the files of history_part() were noted in first and contents. */
void history_run_next(struct history *h, const uint8_t *file, size_t n);
void history_release(struct history *h);

#endif
