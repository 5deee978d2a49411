/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two hash tables: of the inodes by number, and of the names by path. A name has the list of its
 * inodes, one for each version that the kernel knows, so a file is renamed or removed without
 * looking at other files. A name that is removed leaves the table, and exists as long as its
 * inodes. Other names of plain objects exist somewhat longer: between a stat and an open for
 * writing, the kernel forgets the inode, and both must show the same number.
 *
 * When an inode adopts a version, another inode can have the same path and version already. Both
 * serve the same bytes, and look-ups find the other inode, which comes first in the list.
 */
/* If memory runs out, uthash leaves the `tbl` of the new element NULL instead of calling exit(). */
#define HASH_NONFATAL_OOM 1
#include "inodes.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#include <base/clock.h>
#include <base/mem.h>

struct name {
	char *path; /* heap */
	struct inode *inodes;
	uint64_t shown; /* see struct inode: that of its plain object or draft, or 0 if it has
			 * none */
	bool in_table;
	bool is_kept; /* it has no inodes, and is in inodes->kept */
	struct name *prev, *next;
	UT_hash_handle by_path;
};

enum { KEPT_MAX = 256 };

struct inode {
	uint64_t ino;
	uint64_t shown; /* the number that programs see */
	uint64_t nlookup;
	uint64_t looked_up_ns; /* the latest time, by clock_ns() */
	struct engine_stat st;
	uint64_t told; /* the size that the kernel has got */
	UT_hash_handle by_ino;
	struct name *name;
	uint64_t opens; /* inodes_adopt() without inodes_close() */
	bool renamed;	/* the inode was renamed since it has its version */
	bool replaced;	/* look-ups do not find it any more, although its name is in the table */
	struct inode *prev, *next; /* in name->inodes */
};

struct inodes {
	pthread_mutex_t lock;
	struct inode *by_ino;
	struct name *by_path;
	struct name *kept; /* the oldest one first */
	unsigned int nkept;
	uint64_t last;
};

static struct inode *find_ino_locked(struct inodes *t, uint64_t ino)
{
	struct inode *i = NULL;
	HASH_FIND(by_ino, t->by_ino, &ino, sizeof(ino), i);
	return i;
}

static struct name *find_name_locked(struct inodes *t, const char *path)
{
	struct name *n = NULL;
	HASH_FIND(by_path, t->by_path, path, strlen(path), n);
	return n;
}

static bool add_name_locked(struct inodes *t, struct name *n)
{
	HASH_ADD_KEYPTR(by_path, t->by_path, n->path, strlen(n->path), n);
	n->in_table = n->by_path.tbl != NULL;
	return n->in_table;
}

static void remove_name_locked(struct inodes *t, struct name *n)
{
	if (n->in_table)
		HASH_DELETE(by_path, t->by_path, n);
	n->in_table = false;
}

static void unkeep_locked(struct inodes *t, struct name *n)
{
	if (!n->is_kept)
		return;
	DL_DELETE(t->kept, n);
	t->nkept--;
	n->is_kept = false;
}

static void free_name_locked(struct inodes *t, struct name *n)
{
	unkeep_locked(t, n);
	remove_name_locked(t, n);
	free(n->path);
	free(n);
}

static void drop_empty_locked(struct inodes *t, struct name *n)
{
	if (n->inodes || (n->is_kept && n->in_table))
		return;
	if (!n->in_table || !n->shown) {
		free_name_locked(t, n);
		return;
	}
	DL_APPEND(t->kept, n);
	n->is_kept = true;
	if (++t->nkept > KEPT_MAX)
		free_name_locked(t, t->kept);
}

/* Finds the name or makes it. Returns NULL if out of memory. */
static struct name *get_name_locked(struct inodes *t, const char *path)
{
	struct name *n = find_name_locked(t, path);
	if (n)
		return n;
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	n->path = strdup(path);
	if (n->path && add_name_locked(t, n))
		return n;
	free(n->path);
	free(n);
	return NULL;
}

static struct inode *find_version(const struct name *n, uint64_t version)
{
	struct inode *i;
	DL_FOREACH(n->inodes, i)
	{
		if (i->st.version == version && !i->replaced)
			return i;
	}
	return NULL;
}

static struct inode *add_inode_locked(struct inodes *t, struct name *n,
				      const struct engine_stat *st)
{
	struct inode *i = calloc(1, sizeof(*i));
	if (!i)
		return NULL;
	i->ino = t->last + 1;
	i->shown = st->kind == ENGINE_PLAIN && n->shown ? n->shown : i->ino;
	i->st = *st;
	i->name = n;
	HASH_ADD(by_ino, t->by_ino, ino, sizeof(i->ino), i);
	if (!i->by_ino.tbl) {
		free(i);
		return NULL;
	}
	t->last++;
	unkeep_locked(t, n);
	DL_APPEND(n->inodes, i);
	return i;
}

static void remove_inode_locked(struct inodes *t, struct inode *i)
{
	struct name *n = i->name;
	DL_DELETE(n->inodes, i);
	HASH_DELETE(by_ino, t->by_ino, i);
	free(i);
	drop_empty_locked(t, n);
}

/* Finds the inode of a path and version, or makes it. Returns NULL if out of memory. */
static struct inode *get_inode_locked(struct inodes *t, const char *path,
				      const struct engine_stat *st)
{
	struct name *n = get_name_locked(t, path);
	struct inode *i = n ? find_version(n, st->version) : NULL;
	/* An inode cannot change from a file to a directory. */
	if (i && i->st.kind != st->kind) {
		i->replaced = true;
		i = NULL;
	}
	if (n && !i)
		i = add_inode_locked(t, n, st);
	if (n && !i)
		drop_empty_locked(t, n);
	if (i)
		n->shown = st->kind == ENGINE_PLAIN ? i->shown : 0;
	return i;
}

struct inodes *inodes_new(void)
{
	const struct engine_stat root = {.kind = ENGINE_DIR};
	struct inodes *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->last = INODES_ROOT - 1;
	struct inode *i = get_inode_locked(t, "", &root);
	if (!i) {
		free(t);
		return NULL;
	}
	i->nlookup = 1; /* for the mount */
	pthread_mutex_init(&t->lock, NULL);
	return t;
}

void inodes_free(struct inodes *t)
{
	if (!t)
		return;
	struct inode *i, *next;
	HASH_ITER (by_ino, t->by_ino, i, next) {
		remove_inode_locked(t, i);
	}
	while (t->kept)
		free_name_locked(t, t->kept);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

uint64_t inodes_look_up(struct inodes *t, const char *path, const struct engine_stat *st)
{
	uint64_t ino = 0;
	pthread_mutex_lock(&t->lock);
	struct inode *i = get_inode_locked(t, path, st);
	if (i) {
		i->nlookup++;
		i->looked_up_ns = clock_ns();
		i->st = *st; /* the version is the same, but the mode can have changed */
		i->told = st->size;
		ino = i->ino;
	}
	pthread_mutex_unlock(&t->lock);
	return ino;
}

void inodes_forget(struct inodes *t, uint64_t ino, uint64_t nlookup)
{
	pthread_mutex_lock(&t->lock);
	struct inode *i = find_ino_locked(t, ino);
	if (i && i->ino != INODES_ROOT) {
		i->nlookup -= nlookup < i->nlookup ? nlookup : i->nlookup;
		if (i->nlookup == 0)
			remove_inode_locked(t, i);
	}
	pthread_mutex_unlock(&t->lock);
}

void inodes_remove(struct inodes *t, const char *path)
{
	pthread_mutex_lock(&t->lock);
	struct name *n = find_name_locked(t, path);
	if (n) {
		remove_name_locked(t, n);
		drop_empty_locked(t, n);
	}
	pthread_mutex_unlock(&t->lock);
}

/* Gives the inodes of `from` the name `to`, which a look-up has made since it was removed. */
static void merge_locked(struct inodes *t, struct name *to, struct name *from)
{
	struct inode *i;
	if (from->inodes)
		unkeep_locked(t, to);
	DL_FOREACH(from->inodes, i)
	{
		i->name = to;
	}
	DL_CONCAT(to->inodes, from->inodes);
	to->shown = from->shown;
	from->inodes = NULL;
	drop_empty_locked(t, from);
}

static bool is_dir(const struct name *n)
{
	return n && n->inodes && n->inodes->st.kind == ENGINE_DIR;
}

static void rename_locked(struct inodes *t, const char *from, const char *to)
{
	char *path = strdup(to);
	struct name *n = find_name_locked(t, from), *other = find_name_locked(t, to);
	if (n && n != other) {
		struct inode *i;
		DL_FOREACH(n->inodes, i)
		{
			i->renamed = i->st.kind != ENGINE_DIR;
		}
		remove_name_locked(t, n);
		if (path) {
			free(n->path);
			n->path = path;
			path = NULL;
		}
		/* If this fails for lack of memory, the next look-up makes another inode. */
		if (strcmp(n->path, to) == 0 && other)
			merge_locked(t, other, n);
		else if (strcmp(n->path, to) == 0)
			add_name_locked(t, n);
	}
	free(path);
}

/* The kernel keeps its inodes of what is in a directory that is renamed. If memory runs out, the
 * next look-up makes others. */
static void rename_below_locked(struct inodes *t, const char *from, const char *to)
{
	const size_t n = strlen(from);
	char **below = NULL;
	size_t count = 0;
	struct name *name, *next;
	HASH_ITER (by_path, t->by_path, name, next) {
		if (strncmp(name->path, from, n) != 0 || name->path[n] != '/')
			continue;
		char **grown = array_grow(below, count, sizeof(*grown));
		if (!grown)
			break;
		below = grown;
		below[count] = strdup(name->path);
		count += below[count] != NULL;
	}
	for (size_t i = 0; i < count; i++) {
		auto_free char *path = NULL;
		if (asprintf(&path, "%s%s", to, below[i] + n) < 0)
			path = NULL;
		if (path)
			rename_locked(t, below[i], path);
		free(below[i]);
	}
	free(below);
}

void inodes_rename(struct inodes *t, const char *from, const char *to)
{
	pthread_mutex_lock(&t->lock);
	if (is_dir(find_name_locked(t, from)))
		rename_below_locked(t, from, to);
	rename_locked(t, from, to);
	pthread_mutex_unlock(&t->lock);
}

int inodes_get(struct inodes *t, uint64_t ino, struct inode_view *out)
{
	int rc = -ESTALE;
	pthread_mutex_lock(&t->lock);
	const struct inode *i = find_ino_locked(t, ino);
	if (i) {
		*out = (struct inode_view){.ino = ino,
					   .path = strdup(i->name->path),
					   .is_open = i->opens > 0,
					   .looked_up_ns = i->looked_up_ns,
					   .st = i->st};
		rc = out->path ? 0 : -ENOMEM;
	}
	pthread_mutex_unlock(&t->lock);
	return rc;
}

void inodes_set_blocks(struct inodes *t, uint64_t ino, const struct engine_stat *st)
{
	pthread_mutex_lock(&t->lock);
	struct inode *i = find_ino_locked(t, ino);
	if (i && i->st.version == st->version)
		i->st.blocks = st->blocks;
	pthread_mutex_unlock(&t->lock);
}

uint64_t inodes_shown(struct inodes *t, uint64_t ino)
{
	pthread_mutex_lock(&t->lock);
	const struct inode *i = find_ino_locked(t, ino);
	const uint64_t shown = i ? i->shown : ino;
	pthread_mutex_unlock(&t->lock);
	return shown;
}

/* Returns whether the old version differs from this one in nothing that a program can have seen. */
static bool may_renew(const struct inode *i, const struct engine_stat *st)
{
	return i->renamed && i->opens == 0 && !i->st.draft && !st->draft && i->st.size == st->size;
}

static enum inodes_adopted adopt_locked(struct inode *i, const struct engine_stat *st)
{
	if (i->st.version == st->version)
		return INODES_SAME;
	const bool is_new = i->st.version == 0 && !st->draft;
	if (!is_new && !may_renew(i, st))
		return INODES_OTHER;
	i->st = *st;
	i->renamed = false;
	/* Another inode that has this version comes first. */
	DL_DELETE(i->name->inodes, i);
	DL_APPEND(i->name->inodes, i);
	return is_new ? INODES_SAME : INODES_RENEWED;
}

enum inodes_adopted inodes_adopt(struct inodes *t, uint64_t ino, const struct engine_stat *st)
{
	pthread_mutex_lock(&t->lock);
	struct inode *i = find_ino_locked(t, ino);
	const enum inodes_adopted adopted = i ? adopt_locked(i, st) : INODES_OTHER;
	if (adopted != INODES_OTHER)
		i->opens++;
	pthread_mutex_unlock(&t->lock);
	return adopted;
}

void inodes_close(struct inodes *t, uint64_t ino)
{
	pthread_mutex_lock(&t->lock);
	struct inode *i = find_ino_locked(t, ino);
	if (i && i->opens)
		i->opens--;
	pthread_mutex_unlock(&t->lock);
}

void inodes_told(struct inodes *t, uint64_t ino, uint64_t size)
{
	pthread_mutex_lock(&t->lock);
	struct inode *i = find_ino_locked(t, ino);
	if (i)
		i->told = size;
	pthread_mutex_unlock(&t->lock);
}

bool inodes_has_size(struct inodes *t, uint64_t ino, uint64_t size)
{
	pthread_mutex_lock(&t->lock);
	const struct inode *i = find_ino_locked(t, ino);
	const bool has = i && i->told == size;
	pthread_mutex_unlock(&t->lock);
	return has;
}

bool inodes_get_dir(struct inodes *t, const char *path, struct engine_stat *st)
{
	pthread_mutex_lock(&t->lock);
	const struct name *n = find_name_locked(t, path);
	const struct inode *i = n ? find_version(n, 0) : NULL;
	const bool found = i && i->st.kind == ENGINE_DIR;
	if (found)
		*st = i->st;
	pthread_mutex_unlock(&t->lock);
	return found;
}
