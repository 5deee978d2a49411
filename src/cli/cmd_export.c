/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hsimage export: writes a domain or a plain object as a file. Holes are not written, and neither
 * are blocks of zeros: if it is not known which chunks are stored, those that are not look like
 * zeros.
 */
#include "command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <base/mem.h>

#include "atomic_file.h"

enum { PIECE = 4 << 20, BLOCK = 4096 /* of a file system */ };

struct copy {
	struct engine_file *in;
	struct atomic_file out;
	struct progress *progress;
	uint64_t done, total; /* bytes; holes that are not written do not count */
	void *buf;	      /* of PIECE bytes */
};

static bool is_zero(const uint8_t *p, size_t n)
{
	return p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

/* Writes the bytes, except for blocks of zeros. */
static int write_data(struct copy *c, const uint8_t *p, size_t n, uint64_t offset, struct err *err)
{
	size_t from = 0;
	int rc = 0;
	for (size_t at = 0, len; !rc && at < n; at += len) {
		len = min_u64(n - at, BLOCK - (offset + at) % BLOCK);
		if (c->out.is_stream || !is_zero(p + at, len))
			continue;
		rc = atomic_file_write(&c->out, p + from, at - from, offset + from, err);
		from = at + len;
	}
	return rc ? rc : atomic_file_write(&c->out, p + from, n - from, offset + from, err);
}

static int copy_range(struct copy *c, uint64_t offset, uint64_t end, struct err *err)
{
	while (offset < end) {
		const size_t n = (size_t)min_u64(end - offset, PIECE);
		const ssize_t got = engine_pread(c->in, c->buf, n, offset, NULL, err);
		if (got <= 0)
			return got < 0 ? (int)got
				       : err_set(err, -EIO, "the file ends at %" PRIu64, offset);
		int rc = write_data(c, c->buf, (size_t)got, offset, err);
		if (rc)
			return rc;
		offset += (uint64_t)got;
		c->done += (uint64_t)got;
		progress_set(c->progress, c->done, c->total);
	}
	return 0;
}

/* Finds the first range outside of holes at or after *end. Returns false if there is none. */
static bool next_range(struct engine_file *f, uint64_t size, uint64_t *first, uint64_t *end)
{
	const int64_t data = engine_seek(f, *end, SEEK_DATA);
	if (data < 0)
		return false;
	*first = (uint64_t)data;
	const int64_t hole = engine_seek(f, *first, SEEK_HOLE);
	*end = hole < 0 ? size : (uint64_t)hole;
	return *end > *first;
}

/* Refuses an export that will certainly not fit. */
static int check_room(const struct copy *c, const struct engine_stat *st, struct err *err)
{
	const uint64_t needs = st->kind == ENGINE_DOMAIN ? st->certain : st->size;
	struct statvfs v;
	uint64_t room;
	if (c->out.is_stream || fstatvfs(c->out.fd, &v) ||
	    !mul_u64(v.f_bavail, v.f_frsize, &room) || needs <= room)
		return 0;
	return err_set(err, -ENOSPC,
		       "%s: the file needs %" PRIu64 " bytes on disk, and %" PRIu64 " are free",
		       c->out.path, needs, room);
}

/* Sets c->total. To find the holes, requests may be made. */
static void find_holes(struct copy *c, uint64_t size)
{
	uint64_t first, end;
	for (end = 0; !c->out.is_stream && next_range(c->in, size, &first, &end);)
		c->total += end - first;
}

static int copy_data(struct copy *c, uint64_t size, struct err *err)
{
	uint64_t first, end;
	int rc = 0;
	if (c->out.is_stream) { /* a pipe cannot skip holes */
		c->total = size;
		progress_set(c->progress, 0, c->total);
		return copy_range(c, 0, size, err);
	}
	progress_set(c->progress, 0, c->total);
	for (end = 0; !rc && next_range(c->in, size, &first, &end);)
		rc = copy_range(c, first, end, err);
	return rc;
}

static int copy_all(struct copy *c, const char *file, bool force, struct err *err)
{
	struct engine_stat st;
	engine_file_stat(c->in, &st);
	int rc = atomic_file_open(&c->out, file, force, st.size, err);
	if (rc)
		return rc;
	find_holes(c, st.size);
	engine_file_stat(c->in, &st);
	rc = check_room(c, &st, err);
	if (rc)
		return rc;
	auto_free void *buf = malloc(PIECE);
	if (!buf)
		return err_no_memory(err);
	c->buf = buf;
	rc = copy_data(c, st.size, err);
	return rc ? rc : atomic_file_commit(&c->out, err);
}

/* Returns the output if the command line names no file: standard output if it is a file or a pipe,
 * otherwise a file with the domain's name. */
static const char *default_file(const struct command *c)
{
	const char *slash = strrchr(c->path, '/');
	return !isatty(STDOUT_FILENO) ? "-" : slash ? slash + 1 : c->path;
}

int command_export(struct command *c)
{
	struct copy copy = {.out = {.fd = -1}, .progress = &c->progress};
	struct err err = ERR_INIT;
	const char *file = c->output ? c->output : c->operands[1];
	progress_start(&c->progress);
	int status = command_open(c);
	if (status)
		return status;
	int rc = engine_file_open(c->engine, c->path, &c->file, &err);
	copy.in = c->file;
	if (!rc)
		rc = copy_all(&copy, file ? file : default_file(c), c->force, &err);
	atomic_file_close(&copy.out);
	if (rc)
		return command_failed(c, &err);
	progress_finish(&c->progress);
	return EXIT_OK;
}
