/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HDF5 files that domains refer to. domain/ declares this interface; the engine implements it,
 * because only the engine knows which buckets and directories are permitted and how they are read.
 */
#ifndef DOMAIN_FILES_H
#define DOMAIN_FILES_H

#include <stddef.h>

#include <hsmount/err.h>

struct store;

struct domain_files {
	/* Finds the object of a file URI: "bucket/key", "/key" (in the bucket
	 * itself), "s3://bucket/key" or "file:///path". Writes
	 * its key to key[room]. The store lives as long as ctx. Sends no request. -EINVAL: no valid
	 * URI; -EACCES: the place is not in the bucket, and no option permits it; -EOPNOTSUPP:
	 * another scheme; -ENAMETOOLONG; -ENOMEM. Any thread. */
	int (*resolve)(void *ctx, const char *uri, struct store **store, char *key, size_t room,
		       struct err *err);
	void *ctx;
};

#endif
