/* SPDX-License-Identifier: Apache-2.0 */
/* See text_list.h. */
#include "text_list.h"

#include <stdlib.h>

void zarr_list_clear(struct zarr_list *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		free(l->v[i]);
	bytes_release(&l->pointers);
	*l = (struct zarr_list){0};
}

int zarr_list_push(struct zarr_list *l, char *text, struct err *err)
{
	if (!text || bytes_append(&l->pointers, &text, sizeof(text))) {
		free(text);
		return err_no_memory(err);
	}
	l->v = (void *)l->pointers.data;
	l->n++;
	return 0;
}
