/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image: a tree as the bytes of an HDF5 file (doc/IMAGE.md). image_new() plans where everything
 * is; image_read() computes the bytes of any range. Every address depends only on the tree and on
 * the lists of its chunks, so the same domain always gives the same bytes.
 *
 * An image is constant after image_new() and image_shrink(), except for what image_find() learns;
 * any thread may read it.
 */
#ifndef IMAGE_IMAGE_H
#define IMAGE_IMAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <hsmount/err.h>
#include <base/env.h>
#include <base/source.h>
#include <cache/cache.h>
#include <data/chunk_source.h>
#include <data/tree.h>

/* Revision of the layout. It increases whenever a plan gives different addresses for the same tree,
 * so that addresses of one revision are never used with another one. */
enum { IMAGE_REVISION = 3 };

enum image_flags {
	IMAGE_NO_FILTERS = 1 << 0, /* chunks are shown without filters */
	IMAGE_DISTANT = 1 << 1,	   /* each request to the store takes time */
};

struct image;
struct image_stream; /* the read pattern of one open file */

/* Changes the path of a domain to the path of its file in the mount, in place. suffix is as in
 * struct image_options. path has cap bytes. */
typedef int (*image_file_name_fn)(const char *suffix, char *path, size_t cap);

struct image_options {
	unsigned int flags;
	/* Directory of the domain in the mount, without leading or trailing slashes (copied). The
	 * file names of external links are relative to it. */
	const char *domain_dir;
	image_file_name_fn file_name; /* if NULL, a file has the path of its domain */
	/* What file_name() appends to names without extension. External links lead to domains of
	 * the same schema. Constant for the lifetime of the image. */
	const char *suffix;
};

/* Plans the file of a tree and renders its metadata. *out is the caller's reference. The tree and
 * the source's context are borrowed until the last image_unref(). Fails with -EIO if a value is
 * damaged, or a length does not fit its field; with -E2BIG if a header message or a dense storage
 * would be too large; with -EFBIG if the file would be larger than 2^62 bytes; and with -ENOMEM. If
 * one HDF5 object is the cause, err names it. */
int image_new(const struct env *env, struct cache *cache, const struct tree *tree,
	      const struct chunk_source *chunks, const struct image_options *opt,
	      struct image **out, struct err *err);
struct image *image_ref(struct image *img);
void image_unref(struct image *img); /* img may be NULL */
/* For tree_drop_attributes(), whose context is the image: takes over the values that are rendered
 * when they are read. The rest of the attributes is rendered already. */
void image_take_values(void *image, uint32_t i, struct object *o);
/* For a file that no program can change: compresses its metadata, and frees what only
 * image_parts_at() needs, which must not be called any more. Requires that no other thread uses the
 * image. */
void image_shrink(struct image *img);
/* Drops the chunks of the file from the cache, and what image_find() has learned. Requires that no
 * stream of the image is open. */
void image_forget_chunks(struct image *img);

uint64_t image_size(const struct image *img);
/* Returns the size of the user block, which is in front of the superblock. It is the base address
 * of the file. All addresses and ranges of the functions below are relative to it, except for the
 * offsets of image_read() and image_seek(). */
uint64_t image_base(const struct image *img);
/* Returns the bytes of the file that are not in holes: metadata, and the chunks that are not known
 * to be absent. They become fewer if image_find() finds holes. */
uint64_t image_allocated(const struct image *img);
/* Returns the same without the chunks of datasets of which it is not known which ones are stored.
 */
uint64_t image_certain(const struct image *img);
/* Returns how many bytes the kernel should read ahead for a program that reads in order. */
uint64_t image_read_ahead(const struct image *img);
/* Says how many bytes the kernel does read ahead, for prefetching. The default is
 * image_read_ahead(). Any thread may call it. */
void image_set_read_ahead(struct image *img, uint64_t bytes);
/* Returns the bytes of memory that the image charges to the budget of its environment. The tree is
 * not included. */
uint64_t image_memory(const struct image *img);
/* Gets the statistics of reads and loads of chunks. */
void image_get_stats(const struct image *img, struct cache_owner_stats *out);
/* Returns the bytes of stored chunks that were fetched from the store. */
uint64_t image_fetched(const struct image *img);

/* Where the chunks of a dataset are in the file, for those who compare the file with it. */
struct image_layout {
	uint32_t number; /* of the dataset in the tree */
	bool chunked;	 /* else contiguous; chunks in sequence are the elements in order */
	/* Slot i has the i-th stored chunk (see struct chunk_list); else chunk i. */
	bool listed;
	bool fill_hidden;     /* the header does not have the fill value */
	uint64_t slots;	      /* number of slots; 0 if there is no raw data */
	uint64_t addr;	      /* of the first slot */
	uint64_t size;	      /* of a slot, bytes */
	uint64_t stride;      /* from slot to slot */
	uint64_t chunk_bytes; /* of a chunk before the filters */
	uint64_t bytes;	      /* of all slots */
	/* Address of the chunk index, a version 1 B-tree whose i-th chunk is in slot i; UINT64_MAX
	 * if there is none. */
	uint64_t index, index_end;
	/* [heap, heap_end) has the items of all chunks in the order of the slots. It is empty if
	 * there are none. */
	uint64_t heap, heap_end;
};
/* Gets the layout of the i-th dataset in the order of the tree. Returns false if there are no
 * more. */
bool image_layout(const struct image *img, uint32_t i, struct image_layout *out);
/* The same for a dataset with a number in the tree. Returns false if there is no such dataset. */
bool image_dataset_layout(const struct image *img, uint32_t number, struct image_layout *out);
/* The first function returns the chunk in a slot of a dataset, which has the slot. The second one
 * gets the slot of a chunk, or returns false if the chunk has none. */
uint64_t image_slot_chunk(const struct image *img, uint32_t number, uint64_t slot);
bool image_chunk_slot(const struct image *img, uint32_t number, uint64_t chunk, uint64_t *slot);
/* Returns the slot of the chunk that has an item at an address of [heap, heap_end). */
uint64_t image_item_slot(const struct image *img, uint32_t number, uint64_t addr);
/* Returns the address of the header of an object of the tree, or UINT64_MAX if the object is not in
 * the file. */
uint64_t image_header(const struct image *img, uint32_t number);
/* The bytes of an object besides its raw data, its chunk index and the items of its chunks. */
struct image_parts {
	uint32_t number;			/* of the object in the tree */
	struct byte_range header, dense, large; /* dense storage; large attributes */
	/* Global heap collections with items of its attributes and of its fill value. Other objects
	 * may have items in them, too. */
	struct byte_range items;
};
/* Gets the object whose header is at an address. Returns false if there is none. */
bool image_parts_at(const struct image *img, uint64_t addr, struct image_parts *out);
/* Gets the range [*start, *end) of the file with the items of a chunk, to which its variable-length
 * elements refer. The ranges of different chunks do not overlap. A chunk that is not stored has a
 * range, too, if the fill value has items and each of its elements refers to a copy of them.
 * dataset is the number in the tree. Returns false if there is no such chunk, or if it has no range
 * of its own. */
bool image_items(const struct image *img, uint32_t dataset, uint64_t chunk, uint64_t *start,
		 uint64_t *end);
/* Gets the file name that an external link to a domain has in the file. It is relative to the
 * directory of the file and never leads out of the mount. Fails with -ENAMETOOLONG. */
int image_external_file(const struct image *img, const char *domain, char *file, size_t cap);
/* Gets the path in the mount to which an external link to a domain leads, from a file in the
 * directory dir. It is "" for the root of the mount. file_name and suffix are as in struct
 * image_options. Fails with -ENAMETOOLONG. */
int image_external_path(const char *dir, const char *domain, image_file_name_fn file_name,
			const char *suffix, char *path, size_t room);

struct image_stream *
image_stream_new(struct image *img); /* NULL if out of memory; image_read() accepts it */
void image_stream_free(struct image_stream *s);

/* Reads n bytes; fewer at the end of the file, or before a chunk that cannot be read. cancel may be
 * NULL. Returns the number of bytes. If the first byte cannot be read, returns a negative errno
 * with err set: -EIO if a chunk is damaged or cannot be fetched, -EINTR if the caller has cancelled
 * the read. */
ssize_t image_read(struct image *img, struct image_stream *s, void *buf, size_t n, uint64_t offset,
		   struct cancel *cancel, struct err *err);
/* Seeks like lseek(2) with SEEK_DATA or SEEK_HOLE. Returns the offset or -ENXIO. image_seek() uses
 * what is known, and sends no request. image_find() asks the source once for the list of chunks of
 * each dataset that it reaches, if the list is not complete and the dataset has IMAGE_ASK_FROM
 * chunks or more; it blocks. If the source cannot tell, all chunks count as stored. */
enum { IMAGE_ASK_FROM = 16 /* fewer chunks are read as quickly as listed */ };
int64_t image_seek(const struct image *img, uint64_t offset, int whence);
int64_t image_find(const struct image *img, uint64_t offset, int whence);

#endif
