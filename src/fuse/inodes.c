/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two hash tables over the same inodes: by number, and by path and version. When an inode adopts a
 * version, another inode can have the same path and version already. Both serve the same bytes, and
 * the second table keeps the other inode.
 */
/* If memory runs out, uthash leaves the `tbl` of the new element NULL instead of calling exit(). */
#define HASH_NONFATAL_OOM 1
#include "inodes.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* Of the second table, without padding between the two. */
struct key {
	uint64_t version;
	char path[];
};

struct inode {
	uint64_t ino;
	uint64_t nlookup;
	struct engine_stat st;
	UT_hash_handle by_ino, by_key;
	struct key *key; /* heap */
};

struct inodes {
	pthread_mutex_t lock;
	struct inode *by_ino, *by_key;
	uint64_t last;
};

static unsigned int key_len(const char *path)
{
	return (unsigned int)(sizeof(uint64_t) + strlen(path));
}

static struct key *new_key(const char *path, uint64_t version)
{
	const size_t n = strlen(path) + 1;
	struct key *key = malloc(sizeof(*key) + n);
	if (key) {
		key->version = version;
		memcpy(key->path, path, n);
	}
	return key;
}

static struct inode *new_inode(uint64_t ino, const char *path, const struct engine_stat *st)
{
	struct inode *i = calloc(1, sizeof(*i));
	struct key *key = new_key(path, st->version);
	if (!i || !key) {
		free(i);
		free(key);
		return NULL;
	}
	i->ino = ino;
	i->st = *st;
	i->key = key;
	return i;
}

static void free_inode(struct inode *i)
{
	if (i)
		free(i->key);
	free(i);
}

static struct inode *find_ino_locked(struct inodes *t, uint64_t ino)
{
	struct inode *i = NULL;
	HASH_FIND(by_ino, t->by_ino, &ino, sizeof(ino), i);
	return i;
}

static struct inode *find_key_locked(struct inodes *t, const struct inode *like)
{
	struct inode *i = NULL;
	HASH_FIND(by_key, t->by_key, like->key, key_len(like->key->path), i);
	return i;
}

static bool add_key_locked(struct inodes *t, struct inode *i)
{
	HASH_ADD_KEYPTR(by_key, t->by_key, i->key, key_len(i->key->path), i);
	return i->by_key.tbl != NULL;
}

static void remove_key_locked(struct inodes *t, struct inode *i)
{
	if (find_key_locked(t, i) == i)
		HASH_DELETE(by_key, t->by_key, i);
}

/* False: out of memory, and i is in neither table. */
static bool add_locked(struct inodes *t, struct inode *i)
{
	HASH_ADD(by_ino, t->by_ino, ino, sizeof(i->ino), i);
	if (!i->by_ino.tbl)
		return false;
	if (add_key_locked(t, i))
		return true;
	HASH_DELETE(by_ino, t->by_ino, i);
	return false;
}

struct inodes *inodes_new(void)
{
	const struct engine_stat root = {.kind = ENGINE_DIR};
	struct inodes *t = calloc(1, sizeof(*t));
	struct inode *i = new_inode(INODES_ROOT, "", &root);
	if (!t || !i || !add_locked(t, i)) {
		free(t);
		free_inode(i);
		return NULL;
	}
	i->nlookup = 1; /* for the mount */
	t->last = INODES_ROOT;
	pthread_mutex_init(&t->lock, NULL);
	return t;
}

void inodes_free(struct inodes *t)
{
	if (!t)
		return;
	struct inode *i, *next;
	HASH_CLEAR(by_key, t->by_key);
	HASH_ITER (by_ino, t->by_ino, i, next) {
		HASH_DELETE(by_ino, t->by_ino, i);
		free_inode(i);
	}
	pthread_mutex_destroy(&t->lock);
	free(t);
}

uint64_t inodes_look_up(struct inodes *t, const char *path, const struct engine_stat *st)
{
	struct inode *fresh = new_inode(0, path, st);
	uint64_t ino = 0;
	if (!fresh)
		return 0;
	pthread_mutex_lock(&t->lock);
	struct inode *i = find_key_locked(t, fresh);
	/* An inode cannot change from a file to a directory. */
	if (i && i->st.kind != st->kind) {
		remove_key_locked(t, i);
		i = NULL;
	}
	if (!i) {
		fresh->ino = t->last + 1;
		if (add_locked(t, fresh)) {
			t->last++;
			i = fresh;
			fresh = NULL;
		}
	}
	if (i) {
		i->nlookup++;
		i->st = *st; /* the version is the same, but the mode can have changed */
		ino = i->ino;
	}
	pthread_mutex_unlock(&t->lock);
	free_inode(fresh);
	return ino;
}

void inodes_forget(struct inodes *t, uint64_t ino, uint64_t nlookup)
{
	struct inode *gone = NULL;
	pthread_mutex_lock(&t->lock);
	struct inode *i = find_ino_locked(t, ino);
	if (i && i->ino != INODES_ROOT) {
		i->nlookup -= nlookup < i->nlookup ? nlookup : i->nlookup;
		if (i->nlookup == 0) {
			remove_key_locked(t, i);
			HASH_DELETE(by_ino, t->by_ino, i);
			gone = i;
		}
	}
	pthread_mutex_unlock(&t->lock);
	free_inode(gone);
}

void inodes_remove(struct inodes *t, const char *path)
{
	struct inode *i, *next;
	pthread_mutex_lock(&t->lock);
	HASH_ITER (by_ino, t->by_ino, i, next) {
		if (strcmp(i->key->path, path) == 0)
			remove_key_locked(t, i);
	}
	pthread_mutex_unlock(&t->lock);
}

void inodes_rename(struct inodes *t, const char *from, const char *to)
{
	struct inode *i, *next;
	pthread_mutex_lock(&t->lock);
	HASH_ITER (by_ino, t->by_ino, i, next) {
		struct key *key;
		if (strcmp(i->key->path, from) != 0)
			continue;
		remove_key_locked(t, i);
		key = new_key(to, i->key->version);
		if (!key)
			continue;
		free(i->key);
		i->key = key;
		/* If this fails for lack of memory, the next lookup makes another inode. */
		if (!find_key_locked(t, i))
			add_key_locked(t, i);
	}
	pthread_mutex_unlock(&t->lock);
}

int inodes_get(struct inodes *t, uint64_t ino, struct inode_view *out)
{
	int rc = -ESTALE;
	pthread_mutex_lock(&t->lock);
	const struct inode *i = find_ino_locked(t, ino);
	if (i) {
		*out = (struct inode_view){.ino = ino, .path = strdup(i->key->path), .st = i->st};
		rc = out->path ? 0 : -ENOMEM;
	}
	pthread_mutex_unlock(&t->lock);
	return rc;
}

bool inodes_adopt(struct inodes *t, uint64_t ino, const struct engine_stat *st)
{
	pthread_mutex_lock(&t->lock);
	struct inode *i = find_ino_locked(t, ino);
	bool same = i && i->key->version == st->version;
	if (i && i->key->version == 0) {
		remove_key_locked(t, i);
		i->key->version = st->version;
		i->st = *st;
		/* If this fails for lack of memory, the next lookup makes another inode. */
		if (!find_key_locked(t, i))
			add_key_locked(t, i);
		same = true;
	}
	pthread_mutex_unlock(&t->lock);
	return same;
}
