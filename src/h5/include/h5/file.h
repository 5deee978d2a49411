/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HDF5 file for decoders: a source of bytes, and the members of the superblock that all
 * structures depend on. Every decoder takes one. Decoders of messages only use the sizes of
 * addresses and lengths, so the source may be NULL.
 *
 * Encoders write addresses and lengths of 8 bytes. Decoders read 2, 4 and 8 bytes.
 */
#ifndef H5_FILE_H
#define H5_FILE_H

#include <base/cursor.h>
#include <base/mem.h>
#include <base/source.h>

#define H5_UNDEF UINT64_MAX /* the undefined address */

struct pipeline;

/* Undoes the filters of a fractal heap. codec/ implements them, which h5/ does not see. */
struct h5_unfilter {
	/* Decodes n bytes to at most max bytes. If bit i of mask is set, filter i was not applied.
	 * *out is empty before. Fails with -EIO if the bytes are damaged, with -EOPNOTSUPP if a
	 * filter is unknown, and with -ENOMEM. */
	int (*decode)(void *ctx, const struct pipeline *p, uint32_t mask, const void *in, size_t n,
		      size_t max, struct bytes *out, struct err *err);
	void *ctx;
};

/* A limit of what the decoders may read. In a valid file each structure is read a few times at
 * most; in a damaged one, many may refer to the same bytes. One thread at a time. */
struct h5_work {
	uint64_t left; /* bytes */
};

struct h5_file {
	struct source *source;		    /* borrowed */
	const struct h5_unfilter *unfilter; /* if NULL, a filtered heap fails with -EOPNOTSUPP */
	struct h5_claims *claims; /* NULL, or records which bytes structures occupy: h5/claims.h */
	struct h5_work *work;	  /* NULL, or the limit of h5_file_spend() */
	uint64_t base; /* offset of address 0 in the source, which is the size of the user block */
	uint64_t root; /* address of the root group's object header */
	uint64_t sohm; /* address of the master table of shared messages, or H5_UNDEF */
	uint8_t sohm_indexes; /* indexes in that table, at most 8 */
	uint8_t addr_size, len_size;
	/* K of B-trees: entries of symbol table nodes, of group B-trees and of chunk B-trees are
	 * at most 2K. */
	uint16_t leaf_k, internal_k, chunk_k;
	/* The structures that h5_file_open() reads: bytes of the superblock at address 0, addresses
	 * of the superblock extension and of the driver information block, or H5_UNDEF. */
	uint32_t superblock_size;
	uint64_t extension, driver_info;
	uint64_t free_info; /* of the free-space information, which no release of libhdf5 writes */
	uint8_t version, status_flags; /* of the superblock */
	/* The end of the file that the superblock records, as an address, or H5_UNDEF if that is
	 * not valid. */
	uint64_t recorded_end;
	bool is_bounded; /* what lies behind the recorded end does not belong to the file */
	/* What these decoders do not need, but libhdf5 does, is damage, too: keys, siblings,
	 * free-space managers. */
	bool is_strict;
};

/* Returns a file with the sizes that encoders write. The superblock is not read. s may be NULL for
 * decoders of messages. */
static inline struct h5_file h5_file_of(struct source *s)
{
	return (struct h5_file){
		.source = s,
		.root = H5_UNDEF,
		.sohm = H5_UNDEF,
		.addr_size = 8,
		.len_size = 8,
		.leaf_k = 4,
		.internal_k = 16,
		.chunk_k = 32,
		.extension = H5_UNDEF,
		.driver_info = H5_UNDEF,
		.recorded_end = H5_UNDEF,
		.free_info = H5_UNDEF,
	};
}

/* Finds the superblock, at offset 0 or after a user block of 512 * 2^n bytes, and reads it with its
 * extension. f->claims is NULL afterwards. Fails with -EIO if it is damaged or not an HDF5 file,
 * and with -EOPNOTSUPP if the version is not supported, or if it is a part of a file that is split
 * into several. See base/source.h for -EAGAIN. */
int h5_file_open(struct h5_file *f, struct source *s, struct err *err);
/* Claims the bytes of the structures that h5_file_open() has read. A caller that keeps claims calls
 * it once, after it has set f->claims. Fails with -EIO, also if two of them overlap, or with
 * -EAGAIN. */
int h5_file_claim(const struct h5_file *f, struct err *err);

/* Returns the bytes of the file after the user block. */
static inline uint64_t h5_file_size(const struct h5_file *f)
{
	const uint64_t size = f->base < f->source->size ? f->source->size - f->base : 0;
	return f->is_bounded ? min_u64(size, f->recorded_end) : size;
}

/* Counts n bytes that a decoder reads, or copies from what it has read before. Fails with -EIO if
 * the limit is reached; then nothing more can be read. */
int h5_file_spend(const struct h5_file *f, uint64_t n, struct err *err);

/* Reads exactly n bytes at an address, and counts them. Fails with -EIO if they are outside of the
 * file, or if the limit of work is reached. */
int h5_file_read(const struct h5_file *f, uint64_t addr, void *buf, size_t n, struct err *err);

/* Prepares n bytes at an address for a read without this library: see source_prepare(). */
int h5_file_prepare(const struct h5_file *f, uint64_t addr, uint64_t n, struct source_part *part,
		    struct err *err);

/* Announces that n bytes at an address, or as many of them as the file has, are read soon. See
 * source_advise(). */
void h5_file_advise(const struct h5_file *f, uint64_t addr, uint64_t n);

/* Reads an integer of `size` bytes whose largest value means "undefined" or "unlimited". Returns
 * UINT64_MAX for that value, whatever the size is. */
static inline uint64_t h5_cur_undef(struct cursor *c, unsigned int size)
{
	const uint64_t v = cur_uint(c, size);
	return size < 8 && v == (UINT64_C(1) << 8 * size) - 1 ? UINT64_MAX : v;
}

static inline uint64_t h5_cur_addr(const struct h5_file *f, struct cursor *c)
{
	return h5_cur_undef(c, f->addr_size);
}

static inline uint64_t h5_cur_len(const struct h5_file *f, struct cursor *c)
{
	return cur_uint(c, f->len_size);
}

#endif
