/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of texts, such as the keys that a loader still has to read. */
#ifndef ZARR_TEXT_LIST_H
#define ZARR_TEXT_LIST_H

#include <stdint.h>

#include <hsmount/err.h>

#include <base/mem.h>

struct zarr_list {
	struct bytes pointers; /* of the texts, which are on the heap */
	char **v;	       /* the same */
	uint32_t n;
};

void zarr_list_clear(struct zarr_list *l);
/* Adds a text, and takes it over, also on failure. Fails with -ENOMEM, also if the text is NULL. */
int zarr_list_push(struct zarr_list *l, char *text, struct err *err);

#endif
