/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine and its life: it is opened over the bucket of a world, closed, killed and opened again
 * with the same journal.
 *
 * A kill copies the journal at that moment, as the disk has it when the process ends or its machine
 * loses its power; the seed decides which. From then on all requests of the engine fail, so the old
 * engine unwinds without an effect on the bucket; what it still writes goes to the old copy, which
 * nobody reads. box_revive() frees it, and opens an engine on the copy.
 */
#ifndef SIM_ENGINE_BOX_H
#define SIM_ENGINE_BOX_H

#include <pthread.h>

#include <bucket/bucket.h>

#include "disk.h"
#include "gate.h"
#include "mem_store.h"

struct world {
	char dir[64]; /* journals, and an empty directory that names the bucket */
	struct env env;
	struct pool *pool;
	struct store *bucket;
	struct scheduler scheduler;
	struct log *log;
	unsigned int workers; /* of each engine */
	bool has_clock;	      /* the bucket knows when it has stored an object */
	bool repeats;	      /* requests that fail for a moment are repeated, as for S3 */
	bool is_busy;	      /* many requests fail for a moment */
	bool is_s3;	      /* the engines know that it is a service, and no directory */
	bool keeps_opens;     /* metadata_ttl is half a minute, and opens are kept so long, too */
};

struct world_plan {
	uint64_t seed;
	unsigned int lacks;    /* enum store_mem_lacks */
	unsigned int switches; /* locks of struct baton_plan; 0: as 1 */
	unsigned int spurious; /* of struct baton_plan */
	unsigned int workers;  /* of each engine */
	bool repeats, is_busy, keeps_opens;
	struct log *log;
};

/* Begins the simulation: the caller has the baton, see baton.h. Failures of the simulation itself
 * end the program. */
void world_init(struct world *w, const struct world_plan *plan);
void world_release(struct world *w);
/* Cuts a message before the name of the directory, which is different in each run of a history. */
void world_cut_message(const struct world *w, struct err *err);

/* Calls of the journal that fail. */
struct disk_fault {
	unsigned int at;   /* 0: none; or the first call that fails, counted from 1 */
	unsigned int many; /* calls that fail from then on */
	int rc;		   /* -EIO or -ENOSPC */
	bool half;	   /* a first one of many bytes writes a half of them instead */
};

/* Actors use an engine together, or one of them alone: for a restart, or to go on after a kill. */
struct box {
	struct world *world;
	unsigned int number;
	struct engine *engine;
	struct line line;
	unsigned int generation; /* of the journal */
	struct rng random;
	struct disk *disk;  /* of the journal; NULL: none */
	struct rng crashes; /* what they leave */
	unsigned int kills;
	unsigned int lives;   /* how often the engine was opened */
	uint64_t power_lives; /* bit i % 64: the i-th life, one of the last 64, has ended with the
			       * loss of power */
	bool lost_power;      /* so the journal may have lost what is not durable */
	unsigned int powers;  /* how often */
	/* Its machine had lost its power, or its disk had failed, in an earlier part. */
	bool was_harmed;
	bool keeps_power; /* the next kill is not the loss of it */
	/* A sweep: its machine loses its power at this change of the journal or of the bucket,
	 * counted from box_sweep(). 0: not at all. */
	unsigned int crash_at, changes;
	bool opens; /* it is being opened, so a sweep waits */
	struct disk_fault disk_fault;
	unsigned int disk_calls;		 /* since box_arm_disk() */
	unsigned int disk_faults;		 /* that have happened */
	uint64_t cache_size, spool_size, ttl_ns; /* ttl_ns: of metadata */
	bool has_little_memory;			 /* so it may forget at once what it has read */
	enum engine_stat_mode stat;
	/* Called after a kill, when nobody uses the journal. It may be NULL. */
	void (*inspect)(struct box *b, const char *journal, const struct engine_options *bucket,
			void *ctx);
	void *inspect_ctx;
	int64_t wall_ns;	   /* how far its machine's clock is ahead */
	uint64_t longest_close_ns; /* that an unmount has taken */
	pthread_mutex_t lock;	   /* guards the members below */
	pthread_cond_t changed;
	unsigned int users;
	bool is_alone;
};

/* Opens the engine. read_only: without a journal. */
void box_init(struct box *b, struct world *w, unsigned int number, uint64_t seed, bool read_only);
/* Waits while the engine is killed, or somebody has it alone. */
void box_enter(struct box *b);
void box_leave(struct box *b);
/* Waits until nobody else uses it. */
void box_enter_alone(struct box *b);
void box_leave_alone(struct box *b);
/* What follows, but for box_kill(), is for who has the box alone. */
/* Begins what a mount does in the background. */
void box_start(struct box *b);
/* As an unmount, and the next mount. */
void box_restart(struct box *b);
/* As kill -9, `hsimage recover drop` of all drafts, and the next mount. */
void box_drop(struct box *b);
/* As kill -9, what fn does with the journal, and the next mount. fn may kill the process that it
 * is. */
void box_tidy(struct box *b,
	      void (*fn)(struct box *b, const char *journal, const struct engine_options *bucket,
			 void *ctx),
	      void *ctx);
/* The clock of its machine, nanoseconds since 1970. */
int64_t box_wall(const struct box *b);
/* Sets the clock of the machine, by at most a day. If the bucket has no clock, those of machines
 * must not differ by nearly an hour (DETAILS.md, "Renames"): by at most a quarter. */
void box_set_clock(struct box *b);
/* Until the next restart or kill, or another call, calls of the journal fail. at 0: none. */
void box_arm_disk(struct box *b, const struct disk_fault *fault);
/* The machine loses its power at its at-th change; 0: not. It does so only while an actor uses the
 * engine, who goes on after it. */
void box_sweep(struct box *b, unsigned int at);
/* As kill -9. */
void box_kill(struct box *b);
/* After a kill: the next mount. */
void box_revive(struct box *b);
/* The journal remains. */
void box_release(struct box *b);
/* After box_release(): drops what waits in the journal, as a person does, and opens an engine. What
 * has happened so far does not count any more. */
void box_begin_again(struct box *b);
/* The journal cannot be used any more. */
void box_free_disk(struct box *b);
/* Calls fn as box.inspect. */
void box_inspect(struct box *b,
		 void (*fn)(struct box *b, const char *journal, const struct engine_options *bucket,
			    void *ctx),
		 void *ctx);
/* Whether one of the files in the journal has these 8 bytes. */
bool box_journal_has(const struct box *b, uint64_t tag);

#endif
