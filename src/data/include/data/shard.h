/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shards (Zarr v3, "sharding_indexed"): a shard is an object, or a part of one, that holds many
 * chunks of a dataset, and an index that says where each of them is. A chunk may itself be a shard:
 * a nested one. The chunks of the dataset are those of the innermost shards.
 *
 * Pure functions; any thread may call them.
 */
#ifndef DATA_SHARD_H
#define DATA_SHARD_H

#include <stdbool.h>
#include <stdint.h>

#include <data/dspace.h>

enum {
	SHARD_LEVELS_MAX = 4,	    /* shards inside of each other */
	SHARD_CHUNKS_MAX = 1 << 20, /* inner chunks of one shard */
	SHARD_ENTRY = 16,	    /* bytes of an entry of an index */
	SHARD_CHECKSUM = 4,	    /* bytes behind the entries, if the index has a checksum */
};

struct codec_chain;

struct shard {
	uint32_t rank; /* of the array; the grid of the dataset may have more dimensions */
	/* How many chunks of the dataset the shard has, and how many one of its inner chunks has,
	 * along each dimension of the dataset: rank numbers, each > 0. An inner chunk that is no
	 * nested shard has one. */
	const uint64_t *span, *inner;
	/* Axis i of the shard, as it is stored, is dimension order[i] of the dataset. */
	const uint32_t *order;
	uint32_t nchunks;	    /* inner chunks; at most SHARD_CHUNKS_MAX */
	uint64_t largest;	    /* most stored bytes of an inner chunk */
	bool at_start;		    /* the index is at the start of the shard, not at its end */
	bool big_endian;	    /* of the index */
	bool has_checksum;	    /* of the index */
	const struct shard *nested; /* the inner chunks are such shards; NULL if they are not */
	/* How the bytes of the shard are encoded (codec/chain.h), or NULL if they are not. An
	 * encoded shard is decoded as a whole. */
	const struct codec_chain *around;
};

/* Where an inner chunk is. */
struct shard_entry {
	bool absent;		 /* it is not stored; the other fields are not valid */
	uint64_t offset, length; /* in the shard, bytes */
};

/* Returns the number of bytes of the index. */
uint32_t shard_index_size(const struct shard *s);
/* Returns the number of the inner chunk that is, or has, chunk `number` of the grid. */
uint32_t shard_inner(const struct shard *s, const struct grid *g, uint64_t number);
/* Returns the lowest number of the chunks of the grid that are in the same shard as `number`. No
 * other shard of this level has it. */
uint64_t shard_first(const struct shard *s, const struct grid *g, uint64_t number);
/* Replaces the number of a chunk by that of the next chunk of the grid in the same shard. Returns
 * false if it was the last one. */
bool shard_next(const struct shard *s, const struct grid *g, uint64_t *number);

#endif
