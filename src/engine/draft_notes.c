/* SPDX-License-Identifier: Apache-2.0 */
/* See draft_notes.h. The hash keeps the order of insertion, so its first entry is the oldest. */
#include "draft_notes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* uthash: a failed insertion leaves the entry's handle without a table. The process goes on. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct note {
	UT_hash_handle hh;
	char *name; /* behind the text */
	char text[];
};

struct draft_notes {
	pthread_mutex_t lock;
	struct note *table; /* guarded by lock */
};

struct draft_notes *draft_notes_new(void)
{
	struct draft_notes *n = calloc(1, sizeof(*n));
	if (n)
		pthread_mutex_init(&n->lock, NULL);
	return n;
}

static void remove_locked(struct draft_notes *n, struct note *note)
{
	if (!note)
		return;
	HASH_DEL(n->table, note);
	free(note);
}

static struct note *find_locked(struct draft_notes *n, const char *name)
{
	struct note *note;
	HASH_FIND_STR(n->table, name, note);
	return note;
}

void draft_notes_free(struct draft_notes *n)
{
	struct note *note, *next;
	if (!n)
		return;
	HASH_ITER (hh, n->table, note, next)
		remove_locked(n, note);
	pthread_mutex_destroy(&n->lock);
	free(n);
}

static void add_locked(struct draft_notes *n, const char *name, const char *text)
{
	const size_t text_n = strlen(text) + 1, name_n = strlen(name) + 1;
	struct note *note = calloc(1, sizeof(*note) + text_n + name_n);
	if (!note)
		return;
	memcpy(note->text, text, text_n);
	note->name = memcpy(note->text + text_n, name, name_n);
	HASH_ADD_KEYPTR(hh, n->table, note->name, name_n - 1, note);
	if (!note->hh.tbl)
		free(note);
	else if (HASH_COUNT(n->table) > DRAFT_NOTES)
		remove_locked(n, n->table);
}

void draft_notes_set(struct draft_notes *n, const char *name, const char *text)
{
	pthread_mutex_lock(&n->lock);
	remove_locked(n, find_locked(n, name));
	if (text)
		add_locked(n, name, text);
	pthread_mutex_unlock(&n->lock);
}

void draft_notes_move(struct draft_notes *n, const char *from, const char *to)
{
	pthread_mutex_lock(&n->lock);
	remove_locked(n, find_locked(n, to));
	struct note *note = find_locked(n, from);
	if (note)
		add_locked(n, to, note->text);
	remove_locked(n, find_locked(n, from));
	pthread_mutex_unlock(&n->lock);
}

char *draft_notes_get(struct draft_notes *n, const char *name)
{
	pthread_mutex_lock(&n->lock);
	const struct note *note = find_locked(n, name);
	char *text = note ? strdup(note->text) : NULL;
	pthread_mutex_unlock(&n->lock);
	return text;
}
