/* SPDX-License-Identifier: Apache-2.0 */
/* Imports of tests/data/streams.h5, in which the first chunk of /x is damaged. */
#ifndef TESTS_SUPPORT_DAMAGED_FILE_H
#define TESTS_SUPPORT_DAMAGED_FILE_H

#include <stdatomic.h>

#include <h5file/h5file.h>

#include "import_fixture.h"

/* The file with zeros in one place, and reads that are counted there. */
struct damage {
	struct world *w;
	struct source source, *file;
	uint64_t at, reads;
	int code;		/* of such reads; 0: the bytes are zeros */
	atomic_bool *cancelled; /* by the first such read; or NULL */
};

static inline int damage_read(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct damage *d = ctx;
	int rc = source_read(d->file, offset, buf, n, err);
	if (rc || offset != d->at)
		return rc;
	d->reads++;
	memset(buf, 0, n);
	if (d->cancelled)
		atomic_store(d->cancelled, true);
	return d->code ? err_set(err, d->code, "a fault") : 0;
}

static inline int damage_open(void *ctx, struct source **out, struct err *err)
{
	struct damage *d = ctx;
	const int rc = world_open_data(d->w, "streams.h5", &d->file, err);
	if (rc)
		return rc;
	d->source = (struct source){.size = d->file->size, .read_at = damage_read, .ctx = d};
	*out = &d->source;
	return 0;
}

static inline int damage_note_place(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct damage *d = ctx;
	if (chunk->number == 0)
		d->at = chunk->addr;
	return 0;
}

/* From now on the file to import is the damaged one. */
static inline void damage_file(struct world *w, struct damage *d)
{
	struct source *source;
	struct h5file *f;
	*d = (struct damage){.w = w, .at = UINT64_MAX};
	w->opt.file.open = damage_open;
	w->opt.file.check = NULL;
	w->opt.file.ctx = d;
	assert_int_equal(damage_open(d, &source, NULL), 0);
	assert_int_equal(h5file_open(source, NULL, &f, NULL), 0);
	assert_int_equal(h5file_chunks(f, 1, 0, UINT64_MAX, damage_note_place, d, NULL), 0);
	assert_true(d->at != UINT64_MAX);
	h5file_close(f);
	source_file_close(w->file);
	w->file = NULL;
	w->opened = 0;
}

#endif
