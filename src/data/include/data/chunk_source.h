/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chunks of a tree's datasets: the list of stored chunks of a dataset, and each chunk on
 * demand. An image reads its chunks through this interface. A domain implements it with the objects
 * of its bucket. Tests implement it without a bucket.
 */
#ifndef DATA_CHUNK_SOURCE_H
#define DATA_CHUNK_SOURCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hsmount/err.h>
#include <data/chunk_data.h>

enum {
	/* Bytes of a chunk, stored or decoded. Many chunks are in memory at the same time. */
	CHUNK_BYTES_MAX = 1 << 28,
};
/* A file has room for all chunks of a dataset of up to this many bytes. A larger dataset has room
 * for its stored chunks only, so its chunk_list must be listed. */
#define DATASET_DENSE_MAX (UINT64_C(1) << 50)

/* What is known about the stored chunks of a dataset. */
struct chunk_list {
	bool listed;  /* the list below is complete */
	bool unknown; /* the data have variable length and no list; reading fails */
	uint64_t n;
	uint64_t bytes;		 /* of the chunks as they are stored */
	const uint64_t *numbers; /* ascending chunk numbers that exist */
	/* The decoded sizes in bytes, in the same order. UINT64_MAX means that the chunk is
	 * damaged, and reading it fails. Only variable-length datasets have these sizes; their
	 * `listed` is then true. */
	const uint64_t *decoded;
};
/* Returns the index in the list of the first stored chunk whose number is `number` or more, or n if
 * there is none. */
uint64_t chunk_list_from(const struct chunk_list *chunks, uint64_t number);
/* Returns the index in the list of the chunk `number`, or n if the list does not have it. */
uint64_t chunk_list_find(const struct chunk_list *chunks, uint64_t number);

struct chunk_result {
	int code;    /* 0 or a negative errno */
	bool absent; /* the chunk is not stored; all elements are the fill value */
	bool denied; /* its HDF5 file has the chunk; the chunk table says that it does not */
	/* Its HDF5 file does not exist, or is another version. So no chunk of the dataset that is
	 * in this file can be read. err names the dataset and the file, but not the chunk. */
	bool file_lost;
	struct chunk_data data; /* of the whole chunk, empty if absent; owned by the callback */
	uint64_t fetched;	/* bytes that came from the store */
	struct err err;		/* names the key */
};
typedef void (*chunk_done)(void *arg, struct chunk_result *chunk);

struct chunk_request {
	uint32_t dataset;      /* object number in the tree */
	uint64_t number;       /* of the chunk in the grid, in row-major order */
	bool accepts_shuffled; /* the elements may come shuffled, if they are stored so */
	bool prefetch; /* no reader waits for the chunk; requests of readers have priority */
	/* Of a dataset with shards or a chunk table: only the index or the record is read that says
	 * where the chunk is. Of another one, a byte of the chunk's object is read. The result has
	 * no data, and `absent` says whether the chunk is not stored. */
	bool only_place;
	/* Becomes true when the chunk is no longer needed; get may then fail with -ECANCELED. It is
	 * borrowed until done is called. It may be NULL if the request cannot be cancelled. */
	const atomic_bool *cancelled;
	/* The result of begin(), or NULL. It is used only before get returns. */
	void *batch;
};

/* Any thread may call these functions. */
struct chunk_source {
	/* Returns the list of a dataset, which is borrowed and constant for the lifetime of the
	 * source. */
	const struct chunk_list *(*list)(void *ctx, uint32_t dataset);
	/* Asks the store which chunks of a dataset are stored whose list is not complete. *out
	 * becomes a complete list without `decoded`; the caller frees its numbers. All other chunks
	 * had the fill value when they were opened. Fails with -EOPNOTSUPP if the store cannot
	 * tell, with -E2BIG if that takes too many requests, with -ESTALE if the dataset has
	 * changed, and with errors of the store. Blocks. May be NULL. */
	int (*find)(void *ctx, uint32_t dataset, struct chunk_list *out, struct err *err);
	/* Gets a chunk asynchronously. done is called once, from any thread, possibly before get
	 * returns. */
	void (*get)(void *ctx, const struct chunk_request *request, chunk_done done, void *arg);
	/* begin and end make a batch of the requests of one thread between them, whose `batch` is
	 * the result of begin, which may be NULL. The source may join these requests and send them
	 * as late as in end. end may call done, and does not use ctx after the last request of the
	 * batch is done. Both may be NULL. */
	void *(*begin)(void *ctx);
	void (*end)(void *ctx, void *batch);
	void *ctx;
};

#endif
