/* SPDX-License-Identifier: Apache-2.0 */
/* The buckets of a journal, and the file that names a bucket. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "journal/levels.h"
#include "overlay_fixture.h"

struct seen {
	unsigned int n;
	char digits[4][LEVEL_DIGITS], name[4][64], bucket[4][64];
};

static int note(void *ctx, const struct journal_bucket *b)
{
	struct seen *s = ctx;
	assert_true(s->n < 4);
	snprintf(s->digits[s->n], LEVEL_DIGITS, "%s", b->digits);
	snprintf(s->name[s->n], 64, "%s", b->name);
	snprintf(s->bucket[s->n++], 64, "%s", b->bucket);
	return 0;
}

static struct seen list(const struct overlay_fixture *f)
{
	struct seen s = {.n = 0};
	assert_int_equal(journal_buckets(f->path, note, &s, NULL), 0);
	return s;
}

static struct seen reopen(struct overlay_fixture *f, const char *bucket, const char *name)
{
	const struct journal_settings settings = {
		.path = f->path, .bucket = bucket, .name = name, .boot = f->boot};
	journal_close(f->j);
	assert_int_equal(journal_open(&settings, &f->env, &f->j, NULL), 0);
	return list(f);
}

static void write_note(const struct overlay_fixture *f, const struct seen *s, const char *text,
		       size_t n)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/2/%s/bucket", f->path, s->digits[0]);
	FILE *file = fopen(path, "wb");
	assert_int_equal(fwrite(text, 1, n, file), n);
	fclose(file);
}

static void a_bucket_is_named(void **state)
{
	struct overlay_fixture f;
	fixture_begin(&f, 1 << 20);
	struct seen s = list(&f);
	assert_int_equal(s.n, 1);
	assert_string_equal(s.name[0], "b");
	assert_string_equal(s.bucket[0], "b");
	s = reopen(&f, "b", "another name"); /* the first one stays */
	assert_string_equal(s.name[0], "b");
	s = reopen(&f, "http://x/b\nprefix", "s3://b/prefix");
	assert_int_equal(s.n, 2);
	const unsigned int other = strcmp(s.name[0], "b") == 0;
	assert_string_equal(s.name[other], "s3://b/prefix");
	assert_string_equal(s.bucket[other], "http://x/b\nprefix");
	fixture_end(&f);
}

/* A file that does not name the bucket of its directory is not used, and replaced. */
static void a_wrong_name_is_replaced(void **state)
{
	static const char long_name[20000];
	static const struct {
		const char *text;
		size_t n;
	} rows[] = {{"", 0},
		    {"b", 1},
		    {"b\n", 2},
		    {"b\nb", 3},
		    {"b\nc\n", 4},
		    {"b\nb\0", 4},
		    {"b\n\n", 3},
		    {"b\nb\n\n", 5},
		    {"\0\nb\n", 4},
		    {"\n\n", 2},
		    {long_name, sizeof(long_name)}};
	struct overlay_fixture f;
	char path[200];
	fixture_begin(&f, 1 << 20);
	const struct seen first = list(&f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		write_note(&f, &first, rows[i].text, rows[i].n);
		struct seen s = list(&f);
		assert_int_equal(s.n, 1);
		assert_string_equal(s.name[0], "");
		assert_string_equal(s.bucket[0], "");
		s = reopen(&f, "b", "again");
		assert_string_equal(s.name[0], "again");
	}
	write_note(&f, &first, "\nb\n", 3);
	assert_string_equal(list(&f).name[0], "b");
	snprintf(path, sizeof(path), "%s/2/%s/bucket", f.path, first.digits[0]);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_string_equal(list(&f).name[0], "");
	assert_string_equal(reopen(&f, "b", "a\nb").name[0], "b"); /* replaces the link */
	fixture_end(&f);
}

static void a_bucket_is_opened_by_its_digits(void **state)
{
	struct overlay_fixture f;
	struct journal *j;
	struct err err = ERR_INIT;
	fixture_begin(&f, 1 << 20);
	struct seen s = list(&f);
	struct journal_settings settings = {.path = f.path, .digits = s.digits[0], .boot = f.boot};
	assert_int_equal(journal_open(&settings, &f.env, &j, NULL), 0);
	journal_close(j);
	s.digits[0][0] ^= 1;
	assert_int_equal(journal_open(&settings, &f.env, &j, &err), -ENOENT);
	assert_int_equal(list(&f).n, 1);
	settings.digits = "../x";
	assert_int_equal(journal_open(&settings, &f.env, &j, &err), -EINVAL);
	fixture_end(&f);
}

static void nothing_is_made(void **state)
{
	struct overlay_fixture f;
	struct err err = ERR_INIT;
	struct seen s = {.n = 0};
	char path[128], link[140];
	fixture_begin(&f, 1 << 20);
	snprintf(path, sizeof(path), "%s/x", f.path);
	assert_int_equal(journal_buckets(path, note, &s, &err), -ENOENT);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(journal_buckets(path, note, &s, &err), 0);
	snprintf(link, sizeof(link), "%s/link", f.path);
	assert_int_equal(symlink("x", link), 0);
	assert_int_equal(journal_buckets(link, note, &s, &err), -EPERM);
	strcat(link, "//");
	assert_int_equal(journal_buckets(link, note, &s, &err), -EPERM);
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(journal_buckets(path, note, &s, &err), -EPERM);
	assert_int_equal(s.n, 0);
	fixture_end(&f);
}

/* Names that are no directories of buckets are passed over. */
static void other_entries_are_ignored(void **state)
{
	struct overlay_fixture f;
	char command[400];
	fixture_begin(&f, 1 << 20);
	snprintf(command, sizeof(command), "cd %s/2 && mkdir x && touch y %064d && mkdir .%064d",
		 f.path, 0, 0);
	assert_int_equal(system(command), 0);
	const struct seen s = list(&f);
	assert_int_equal(s.n, 2); /* the file has the name of a directory */
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bucket_is_named),
		cmocka_unit_test(a_wrong_name_is_replaced),
		cmocka_unit_test(a_bucket_is_opened_by_its_digits),
		cmocka_unit_test(nothing_is_made),
		cmocka_unit_test(other_entries_are_ignored),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
