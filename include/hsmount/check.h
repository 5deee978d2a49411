/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks domains of a bucket, and HDF5 files outside of buckets. For errors and threads, see
 * engine.h.
 */
#ifndef HSMOUNT_CHECK_H
#define HSMOUNT_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include <hsmount/engine.h>
#include <hsmount/err.h>

/* What a check finds. */
enum engine_check_severity {
	ENGINE_CHECK_ERROR,	 /* something is damaged */
	ENGINE_CHECK_UNCHECKED,	 /* something could not be checked, such as a request that failed */
	ENGINE_CHECK_UNFINISHED, /* an import has not ended: readers do not see its domain */
	ENGINE_CHECK_WARNING,	 /* nothing is damaged, but a person should look at it */
	ENGINE_CHECK_NOTE,
	ENGINE_CHECK_SEVERITIES
};
/* "error", "unchecked", "unfinished", "warning", "note". */
const char *engine_check_severity_name(enum engine_check_severity severity);
struct engine_check_finding {
	enum engine_check_severity severity;
	const char *path;   /* of the domain or file */
	const char *object; /* path of the HDF5 object; "": none in particular */
	const char *key;    /* in the bucket; "": none in particular */
	const char *text;
};
/* The result for one domain or file: the first of these that applies. Damaged: there are errors.
 * Unchecked: something could not be checked. Unfinished: an import to its path has not ended.
 * Sound. */
struct engine_check_result {
	const char *path;
	uint64_t findings[ENGINE_CHECK_SEVERITIES];
	uint64_t omitted;	/* findings after the first 10,000, which were not reported */
	uint64_t objects;	/* HDF5 objects */
	uint64_t chunks, bytes; /* stored chunks, and their stored bytes */
	uint64_t decoded, decoded_bytes; /* chunks that were read and decoded; their stored bytes */
};
enum engine_check_outcome {
	ENGINE_CHECK_SOUND,
	ENGINE_CHECK_DAMAGED,
	ENGINE_CHECK_NOT_CHECKED,
	ENGINE_CHECK_NOT_FINISHED,
	ENGINE_CHECK_OUTCOMES
};
enum engine_check_outcome engine_check_outcome(const struct engine_check_result *r);
/* "sound", "damaged", "unchecked", "unfinished". */
const char *engine_check_outcome_name(enum engine_check_outcome outcome);
/* Called in the thread that checks. If a function returns non-zero, the check ends and returns
 * that. */
struct engine_check_sink {
	int (*finding)(void *arg, const struct engine_check_finding *f);
	/* After the findings of each domain or file. */
	int (*result)(void *arg, const struct engine_check_result *r);
	/* Stored bytes that were decoded, and bytes to decode as far as is known. NULL: not
	 * needed. */
	void (*progress)(void *arg, uint64_t done, uint64_t total);
	void *arg;
};
/* Checks a domain, or every domain below a directory: documents, links, keys, sizes of chunks, the
 * bytes of chunks (of a sample; with all: of each one), and that the HDF5 file that is rendered
 * from the domain has the content of the domain. Never writes. Damage is no error: it is a finding.
 * Fails if the path does not exist, unless an import to it is not finished, or is no domain or
 * directory; with -ENOMEM, or as the sink does. */
int engine_check(struct engine *e, const char *path, bool all, const struct engine_check_sink *sink,
		 struct err *err);
/* Checks an HDF5 file outside of buckets. Fails if it cannot be opened or read. */
int engine_check_file(const char *file, bool all, const struct engine_check_sink *sink,
		      struct err *err);

#endif
