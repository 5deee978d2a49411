/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of removed domains survive the process that has put them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <pthread.h>

#include <journal/gc_log.h>

#include "overlay_fixture.h"
#include "journal/gc_log_record.h"

#define SUFFIX ".garbage"

struct seen {
	struct gc_log *to; /* NULL: fn fails */
	char text[512];
};

static int see(void *ctx, const struct gc_entry *entry)
{
	struct seen *s = ctx;
	const size_t n = strlen(s->text);
	uint32_t record = GC_NONE;
	snprintf(s->text + n, sizeof(s->text) - n, "%d:%s:%u:%u ", (int)entry->state, entry->path,
		 (unsigned int)entry->storage, (unsigned int)entry->next);
	return s->to ? gc_log_put(s->to, &record, entry, NULL) : -EIO;
}

/* The bucket's directory in the journal. */
static void dir_of(const struct overlay_fixture *f, char out[300])
{
	char version[100];
	snprintf(version, sizeof(version), "%s/1", f->path);
	DIR *d = opendir(version);
	assert_non_null(d);
	for (const struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.')
			snprintf(out, 300, "%s/%.64s", version, e->d_name);
	closedir(d);
}

/* The number of files, and the path of the last one. */
static int files(const struct overlay_fixture *f, const char *below, char path[600])
{
	char dir[300];
	int n = 0;
	dir_of(f, dir);
	strcat(dir, below);
	DIR *d = opendir(dir);
	for (const struct dirent *e; d && (e = readdir(d));) {
		const size_t len = strlen(e->d_name);
		if (len < strlen(SUFFIX) || strcmp(e->d_name + len - strlen(SUFFIX), SUFFIX) != 0)
			continue;
		if (path)
			snprintf(path, 600, "%s/%s", dir, e->d_name);
		n++;
	}
	if (d)
		closedir(d);
	return n;
}

static struct gc_log *open_list(struct overlay_fixture *f)
{
	struct gc_log *l;
	assert_int_equal(gc_log_new(f->j, &l, NULL), 0);
	return l;
}

static uint32_t put(struct gc_log *l, enum gc_state state, const char *path, uint64_t storage)
{
	const struct gc_entry entry = {
		.state = state, .path = path, .storage = storage, .next = storage + 1};
	uint32_t record = GC_NONE;
	struct err err = ERR_INIT;
	if (gc_log_put(l, &record, &entry, &err))
		fail_msg("%s", err.msg);
	return record;
}

static struct gc_log_taken take(struct gc_log *l, struct seen *s)
{
	struct gc_log_taken out;
	s->to = l;
	s->text[0] = '\0';
	assert_int_equal(gc_log_take(l, see, s, &out, NULL), 0);
	return out;
}

static void nothing_is_left_without_entries(void **state)
{
	struct overlay_fixture f;
	struct seen s;
	fixture_begin(&f, 0);
	struct gc_log *l = open_list(&f);
	assert_int_equal(take(l, &s).entries, 0);
	assert_int_equal(files(&f, "", NULL), 0);
	uint32_t a = put(l, GC_REMOVED, "a", 1), b = put(l, GC_REMOVED, "b", 2);
	assert_int_equal(files(&f, "", NULL), 1);
	assert_int_not_equal(a, b);
	gc_log_clear(l, &a);
	assert_int_equal(a, GC_NONE);
	gc_log_clear(l, &a);
	gc_log_clear(l, &b);
	gc_log_free(l);
	assert_int_equal(files(&f, "", NULL), 0);
	gc_log_free(NULL);
	fixture_end(&f);
}

static void the_next_process_takes_over(void **state)
{
	struct overlay_fixture f;
	struct seen s;
	fixture_begin(&f, 0);
	struct gc_log *l = open_list(&f);
	uint32_t a = put(l, GC_EXPECTED, "a", 1);
	put(l, GC_EXPECTED, "home/b.h5", 3);
	uint32_t c = put(l, GC_REMOVED, "c", 5);
	const struct gc_entry removed = {.state = GC_REMOVED, .path = "a", .storage = 1, .next = 0};
	assert_int_equal(gc_log_put(l, &a, &removed, NULL), 0);
	gc_log_clear(l, &c);
	/* Its process lives. */
	struct gc_log *other = open_list(&f);
	assert_int_equal(take(other, &s).entries, 0);
	gc_log_free(l);
	assert_int_equal(files(&f, "", NULL), 1);
	assert_int_equal(take(other, &s).entries, 2);
	assert_string_equal(s.text, "2:a:1:0 1:home/b.h5:3:4 ");
	assert_int_equal(files(&f, "", NULL), 1);
	assert_int_equal(take(other, &s).entries, 0);
	gc_log_free(other);
	/* And the one after that. */
	l = open_list(&f);
	assert_int_equal(take(l, &s).entries, 2);
	gc_log_free(l);
	fixture_end(&f);
}

/* What the callback cannot keep stays in its file. */
static void a_failure_loses_nothing(void **state)
{
	struct overlay_fixture f;
	struct seen s = {.text = ""};
	struct gc_log_taken out;
	fixture_begin(&f, 0);
	struct gc_log *l = open_list(&f);
	put(l, GC_REMOVED, "a", 1);
	gc_log_free(l);
	l = open_list(&f);
	assert_int_equal(gc_log_take(l, see, &s, &out, NULL), -EIO);
	assert_int_equal(files(&f, "", NULL), 1);
	assert_int_equal(take(l, &s).entries, 1);
	gc_log_free(l);
	fixture_end(&f);
}

static void records_are_used_again(void **state)
{
	enum { MANY = 300 };
	struct overlay_fixture f;
	struct seen s;
	char path[600], name[GC_PATH + 2];
	struct stat st;
	uint32_t records[MANY];
	fixture_begin(&f, 0);
	struct gc_log *l = open_list(&f);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < MANY; i++)
			records[i] = put(l, GC_REMOVED, "a", 1);
		for (int i = 0; i < MANY; i++)
			gc_log_clear(l, &records[i]);
	}
	assert_int_equal(files(&f, "", path), 1);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, GC_HEADER + MANY * GC_RECORD);
	assert_int_equal(st.st_mode & 0777, 0600);
	memset(name, 'p', sizeof(name));
	name[GC_PATH + 1] = '\0';
	const struct gc_entry entry = {.state = GC_REMOVED, .path = name, .storage = 1};
	uint32_t record = GC_NONE;
	assert_int_equal(gc_log_put(l, &record, &entry, NULL), -ENAMETOOLONG);
	assert_int_equal(record, GC_NONE);
	name[GC_PATH] = '\0';
	assert_int_equal(gc_log_put(l, &record, &entry, NULL), 0);
	gc_log_free(l);
	l = open_list(&f);
	assert_int_equal(take(l, &s).entries, 1);
	gc_log_free(l);
	fixture_end(&f);
}

static void the_list_is_bounded(void **state)
{
	struct overlay_fixture f;
	fixture_begin(&f, 0);
	struct gc_log *l = open_list(&f);
	const struct gc_entry entry = {.state = GC_REMOVED, .path = "a", .storage = 1};
	uint32_t record = GC_NONE, one = GC_NONE;
	for (int i = 0; i < GC_ENTRIES_MAX; i++) {
		record = GC_NONE;
		assert_int_equal(gc_log_put(l, &record, &entry, NULL), 0);
	}
	assert_int_equal(gc_log_put(l, &one, &entry, NULL), -ENOSPC);
	gc_log_clear(l, &record);
	assert_int_equal(gc_log_put(l, &one, &entry, NULL), 0);
	gc_log_free(l);
	fixture_end(&f);
}

/* Changes each byte of a file in turn; a negative offset cuts the file to so many bytes. */
static void damage(const char *path, const char *whole, size_t n, int at)
{
	FILE *f = fopen(path, "w");
	char *copy = malloc(n);
	assert_true(f && copy);
	memcpy(copy, whole, n);
	if (at >= 0)
		copy[at] ^= 0x20;
	const size_t length = at < 0 ? (size_t)-at : n;
	assert_int_equal(fwrite(copy, 1, length, f), length);
	fclose(f);
	free(copy);
}

static void damaged_files(void **state)
{
	enum { SIZE = GC_HEADER + 2 * GC_RECORD };
	struct overlay_fixture f;
	char path[600], whole[SIZE];
	fixture_begin(&f, 0);
	struct gc_log *l = open_list(&f);
	put(l, GC_REMOVED, "a", 1);
	put(l, GC_REMOVED, "b", 2);
	gc_log_free(l);
	assert_int_equal(files(&f, "", path), 1);
	FILE *file = fopen(path, "r");
	assert_int_equal(fread(whole, 1, SIZE, file), SIZE);
	fclose(file);
	for (int at = -SIZE + 1; at < SIZE; at += at < -70 || at > 120 ? 11 : 1) {
		struct seen s;
		char aside[600];
		damage(path, whole, SIZE, at);
		l = open_list(&f);
		const struct gc_log_taken t = take(l, &s);
		if (at > -GC_HEADER && at < GC_HEADER) {
			assert_int_equal(t.set_aside, 1);
			assert_int_equal(files(&f, "/unreadable", aside), 1);
			assert_int_equal(unlink(aside), 0);
		} else if (at < 0) {
			const int whole_records = (-at - GC_HEADER) / GC_RECORD;
			const int rest = (-at - GC_HEADER) % GC_RECORD;
			assert_int_equal(t.entries, whole_records);
			assert_int_equal(t.damaged, rest ? 1 : 0);
		} else {
			assert_int_equal(t.entries, 1);
			assert_int_equal(t.damaged, 1);
		}
		/* Nothing is left for the next round. */
		char own[600];
		gc_log_free(l);
		while (files(&f, "", own))
			assert_int_equal(unlink(own), 0);
	}
	fixture_end(&f);
}

static void a_later_version_stays(void **state)
{
	struct overlay_fixture f;
	struct seen s;
	char path[600];
	static const uint8_t later[GC_HEADER] = "HSMGARBG\x02\0\0\0"
						"\x0f"
						"\xbb"
						"\xdf"
						"\x73";
	fixture_begin(&f, 0);
	struct gc_log *l = open_list(&f);
	put(l, GC_REMOVED, "a", 1);
	gc_log_free(l);
	assert_int_equal(files(&f, "", path), 1);
	damage(path, (const char *)later, sizeof(later), -(int)sizeof(later));
	l = open_list(&f);
	const struct gc_log_taken t = take(l, &s);
	assert_int_equal(t.later + t.set_aside, 1);
	assert_int_equal(t.later, 1);
	assert_int_equal(files(&f, "", NULL), 1);
	gc_log_free(l);
	fixture_end(&f);
}

struct worker {
	pthread_t thread;
	struct gc_log *l;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	for (int i = 0; i < 200; i++) {
		const struct gc_entry entry = {
			.state = GC_EXPECTED, .path = "a", .storage = (uint64_t)i};
		uint32_t record = GC_NONE, kept = GC_NONE;
		gc_log_put(w->l, &record, &entry, NULL);
		gc_log_put(w->l, &kept, &entry, NULL);
		gc_log_put(w->l, &record, &entry, NULL);
		gc_log_clear(w->l, &record);
		if (i % 10)
			gc_log_clear(w->l, &kept);
	}
	return NULL;
}

static void threads(void **state)
{
	struct overlay_fixture f;
	struct seen s;
	struct worker workers[4];
	fixture_begin(&f, 0);
	struct gc_log *l = open_list(&f);
	for (int i = 0; i < 4; i++) {
		workers[i].l = l;
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(workers[i].thread, NULL);
	gc_log_free(l);
	l = open_list(&f);
	assert_int_equal(take(l, &s).entries, 4 * 20);
	gc_log_free(l);
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_left_without_entries),
		cmocka_unit_test(the_next_process_takes_over),
		cmocka_unit_test(a_failure_loses_nothing),
		cmocka_unit_test(records_are_used_again),
		cmocka_unit_test(the_list_is_bounded),
		cmocka_unit_test(damaged_files),
		cmocka_unit_test(a_later_version_stays),
		cmocka_unit_test(threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
