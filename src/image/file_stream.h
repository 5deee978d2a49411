/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefetching for one open file across datasets. (The cache prefetches within a dataset.) A read of
 * several chunks requests all of them at once, whatever datasets they belong to. If a program reads
 * the file sequentially (prefetch/sequential.h), the next chunks of the file are prefetched. So a
 * file of a thousand small datasets is copied at the speed of the network. Before that is certain,
 * near the end of the first dataset, a few of the chunks that follow are prefetched.
 *
 * A program that reads the coordinates and then a variable waits for the store only once for all
 * coordinates, if they are small. If it has read at least two of them completely, the first chunks
 * of the variable are requested together.
 *
 * Each stream has a lock. It is not held while the cache is called.
 */
#ifndef IMAGE_FILE_STREAM_H
#define IMAGE_FILE_STREAM_H

#include <pthread.h>

#include <prefetch/prefetch.h>
#include <prefetch/sequential.h>
#include "image_plan.h"

/* Slots [first, last) of a file. */
struct slot_range {
	uint64_t first, last;
};

/* Slots of a program that reads in order. */
struct slot_order {
	uint64_t prefetched; /* slots of the file before this one have been requested */
	uint64_t read;	     /* slots before this one have been read */
};

/* A program that reads one dataset in order, whose loads are joined. */
struct dataset_order {
	struct sequential run;
	uint32_t extent;
	uint64_t row; /* bytes of the run before this one, if it was long enough, otherwise 0 */
	struct slot_order slots;
};

struct image_stream {
	struct image *image;
	struct cache_stream *cache;
	pthread_mutex_t lock; /* guards the following members */
	struct sequential order;
	struct slot_order slots; /* of `order` */
	struct dataset_order part;
	struct slot_range run; /* slots of the last reads, in file order without a gap */
	uint32_t whole;	       /* datasets that were read completely just before them */
	bool continues;	       /* the program probably reads on after them */
	bool copies;	       /* the first read was a long one; until the first slot is read */
	bool tried;	       /* prefetch_trial() was called */
	bool small;	       /* prefetch_small() was called */
};

/* State of one read of several slots. */
struct stream_plan {
	uint64_t next; /* offset at which more slots should be requested */
};

/* A program reads bytes [offset, offset + n) behind the user block, and `before` bytes in front of
 * them. Prefetches the next slots if it reads sequentially. Sets plan->next if the slots of the
 * read have been requested. s may be NULL. */
void stream_read(struct image_stream *s, uint64_t offset, uint64_t n, uint64_t before,
		 struct stream_plan *plan);
/* The read has reached offset `at` of a range that ends at `end`. Requests the next slots of the
 * range if it has more than one. s may be NULL. */
void stream_plan_read(struct image *img, struct image_stream *s, struct stream_plan *plan,
		      uint64_t at, uint64_t end);

#endif
