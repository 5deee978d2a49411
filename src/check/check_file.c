/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks a local HDF5 file. All structures are read, no two of them may share a byte, and chunks
 * are read and decoded. The file is never written.
 */
#include "check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <base/source_file.h>
#include <h5file/h5file.h>

struct file_check {
	struct check *c;
	struct h5file *f;
	uint32_t number;  /* of the current dataset */
	bool unsupported; /* the dataset has a filter without a decoder, which was reported */
	struct check_sample sample;
	int rc; /* the code that ends the check; otherwise 0 */
};

static const char *path_of(const struct file_check *fc, uint32_t number)
{
	return tree_object(h5file_tree(fc->f), number)->o.id;
}

static enum engine_check_severity severity_of(enum h5file_severity severity)
{
	switch (severity) {
	case H5FILE_DAMAGED:
	case H5FILE_OPEN:
		return ENGINE_CHECK_ERROR;
	case H5FILE_UNSUPPORTED:
		return ENGINE_CHECK_UNCHECKED;
	case H5FILE_NOTE:
		return ENGINE_CHECK_NOTE;
	case H5FILE_WARNING:
		break;
	}
	return ENGINE_CHECK_WARNING;
}

static int report_problems(struct file_check *fc)
{
	const uint64_t n = h5file_problems(fc->f);
	const struct h5file_problem *p;
	uint64_t i = 0;
	int rc = 0;
	for (; !rc && (p = h5file_problem(fc->f, i)); i++)
		rc = check_find(fc->c, severity_of(p->severity), p->path, NULL, "%s", p->text);
	if (!rc && i < n)
		rc = check_find(fc->c, ENGINE_CHECK_ERROR, NULL, NULL, "more problems: %" PRIu64,
				n - i);
	return rc;
}

static enum engine_check_severity severity_of_code(int code)
{
	return code == -EIO ? ENGINE_CHECK_ERROR : ENGINE_CHECK_UNCHECKED;
}

static int check_chunk(struct file_check *fc, const struct h5file_chunk *chunk)
{
	__attribute__((cleanup(elems_release))) struct elems elems = {0};
	auto_bytes struct bytes stored = {0};
	struct err why = ERR_INIT;
	int rc = h5file_chunk_read(fc->f, chunk, &stored, &why);
	if (!rc)
		rc = h5file_chunk_decode(fc->f, fc->number, chunk, &stored, &elems, &why);
	if (rc == -ENOMEM)
		return err_no_memory(fc->c->err);
	if (!rc)
		check_decoded(fc->c, chunk->size);
	check_handled(fc->c, chunk->size);
	if (!rc || (rc == -EOPNOTSUPP && fc->unsupported))
		return 0;
	fc->unsupported = rc == -EOPNOTSUPP;
	return check_find(fc->c, severity_of_code(rc), path_of(fc, fc->number), NULL,
			  "chunk %" PRIu64 " at %" PRIu64 ", %" PRIu64 " bytes: %s", chunk->number,
			  chunk->addr, chunk->size, why.msg);
}

static void begin_dataset(struct file_check *fc, uint32_t number)
{
	if (number != fc->number)
		fc->unsupported = false;
	fc->number = number;
}

/* Counts a chunk of the index, and checks it or adds it to the sample. */
static int take_chunk(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct file_check *fc = ctx;
	const struct check_chunk one = {
		.dataset = fc->number, .number = chunk->number, .size = chunk->size};
	fc->c->result.chunks++;
	fc->c->result.bytes += chunk->size;
	if (fc->c->all)
		fc->rc = check_chunk(fc, chunk);
	else
		check_sample_add(&fc->sample, &one);
	return fc->rc;
}

static int take_chosen(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct file_check *fc = ctx;
	fc->rc = check_chunk(fc, chunk);
	return fc->rc;
}

/* Walks a part of the index of the current dataset. */
static int walk_index(struct file_check *fc, uint64_t first, uint64_t end, h5file_chunk_fn fn)
{
	struct err why = ERR_INIT;
	int rc = h5file_chunks(fc->f, fc->number, first, end, fn, fc, &why);
	if (fc->rc || !rc)
		return fc->rc;
	return check_find(fc->c, severity_of_code(rc), path_of(fc, fc->number), NULL,
			  "the chunks cannot be found: %s", why.msg);
}

static int check_dataset(struct file_check *fc, uint32_t number)
{
	static const char *const elsewhere[] = {
		[RAW_EXTERNAL] = "its raw data are in other files, which are not checked",
		[RAW_VIRTUAL] = "a virtual dataset: the datasets of which it consists are not "
				"checked",
		[RAW_STRUCTURED] = "its chunks are structured (layout version 5), which this "
				   "program cannot read",
	};
	const struct h5file_dataset *fd = h5file_dataset(fc->f, number);
	const struct object *o = &tree_object(h5file_tree(fc->f), number)->o;
	if (!fd)
		return 0;
	begin_dataset(fc, number);
	if (o->dataset.raw != RAW_STORED)
		return check_find(fc->c,
				  o->dataset.raw == RAW_STRUCTURED ? ENGINE_CHECK_UNCHECKED
								   : ENGINE_CHECK_NOTE,
				  path_of(fc, number), NULL, "%s", elsewhere[o->dataset.raw]);
	return walk_index(fc, 0, fd->grid.nchunks, take_chunk);
}

static int check_chosen(struct file_check *fc)
{
	struct check_chunk *chosen = calloc(CHECK_SAMPLE, sizeof(*chosen));
	if (!chosen)
		return err_no_memory(fc->c->err);
	const uint32_t n = check_sample_take(&fc->sample, chosen);
	int rc = 0;
	for (uint32_t i = 0; i < n; i++)
		fc->c->expected += chosen[i].size;
	for (uint32_t i = 0; !rc && i < n; i++) {
		begin_dataset(fc, chosen[i].dataset);
		rc = walk_index(fc, chosen[i].number, chosen[i].number + 1, take_chosen);
	}
	free(chosen);
	return rc;
}

static int check_objects(struct file_check *fc)
{
	const struct tree *t = h5file_tree(fc->f);
	int rc = 0;
	fc->c->result.objects = tree_count(t);
	for (uint32_t i = 0; !rc && i < tree_count(t); i++) {
		const uint32_t number = tree_nth(t, i);
		if (tree_object(t, number)->o.kind == OBJECT_DATASET)
			rc = check_dataset(fc, number);
	}
	return rc || fc->c->all ? rc : check_chosen(fc);
}

static int check_source(struct check *c, struct source *source, struct err *err)
{
	const struct h5file_options opt = {.claim_chunks = true, .bounded = true, .strict = true};
	struct file_check *fc = calloc(1, sizeof(*fc));
	struct err why = ERR_INIT;
	if (!fc)
		return err_no_memory(c->err);
	fc->c = c;
	int rc = h5file_open(source, &opt, &fc->f, &why);
	if (rc == -ENOMEM) {
		err_copy(err, &why);
	} else if (rc) {
		rc = check_find(c, severity_of_code(rc), NULL, NULL, "%s", why.msg);
	} else {
		rc = report_problems(fc);
		if (!rc)
			rc = check_objects(fc);
	}
	h5file_close(fc->f);
	free(fc);
	return rc;
}

int engine_check_file(const char *file, bool all, const struct engine_check_sink *sink,
		      struct err *err)
{
	struct check c = {.sink = sink, .all = all, .err = err};
	struct source_file *f = NULL;
	int rc = source_file_open(file, &f, err);
	if (rc)
		return rc;
	check_begin(&c, file);
	c.expected = all ? source_file_source(f)->size : 0;
	rc = check_source(&c, source_file_source(f), err);
	source_file_close(f);
	return rc ? rc : check_end(&c);
}
