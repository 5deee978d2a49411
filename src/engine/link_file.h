/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a link: an object of the bucket, of which only ranges are read, or a local file that
 * is, or will be, an object of the bucket.
 */
#ifndef ENGINE_LINK_FILE_H
#define ENGINE_LINK_FILE_H

#include <import/import.h>
#include <ranges/store_source.h>
#include <store/store.h>

#include "import_file.h"
#include "engine_internal.h"

struct link_file {
	struct engine *e;
	const atomic_bool *cancelled;
	const char *key;	   /* in the engine's bucket; borrowed */
	char *bucket, *bucket_key; /* for readers of the domain; owned */
	char *name;		   /* for messages; owned */
	struct store_meta meta;	   /* of the object; size is UINT64_MAX if it does not exist yet */
	bool is_local;
	struct import_source local;
	struct store_source *source; /* while it is open */
};

/* Finds the file without opening it. The caller calls link_file_release(), also after an error.
 * Fails with -ENOENT if the bucket has no such object, with -ESTALE if the local file is not the
 * object, and with -EINVAL. */
int link_file_init(struct link_file *f, struct engine *e, const struct engine_import *opt,
		   struct err *err);
void link_file_release(struct link_file *f);
/* Returns the ETag for the domain to record, or NULL if there is none, or if a copy of the bucket
 * would have another one. */
const char *link_file_etag(const struct link_file *f);
/* Returns the file for domain_import(), which is valid as long as f. */
struct import_file link_file_of(struct link_file *f);
/* Counts the requests and bytes so far. */
void link_file_counts(const struct link_file *f, uint64_t *requests, uint64_t *bytes);

#endif
