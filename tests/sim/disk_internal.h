/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of disk.h share: disk.c keeps what the disk has, disk_calls.c replaces functions
 * of libc, disk_crash.c decides what a crash leaves. */
#ifndef SIM_DISK_INTERNAL_H
#define SIM_DISK_INTERNAL_H

#include <stdbool.h>
#include <sys/stat.h>

#include "disk.h"

enum { DISK_PAGE = 4096, DISK_SECTOR = 512, DISK_PATH = 512 };

/* A change of a file that is not synchronised. */
enum edit_kind {
	EDIT_WRITE, /* n bytes at offset */
	EDIT_SIZE,  /* the file gets the size `offset` */
	EDIT_HOLE   /* n bytes at offset become zero */
};

struct edit {
	enum edit_kind kind;
	uint64_t offset, n;
	uint8_t bytes[];
};

/* After an fsync() that has failed: a later one has written the pages that edits[from] to
 * edits[to - 1] change, with all edits before `to`. */
struct flush {
	size_t from, to;
};

struct entry {
	char *name;
	struct node *node;
};

struct entries {
	struct entry *at; /* sorted by name */
	size_t n;
};

/* A file or a directory. It remains until the disk is freed, or loses its power. */
struct node {
	struct node *next_of_disk, *next_of_chain;
	struct disk *disk;
	dev_t dev;
	ino_t ino; /* 0: the real file is gone */
	bool is_dir;
	char *name; /* its last one */
	/* Of a file: its content at the last synchronisation, and what came later. */
	uint8_t *bytes;
	uint64_t size;
	struct edit **edits;
	size_t n_edits;
	size_t lost; /* edits before it are not written by an fsync() any more */
	struct flush *flushes;
	size_t n_flushes;
	/* Of a directory. */
	struct entries first; /* before all renames of the disk */
	struct entries now;   /* while a crash is made of it */
	size_t until;	      /* the same: how many renames of the disk it has seen */
};

/* A change of names, all in order. */
struct rename {
	struct node *node;
	/* NULL: it is new, or it is removed. */
	struct node *from_dir, *to_dir;
	char *from, *to;
	bool is_synced; /* by an fsync() of one of the directories */
	/* While a crash is made. */
	bool is_seen;
	size_t group; /* the first of the renames that are there in order: see choose_names() */
};

struct disk {
	struct disk *next;
	char path[DISK_PATH];
	struct node *root, *nodes;
	struct rename *renames;
	size_t n_renames;
	size_t logged; /* so many are in the log of the file system */
	unsigned int boots;
	disk_hook *hook;
	void *ctx;
};

/* ---- disk.c ---- */

void __attribute__((noreturn, format(printf, 1, 2))) disk_give_up(const char *fmt, ...);
/* Returns p with room for one more member of `size` bytes behind the n that it has. */
void *disk_more(void *p, size_t n, size_t size);
void disk_path_in(char out[DISK_PATH], const char *dir, const char *name);

/* NULL: it belongs to no disk. */
struct node *disk_find(const struct stat *st);
/* A file of these numbers is this node. */
void disk_bind(struct node *node, const struct stat *st);
void disk_unbind(struct node *node);
struct node *disk_add(struct disk *d, const char *name, const struct stat *st);
/* Forgets all nodes and renames. */
void disk_forget(struct disk *d);
/* Takes what the directory of the disk has as durable. */
void disk_scan(struct disk *d);

struct node *entries_get(const struct entries *e, const char *name);
void entries_set(struct entries *e, const char *name, struct node *node);
void entries_remove(struct entries *e, const char *name);
void entries_copy(struct entries *to, const struct entries *from);
void entries_release(struct entries *e);

/* What a call has done. */
void disk_edited(struct node *f, enum edit_kind kind, uint64_t offset, uint64_t n,
		 const void *bytes);
void disk_renamed(struct node *node, struct node *from_dir, const char *from, struct node *to_dir,
		  const char *to);
void disk_synced(struct node *node);
void disk_sync_failed(struct node *node);

/* The machine that this thread uses, or NULL. */
const struct disk *disk_used(void);

#endif
