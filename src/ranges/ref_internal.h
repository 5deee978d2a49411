/* SPDX-License-Identifier: Apache-2.0 */
/* A referenced file, shared by ref_file.c and ref_index.c. */
#ifndef RANGES_REF_INTERNAL_H
#define RANGES_REF_INTERNAL_H

#include <base/source.h>
#include <ranges/file_finder.h>
#include <ranges/references.h>
#include <store/store.h>
#include <uthash.h>

/* The searches in the index of one file run one after the other, because the source of the decoder
 * belongs to one thread at a time. */
struct ref_index {
	struct ref_search *first, *last; /* waiting searches; under the lock of struct ranges */
	bool running;			 /* a thread runs the first one; under the same lock */
	/* The rest belongs to that thread. */
	struct source_paged *pages; /* NULL if nothing has been read */
	struct source source;	    /* of the pages; it takes the decoder's advice */
	uint64_t kept;		    /* bytes of the pages */
	struct budget_charge charge;
	uint32_t open; /* datasets that are open */
	struct {
		uint64_t offset, n;
	} advised[32];
	uint32_t nadvised;
	struct index_read *reads; /* of the current round */
	uint32_t nreads;
	atomic_uint pending; /* reads without an answer, and one for the thread that submits them */
};

struct ref_file {
	struct range_object object;
	char *uri;
	struct found_file found;
	struct ref_dataset *datasets; /* uthash, by number; under the lock */
	struct ref_index index;
	void (*release_index)(struct ref_file *f); /* NULL if it has not been used */
	struct budget_charge charge;		   /* of the file and its datasets */
	UT_hash_handle hh;
};

/* Charges n more bytes to the budget, until the domain is freed. One thread at a time. */
int ref_file_charge(struct ref_file *f, uint64_t n, struct err *err);

#endif
