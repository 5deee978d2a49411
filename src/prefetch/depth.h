/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many chunks to prefetch: the product of bandwidth and delay. A load takes `latency`. The
 * program processes a chunk in `think` time, which excludes the time that it waits for the cache.
 * If latency / think loads are in flight, the program does not wait. The depth is twice that plus
 * DEPTH_MIN, because both times vary. The latency is the shortest recent one (latency.h). It
 * contains no queueing time, so loads that delay each other do not increase the depth. If the
 * program waits nevertheless, the depth doubles, up to DEPTH_SLACK or twice the computed depth. For
 * a directory the depth is two or three chunks; for a bucket at 50 ms it may reach DEPTH_MAX
 * requests.
 *
 * Many runs end after a few chunks, so the depth is at most DEPTH_AHEAD times the number of chunks
 * that the program has read in this run. When the run ends, at most two of three loaded chunks were
 * not needed, and of a sequence DEPTH_SPARE more. A long run loses little: the chunks that were
 * read triple with each round of loads.
 *
 * A series is the first that a program reads of a dataset, if it begins with chunks 0 and 1 or with
 * DEPTH_SERIES consecutive ones. If the store is distant, the first batch of a series is larger. It
 * has as many chunks as arrive in the time of a request, if there is room, at most so many that
 * DEPTH_FIRST chunks of the series have been requested. If they have, nothing else is prefetched
 * before the program, or the kernel for it, has read past all of them. So 20 chunks take few rounds
 * of requests, and few are requested in vain. One chunk shows no series, and two in the middle of a
 * dataset may be read by a program that reads at random places.
 *
 * Pure; the caller's lock guards it.
 */
#ifndef PREFETCH_DEPTH_H
#define PREFETCH_DEPTH_H

#include <stdbool.h>
#include <stdint.h>

#include <prefetch/kernel.h>

enum {
	DEPTH_MIN = 2,
	DEPTH_AHEAD = 2, /* chunks for each chunk that was read in the run */
	DEPTH_SPARE = 4, /* chunks of a sequence that may be fetched in vain besides those */
	DEPTH_SLACK = 8, /* if the program waits, the depth may reach at least this */
	DEPTH_MAX = 64,	 /* requests; if loads are joined, a request has several chunks */
	DEPTH_CHUNKS_MAX = 1024, /* chunks; a load takes a few kB besides its chunk */
	/* If loads are joined: the chunks of so many bytes, which a link of 1 Gbit/s transfers in
	 * 67 ms, but at most so many chunks. */
	DEPTH_JOINED_BYTES = 8 << 20,
	DEPTH_JOINED_MAX = 8192,
	DEPTH_UNSURE = 1 << 20, /* bytes, while the kernel's read-ahead may be the only reader */
	DEPTH_SERIES = 5,
	DEPTH_FIRST = 27,	      /* chunks; 20, and 7 that the kernel then has read ahead */
	DEPTH_FIRST_RATE = 128 << 10, /* bytes that arrive in 1 ms; about 1 Gbit/s */
};

struct depth {
	uint32_t chunks; /* the depth, in chunks to load or request after the current one */
	uint64_t stepped_ns;
	uint64_t waited_ns; /* of the last step */
	uint64_t run;	    /* chunks that were read in this run */
	uint64_t batch;	    /* number of the last chunk of the first batch; 0 if there is none */
	uint64_t think_ns;  /* the program's processing time per chunk, smoothed; 0 if unknown */
};

/* One step, in which the program reads the next chunks. */
struct depth_step {
	uint64_t now_ns;
	uint64_t waited_ns;  /* total time that the readers of the file have waited */
	uint64_t steps;	     /* chunks since the last step */
	uint64_t latency_ns; /* of loads; 0 if unknown */
	uint64_t cost;	     /* bytes of a chunk */
	uint64_t joined; /* loads that take one request; 0 and 1 mean that they are not joined */
	/* Bytes that the kernel reads ahead in the file, if the chunks to prefetch are neighbours
	 * in it, otherwise KERNEL_READ_AHEAD. */
	uint64_t read_ahead;
	bool late;	 /* the program waits for a chunk */
	bool sequential; /* the program may be reading in file order */
	uint64_t begun;	 /* chunks of a series before this one; 0 if no series begins here */
	uint64_t room;	 /* chunks for which there is room in the first batch of a series */
	uint64_t newest; /* number of the chunk of the track that was read */
};

/* Starts a run with DEPTH_MIN chunks, or more if the store is distant. */
void depth_begin(struct depth *p, const struct depth_step *step);
/* Called when the program has continued the track. Computes the depth again. */
void depth_follow(struct depth *p, const struct depth_step *step);
/* Called when the program has left the track. Halves the depth with which the track continues. */
void depth_break(struct depth *p);
/* Called when a prefetched chunk was evicted before the program read it. Halves the depth. */
void depth_wasted(struct depth *p);

#endif
