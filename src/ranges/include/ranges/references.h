/* SPDX-License-Identifier: Apache-2.0 */
/* HDF5 files that have data of a domain: objects of which ranges are read, and their chunk indexes.
 * See ranges/ranges.h for threading. */
#ifndef RANGES_REFERENCES_H
#define RANGES_REFERENCES_H

#include <data/filter.h>
#include <data/reference.h>
#include <ranges/ranges.h>

/* ---- ref_file.c: a file ---- */

struct ref_file;

/* Returns the file of a reference, which lives as long as the domain. Returns NULL with err set to
 * an error of file_finder.resolve, or to -EIO if the URI is not valid or the recorded version is
 * not that of another reference to the file. */
struct ref_file *ref_file_find(struct ranges *all, const struct reference_file *recorded,
			       struct err *err);
/* Returns the object to read ranges of. Its name is the URI. */
struct range_object *ref_file_object(struct ref_file *f);

/* ---- ref_index.c: the chunk index of a file ---- */

struct ref_place {
	bool stored;
	uint64_t offset, size; /* in the file */
	uint32_t filter_mask;
	const struct pipeline *pipeline; /* of the file; lives as long as the domain */
};

/* A search in the chunk index of the file, in the caller's memory until done is called. */
struct ref_search {
	struct ref_file *file;
	uint32_t dataset;   /* of the domain */
	uint64_t number;    /* of the chunk in its grid */
	const char *h5path; /* of the dataset in the file; NULL if it is that in the domain */
	bool prefetch;
	void (*done)(struct ref_search *s, int code, const struct ref_place *place,
		     const struct err *err);
	void *arg;
	struct ref_search *next; /* private */
};
void ref_index_find(struct ref_search *s);
/* Returns the pipeline of the file's dataset if an earlier search has found it, otherwise NULL. */
const struct pipeline *ref_index_pipeline(struct ref_file *f, uint32_t dataset);

#endif
