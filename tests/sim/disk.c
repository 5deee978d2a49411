/* SPDX-License-Identifier: Apache-2.0 */
/* See disk.h: what a disk has, and what it has not yet. */
#include "disk_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHAINS = 1024, FILE_MAX = 1 << 28 };

/* The nodes of all disks, by the numbers of their files: a call has only a descriptor. */
static struct node *chains[CHAINS];
static _Thread_local struct disk *used;

void disk_give_up(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	abort();
}

void *disk_more(void *p, size_t n, size_t size)
{
	/* Its size doubles. */
	if (n & (n - 1))
		return p;
	p = realloc(p, (n ? 2 * n : 1) * size);
	if (!p)
		abort();
	return p;
}

static char *copy_text(const char *text)
{
	char *copy = strdup(text);
	if (!copy)
		abort();
	return copy;
}

void disk_path_in(char out[DISK_PATH], const char *dir, const char *name)
{
	if (snprintf(out, DISK_PATH, "%s/%s", dir, name) >= DISK_PATH)
		disk_give_up("%s/%s: too long", dir, name);
}

/* ---- entries of a directory ---- */

/* Where the name is or belongs. */
static size_t entries_find(const struct entries *e, const char *name, bool *found)
{
	size_t low = 0, high = e->n;
	*found = false;
	while (low < high && !*found) {
		const size_t middle = low + (high - low) / 2;
		const int order = strcmp(e->at[middle].name, name);
		*found = order == 0;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return high;
}

struct node *entries_get(const struct entries *e, const char *name)
{
	bool found;
	const size_t i = entries_find(e, name, &found);
	return found ? e->at[i].node : NULL;
}

void entries_set(struct entries *e, const char *name, struct node *node)
{
	bool found;
	const size_t i = entries_find(e, name, &found);
	if (!found) {
		e->at = disk_more(e->at, e->n, sizeof(*e->at));
		memmove(e->at + i + 1, e->at + i, (e->n - i) * sizeof(*e->at));
		e->at[i].name = copy_text(name);
		e->n++;
	}
	e->at[i].node = node;
}

void entries_remove(struct entries *e, const char *name)
{
	bool found;
	const size_t i = entries_find(e, name, &found);
	if (!found)
		disk_give_up("%s: this name is not there", name);
	free(e->at[i].name);
	e->n--;
	memmove(e->at + i, e->at + i + 1, (e->n - i) * sizeof(*e->at));
}

void entries_release(struct entries *e)
{
	for (size_t i = 0; i < e->n; i++)
		free(e->at[i].name);
	free(e->at);
	*e = (struct entries){0};
}

void entries_copy(struct entries *to, const struct entries *from)
{
	entries_release(to);
	for (size_t i = 0; i < from->n; i++)
		entries_set(to, from->at[i].name, from->at[i].node);
}

/* ---- nodes ---- */

static struct node **chain_of(dev_t dev, ino_t ino)
{
	return &chains[(ino * 31 + dev) % CHAINS];
}

struct node *disk_find(const struct stat *st)
{
	struct node *node = *chain_of(st->st_dev, st->st_ino);
	while (node && (node->ino != st->st_ino || node->dev != st->st_dev))
		node = node->next_of_chain;
	return node;
}

void disk_unbind(struct node *node)
{
	struct node **at = chain_of(node->dev, node->ino);
	if (!node->ino)
		return;
	while (*at != node)
		at = &(*at)->next_of_chain;
	*at = node->next_of_chain;
	node->ino = 0;
}

void disk_bind(struct node *node, const struct stat *st)
{
	/* The file with this number was removed, and its number is used again. */
	struct node *old = disk_find(st);
	if (old)
		disk_unbind(old);
	disk_unbind(node);
	node->dev = st->st_dev;
	node->ino = st->st_ino;
	struct node **chain = chain_of(node->dev, node->ino);
	node->next_of_chain = *chain;
	*chain = node;
}

struct node *disk_add(struct disk *d, const char *name, const struct stat *st)
{
	struct node *node = calloc(1, sizeof(*node));
	if (!node)
		abort();
	node->disk = d;
	node->is_dir = S_ISDIR(st->st_mode);
	node->name = copy_text(name);
	node->next_of_disk = d->nodes;
	d->nodes = node;
	disk_bind(node, st);
	return node;
}

static void drop_edits(struct node *f)
{
	for (size_t i = 0; i < f->n_edits; i++)
		free(f->edits[i]);
	free(f->edits);
	free(f->flushes);
	f->edits = NULL;
	f->flushes = NULL;
	f->n_edits = f->n_flushes = f->lost = 0;
}

static void free_node(struct node *node)
{
	disk_unbind(node);
	drop_edits(node);
	entries_release(&node->first);
	entries_release(&node->now);
	free(node->bytes);
	free(node->name);
	free(node);
}

void disk_forget(struct disk *d)
{
	for (size_t i = 0; i < d->n_renames; i++) {
		free(d->renames[i].from);
		free(d->renames[i].to);
	}
	free(d->renames);
	for (struct node *node = d->nodes, *next; node; node = next) {
		next = node->next_of_disk;
		free_node(node);
	}
	d->renames = NULL;
	d->n_renames = d->logged = 0;
	d->nodes = d->root = NULL;
}

/* ---- a disk ---- */

static void read_content(struct node *f, const char *path, uint64_t size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	f->bytes = size <= FILE_MAX ? malloc(size + 1) : NULL;
	f->size = size;
	if (fd < 0 || !f->bytes || read(fd, f->bytes, size) != (ssize_t)size)
		disk_give_up("%s cannot be read", path);
	close(fd);
}

static void scan(struct node *dir, const char *path)
{
	DIR *stream = opendir(path);
	if (!stream)
		disk_give_up("%s cannot be read", path);
	for (const struct dirent *e; (e = readdir(stream));) {
		char below[DISK_PATH];
		struct stat st;
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		disk_path_in(below, path, e->d_name);
		if (lstat(below, &st))
			disk_give_up("%s cannot be read", below);
		struct node *node = disk_add(dir->disk, e->d_name, &st);
		entries_set(&dir->first, e->d_name, node);
		if (node->is_dir)
			scan(node, below);
		else
			read_content(node, below, (uint64_t)st.st_size);
	}
	closedir(stream);
}

void disk_scan(struct disk *d)
{
	struct stat st;
	if (stat(d->path, &st) || !S_ISDIR(st.st_mode))
		disk_give_up("%s: no directory", d->path);
	d->root = disk_add(d, "", &st);
	scan(d->root, d->path);
}

struct disk *disk_new(const char *dir)
{
	struct disk *d = calloc(1, sizeof(*d));
	if (!d)
		abort();
	snprintf(d->path, sizeof(d->path), "%s", dir);
	disk_scan(d);
	return d;
}

void disk_free(struct disk *d)
{
	if (!d)
		return;
	if (used == d)
		used = NULL;
	disk_forget(d);
	free(d);
}

void disk_settle(struct disk *d)
{
	disk_forget(d);
	disk_scan(d);
}

void disk_set_hook(struct disk *d, disk_hook *hook, void *ctx)
{
	d->hook = hook;
	d->ctx = ctx;
}

void disk_use(struct disk *d)
{
	used = d;
}

const struct disk *disk_used(void)
{
	return used;
}

/* ---- changes ---- */

void disk_edited(struct node *f, enum edit_kind kind, uint64_t offset, uint64_t n,
		 const void *bytes)
{
	if (offset > FILE_MAX || n > FILE_MAX)
		disk_give_up("%s: too long for a simulation", f->name);
	const size_t taken = kind == EDIT_WRITE ? n : 0;
	struct edit *e = malloc(sizeof(*e) + taken);
	if (!e)
		abort();
	*e = (struct edit){.kind = kind, .offset = offset, .n = n};
	if (taken)
		memcpy(e->bytes, bytes, taken);
	f->edits = disk_more(f->edits, f->n_edits, sizeof(struct edit *));
	f->edits[f->n_edits++] = e;
}

void disk_renamed(struct node *node, struct node *from_dir, const char *from, struct node *to_dir,
		  const char *to)
{
	struct disk *d = node->disk;
	d->renames = disk_more(d->renames, d->n_renames, sizeof(*d->renames));
	d->renames[d->n_renames++] = (struct rename){
		.node = node,
		.from_dir = from_dir,
		.to_dir = to_dir,
		.from = from_dir ? copy_text(from) : NULL,
		.to = to_dir ? copy_text(to) : NULL,
	};
	if (to_dir) {
		free(node->name);
		node->name = copy_text(to);
	}
}

/* ---- synchronisation ---- */

static void resize(struct node *f, uint64_t size)
{
	uint8_t *bytes = realloc(f->bytes, size + 1);
	if (!bytes)
		abort();
	if (size > f->size)
		memset(bytes + f->size, 0, size - f->size);
	f->bytes = bytes;
	f->size = size;
}

static void carry_out(struct node *f, const struct edit *e)
{
	const uint64_t end = e->offset + e->n;
	switch (e->kind) {
	case EDIT_SIZE:
		resize(f, e->offset);
		break;
	case EDIT_WRITE:
		if (end > f->size)
			resize(f, end);
		memcpy(f->bytes + e->offset, e->bytes, e->n);
		break;
	case EDIT_HOLE:
		if (e->offset < f->size)
			memset(f->bytes + e->offset, 0,
			       (end < f->size ? end : f->size) - e->offset);
		break;
	}
}

static void sync_file(struct node *f)
{
	if (f->lost) {
		f->flushes = disk_more(f->flushes, f->n_flushes, sizeof(*f->flushes));
		f->flushes[f->n_flushes++] = (struct flush){f->lost, f->n_edits};
		return;
	}
	for (size_t i = 0; i < f->n_edits; i++)
		carry_out(f, f->edits[i]);
	drop_edits(f);
}

void disk_synced(struct node *node)
{
	struct disk *d = node->disk;
	if (!node->is_dir)
		sync_file(node);
	for (size_t i = 0; i < d->n_renames; i++) {
		struct rename *r = &d->renames[i];
		r->is_synced |= node->is_dir && (r->from_dir == node || r->to_dir == node);
	}
	d->logged = d->n_renames;
}

void disk_sync_failed(struct node *node)
{
	if (!node->is_dir)
		node->lost = node->n_edits;
}
