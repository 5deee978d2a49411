/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs of folders.h share: names, registers, and how they look at them. */
#ifndef SIM_FOLDERS_INTERNAL_H
#define SIM_FOLDERS_INTERNAL_H

#include "folders.h"

#define FOLDERS_TOP "folders"

/* A program. */
struct folders_program {
	struct folders *p;
	struct player *by;
	struct engine *e;
};

#define FOLDERS_FAULT(p, ...) player_fault(&(p)->faults, "folders", __VA_ARGS__)

/* Each folder has a plain object and a domain. They are numbered from 0: file f is in the folder
 * f % FOLDERS, and that of the same kind in the other one is f ^ 1. Registers are the documents of
 * the folders, then the files. */
enum { FOLDERS_FILES = 2 * FOLDERS };
_Static_assert(FOLDERS == 2 && FOLDERS + FOLDERS_FILES <= ORDER_REGISTERS, "registers");

static inline bool folders_is_domain(unsigned int file)
{
	return file >= FOLDERS;
}

static inline unsigned int folders_register(unsigned int file)
{
	return FOLDERS + file;
}

static inline uint64_t folders_now(const struct folders_program *g)
{
	return player_moment(g->by);
}

struct folders_path {
	char text[64];
};

struct folders_path folders_dir(unsigned int i);
struct folders_path folders_file(unsigned int file);
/* Begins an act on a folder, and one on a file. */
struct order_act *folders_begin_dir(struct folders_program *g, const char *what, unsigned int i);
struct order_act *folders_begin_file(struct folders_program *g, const char *what, unsigned int f);
/* Adds a step that concerns both files of a folder: of a kind that looks at several registers. */
void folders_look_at_files(struct folders_program *g, struct order_act *a, unsigned int i,
			   enum order_kind kind, uint64_t from, bool skip);
/* Adds a step of what the program has seen. Names and documents are cached for a second. */
void folders_look_cached(struct folders_program *g, struct order_act *a, enum order_kind kind,
			 uint64_t from);

/* ---- folders_files.c: programs that use a file ---- */

int folders_create(struct folders_program *g, unsigned int file, struct err *err);
int folders_read(struct folders_program *g, unsigned int file, struct err *err);
int folders_remove(struct folders_program *g, unsigned int file, struct err *err);
int folders_rename(struct folders_program *g, unsigned int file, struct err *err);
/* The number of the file that has a name, or a negative errno. */
int folders_number(struct folders *p, struct engine *e, unsigned int file, uint64_t *opened,
		   const struct player *by, struct err *err);

/* ---- folders_move.c: a folder gets the name of the other one ---- */

enum folders_moved { MOVED_NOT, MOVED, MOVED_PERHAPS };
/* open: the program has a file of it open. */
int folders_move(struct folders_program *g, unsigned int i, bool open, enum folders_moved *moved,
		 struct err *err);

#endif
