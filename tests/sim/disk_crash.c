/* SPDX-License-Identifier: Apache-2.0 */
/* See disk.h: what a crash leaves. */
#include "disk_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TORN_ONE_IN = 8 };

struct crash {
	struct disk *disk;
	struct rng *random; /* NULL: nothing is lost */
};

/* A moment from `low` to `high`; both ends are frequent. */
static size_t choose(struct rng *r, size_t low, size_t high)
{
	switch (rng_below(r, 4)) {
	case 0:
		return low;
	case 1:
		return high;
	default:
		return low + rng_below(r, (unsigned int)(high - low + 1));
	}
}

/* ---- the content of a file ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Whether the edit changes bytes from `start` to `end`. */
static bool reaches(const struct edit *e, uint64_t start, uint64_t end)
{
	return e->offset < end && (e->kind == EDIT_SIZE || e->offset + e->n > start);
}

/* Whether the edit leaves none of the bytes from `start` to `end`. */
static bool cuts(const struct edit *e, uint64_t start, uint64_t end)
{
	return e->offset <= start &&
	       (e->kind == EDIT_SIZE || (e->kind == EDIT_HOLE && e->offset + e->n >= end));
}

/* Which edits a part of a file has. */
struct moment {
	size_t bytes;	 /* those before this one */
	size_t metadata; /* cuts before this one */
};

/* Makes the bytes from `start` to `end`. */
static void make_bytes(const struct node *f, struct moment at, uint64_t start, uint64_t end,
		       uint8_t *out)
{
	memset(out, 0, end - start);
	if (start < f->size)
		memcpy(out, f->bytes + start, least(f->size, end) - start);
	for (size_t i = 0; i < at.bytes || i < at.metadata; i++) {
		const struct edit *e = f->edits[i];
		if (!reaches(e, start, end) || (i >= at.bytes && e->kind == EDIT_WRITE))
			continue;
		const uint64_t from = e->offset > start ? e->offset : start;
		const uint64_t to = e->kind == EDIT_SIZE ? end : least(e->offset + e->n, end);
		if (e->kind == EDIT_WRITE)
			memcpy(out + (from - start), e->bytes + (from - e->offset), to - from);
		else
			memset(out + (from - start), 0, to - from);
	}
}

static uint64_t size_at(const struct node *f, size_t moment)
{
	uint64_t size = f->size;
	for (size_t i = 0; i < moment; i++) {
		const struct edit *e = f->edits[i];
		if (e->kind == EDIT_SIZE)
			size = e->offset;
		else if (e->kind == EDIT_WRITE && e->offset + e->n > size)
			size = e->offset + e->n;
	}
	return size;
}

/* The moments that the bytes of a page may have: not one before what an fsync() has written, nor
 * one after a cut that is not there. */
static void moments_of(const struct node *f, uint64_t start, size_t metadata, size_t *low,
		       size_t *high)
{
	const uint64_t end = start + DISK_PAGE;
	*low = 0;
	*high = f->n_edits;
	for (size_t i = 0; i < *high; i++) {
		const struct edit *e = f->edits[i];
		for (size_t k = 0; k < f->n_flushes && reaches(e, start, end); k++)
			if (f->flushes[k].from <= i && i < f->flushes[k].to &&
			    f->flushes[k].to > *low)
				*low = f->flushes[k].to;
		if (i >= metadata && cuts(e, start, end))
			*high = i;
	}
}

static void lose_bytes(const struct node *f, struct rng *r, size_t metadata, uint64_t size,
		       uint8_t *out)
{
	const unsigned int habit = rng_below(r, 4); /* all pages are old, or new, or some */
	for (uint64_t start = 0; start < size; start += DISK_PAGE) {
		size_t low, high;
		moments_of(f, start, metadata, &low, &high);
		const size_t one = habit == 0 ? low : habit == 1 ? high : choose(r, low, high);
		const bool torn = rng_once_in(r, TORN_ONE_IN);
		const size_t other = torn ? choose(r, low, high) : one;
		for (uint64_t s = start; s < least(size, start + DISK_PAGE); s += DISK_SECTOR) {
			const size_t bytes = torn && rng_once_in(r, 2) ? other : one;
			make_bytes(f, (struct moment){bytes, metadata}, s,
				   least(size, s + DISK_SECTOR), out + s);
		}
	}
}

/* Heap. */
static uint8_t *content_after(const struct crash *c, const struct node *f, uint64_t *size)
{
	size_t flushed = 0;
	for (size_t i = 0; i < f->n_flushes; i++)
		flushed = f->flushes[i].to;
	const bool loses = c->random && f->n_edits;
	const size_t metadata = loses ? choose(c->random, flushed, f->n_edits) : f->n_edits;
	*size = size_at(f, metadata);
	uint8_t *out = malloc(*size + 1);
	if (!out)
		abort();
	if (loses)
		lose_bytes(f, c->random, metadata, *size, out);
	else
		make_bytes(f, (struct moment){f->n_edits, f->n_edits}, 0, *size, out);
	return out;
}

/* ---- names ---- */

/* All directories have seen the same changes. */
static void choose_log(const struct crash *c)
{
	struct disk *d = c->disk;
	const size_t until = c->random ? choose(c->random, d->logged, d->n_renames) : d->n_renames;
	for (size_t i = 0; i < d->n_renames; i++)
		d->renames[i].is_seen = i < until;
}

static bool is_name(const struct node *dir, const char *name, const struct node *other_dir,
		    const char *other)
{
	return dir && dir == other_dir && strcmp(name, other) == 0;
}

static bool share_name(const struct rename *a, const struct rename *b)
{
	return is_name(a->from_dir, a->from, b->from_dir, b->from) ||
	       is_name(a->from_dir, a->from, b->to_dir, b->to) ||
	       is_name(a->to_dir, a->to, b->from_dir, b->from) ||
	       is_name(a->to_dir, a->to, b->to_dir, b->to);
}

/* All renames that share a name with this one, directly or not, are there up to one moment. */
static void join_group(struct disk *d, size_t i)
{
	d->renames[i].group = i;
	for (size_t k = 0; k < i; k++) {
		const size_t from = d->renames[k].group, to = d->renames[i].group;
		if (from == to || !share_name(&d->renames[k], &d->renames[i]))
			continue;
		for (size_t j = 0; j <= i; j++)
			if (d->renames[j].group == from || d->renames[j].group == to)
				d->renames[j].group = least(from, to);
	}
}

/* Each name has a moment of its own. */
static void choose_names(const struct crash *c)
{
	struct disk *d = c->disk;
	for (size_t i = 0; i < d->n_renames; i++)
		join_group(d, i);
	for (size_t g = 0; g < d->n_renames; g++) {
		size_t low = 0;
		if (d->renames[g].group != g)
			continue;
		for (size_t i = g; i < d->n_renames; i++)
			if (d->renames[i].group == g && d->renames[i].is_synced)
				low = i + 1;
		const size_t until = choose(c->random, low, d->n_renames);
		for (size_t i = g; i < d->n_renames; i++)
			if (d->renames[i].group == g)
				d->renames[i].is_seen = i < until;
	}
}

static bool has_seen(const struct node *dir, size_t i)
{
	return dir && i < dir->until;
}

static void choose_each(const struct crash *c)
{
	struct disk *d = c->disk;
	for (struct node *node = d->nodes; node; node = node->next_of_disk) {
		node->until = 0;
		for (size_t i = 0; node->is_dir && i < d->n_renames; i++) {
			const struct rename *r = &d->renames[i];
			if (r->is_synced && (r->from_dir == node || r->to_dir == node))
				node->until = i + 1;
		}
		if (node->is_dir)
			node->until = choose(c->random, node->until, d->n_renames);
	}
	/* What one directory has of a rename, the other one has, too. */
	for (size_t i = d->n_renames; i-- > 0;) {
		const struct rename *r = &d->renames[i];
		if (!r->from_dir || !r->to_dir || r->from_dir == r->to_dir)
			continue;
		if (has_seen(r->from_dir, i) && !has_seen(r->to_dir, i))
			r->to_dir->until = i + 1;
		if (has_seen(r->to_dir, i) && !has_seen(r->from_dir, i))
			r->from_dir->until = i + 1;
	}
	for (size_t i = 0; i < d->n_renames; i++) {
		struct rename *r = &d->renames[i];
		r->is_seen = has_seen(r->from_dir, i) || has_seen(r->to_dir, i);
	}
}

static void make_entries(const struct crash *c)
{
	struct disk *d = c->disk;
	if (!c->random || rng_once_in(c->random, 2))
		choose_log(c);
	else if (rng_once_in(c->random, 2))
		choose_each(c);
	else
		choose_names(c);
	for (struct node *node = d->nodes; node; node = node->next_of_disk)
		entries_copy(&node->now, &node->first);
	for (size_t i = 0; i < d->n_renames; i++) {
		const struct rename *r = &d->renames[i];
		if (r->is_seen && r->from_dir)
			entries_remove(&r->from_dir->now, r->from);
		if (r->is_seen && r->to_dir)
			entries_set(&r->to_dir->now, r->to, r->node);
	}
}

/* ---- the new directory ---- */

static bool is_zero(const uint8_t *bytes, size_t n)
{
	return n == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0);
}

static void write_file(const struct crash *c, struct node *f, const char *path)
{
	uint64_t size;
	uint8_t *bytes = content_after(c, f, &size);
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	struct stat st;
	if (fd < 0 || ftruncate(fd, (off_t)size) || fstat(fd, &st))
		disk_give_up("%s cannot be made", path);
	for (uint64_t at = 0; at < size; at += DISK_PAGE) {
		const size_t n = (size_t)least(DISK_PAGE, size - at);
		if (!is_zero(bytes + at, n) && pwrite(fd, bytes + at, n, (off_t)at) != (ssize_t)n)
			disk_give_up("%s cannot be written", path);
	}
	close(fd);
	free(bytes);
	disk_bind(f, &st);
}

static void write_directory(const struct crash *c, struct node *dir, const char *path)
{
	struct stat st;
	for (size_t i = 0; i < dir->now.n; i++) {
		char below[DISK_PATH];
		struct node *node = dir->now.at[i].node;
		disk_path_in(below, path, dir->now.at[i].name);
		if (!node->is_dir)
			write_file(c, node, below);
		else if (mkdir(below, 0700))
			disk_give_up("%s cannot be made", below);
		else
			write_directory(c, node, below);
	}
	if (stat(path, &st))
		disk_give_up("%s cannot be read", path);
	disk_bind(dir, &st);
}

/* ---- whether all changes are known ---- */

static void check_file(const struct crash *c, const struct node *f, const char *path)
{
	uint64_t size;
	struct stat st;
	uint8_t *bytes = content_after(c, f, &size);
	uint8_t *real = malloc(size + 1);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || !real || f->ino != st.st_ino ||
	    (uint64_t)st.st_size != size || read(fd, real, size) != (ssize_t)size ||
	    memcmp(real, bytes, size) != 0)
		disk_give_up("%s was changed by a function that disk.h does not name", path);
	close(fd);
	free(real);
	free(bytes);
}

static void check_directory(const struct crash *c, const struct node *dir, const char *path)
{
	size_t n = 0;
	DIR *stream = opendir(path);
	for (const struct dirent *e; stream && (e = readdir(stream));) {
		char below[DISK_PATH];
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		const struct node *node = entries_get(&dir->now, e->d_name);
		disk_path_in(below, path, e->d_name);
		if (!node)
			disk_give_up("%s was made by a function that disk.h does not name", below);
		if (node->is_dir)
			check_directory(c, node, below);
		else
			check_file(c, node, below);
		n++;
	}
	if (!stream || n != dir->now.n)
		disk_give_up("%s has other entries than disk.h knows", path);
	closedir(stream);
}

void disk_crash(struct disk *d, const char *to, struct rng *r, enum disk_crash how)
{
	const struct crash c = {.disk = d, .random = how == DISK_POWER ? r : NULL};
	make_entries(&c);
	if (how == DISK_PROCESS)
		check_directory(&c, d->root, d->path);
	for (struct node *node = d->nodes; node; node = node->next_of_disk)
		disk_unbind(node);
	write_directory(&c, d->root, to);
	snprintf(d->path, sizeof(d->path), "%s", to);
	if (how == DISK_PROCESS)
		return;
	d->boots++;
	disk_forget(d);
	disk_scan(d);
}
