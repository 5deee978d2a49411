/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program of an operation does with the file that it has open: it writes bytes by itself,
 * or works through libhdf5 (session.h), which makes more kinds of changes.
 */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include <hsmount/engine.h>

#include "history.h"

struct program {
	const uint8_t *file; /* the template */
	size_t n;
	void (*wait)(void *ctx); /* lets other actors run */
	void *ctx;
};

/* The program of a player. `file` is the template of a domain, and NULL if it makes none. */
struct program program_of_player(struct player *by, const uint8_t *file, size_t n);
enum { PROGRAM_FILE = 16 };
/* Writes a plain file of PROGRAM_FILE bytes that states its number. */
int program_write_plain(struct engine_file *f, unsigned int number, struct err *err);
/* Returns the number that the n bytes of a plain file state, or 0 if they state none. */
unsigned long program_plain_number(const char *bytes, size_t n);
/* The bytes of a file that a program without a library writes. Heap. */
uint8_t *program_file(const struct program *p, const struct content *c, size_t *n);
/* Writes op->after. */
int program_create(const struct program *p, const struct op *op, struct engine_file *f,
		   struct err *err);
/* Reads op->before and op->uid, decides op->after, and writes that. op->was_open: it has read the
 * file, and the change is possible. Fails with -ENODATA if it is not. */
int program_change(const struct program *p, struct op *op, struct engine_file *f, uint64_t tag,
		   struct err *err);
/* Reads op->before. */
int program_read(const struct program *p, struct op *op, struct engine_file *f, struct err *err);

#endif
