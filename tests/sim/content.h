/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content of the HDF5 files of the simulation, and how it is read from and written into the
 * bytes of a file, without an HDF5 library. All files have the same objects:
 *
 *   - /: attributes "uid" (never changes), "count" and "tag"; groups "n0" to "n3" come and go
 *   - /x: 8 numbers in two chunks
 *   - /rows: 4 numbers and more, in chunks of 4
 *   - /g/spare: 8 numbers in two chunks; it can be removed
 *   - /g/empty: an empty group
 *
 * Only a library (session.h) reads and changes these; here they stay as they are:
 *
 *   - /: attribute "note", a text that comes and goes
 *   - /words: 4 texts in a chunk
 *   - /grid: chunks of 2 x 2 equal numbers; both dimensions grow and shrink
 *   - /g/e0, /e1: datasets of 4 equal numbers that come and go, and take the name of each other
 *
 * A change of a content touches as few bytes of the file as the change of a library would.
 */
#ifndef SIM_CONTENT_H
#define SIM_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsmount/err.h>

enum {
	CONTENT_CELLS = 8,
	CONTENT_CHUNK = 4,
	CONTENT_ROWS = 40,
	CONTENT_LINKS = 4,
	CONTENT_WORDS = 4,
	CONTENT_EXTRAS = 2,
	CONTENT_GRID = 3, /* chunks of /grid in each dimension, at most */
	CONTENT_GRID_CHUNK = 2
};

/* The chunks of a dataset that grows. */
struct content_chunks {
	uint64_t n[2]; /* how many, in each dimension */
	/* A number that stands for the elements of a chunk. 0: all of them are 0. */
	uint64_t value[CONTENT_ROWS / CONTENT_CHUNK][CONTENT_GRID];
};

struct content {
	uint64_t uid, count, tag;
	unsigned int links; /* bit i: "n" i exists */
	uint64_t x[CONTENT_CELLS];
	uint64_t nrows, rows[CONTENT_ROWS];
	bool has_spare;
	uint64_t spare[CONTENT_CELLS];
	/* Of a library. 0: there is none, or an empty text; otherwise a text or an element. */
	uint64_t note, words[CONTENT_WORDS], extras[CONTENT_EXTRAS];
	struct content_chunks grid;
	/* Only of a content that a program writes: with a dataset whose data are in another file.
	 * No domain can hold it. */
	bool is_alien;
};

/* Parts of a content that are stored in one object each, or change as if they were. */
enum content_part {
	PART_ROOT, /* count, tag, links */
	PART_X0,   /* the first chunk of x */
	PART_X1,
	PART_ROWS,
	PART_NOTE,
	PART_WORDS,
	PART_GRID,
	PART_E0,
	PART_E1,
	PART_SPARE,
	CONTENT_PARTS
};
const char *content_part_name(enum content_part part);
/* A number that stands for the value of a part. */
uint64_t content_value(const struct content *c, enum content_part part);
/* Of /rows and /grid. */
struct content_chunks content_chunks(const struct content *c, enum content_part part);

/* The first content of a file. */
void content_init(struct content *c, uint64_t uid);
/* Whether two readers of one file agree, if the first one is content_read(). */
bool content_agrees(const struct content *bytes, const struct content *library);

/* Returns 0, or -EIO: the bytes are not such a file. */
int content_read(const uint8_t *bytes, size_t n, struct content *out, struct err *err);
/* Changes the bytes of a file from one content to another. The buffer has room for CONTENT_GROWTH
 * more bytes. Fails as content_read(). */
enum { CONTENT_GROWTH = 16384 };
int content_change(uint8_t *bytes, size_t *n, const struct content *from, const struct content *to,
		   struct err *err);
/* The bytes of a file with the first content of uid 0. Heap. */
uint8_t *content_template(size_t *n);

#endif
