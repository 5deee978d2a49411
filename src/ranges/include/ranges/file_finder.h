/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HDF5 files that domains refer to. ranges/ declares this interface; the engine implements it,
 * because only the engine knows which buckets and directories are permitted and how they are read.
 */
#ifndef RANGES_FILE_FINDER_H
#define RANGES_FILE_FINDER_H

#include <stdbool.h>

#include <hsmount/err.h>

#include <store/store.h>

struct found_file {
	struct store *store; /* lives as long as ctx */
	/* If true, a copy of the file has another ETag, so an ETag that a domain records says
	 * nothing of this store. */
	bool local_etags;
	char key[STORE_KEY_MAX + 1];
};

struct file_finder {
	/* Finds the object of a file URI: "bucket/key", "/key" (in the bucket itself),
	 * "s3://bucket/key" or "file:///path". Neither blocks nor sends a request. Fails with
	 * -EINVAL if the URI is not valid; with -EACCES if the file is not in the bucket, and no
	 * option permits it; with -EOPNOTSUPP if the scheme is another one; with -ENAMETOOLONG; and
	 * with -ENOMEM. No error contains credentials. Any thread. */
	int (*resolve)(void *ctx, const char *uri, struct found_file *out, struct err *err);
	void *ctx;
};

#endif
