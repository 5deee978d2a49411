/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the image of a domain has data that the domain does not store: it refers to them in another
 * file, or computes them. No program can change them, so a write to them fails. A library may
 * ignore that, and give their place to another dataset after it has removed this one. So what was
 * refused is noted: the commit then requires that the dataset is still there.
 *
 * A commit that has removed such a dataset frees its place. Any thread may use all functions but
 * linked_data_free().
 */
#ifndef DRAFTS_LINKED_DATA_H
#define DRAFTS_LINKED_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>

struct domain;
struct draft;
struct image;
struct linked_data;
struct update_base;

/* Borrows the image. Returns NULL if out of memory. */
struct linked_data *linked_data_new(const struct domain *d, const struct image *img);
void linked_data_free(struct linked_data *l); /* l may be NULL */

/* Checks a change of n bytes of the file. bytes is the draft, or NULL if nothing was changed yet.
 * If the file still has such data there, fails with -EROFS, and notes the dataset. *is_first is set
 * if this is the first such failure for the dataset. */
int linked_data_check(struct linked_data *l, struct draft *bytes, uint64_t offset, uint64_t n,
		      bool *is_first, struct err *err);
/* For update_options.must_stay: returns whether a write to the data of a dataset was refused. */
bool linked_data_is_refused(void *l, uint32_t number);
/* To be called after a commit: frees the places of the datasets that it has removed. */
void linked_data_committed(struct linked_data *l, const struct update_base *base);

#endif
