/* SPDX-License-Identifier: Apache-2.0 */
/* See text_list.h. */
#include "text_list.h"

#include <stdlib.h>

void zarr_list_clear(struct zarr_list *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
	*l = (struct zarr_list){0};
}

int zarr_list_push(struct zarr_list *l, char *text, struct err *err)
{
	if (text && l->n == l->room) {
		const uint32_t room = l->room ? 2 * l->room : 64;
		char **v = reallocarray(l->v, room, sizeof(*v));
		if (v) {
			l->v = v;
			l->room = room;
		}
	}
	if (!text || l->n == l->room) {
		free(text);
		return err_no_memory(err);
	}
	l->v[l->n++] = text;
	return 0;
}
