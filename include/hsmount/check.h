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
	ENGINE_CHECK_NOTE,	 /* nothing is wrong, but something is unusual */
	ENGINE_CHECK_SEVERITIES
};
/* Returns "error", "unchecked", "unfinished", "warning" or "note". */
const char *engine_check_severity_name(enum engine_check_severity severity);
struct engine_check_finding {
	enum engine_check_severity severity;
	const char *path;   /* the path of the domain or file */
	const char *object; /* the path of the HDF5 object; "" if the finding concerns none */
	const char *key;    /* the key in the bucket; "" if the finding concerns none */
	const char *text;   /* what was found, for a person */
};
/* What a check has counted in one domain or file. */
struct engine_check_result {
	const char *path;
	uint64_t findings[ENGINE_CHECK_SEVERITIES]; /* the number of findings of each severity */
	uint64_t omitted;	/* findings after the first 10,000, which were not reported */
	uint64_t objects;	/* HDF5 objects */
	uint64_t chunks, bytes; /* stored chunks, and their stored bytes */
	uint64_t decoded, decoded_bytes; /* chunks that were read and decoded; their stored bytes */
};
enum engine_check_outcome {
	ENGINE_CHECK_SOUND,	   /* none of the following applies */
	ENGINE_CHECK_DAMAGED,	   /* there are errors */
	ENGINE_CHECK_NOT_CHECKED,  /* something could not be checked */
	ENGINE_CHECK_NOT_FINISHED, /* an import to the path has not ended */
	ENGINE_CHECK_OUTCOMES
};
/* Returns the outcome of a result. If several apply, damaged comes before unchecked, and unchecked
 * before unfinished. */
enum engine_check_outcome engine_check_outcome(const struct engine_check_result *r);
/* Returns "sound", "damaged", "unchecked" or "unfinished". */
const char *engine_check_outcome_name(enum engine_check_outcome outcome);
/* Receives what a check finds. The functions are called in the thread that checks. If one returns
 * non-zero, the check ends and returns that. */
struct engine_check_sink {
	int (*finding)(void *arg, const struct engine_check_finding *f);
	/* Is called after the findings of each domain or file. */
	int (*result)(void *arg, const struct engine_check_result *r);
	/* Is called with the bytes of the chunks that are done, and of all chunks to check as far
	 * as is known. At the end of a domain or file both are the same. It may be NULL. */
	void (*progress)(void *arg, uint64_t done, uint64_t total);
	void *arg;
};
/* Checks a domain, or every domain below a directory: its documents, links and keys, the sizes of
 * its chunks, and that the HDF5 file that is rendered from the domain has the content of the
 * domain. It decodes a sample of the chunks, or each one if `all` is true. It never writes. Damage
 * is no error: it is a finding. The function fails if the path is no domain or directory, or if it
 * does not exist and no unfinished import has this path. It fails with -ENOMEM, and if the sink
 * ends the check, with what the sink has returned. */
int engine_check(struct engine *e, const char *path, bool all, const struct engine_check_sink *sink,
		 struct err *err);
/* Checks an HDF5 file outside of buckets. The function fails if the file cannot be opened or read.
 */
int engine_check_file(const char *file, bool all, const struct engine_check_sink *sink,
		      struct err *err);

#endif
