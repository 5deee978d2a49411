/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations that the files of check/ share. A check looks at a domain, or at a local HDF5 file.
 *
 *   check.c          walks a bucket and calls check_domain() for each domain
 *   check_domain.c         the order of the checks of one domain
 *   check_links.c          soft links
 *   check_external.c       external links
 *   check_keys.c           the keys in the bucket below the domain's prefix
 *   check_store.c          the keys of a domain that only a listing shows
 *   check_grid.c           chunks that no listing shows
 *   check_imports.c        unfinished imports
 *   check_storages.c       storages without a name, uploads, temporary files
 *   check_chunks.c         reads and decodes chunks
 *   check_image.c          the rendered file, read back
 *   check_file.c           a local HDF5 file
 *   check_sample.c         chooses chunks
 *   check_report.c         findings and results
 *
 * A check runs in the thread of its caller. The functions return 0, or the code that ends the whole
 * check: the sink's result or -ENOMEM. A finding is no error.
 */
#ifndef CHECK_CHECK_H
#define CHECK_CHECK_H

#include <hsmount/check.h>

#include <base/mem.h>
#include <base/str.h>
#include <data/chunk_source.h>
#include <data/describe.h>
#include <data/tree.h>
#include <domain/domain.h>
#include <schema/storage_id.h>

struct engine;
struct names_node;
struct store_item;

struct check {
	const struct engine_check_sink *sink;
	bool all;
	struct engine_check_result result; /* of the current domain or file */
	/* Progress: bytes of chunks that are done, whether they were decoded, absent or damaged,
	 * and of all that will be, as far as is known. In a domain, those are decoded bytes. */
	uint64_t handled, expected;
	bool is_gone;	 /* the last domain was removed during the check */
	struct err *err; /* gets the reason why the check ends */
};

/* ---- check_report.c ---- */

/* Starts the result of a domain or file. path is borrowed until check_end(), which gives the result
 * to the sink. */
void check_begin(struct check *c, const char *path);
int check_end(struct check *c);
/* Reports a finding about the current domain or file. object and key may be NULL. */
int check_find(struct check *c, enum engine_check_severity severity, const char *object,
	       const char *key, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Reports a finding as the only one about a path of the bucket, which gets a result of its own. */
int check_find_alone(struct check *c, const char *path, enum engine_check_severity severity,
		     const char *key, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
struct domain_check;
/* Reports a finding about the object of the domain with this number. key may be NULL. */
int check_find_at(struct domain_check *dc, enum engine_check_severity severity, uint32_t number,
		  const char *key, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Returns the number of requests so far that got no answer, in this bucket and in those of files
 * that domains refer to. */
uint64_t check_failed_requests(const struct engine *e);
/* Counts a decoded chunk with so many stored bytes. */
void check_decoded(struct check *c, uint64_t bytes);
/* Reports the progress: a chunk of so many bytes is done. */
void check_handled(struct check *c, uint64_t bytes);

/* ---- check_sample.c: a deterministic choice of chunks; pure ---- */

struct check_chunk {
	uint32_t dataset; /* object number */
	uint64_t number;
	uint64_t size;	 /* stored bytes */
	bool probed;	 /* it is not known whether the chunk is stored, nor its size */
	bool only_place; /* see struct chunk_request */
};
enum { CHECK_SAMPLE = 1000, CHECK_SAMPLE_EACH = 64 /* of one dataset */ };

struct check_ranked {
	struct check_chunk chunk;
	uint64_t rank; /* the lowest are chosen */
};
/* A zeroed sample is empty. The first and the last chunk of a dataset are chosen before others. */
struct check_sample {
	struct check_ranked each[CHECK_SAMPLE_EACH]; /* of the current dataset */
	uint32_t neach;
	struct check_chunk first, last;
	uint64_t seen; /* number of chunks of the current dataset */
	struct check_ranked chosen[2 * CHECK_SAMPLE + CHECK_SAMPLE_EACH];
	uint32_t n;
};
/* Adds a chunk. The chunks of one dataset must be added one after the other, in any order. */
void check_sample_add(struct check_sample *s, const struct check_chunk *chunk);
/* Copies the sample to out[CHECK_SAMPLE], by dataset and number, and returns its size. */
uint32_t check_sample_take(struct check_sample *s, struct check_chunk *out);

/* ---- one domain ---- */

struct check_image;

struct domain_check {
	struct check *c;
	struct engine *e;
	struct domain *d;
	const struct tree *tree;
	struct object_paths *paths;
	struct check_image *image; /* NULL if it could not be made or read */
	/* The last dataset whose HDF5 file was found to be lost, and the finding about it. */
	uint32_t lost;
	char *lost_why;
};
/* Returns the decoded bytes of the stored chunks of a dataset, or of all chunks if it is not known
 * which ones are stored. */
uint64_t check_chunk_bytes(const struct domain_check *dc, uint32_t number);
/* If the domain has been removed since it was looked up, it has no result. */
int check_domain(struct check *c, struct engine *e, const struct names_node *n);
int check_links(struct domain_check *dc);
/* dir is the directory of the domain in the mount. */
int check_external_links(struct domain_check *dc, const char *dir);
/* Reports an import that is to replace the domain. */
int check_import(struct domain_check *dc);
/* Reports each import to a path below a directory at which there is no domain yet, with a result of
 * its own. dir is the path in the bucket; "" stands for all imports. */
int check_imports(struct check *c, struct engine *e, const char *dir);
/* Does the same for the import to a path at which there is no domain. *found becomes true if an
 * import was reported. */
int check_import_of(struct check *c, struct engine *e, const char *path, bool *found);
/* Reports each storage to which nothing leads, with a result of its own. */
int check_storages(struct check *c, struct engine *e);
/* Reports each upload in parts that is not finished, with a result of its own. */
int check_uploads(struct check *c, struct engine *e);
/* Reports each temporary file of a directory bucket, with a result of its own. */
int check_temps(struct check *c, struct engine *e);
/* Reports keys below the domain's prefix, and checks the chunks. */
int check_keys(struct domain_check *dc);
/* Does the same for a domain of a schema with marks, whose keys are those below its path. Chunks
 * are decoded only if all of them are. */
int check_store(struct domain_check *dc);
/* An object, and the directory of its document with a slash at its end. */
struct check_prefix {
	const char *prefix;
	uint32_t number;
};
/* Compares two of them by their prefixes, for qsort(3) and bsearch(3). */
int check_prefix_compare(const void *x, const void *y);
/* Adds an object to v[*n], unless its document has no key. The text is in the arena. */
int check_prefix_add(struct domain_check *dc, struct arena *arena, uint32_t number,
		     struct check_prefix *v, uint32_t *n);
/* Calls fn for each key with a prefix, page by page, in their order. If the keys cannot be listed,
 * *refused becomes the code and *why the reason. Returns the result of fn, or -ENOMEM. */
int check_list(struct check *c, struct engine *e, const char *prefix,
	       int (*fn)(void *ctx, const struct store_item *item), void *ctx, int *refused,
	       struct err *why);
/* Reports n chunks that were written after the domain was opened, if there are any. */
int check_appeared(struct check *c, uint64_t n);
/* Checks chunks that no listing shows: those in HDF5 files, or all chunks of the domain. */
int check_grid(struct domain_check *dc, bool only_files);
/* The chunks that are fetched, decoded and compared: those of a sample, or all that were added, if
 * the check is one of all chunks. Zeroed, it has none. */
struct check_choice {
	struct check_sample sample;
	struct check_chunk batch[4096];
	size_t n;
};
/* Adds a chunk. The batch is checked when it is full. A chunk of which only the place is read is no
 * part of a sample. */
int check_choice_add(struct domain_check *dc, struct check_choice *choice,
		     const struct check_chunk *chunk);
/* Checks what was added and is not checked yet. The stored bytes of a sample are expected. */
int check_choice_end(struct domain_check *dc, struct check_choice *choice);

/* Makes the file of the domain and opens it. Sets dc->image if that succeeds. mount_dir is the
 * directory of the file in the mount. */
int check_image_open(struct domain_check *dc, const char *mount_dir);
/* Compares the objects and the chunk indexes of the file with the domain. */
int check_image_compare(struct domain_check *dc);
void check_image_close(struct check_image *ci); /* the argument may be NULL */
/* Compares a chunk that the domain has delivered with the same chunk of the file. */
int check_image_chunk(struct domain_check *dc, const struct check_chunk *chunk,
		      const struct chunk_result *result);

#endif
