/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of draft_fixture.h with a table of drafts: an engine that programs write to. */
#ifndef TESTS_ENGINE_DRAFTS_FIXTURE_H
#define TESTS_ENGINE_DRAFTS_FIXTURE_H

#include "draft_fixture.h"

#include <dirent.h>

#include <drafts/drafts.h>

static inline void table_new(struct world *w, uint64_t spool_size)
{
	char path[96];
	struct err err = ERR_INIT;
	snprintf(path, sizeof(path), "%s/journal", w->f.path);
	const struct engine_options opt = {
		.bucket = w->f.path, .journal_dir = path, .spool_size = spool_size};
	if (drafts_new(&w->e->bucket, &opt, &w->e->drafts, &err))
		fail_msg("%s", err.msg);
}

static inline void table_begin(struct world *w, bool is_dir, unsigned int workers)
{
	world_begin(w, is_dir, workers);
	w->e->bucket.cache = cache_new(&w->e->bucket.env, 1, NULL);
	assert_non_null(w->e->bucket.cache);
	table_new(w, 0);
	world_open_gate(w);
}

static inline void table_end(struct world *w)
{
	drafts_free(w->e->drafts);
	w->e->drafts = NULL;
	cache_free(w->e->bucket.cache);
	world_end(w);
}

/* Drafts in the journal. */
static inline unsigned int table_journal(struct world *w)
{
	char path[96], digits[96] = "";
	unsigned int n = 0;
	snprintf(path, sizeof(path), "%s/journal/2", w->f.path);
	DIR *dir = opendir(path);
	assert_non_null(dir);
	for (const struct dirent *e; (e = readdir(dir));)
		if (e->d_name[0] != '.')
			snprintf(digits, sizeof(digits), "%.70s", e->d_name);
	closedir(dir);
	strcat(path, "/");
	char below[256];
	snprintf(below, sizeof(below), "%s%s", path, digits);
	dir = opendir(below);
	assert_non_null(dir);
	for (const struct dirent *e; (e = readdir(dir));)
		n += strlen(e->d_name) == JOURNAL_ID - 1;
	closedir(dir);
	return n;
}

static inline struct engine_counts table_counts(struct world *w)
{
	struct engine_counts c = {0};
	drafts_get_counts(w->e->drafts, &c);
	return c;
}

/* ---- files ---- */

enum { NEW = ENGINE_CREATE | ENGINE_TRUNCATE, ONLY_NEW = ENGINE_CREATE | ENGINE_EXCLUSIVE };

static inline struct engine_file *open_write(struct world *w, const char *path, unsigned int flags)
{
	struct engine_file *f = NULL;
	struct err err = ERR_INIT;
	if (engine_open_write(w->e, path, flags, &f, &err) ||
	    (flags & ENGINE_TRUNCATE && engine_resize(f, 0, &err)))
		fail_msg("%s: %s", path, err.msg);
	return f;
}

static inline int open_write_code(struct world *w, const char *path, unsigned int flags)
{
	struct engine_file *f = NULL;
	const int rc = engine_open_write(w->e, path, flags, &f, NULL);
	if (!rc)
		engine_file_close(f);
	return rc;
}

static inline void put_text(struct engine_file *f, uint64_t offset, const char *text)
{
	struct err err = ERR_INIT;
	const ssize_t n = (ssize_t)strlen(text);
	if (engine_pwrite(f, text, (size_t)n, offset, &err) != n)
		fail_msg("%s", err.msg);
}

static inline void check_text(struct engine_file *f, const char *text)
{
	char buf[4096];
	struct err err = ERR_INIT;
	const ssize_t n = engine_pread(f, buf, sizeof(buf), 0, NULL, &err);
	if (n < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(n, strlen(text));
	assert_memory_equal(buf, text, (size_t)n);
}

/* What programs see that do not write. */
static inline void check_name(struct world *w, const char *path, const char *text)
{
	struct engine_file *f = NULL;
	struct engine_stat st;
	struct err err = ERR_INIT;
	if (engine_file_open(w->e, path, &f, &err))
		fail_msg("%s: %s", path, err.msg);
	check_text(f, text);
	engine_file_close(f);
	assert_int_equal(engine_lookup(w->e, path, &st, NULL), 0);
	assert_int_equal(st.size, strlen(text));
}

static inline void check_bucket(struct world *w, const char *key, const char *text)
{
	world_check_object(w, key, text, strlen(text));
}

static inline bool in_bucket(struct world *w, const char *key)
{
	struct call_result res;
	const int rc = call_get(w->gate->base.inner, key, 0, STORE_TO_END, 0, NULL, &res, NULL);
	bytes_release(&res.body);
	assert_true(rc == 0 || rc == -ENOENT);
	return rc == 0;
}

static inline void flush_ok(struct engine_file *f)
{
	struct err err = ERR_INIT;
	if (engine_flush(f, &err))
		fail_msg("%s", err.msg);
}

/* As a program does: close(2). */
static inline void close_ok(struct engine_file *f)
{
	flush_ok(f);
	engine_file_close(f);
}

static inline void make_file(struct world *w, const char *path, const char *text)
{
	struct engine_file *f = open_write(w, path, NEW);
	put_text(f, 0, text);
	close_ok(f);
}

/* Puts and deletes so far. */
static inline unsigned int changes_of(const struct world *w)
{
	return w->gate->ops[STORE_PUT] + w->gate->ops[STORE_DELETE];
}

/* All requests fail from now on. */
static inline void shut_gate(struct world *w, int code)
{
	w->gate->code = code;
	w->gate->at = w->gate->n + 1;
	w->gate->later = true;
}

/* An attribute; "": none. */
static inline const char *note_of(struct world *w, const char *path, const char *name, char *buf,
				  size_t size)
{
	const ssize_t n = engine_getxattr(w->e, path, name, buf, size - 1, NULL);
	assert_true(n >= 0 || n == -ENODATA || n == -ENOENT);
	buf[n < 0 ? 0 : n] = '\0';
	return buf;
}

/* The names of a directory with "/" behind directories, separated by blanks. */
static inline int add_listed(void *arg, const char *name, enum engine_kind kind)
{
	char *text = arg;
	strcat(text, text[0] ? " " : "");
	strcat(text, name);
	strcat(text, kind == ENGINE_DIR ? "/" : kind == ENGINE_PLAIN ? "=" : "");
	return 0;
}

static inline void check_list(struct world *w, const char *dir, const char *expected)
{
	char text[4096] = "";
	assert_int_equal(engine_list(w->e, dir, add_listed, text, NULL), 0);
	assert_string_equal(text, expected);
}

static inline bool draft_of(struct world *w, const char *path, bool *alone)
{
	struct engine_stat st;
	return engine_draft_stat(w->e, path, &st, alone);
}

static inline bool has_draft(struct world *w, const char *path)
{
	bool alone;
	return draft_of(w, path, &alone);
}

#endif
