/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HDF5 file as decoders see it: a source of bytes, and what the superblock says of all
 * structures behind it. Every decoder takes one. Those of messages use its sizes alone, so for them
 * it needs no source.
 *
 * Sizes of addresses and lengths are 8 in what is encoded; 2, 4 and 8 are decoded.
 */
#ifndef H5_FILE_H
#define H5_FILE_H

#include <base/cursor.h>
#include <base/source.h>

#define H5_UNDEF UINT64_MAX /* the undefined address */

struct h5_file {
	struct source *source; /* borrowed */
	uint64_t base;	       /* where address 0 is in the source: behind a user block */
	uint64_t root;	       /* address of the root group's object header */
	uint64_t sohm;	       /* of the table of shared messages; H5_UNDEF: none */
	uint8_t addr_size, len_size;
};

/* A file as this project encodes them, without looking at its superblock. s: may be NULL for
 * decoders of messages. */
static inline struct h5_file h5_file_of(struct source *s)
{
	return (struct h5_file){
		.source = s, .root = H5_UNDEF, .sohm = H5_UNDEF, .addr_size = 8, .len_size = 8};
}

/* Finds the superblock, at offset 0 or behind a user block of 512 * 2^n bytes, and reads it with
 * its extension. -EIO: not an HDF5 file, or damaged; -EOPNOTSUPP: a version that is not read;
 * -EAGAIN: see base/source.h. */
int h5_file_open(struct h5_file *f, struct source *s, struct err *err);

/* Bytes of the file from address 0 on. */
static inline uint64_t h5_file_size(const struct h5_file *f)
{
	return f->base < f->source->size ? f->source->size - f->base : 0;
}

/* All n bytes at an address. -EIO: they are outside of the file. */
int h5_file_read(const struct h5_file *f, uint64_t addr, void *buf, size_t n, struct err *err);

/* An integer of `size` bytes whose largest value, all ones, means "undefined" or "unlimited":
 * UINT64_MAX whatever the size. */
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
