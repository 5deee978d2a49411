/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate between the engines and their bucket: it decides which engine's request is next, and
 * which requests fail.
 *
 *   engine 0    engine 1    engine 2     each in the thread of its actor
 *      |           |           |
 *    gate        gate        gate        a store for each engine; frees only itself
 *      \-----------+-----------/
 *             one bucket in memory
 *
 * The turn: one engine runs at a time. It keeps the turn until one of its requests arrives at its
 * gate, or until its actor takes a step by itself. Then a number decides who has the turn next. So
 * the order of all requests follows from the seed. The turn belongs to the engine and not to a
 * thread: an engine may send requests from a thread of its own while its actor waits for it.
 *
 * Seams: a simulator that runs several threads of one engine has to pass the turn at locks and
 * condition waits, too; scheduler_step() is the function to call there. All that happens is a line
 * of the trace, whose hash tells whether two runs were equal.
 */
#ifndef SIM_GATE_H
#define SIM_GATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/str.h>
#include <store/store.h>

#include "rng.h"

enum { ENGINES_MAX = 4 };

struct late;

struct scheduler {
	pthread_mutex_t lock; /* guards turn, waits, random */
	pthread_cond_t changed[ENGINES_MAX];
	int turn; /* the engine that runs; -1: no turns, everybody runs */
	bool runs[ENGINES_MAX];
	unsigned int switches; /* the turn may pass once in this many steps */
	struct rng random;
	/* All members below belong to who has the turn. */
	uint64_t steps;
	uint64_t now_ns; /* the clock of all engines */
	struct store *bucket;
	struct late *late; /* requests that arrive later */
	bool delivers;	   /* one of them is being carried out */
	struct str trace;
	uint64_t hash; /* of the trace */
	bool quiet;    /* no trace: the hash only */
};

void scheduler_init(struct scheduler *s, struct store *bucket, struct rng random);
void scheduler_release(struct scheduler *s);
/* Engines 0 to n - 1 take turns from now on. */
void scheduler_begin(struct scheduler *s, unsigned int n, unsigned int switches);
/* Waits for the first turn of an engine; its actor ends. */
void scheduler_enter(struct scheduler *s, unsigned int engine);
void scheduler_leave(struct scheduler *s, unsigned int engine);
/* The same for the bucket: others may come between two steps of a request. */
void scheduler_between(void *scheduler, const char *key);
/* A step of an engine that has the turn. Returns when it has the turn again. */
void scheduler_step(struct scheduler *s, unsigned int engine);
/* A moment that is later than all moments before. */
uint64_t scheduler_moment(struct scheduler *s);
/* Delivers all requests that are late. */
void scheduler_deliver(struct scheduler *s);
void scheduler_note(struct scheduler *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* What happens to a request. */
enum fault {
	FAULT_NONE,
	FAULT_REFUSED,	  /* it fails with -EACCES */
	FAULT_FAILED,	  /* it fails with -EIO and has no effect */
	FAULT_LOST,	  /* it is carried out, and fails with -EIO */
	FAULT_REPEATED,	  /* it is carried out, its answer is lost, and it is sent again */
	FAULT_LATE,	  /* it fails with -EIO, and is carried out later */
	FAULT_KILL,	  /* the engine is killed before it is carried out */
	FAULT_KILL_AFTER, /* … afterwards, before the answer arrives */
	FAULT_KILL_LATE,  /* … before, and it is carried out later */
	FAULTS
};
const char *fault_name(enum fault fault);

/* What the gate of an engine does. It outlives the engine. */
struct line {
	struct scheduler *scheduler;
	unsigned int engine;
	enum fault fault;
	unsigned int at;	 /* the number of the request, from 1, since line_arm() */
	const char *key;	 /* NULL, or: only requests count whose key ends so */
	bool all;		 /* all requests count; otherwise only PUT and DELETE */
	unsigned int n;		 /* requests that counted */
	bool hit;		 /* the fault has happened */
	bool dead;		 /* all requests fail */
	bool repeats;		 /* the stack has store/retry */
	void (*kill)(void *ctx); /* called at the moment of the kill */
	void *ctx;
};
void line_arm(struct line *l, enum fault fault, unsigned int at, const char *key, bool all);

/* The bucket of one engine. */
struct store *gate_new(struct line *line, const struct env *env, struct err *err);

#endif
