/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes, decodes and checks a file of the disk cache. Pure.
 *
 * The name of the file is a digest of scope and key, so all versions of a key share one entry.
 * Every field of an entry is checked before it is used: the entry may be years old, written by
 * another version of the program, or damaged by a crash.
 */
#ifndef DISKCACHE_DISK_ENTRY_H
#define DISKCACHE_DISK_ENTRY_H

#include <store/store.h>

enum {
	DISK_DIGEST = 32,		 /* bytes of a SHA-256 */
	DISK_NAME = 2 * DISK_DIGEST + 1, /* with a terminating NUL */
	DISK_SCOPE_MAX = 4096,
	DISK_HEAD_MIN = 64, /* the fixed part */
	DISK_HEAD_MAX = DISK_HEAD_MIN + DISK_SCOPE_MAX + STORE_KEY_MAX + STORE_ETAG_MAX,
};

/* Identifies an object: its bucket, and its key in the bucket. */
struct disk_id {
	const char *scope, *key;
};

/* The head of an entry. */
struct disk_entry {
	struct store_meta meta;
	size_t head; /* bytes before the body */
	uint8_t digest[DISK_DIGEST];
};

/* Stores 64 hexadecimal digits. Fails with -EIO if OpenSSL fails. */
int disk_entry_name(const struct disk_id *id, char name[DISK_NAME]);

/* Appends the head of an entry with this body to out. Fails with -EINVAL if a field is too long,
 * and with -ENOMEM or -EIO. */
int disk_entry_encode(const struct disk_id *id, const struct store_meta *meta, const void *body,
		      struct bytes *out);
/* Decodes the first n bytes of a file of file_size; n is at least the smaller of file_size and
 * DISK_HEAD_MAX. Fails with -EBADMSG if it is not an intact entry of this id. */
int disk_entry_decode(const void *bytes, size_t n, uint64_t file_size, const struct disk_id *id,
		      struct disk_entry *entry);
/* Checks the digest of a decoded head and its body. Fails with -EBADMSG if the file is damaged. */
int disk_entry_check(const struct disk_entry *entry, const void *head, const void *body);

#endif
