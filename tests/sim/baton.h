/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The baton: of all threads of the simulation, only the one that has it runs. It passes on at each
 * call below, and at each of these of the product:
 *
 *   pthread_create, pthread_join               a new thread has to be given the baton first
 *   pthread_mutex_lock, pthread_rwlock_*lock   now and then; always if another thread has the lock
 *   pthread_cond_wait, pthread_cond_timedwait  …_signal wakes one of the waiting threads
 *   clock_nanosleep, nanosleep
 *   flock                                      if another descriptor has the lock
 *
 * Numbers from the seed decide who has it next, whom a signal wakes, and whether a wait returns
 * without one, which POSIX permits. So a seed is one order of everything that the threads do, and
 * the same order each time. The linker puts these functions in the place of the C library's
 * ("--wrap", ld(1)) in the objects of this program and of the product's static libraries. The
 * product has no other code for the simulation than for its users, and pays nothing for it. What
 * happens between two such calls is not interleaved: that is what the thread sanitizer is for.
 *
 * The clocks (clock_gettime, time) are virtual. A little time passes with each pass of the baton;
 * if all threads wait, the clock jumps to the first moment for which one waits. If none of them
 * waits for a moment, they wait for each other: the simulation prints what each one waits for, and
 * ends. So does a lost wake-up, and one that is hidden by a timer that runs for days.
 *
 * Before baton_begin() and after baton_end() all functions are the C library's.
 */
#ifndef SIM_BATON_H
#define SIM_BATON_H

#include <stdbool.h>
#include <stdint.h>

#include "rng.h"

struct baton_plan {
	struct rng random;
	/* The baton passes once in this many locks that are free, on average; at least 1. */
	unsigned int locks;
	/* A wait for a condition returns without a signal once in this many passes; 0: never. */
	unsigned int spurious;
};

/* The calling thread is the first one, and has the baton. */
void baton_begin(const struct baton_plan *plan);
/* All other threads have been joined. */
void baton_end(void);
/* The program ends if a month passes from now on, because something waits for ever. */
void baton_live(void);
/* Any thread may have the baton next. */
void baton_pass(void);
void baton_sleep(uint64_t ns);
/* Nanoseconds of the virtual monotonic clock; the wall clock is BATON_EPOCH later. */
#define BATON_EPOCH UINT64_C(1700000000000000000)
uint64_t baton_now(void);
/* How often the baton has passed on to another thread, and how many threads there were. */
struct baton_counts {
	uint64_t passes, switches, spurious;
	unsigned int threads;
};
struct baton_counts baton_counts(void);
/* The number of the running thread, from 0 in the order of their creation. */
unsigned int baton_thread(void);

#endif
