/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an open file's reads say of those to come, beyond one dataset's pattern (the cache's
 * business): a read over several chunks asks for all of them at once, whatever datasets they are
 * of. For a program that reads the file in its order (sequential.h), the next chunks of the file
 * are asked for, from dataset to dataset. A file of a thousand small datasets is copied at the
 * network's speed.
 *
 * One lock for each stream; it is not held while the cache is called.
 */
#ifndef IMAGE_STREAM_H
#define IMAGE_STREAM_H

#include <pthread.h>

#include <prefetch/sequential.h>
#include "plan.h"

struct image_stream {
	struct image *image;
	struct cache_stream *cache;
	pthread_mutex_t lock; /* guards what follows */
	struct sequential order;
	uint64_t asked; /* slots of the file before this one are asked for */
	uint64_t read;	/* and those before this one are read */
};

/* A reader wants bytes [offset, offset + n), in the file. s may be NULL. */
void stream_read(struct image_stream *s, uint64_t offset, uint64_t n);

/* What one read asks for. */
struct stream_plan {
	uint64_t again; /* from this offset on, more should be asked for */
};
/* The read has come to offset `at` of a range that ends at `end`: asks for the next chunks when the
 * range has more than one. s may be NULL. */
void stream_plan_read(struct image *img, struct image_stream *s, struct stream_plan *plan,
		      uint64_t at, uint64_t end);

#endif
