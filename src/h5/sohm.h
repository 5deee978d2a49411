/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the file's shared messages, for shared.c. */
#ifndef H5_SOHM_H
#define H5_SOHM_H

#include <h5/format.h>

enum { SOHM_MAX_INDEXES = 8 };

struct sohm_index {
	bool is_btree;
	uint16_t types;	   /* bit n is set for messages of type n */
	uint16_t list_max; /* records for which a list has room */
	uint16_t n;	   /* messages */
	uint64_t records;  /* address of the list or of the B-tree; H5_UNDEF if it is empty */
	uint64_t heap;	   /* address of the fractal heap; H5_UNDEF if it is empty */
};
struct sohm_table {
	unsigned int n;
	struct sohm_index indexes[SOHM_MAX_INDEXES];
};

/* Reads the master table at f->sohm, which is not H5_UNDEF. Fails with -EIO, also if two indexes
 * hold messages of one type. */
int sohm_read(const struct h5_file *f, struct sohm_table *t, struct err *err);
/* Returns the index that holds messages of a type, or NULL if there is none. */
const struct sohm_index *sohm_find(const struct sohm_table *t, enum h5_msg_type type);
/* Returns the bytes of the master table. */
uint64_t sohm_size(const struct h5_file *f);
/* Checks the records of an index, and claims them. */
int sohm_check(const struct h5_file *f, const struct sohm_index *x, struct err *err);

#endif
