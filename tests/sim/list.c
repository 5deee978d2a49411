/* SPDX-License-Identifier: Apache-2.0 */
/* See list.h. No state. */
#include "list.h"

#include <stdio.h>
#include <string.h>

#include "history.h"

static unsigned int folder_of(const char *path)
{
	return (unsigned int)(path[1] - '0');
}

bool list_is_beside(const char *path, const char *other)
{
	return folder_of(path) == folder_of(other);
}

/* Notes an entry. Returns whether it may be there. */
static bool note(struct list *l, const char *entry, enum engine_kind kind)
{
	char path[LIST_ENTRY + 8];
	unsigned int dir;
	snprintf(path, sizeof(path), "f%u/%s", l->folder, entry);
	for (unsigned int i = 0; i < NAMES_MAX; i++)
		if (strcmp(path, history_names[i]) == 0) {
			l->domains |= (kind == ENGINE_DOMAIN) << i;
			return kind != ENGINE_DIR;
		}
	if (sscanf(entry, "dir%u", &dir) == 1 && dir < NAMES_MAX) {
		l->dirs |= 1u << dir;
		return kind == ENGINE_DIR;
	}
	return strncmp(entry, "held", 4) == 0; /* of hold.h */
}

static int take_entry(void *arg, const char *entry, enum engine_kind kind)
{
	struct list *l = arg;
	const bool is_next = strcmp(l->last, entry) < 0;
	if ((!note(l, entry, kind) || !is_next) && !l->wrong[0])
		snprintf(l->wrong, sizeof(l->wrong), "%s", entry);
	snprintf(l->last, sizeof(l->last), "%s", entry);
	return 0;
}

int list_folder(struct list *l, struct engine *e, const char *name, struct err *err)
{
	char folder[LIST_ENTRY];
	*l = (struct list){.folder = folder_of(name)};
	snprintf(folder, sizeof(folder), "f%u", l->folder);
	return engine_list(e, folder, take_entry, l, err);
}
