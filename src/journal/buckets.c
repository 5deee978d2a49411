/* SPDX-License-Identifier: Apache-2.0 */
/* The buckets of a journal: journal_buckets() and journal_is_of(). Any thread. */
#include <journal/journal.h>

#include <base/fd.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "bucket_note.h"
#include <journal/private_file.h>
#include "levels.h"

bool journal_is_of(const char *digits, const char *bucket)
{
	char expected[LEVEL_DIGITS];
	return level_of_bucket(bucket, expected, NULL) == 0 && strcmp(digits, expected) == 0;
}

/* Appends the name of a directory of a bucket, LEVEL_DIGITS bytes. */
static int add_name(void *ctx, const char *name)
{
	return level_is_bucket(name) ? bytes_append(ctx, name, LEVEL_DIGITS) : 0;
}

static int pass(int version, const char *digits, level_bucket_fn *fn, void *ctx)
{
	auto_bucket_note struct bucket_note note = {.name = {.bad = false}};
	auto_close int dir = file_open_dir(version, digits);
	if (dir >= 0)
		bucket_note_read(dir, digits, &note);
	const struct journal_bucket b = {
		.digits = digits, .name = str_text(&note.name), .bucket = str_text(&note.identity)};
	return fn(ctx, &b, dir);
}

int level_each_bucket(const char *path, const char *version_name, level_bucket_fn *fn, void *ctx,
		      struct err *err)
{
	auto_bytes struct bytes names = {0};
	auto_close int root = level_open_root(path, false, err);
	if (root < 0)
		return root;
	struct err why = ERR_INIT;
	auto_close int version = level_open(root, version_name, path, false, &why);
	if (version == -ENOENT)
		return 0; /* a journal without drafts */
	if (version < 0) {
		err_copy(err, &why);
		return version;
	}
	int rc = file_each_name(version, add_name, &names);
	if (rc)
		return err_errno(err, rc, "journal directory %s", path);
	for (size_t at = 0; rc == 0 && at < names.len; at += LEVEL_DIGITS)
		rc = pass(version, (const char *)names.data + at, fn, ctx);
	return rc;
}

struct buckets {
	int (*fn)(void *ctx, const struct journal_bucket *b);
	void *ctx;
};

static int pass_on(void *ctx, const struct journal_bucket *b, int dir)
{
	const struct buckets *all = ctx;
	return all->fn(all->ctx, b);
}

int journal_buckets(const char *path, int (*fn)(void *ctx, const struct journal_bucket *b),
		    void *ctx, struct err *err)
{
	struct buckets all = {fn, ctx};
	return level_each_bucket(path, JOURNAL_VERSION, pass_on, &all, err);
}
