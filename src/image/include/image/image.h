/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree as the bytes of an HDF5 file (doc/IMAGE.md): plan once, read anywhere. Every address
 * follows from the tree and the lists of its chunks alone, so the same domain gives the same bytes.
 *
 * An image is constant after image_new(); any thread may read it.
 */
#ifndef IMAGE_IMAGE_H
#define IMAGE_IMAGE_H

#include <stdint.h>
#include <sys/types.h>

#include <hsmount/err.h>
#include <base/env.h>
#include <cache/cache.h>
#include <data/chunk_source.h>
#include <data/tree.h>

/* Counts the ways in which trees were laid out. It changes whenever a plan gives other addresses
 * for the same tree, so that addresses of one revision are never used with another one. */
enum { IMAGE_REVISION = 2 };

enum image_flags {
	IMAGE_NO_FILTERS = 1 << 0, /* leave all filters out of the headers */
};

struct image;
struct image_stream; /* one open file: its read pattern */

/* Turns a domain's path (in place, at most cap bytes) into the path of its file in the mount. */
typedef int (*image_file_name_fn)(char *path, size_t cap);

struct image_options {
	unsigned int flags;
	/* Directory of the domain inside the mount, without slashes at its ends (copied): external
	 * links become paths relative to it. */
	const char *domain_dir;
	image_file_name_fn file_name; /* NULL: files are named as their domains */
};

/* tree, and what chunks stands for, are borrowed until image_free(). -EIO with the object named
 * when the tree cannot be rendered; -EFBIG when the file would be larger than 2^62; -ENOMEM. */
int image_new(const struct env *env, struct cache *cache, const struct tree *tree,
	      const struct chunk_source *chunks, const struct image_options *opt,
	      struct image **out, struct err *err);
void image_free(struct image *img);

uint64_t image_size(const struct image *img);
/* Bytes of the file that are behind something (metadata, stored chunks as far as known). */
uint64_t image_allocated(const struct image *img);
/* Memory that the image holds, its tree aside: what it charges to the budget of its environment.
 */
uint64_t image_memory(const struct image *img);
/* What became of its chunks' reads and loads. */
void image_get_stats(const struct image *img, struct cache_owner_stats *out);
/* Bytes of chunks, as they are stored, that came from the store. */
uint64_t image_fetched(const struct image *img);

struct image_stream *image_stream_new(struct image *img); /* NULL: no memory, still readable */
void image_stream_free(struct image_stream *s);

/* Bytes read: n, fewer only at the end of the file; negative errno (-EIO: a chunk is damaged or
 * cannot be fetched; -EINTR: cancel said so) with err set when nothing before the failure could be
 * read. cancel may be NULL. */
ssize_t image_read(struct image *img, struct image_stream *s, void *buf, size_t n, uint64_t offset,
		   struct cancel *cancel, struct err *err);
/* lseek(2) SEEK_DATA / SEEK_HOLE over what is known to be absent: result or -ENXIO. */
int64_t image_seek(const struct image *img, uint64_t offset, int whence);

#endif
