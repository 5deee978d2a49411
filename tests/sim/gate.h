/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate between the engines and their bucket: it decides which request is next, and which
 * requests fail.
 *
 *   engine 0    engine 1    engine 2     threads: actors, workers, timers; see baton.h
 *      |           |           |
 *    gate        gate        gate        a store for each engine; frees only itself
 *   || || ||    || || ||    || || ||     each with a few threads that carry requests to the bucket
 *      \-----------+-----------/
 *             one bucket in memory
 *
 * Requests of one engine overtake each other, as on several connections. All that happens is a line
 * of the trace, whose hash tells whether two runs were equal.
 */
#ifndef SIM_GATE_H
#define SIM_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include <base/str.h>
#include <store/store.h>

#include "rng.h"

enum { ENGINES_MAX = 4 };

struct late;

struct scheduler {
	struct rng random;
	uint64_t steps;
	struct store *bucket;
	struct late *late;    /* requests that arrive later */
	bool delivers;	      /* one of them is being carried out */
	unsigned int arrives; /* one arrives once in this many steps */
	struct str trace;
	uint64_t hash; /* of the trace */
	bool quiet;    /* no trace: the hash only */
};

void scheduler_init(struct scheduler *s, struct store *bucket, struct rng random);
void scheduler_release(struct scheduler *s);
/* For the bucket: others may come between two steps of a request. */
void scheduler_between(void *scheduler, const char *key);
/* A step of the running thread: something that is late may arrive, and others may run. */
void scheduler_step(struct scheduler *s);
/* A moment that is later than all moments before. */
uint64_t scheduler_moment(struct scheduler *s);
/* Delivers all requests that are late. */
void scheduler_deliver(struct scheduler *s);
void scheduler_note(struct scheduler *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* What happens to a request. A body that is cut, and a connection that hangs, are errors of the s3
 * layer: here they are requests that fail. */
enum fault {
	FAULT_NONE,
	FAULT_REFUSED,	  /* it fails with -EACCES */
	FAULT_FAILED,	  /* it fails with -EIO and has no effect */
	FAULT_LOST,	  /* it is carried out, and fails with -EIO */
	FAULT_REPEATED,	  /* it is carried out, its answer is lost, and it is sent again */
	FAULT_SLOW,	  /* it is carried out, after minutes */
	FAULT_LATE,	  /* it fails with -EIO, and is carried out later */
	FAULT_EXPIRED,	  /* the credentials have expired: it fails with -EACCES, and so do all
			   * others of this engine, until somebody gets new ones */
	FAULT_KILL,	  /* the engine is killed before it is carried out */
	FAULT_KILL_AFTER, /* … afterwards, before the answer arrives */
	FAULT_KILL_LATE,  /* … before, and it is carried out later */
	FAULTS
};
const char *fault_name(enum fault fault);

/* What the bucket refuses to an engine of the keys below GATE_VAULT. */
#define GATE_VAULT "vault/"
enum gate_denial { GATE_NOTHING, GATE_LISTS, GATE_ALL, GATE_DENIALS };

enum { REFUSED_MAX = 8 };

/* What the gate of an engine does. It outlives the engine. */
struct line {
	struct scheduler *scheduler;
	unsigned int engine;
	enum fault fault;
	unsigned int at;       /* the number of the request, from 1, since line_arm() */
	const char *key;       /* NULL, or: only requests count whose key ends so */
	unsigned int many;     /* requests that fail from then on */
	bool all;	       /* all requests count; otherwise only PUT and DELETE */
	unsigned int n;	       /* requests that counted */
	bool hit;	       /* the fault has happened */
	unsigned int repeated; /* requests that were sent again */
	unsigned int faults;   /* that have happened */
	unsigned int changes;  /* requests that change something */
	bool is_late;	       /* a request has arrived when it had been given up */
	uint64_t renewed_ns;   /* requests before this time fail: see FAULT_EXPIRED */
	enum gate_denial denial;
	bool dead;		       /* all requests fail */
	bool repeats;		       /* the stack has store/retry */
	bool is_busy;		       /* the service refuses many requests for a moment */
	uint64_t refused[REFUSED_MAX]; /* the requests that it has refused last: see gate.c */
	unsigned int next_refused;
	void (*kill)(void *ctx);     /* called at the moment of the kill */
	bool (*is_swept)(void *ctx); /* whether the engine is killed at a request that changes
				      * something */
	void *ctx;
};
void line_arm(struct line *l, enum fault fault, unsigned int at, const char *key, bool all);

/* The bucket of one engine. */
struct store *gate_new(struct line *line, const struct env *env, struct err *err);

#endif
