/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a record of the disk cache (store_diskcache_remember()) that is a list: items with a
 * name, a version and bytes. The cache checks the digest of a record before it returns it. Its
 * items are checked here once more, because another version of the program may have written it.
 * Pure.
 */
#ifndef DISKCACHE_RECORD_H
#define DISKCACHE_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include <base/cursor.h>
#include <base/mem.h>

struct record_item {
	const char *name;    /* not empty, at most STORE_KEY_MAX bytes */
	const char *version; /* less than STORE_ETAG_MAX bytes; may be empty */
	const void *bytes;   /* n bytes; may be NULL if n is 0 */
	size_t n;
};

/* Appends an item. Fails with -EINVAL if a member is too long, and with -ENOMEM; the record is then
 * as before. */
int record_add(struct bytes *record, const struct record_item *item);
/* Gets the next item of a record, whose members are borrowed from it. Returns false at the end, and
 * if the rest is no item; then cur_ok() is false. */
bool record_next(struct cursor *c, struct record_item *item);

#endif
