/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a file: superblock, walk, claims. A failed open frees everything, so a caller whose
 * source returned -EAGAIN starts again from the beginning and gets the same result.
 *
 * Claims: during the open the decoders claim what they read. Raw data of contiguous datasets are
 * claimed here, and chunks if the caller wants it. Afterwards the decoders claim nothing any more.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include <codec/chunk.h>
#include <h5/claims.h>
#include <h5/superblock.h>

#include "walk.h"

enum {
	MAX_TREE = 1 << 30,
	MAX_TEXTS = 16 << 20,
	WORK_FACTOR = 64,    /* bytes that may be read for each byte of the file */
	WORK_MIN = 64 << 20, /* and in addition */
};

/* ---- claims ---- */

static int claim_chunk(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct h5file *f = ctx;
	return h5_claim(f->file.claims, chunk->addr, chunk->size, "chunk", err);
}

/* Claims the raw data of a dataset. */
static int claim_dataset(struct h5file *f, uint32_t number, struct err *err)
{
	const struct dataset_info *d = f->datasets[number];
	if (d->raw != RAW_STORED || d->layout.cls == LAYOUT_COMPACT || d->shown.pieces)
		return 0;
	if (d->layout.cls == LAYOUT_CHUNKED)
		return f->claim_chunks
			       ? h5file_chunks(f, number, 0, UINT64_MAX, claim_chunk, f, err)
			       : 0;
	uint64_t end; /* data outside of the file are a problem of their own */
	if (!d->shown.stored_bytes || !add_u64(d->layout.addr, d->layout.size, &end) ||
	    end > h5_file_size(&f->file))
		return 0;
	return h5_claim(f->file.claims, d->layout.addr, d->layout.size, "raw data", err);
}

int h5file_claim(struct h5file *f, const struct h5file_chunk *chunk, struct err *err)
{
	return h5_claim(f->kept, chunk->addr, chunk->size, "chunk", err);
}

int h5file_claims_check(struct h5file *f, struct err *err)
{
	return h5_claims_check(f->kept, err);
}

/* ---- opening ---- */

static int unfilter(void *ctx, const struct pipeline *p, uint32_t mask, const void *in, size_t n,
		    size_t max, struct bytes *out, struct err *err)
{
	return codec_hdf5_decode(p, mask, 1, in, n, max, out, err);
}

/* Damage of an object is a problem of the file, as is that of the superblock or of the table of
 * shared messages (OBJECT_NONE). Reports it, and returns 0. Returns other results. */
static int report(struct h5file *f, uint32_t number, int rc, struct err *err)
{
	if (!is_local(rc))
		return rc;
	h5file_report(f, number, err);
	err_clear(err);
	return 0;
}

/* ---- what the superblock says about the whole file ---- */

static void tell(struct h5file *f, enum h5file_severity severity, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void tell(struct h5file *f, enum h5file_severity severity, const char *fmt, ...)
{
	struct err why = ERR_INIT;
	char text[ERR_MAX];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err_set(&why, -EIO, "%s", text);
	h5file_note(f, severity, OBJECT_NONE, &why);
}

/* libhdf5 refuses files with these flags since version 3 of the superblock. In older versions it
 * ignores them. */
static void check_status(struct h5file *f)
{
	const struct h5_file *file = &f->file;
	if (file->status_flags & ~(unsigned int)H5_STATUS_KNOWN)
		tell(f, H5FILE_DAMAGED, "superblock: unknown status flags 0x%x",
		     file->status_flags);
	else if (file->version >= 3 && h5_status_is_locked(file->status_flags))
		tell(f, H5FILE_OPEN,
		     "a program is writing it, or was killed: libhdf5 opens no file whose "
		     "superblock of version 3 has the status flags 0x%x",
		     file->status_flags);
	else if (file->version < 3 && h5_status_is_open(file->status_flags))
		tell(f, H5FILE_NOTE,
		     "its superblock says that a program is writing it, which libhdf5 ignores in "
		     "version %u; if that program was killed, data may be missing",
		     file->version);
}

/* Compares the size of the file with the end that the superblock records. */
static void check_end(struct h5file *f)
{
	const struct h5_file *file = &f->file;
	const uint64_t size = file->source->size - file->base, end = file->recorded_end;
	if (end == H5_UNDEF || end == size)
		return;
	if (end > size)
		tell(f, H5FILE_DAMAGED,
		     "the file is truncated: it should have %" PRIu64 " bytes but has %" PRIu64,
		     end + file->base, file->source->size);
	else
		tell(f, H5FILE_NOTE,
		     "the last %" PRIu64 " byte%s lie behind the end that its superblock records%s",
		     size - end, size - end == 1 ? "" : "s",
		     f->file.is_bounded ? ", and do not belong to it"
					: "; those to which nothing refers are left out");
}

/* libhdf5 takes this address for that of a superblock extension, which old versions do not have. */
static void check_free_info(struct h5file *f)
{
	if (f->strict && f->file.free_info != H5_UNDEF)
		tell(f, H5FILE_DAMAGED,
		     "superblock: the address of free-space information is 0x%" PRIx64
		     ", and must be undefined",
		     f->file.free_info);
}

int h5file_start(struct h5file *f, struct err *err)
{
	static const struct h5_unfilter undo = {.decode = unfilter};
	struct source *source = f->file.source;
	struct h5_claims *claims = f->file.claims;
	int rc = h5_file_open(&f->file, source, err);
	if (!mul_u64(source->size, WORK_FACTOR, &f->work.left) ||
	    !add_u64(f->work.left, WORK_MIN, &f->work.left))
		f->work.left = UINT64_MAX;
	f->file.work = &f->work;
	f->file.unfilter = &undo;
	f->file.claims = claims;
	f->file.is_bounded = f->bounded;
	f->file.is_strict = f->strict;
	if (rc)
		return rc;
	f->shared = h5_shared_new(&f->file);
	f->heaps = h5_gheap_cache_new(&f->file);
	return f->shared && f->heaps ? 0 : err_no_memory(err);
}

static int claim_all(struct h5file *f, struct err *err)
{
	for (uint32_t i = 0; i < f->ndatasets; i++) {
		int rc = f->datasets[i] ? claim_dataset(f, i, err) : 0;
		rc = report(f, i, rc, err);
		if (rc)
			return rc;
	}
	return report(f, OBJECT_NONE, h5_claims_check(f->file.claims, err), err);
}

static int read_all(struct h5file *f, struct err *err)
{
	int rc = h5file_start(f, err);
	if (!rc) {
		check_status(f);
		check_end(f);
		check_free_info(f);
	}
	if (!rc)
		rc = report(f, OBJECT_NONE, h5_file_claim(&f->file, err), err);
	if (!rc)
		rc = report(f, OBJECT_NONE, h5_shared_claim(f->shared, err), err);
	if (!rc)
		rc = walk_file(f, err);
	return rc ? rc : claim_all(f, err);
}

struct h5file *h5file_new(struct source *source, const struct h5file_options *opt)
{
	struct h5file *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	const uint64_t max = opt && opt->max_tree ? opt->max_tree : MAX_TREE;
	pthread_mutex_init(&f->lock, NULL);
	pthread_mutex_init(&f->heap_lock, NULL);
	f->claim_chunks = opt && opt->claim_chunks;
	f->claim_orders = opt && (opt->claim_chunks || opt->claim_orders);
	f->keep_claims = opt && opt->keep_claims;
	f->bounded = opt && opt->bounded;
	f->strict = opt && opt->strict;
	f->external = opt ? opt->external : NULL;
	f->known = opt ? opt->known : NULL;
	f->charge = (struct budget_charge){.budget = opt ? opt->budget : NULL, .use = BUDGET_TREES};
	f->max_tree = max;
	f->file = h5_file_of(source);
	f->file.claims = h5_claims_new(f->charge.budget);
	f->tree = tree_new((size_t)min_u64(max, SIZE_MAX));
	f->arena = arena_new((size_t)min_u64(max, SIZE_MAX));
	f->problem_texts = arena_new(MAX_TEXTS);
	if (f->file.claims && f->tree && f->arena && f->problem_texts)
		return f;
	h5file_close(f);
	return NULL;
}

/* Ends the claims and the limit of work: what is read from now on was read before, or is data. */
static int end_claims(struct h5file *f, struct err *err)
{
	h5_gheap_cache_free(f->heaps);
	h5_shared_free(f->shared);
	if (f->keep_claims)
		f->kept = f->file.claims;
	else
		h5_claims_free(f->file.claims);
	f->shared = NULL;
	f->external = NULL;
	f->known = NULL;
	f->file.claims = NULL;
	f->file.work = NULL;
	f->heaps = h5_gheap_cache_new(&f->file);
	return f->heaps ? 0 : err_no_memory(err);
}

int h5file_open(struct source *source, const struct h5file_options *opt, struct h5file **out,
		struct err *err)
{
	struct err why = ERR_INIT;
	struct h5file *f = h5file_new(source, opt);
	int rc = f ? read_all(f, &why) : err_no_memory(&why);
	if (!rc)
		rc = end_claims(f, &why);
	if (!rc) {
		*out = f;
		return 0;
	}
	h5file_close(f);
	if (err)
		err_copy(err, &why);
	return rc;
}

void h5file_close(struct h5file *f)
{
	if (!f)
		return;
	h5_shared_free(f->shared);
	h5_gheap_cache_free(f->heaps);
	h5_claims_free(f->file.claims);
	h5_claims_free(f->kept);
	tree_free(f->tree);
	problems_release(&f->problems);
	h5_addrs_release(&f->numbers);
	bytes_release(&f->headers);
	bytes_release(&f->shares);
	free(f->datasets);
	arena_free(f->arena);
	arena_free(f->problem_texts);
	budget_set(&f->charge, 0, NULL);
	pthread_mutex_destroy(&f->lock);
	pthread_mutex_destroy(&f->heap_lock);
	free(f);
}

const struct tree *h5file_tree(const struct h5file *f)
{
	return f->tree;
}

struct tree *h5file_edit_tree(struct h5file *f)
{
	return f->tree;
}

int h5file_find(struct source *s, uint64_t *base, struct err *err)
{
	bool found;
	const int rc = h5_superblock_find(s, base, &found, err);
	if (rc || !found)
		*base = 0;
	return rc;
}

uint64_t h5file_base(const struct h5file *f)
{
	return f->file.base;
}
