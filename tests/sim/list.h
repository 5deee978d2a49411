/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operation that lists the folder of a name, as `ls` does. Each name is judged by itself
 * (model.h): it was there, or was not, at a moment between the beginning and the end of the
 * listing. An entry that is wrong whatever others do is noted at once.
 */
#ifndef SIM_LIST_H
#define SIM_LIST_H

#include <stdbool.h>

#include <hsmount/engine.h>

enum { LIST_ENTRY = 64 };

struct list {
	unsigned int domains; /* bit i: the name i is a domain; what is written is a plain file */
	unsigned int dirs;    /* bit i: there is the folder dir i */
	/* The first entry that nobody has made, or that is out of order; "" if there is none. */
	char wrong[LIST_ENTRY];
	/* While it runs. */
	unsigned int folder;
	char last[LIST_ENTRY];
};

int list_folder(struct list *l, struct engine *e, const char *name, struct err *err);
/* Whether two paths are in one folder. */
bool list_is_beside(const char *path, const char *other);

#endif
