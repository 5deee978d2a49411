/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ranges of an object the directory has. A reader joins ranges that it needs at the same
 * time, so which bytes a request asks for depends on timing. An index says which ranges of a block
 * of the object have entries, so that any bytes that were fetched before are found.
 *
 * The index of a block is an entry of its own, of the same version as the ranges:
 *
 *   +0   8  first byte of a range
 *   +8   8  end of the range
 *   +16     the next one, newest last
 *
 * If another process changes an index at the same time, ranges may be missing in it. They are then
 * fetched again.
 */
#ifndef DISKCACHE_RANGE_INDEX_H
#define DISKCACHE_RANGE_INDEX_H

#include "directory.h"

enum {
	RANGE_HEAD = 8,	       /* the body of the entry of a range begins with the object's size */
	RANGE_TEXT = 48,       /* bytes of a range in the key of its entry */
	RANGE_BLOCK = 4 << 20, /* bytes of the object that an index describes */
	RANGE_BLOCKS_MAX = 3,  /* a range of more blocks is not in an index */
	RANGE_INDEX_MAX = 512, /* ranges; the oldest are forgotten */
};

/* The ranges of one version of an object. */
struct range_index {
	struct disk_dir *dir;
	const char *scope, *key, *version;
};

/* Reads the entry of a range, as disk_dir_read() does. *meta is that of the whole object. version
 * may be NULL. */
int range_entry_read(const struct range_index *x, const struct store_range *r,
		     struct store_meta *meta, struct bytes *body);
/* Writes the key of the entry of a range. */
void range_entry_key(const char *key, const struct store_range *r,
		     char out[STORE_KEY_MAX + RANGE_TEXT]);
/* Adds a range, whose entry was written. meta is that of the object. The caller lets no other
 * thread add a range. Fails as disk_dir_write() does. */
int range_index_add(const struct range_index *x, const struct env *env, const struct store_range *r,
		    const struct store_meta *meta);
/* Makes the bytes [r->first, r->first + r->length) of ranges that have entries. Only the n parts,
 * which are sorted, are needed; other bytes may be zeros. Fails with -ENOENT if a part is missing.
 */
int range_index_read(const struct range_index *x, const struct store_range *r,
		     const struct store_range *parts, size_t n, struct store_meta *meta,
		     struct bytes *body);

#endif
