/* SPDX-License-Identifier: Apache-2.0 */
/* hsimage export: a domain (or a plain object) as a file, sparse where nothing is stored, with a
 * progress bar when somebody watches. */
#include "command.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "atomic_file.h"

enum {
	PIECE = 4 << 20,
	BAR_WIDTH = 40,
	BAR_EVERY_MS = 100,
};

struct progress {
	bool shown;
	uint64_t size, done; /* done: copied or skipped */
	uint64_t copied;
	int64_t started_ms, told_ms;
};

static int64_t now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void show_progress(struct progress *p, bool last)
{
	int64_t now = now_ms(), ms = now - p->started_ms;
	if (!p->shown || (!last && now - p->told_ms < BAR_EVERY_MS))
		return;
	p->told_ms = now;
	double part = p->size ? (double)p->done / (double)p->size : 1;
	char bar[BAR_WIDTH + 1];
	for (int i = 0; i < BAR_WIDTH; i++)
		bar[i] = i < (int)(part * BAR_WIDTH) ? '=' : ' ';
	bar[BAR_WIDTH] = '\0';
	fprintf(stderr, "\r[%s] %3.0f%%  %" PRIu64 " MB  %.0f MB/s  %s", bar, part * 100,
		p->copied / 1000000, ms > 0 ? (double)p->copied / (double)ms / 1000 : 0,
		last ? "\n" : "");
}

static int copy_range(struct engine_file *f, struct atomic_file *out, uint64_t offset, uint64_t end,
		      void *buf, struct progress *p, struct err *err)
{
	while (offset < end) {
		size_t n = (size_t)(end - offset < PIECE ? end - offset : PIECE);
		ssize_t done = engine_pread(f, buf, n, offset, NULL, err);
		if (done <= 0)
			return done < 0 ? (int)done
					: err_set(err, -EIO, "the file ends at %" PRIu64, offset);
		int rc = atomic_file_write(out, buf, (size_t)done, offset, err);
		if (rc)
			return rc;
		offset += (uint64_t)done;
		p->done = offset;
		p->copied += (uint64_t)done;
		show_progress(p, false);
	}
	return 0;
}

static int copy_all(struct engine_file *f, struct atomic_file *out, struct err *err)
{
	struct engine_stat st;
	auto_free void *buf = malloc(PIECE);
	if (!buf)
		return err_set(err, -ENOMEM, "out of memory");
	engine_file_stat(f, &st);
	struct progress p = {
		.shown = isatty(STDERR_FILENO), .size = st.size, .started_ms = now_ms()};
	int rc = 0;
	for (uint64_t offset = 0; !rc && offset < st.size;) {
		int64_t data = out->stream ? (int64_t)offset : engine_seek(f, offset, SEEK_DATA);
		int64_t hole =
			out->stream || data < 0 ? -1 : engine_seek(f, (uint64_t)data, SEEK_HOLE);
		uint64_t end = hole > data ? (uint64_t)hole : st.size;
		if (data < 0)
			break; /* a hole up to the end */
		rc = copy_range(f, out, (uint64_t)data, end, buf, &p, err);
		offset = end;
	}
	if (!rc) {
		p.done = p.size;
		rc = atomic_file_commit(out, st.size, err);
	}
	show_progress(&p, true);
	return rc;
}

static int export_to(struct command *c, const char *file, struct atomic_guard *guard,
		     struct err *err)
{
	struct atomic_file out;
	int rc = engine_file_open(c->engine, c->path, &c->file, err);
	if (rc)
		return rc;
	rc = atomic_file_open(&out, file, guard, err);
	if (!rc)
		rc = copy_all(c->file, &out, err);
	atomic_file_close(&out);
	return rc;
}

int command_export(struct command *c, int argc, char **argv)
{
	static const struct option longs[] = {
		{"output", required_argument, NULL, 'o'},
		{NULL, 0, NULL, 0},
	};
	static const char usage[] = "usage: export [-o FILE] BUCKET/DOMAIN [FILE]";
	const char *file = NULL;
	struct atomic_guard guard = {0};
	struct err err = ERR_INIT;
	int opt;
	while ((opt = getopt_long(argc, argv, "o:", longs, NULL)) != -1) {
		if (opt != 'o' || file)
			return command_usage(usage);
		file = optarg;
	}
	int left = argc - optind;
	if (left < 1 || left > 2 || (left == 2 && file))
		return command_usage(usage);
	if (left == 2)
		file = argv[optind + 1];
	atomic_guard_start(&guard);
	int status = command_open(c, argv[optind]);
	if (!file && !status) {
		const char *slash = strrchr(c->path, '/');
		file = slash ? slash + 1 : c->path;
	}
	if (!status)
		status = export_to(c, file, &guard, &err) ? command_failed(&err) : EXIT_OK;
	atomic_guard_stop(&guard);
	return status;
}
