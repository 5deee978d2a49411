/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of what is to be deleted survive the process that has put them. */
#include "disk_calls.h"

#include <glob.h>

#include <journal/gc_log.h>

#include "overlay_fixture.h"

static struct gc_object objects[] = {{"d-1", "etag"}, {"g-2", ""}};
static const struct gc_event list = {.type = GC_OBJECTS,
				     .path = "home/a.h5",
				     .storage = "g-0",
				     .next = "",
				     .count = 2,
				     .objects = objects};

/* The number of files, and the path of the last one. */
static size_t files(const struct overlay_fixture *f, const char *below, char path[256])
{
	char pattern[256];
	glob_t found = {.gl_pathc = 0};
	snprintf(pattern, sizeof(pattern), "%s/2/*/%s*.events", f->path, below);
	const int rc = glob(pattern, 0, NULL, &found);
	assert_true(rc == 0 || rc == GLOB_NOMATCH);
	if (path && found.gl_pathc)
		snprintf(path, 256, "%s", found.gl_pathv[found.gl_pathc - 1]);
	const size_t n = found.gl_pathc;
	globfree(&found);
	return n;
}

static off_t size_of_file(const char *path)
{
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

static struct gc_log *open_log(struct overlay_fixture *f)
{
	struct gc_log *l;
	assert_int_equal(gc_log_new(f->j, &l, NULL), 0);
	return l;
}

static void put_event(struct gc_log *l, uint32_t *number, enum gc_type type, const char *path,
		      const char *next)
{
	const struct gc_event event = {
		.type = type, .path = path, .storage = "db/s/", .next = next};
	struct err err = ERR_INIT;
	if (gc_log_put(l, number, &event, &err))
		fail_msg("%s", err.msg);
}

static uint32_t put(struct gc_log *l, enum gc_type type, const char *path)
{
	uint32_t number = GC_NONE;
	put_event(l, &number, type, path, "");
	return number;
}

static void see(void *ctx, const struct gc_event *event, uint32_t number)
{
	char *text = ctx;
	const size_t n = strlen(text);
	assert_int_not_equal(number, GC_NONE);
	snprintf(text + n, 512 - n, "%d:%s:%s:%s:%u ", (int)event->type, event->path,
		 event->storage, event->next, event->count);
}

static struct gc_log_taken take(struct gc_log *l, char text[512])
{
	struct gc_log_taken out;
	struct err err = ERR_INIT;
	text[0] = '\0';
	if (gc_log_take(l, see, text, &out, &err))
		fail_msg("%s", err.msg);
	return out;
}

static void nothing_is_left_without_entries(void **state)
{
	struct overlay_fixture f;
	char text[512];
	fixture_begin(&f, 0);
	struct gc_log *l = open_log(&f);
	assert_int_equal(take(l, text).entries, 0);
	assert_int_equal(files(&f, "", NULL), 0);
	uint32_t a = put(l, GC_REMOVED, "a"), b = put(l, GC_REMOVED, "b");
	assert_int_equal(files(&f, "", NULL), 1);
	assert_int_not_equal(a, b);
	gc_log_clear(l, &a);
	assert_int_equal(a, GC_NONE);
	gc_log_clear(l, &a);
	gc_log_clear(l, &b);
	gc_log_free(l);
	assert_int_equal(files(&f, "", NULL), 0);
	gc_log_free(NULL);
	assert_int_equal(gc_log_put(NULL, &a, &list, NULL), 0);
	gc_log_clear(NULL, &a);
	fixture_end(&f);
}

static void the_next_process_takes_over(void **state)
{
	struct overlay_fixture f;
	char text[512], path[256];
	fixture_begin(&f, 0);
	struct gc_log *l = open_log(&f);
	uint32_t a = GC_NONE, b = GC_NONE;
	put_event(l, &a, GC_EXPECTED, "a", "");
	put_event(l, &b, GC_EXPECTED, "home/b.h5", "db/t/");
	uint32_t c = put(l, GC_REMOVED, "c");
	put(l, GC_RENAMED, "d");
	put_event(l, &a, GC_REMOVED, "a", "");
	gc_log_clear(l, &c);
	assert_int_equal(files(&f, "", path), 1);
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	/* Its process lives. */
	struct gc_log *other = open_log(&f);
	assert_int_equal(take(other, text).entries, 0);
	gc_log_free(l);
	assert_int_equal(files(&f, "", NULL), 1);
	assert_int_equal(take(other, text).entries, 3);
	assert_string_equal(text, "2:a:db/s/::0 1:home/b.h5:db/s/:db/t/:0 3:d:db/s/::0 ");
	assert_int_equal(files(&f, "", NULL), 1);
	assert_int_equal(take(other, text).entries, 0);
	gc_log_free(other);
	/* And the one after that. */
	l = open_log(&f);
	assert_int_equal(take(l, text).entries, 3);
	gc_log_free(l);
	fixture_end(&f);
}

static void check_list(struct gc_log *l, uint32_t number)
{
	auto_gc_kept struct gc_kept kept = {.event.path = NULL};
	assert_int_equal(gc_log_get(l, number, &kept, NULL), 0);
	assert_int_equal(kept.event.type, GC_OBJECTS);
	assert_string_equal(kept.event.path, list.path);
	assert_string_equal(kept.event.storage, list.storage);
	assert_int_equal(kept.event.count, list.count);
	for (uint32_t i = 0; i < list.count; i++) {
		assert_string_equal(kept.event.objects[i].id, objects[i].id);
		assert_string_equal(kept.event.objects[i].version, objects[i].version);
	}
}

static void objects_are_read_again(void **state)
{
	struct overlay_fixture f;
	struct gc_kept kept;
	char text[512];
	uint32_t number = GC_NONE;
	fixture_begin(&f, 0);
	struct gc_log *l = open_log(&f);
	put(l, GC_REMOVED, "a");
	assert_int_equal(gc_log_put(l, &number, &list, NULL), 0);
	check_list(l, number);
	gc_log_free(l);
	l = open_log(&f);
	assert_int_equal(gc_log_get(l, 0, &kept, NULL), -EBADMSG);
	assert_int_equal(take(l, text).entries, 2);
	assert_string_equal(text, "2:a:db/s/::0 4:home/a.h5:g-0::2 ");
	check_list(l, 1);
	number = 1;
	gc_log_clear(l, &number);
	assert_int_equal(gc_log_get(l, 1, &kept, NULL), -EBADMSG);
	gc_log_free(l);
	fixture_end(&f);
}

/* What cannot be kept stays in its file. */
static void a_failure_loses_nothing(void **state)
{
	struct overlay_fixture f;
	char text[512];
	struct gc_log_taken out;
	fixture_begin(&f, 0);
	struct gc_log *full = open_log(&f);
	uint32_t last = GC_NONE;
	for (int i = 0; i < GC_ENTRIES_MAX; i++)
		last = put(full, GC_REMOVED, "a");
	struct gc_log *l = open_log(&f);
	put(l, GC_REMOVED, "b");
	gc_log_free(l);
	assert_int_equal(gc_log_take(full, see, text, &out, NULL), -ENOSPC);
	assert_int_equal(files(&f, "", NULL), 2);
	gc_log_clear(full, &last);
	assert_int_equal(take(full, text).entries, 1);
	assert_int_equal(files(&f, "", NULL), 1);
	gc_log_free(full);
	fixture_end(&f);
}

/* Whichever call fails, what a process has left is deleted later. */
static void a_failing_disk_loses_nothing(void **state)
{
	unsigned int n = 1;
	for (bool reached = true; reached; n++) {
		struct overlay_fixture f;
		struct gc_log_taken out;
		char text[512] = "";
		uint32_t number = GC_NONE;
		fixture_begin(&f, 0);
		struct gc_log *l = open_log(&f);
		put(l, GC_REMOVED, "a");
		assert_int_equal(gc_log_put(l, &number, &list, NULL), 0);
		put(l, GC_REMOVED, "b");
		gc_log_free(l);
		l = open_log(&f);
		disk.reads = true;
		disk_fail(FAILS_ONCE, n, EIO);
		const int rc = gc_log_take(l, see, text, &out, NULL);
		reached = disk.calls >= n;
		disk.how = WORKS;
		disk.reads = false;
		assert_int_equal(rc, reached ? -EIO : 0);
		gc_log_free(l);
		l = open_log(&f);
		assert_true(take(l, text).entries >= 3);
		assert_non_null(strstr(text, "2:a:"));
		assert_non_null(strstr(text, "2:b:"));
		assert_non_null(strstr(text, "4:home/a.h5:"));
		gc_log_free(l);
		fixture_end(&f);
	}
	assert_true(n > 10);
}

/* A process that runs for months has a small file. */
static void a_file_becomes_small_again(void **state)
{
	enum { KEPT = 5, ROUNDS = 40000 };
	struct overlay_fixture f;
	char text[512], path[256];
	uint32_t number = GC_NONE;
	off_t most = 0;
	fixture_begin(&f, 0);
	struct gc_log *l = open_log(&f);
	for (int i = 0; i < KEPT; i++)
		put(l, GC_REMOVED, "kept");
	assert_int_equal(gc_log_put(l, &number, &list, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t a = put(l, GC_EXPECTED, "a");
		put_event(l, &a, GC_REMOVED, "a", "");
		gc_log_clear(l, &a);
		if (i % 100 == 0) {
			assert_int_equal(files(&f, "", path), 1);
			most = size_of_file(path) > most ? size_of_file(path) : most;
		}
	}
	assert_in_range(most, 500 << 10, 1100 << 10);
	check_list(l, number);
	gc_log_free(l);
	l = open_log(&f);
	assert_int_equal(take(l, text).entries, KEPT + 1);
	gc_log_free(l);
	fixture_end(&f);
}

static void paths_are_bounded(void **state)
{
	struct overlay_fixture f;
	char name[GC_PATH + 2];
	uint32_t number = GC_NONE;
	fixture_begin(&f, 0);
	struct gc_log *l = open_log(&f);
	memset(name, 'p', sizeof(name));
	name[GC_PATH + 1] = '\0';
	struct gc_event event = {.type = GC_REMOVED, .path = name, .storage = "s", .next = ""};
	assert_int_equal(gc_log_put(l, &number, &event, NULL), -ENAMETOOLONG);
	assert_int_equal(number, GC_NONE);
	name[GC_PATH] = '\0';
	assert_int_equal(gc_log_put(l, &number, &event, NULL), 0);
	event.storage = "";
	assert_int_equal(gc_log_put(l, &number, &event, NULL), -EINVAL);
	gc_log_free(l);
	fixture_end(&f);
}

static void write_file(const char *path, const uint8_t *bytes, size_t n)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

/* Takes a file with these bytes over. Nothing is left for the next round. */
static struct gc_log_taken take_bytes(struct overlay_fixture *f, const char *path,
				      const uint8_t *bytes, size_t n)
{
	char text[512], left[256];
	write_file(path, bytes, n);
	struct gc_log *l = open_log(f);
	const struct gc_log_taken t = take(l, text);
	assert_int_equal(files(f, "unreadable/", left), t.set_aside);
	if (t.set_aside)
		assert_int_equal(unlink(left), 0);
	gc_log_free(l);
	while (files(f, "", left))
		assert_int_equal(unlink(left), 0);
	return t;
}

/* What precedes the damage counts. A file that ends in the middle of the header of a record was
 * written by a process that was killed. If it ends later in a record, the length may be damaged. */
static void damaged_files(void **state)
{
	struct overlay_fixture f;
	char path[256];
	uint8_t whole[1024], bytes[1024];
	fixture_begin(&f, 0);
	struct gc_log *l = open_log(&f);
	put(l, GC_REMOVED, "a");
	assert_int_equal(files(&f, "", path), 1);
	const size_t first = (size_t)size_of_file(path);
	put(l, GC_REMOVED, "b");
	const size_t n = (size_t)size_of_file(path), second = n - first;
	gc_log_free(l);
	FILE *file = fopen(path, "r");
	assert_int_equal(fread(whole, 1, sizeof(whole), file), n);
	fclose(file);
	for (size_t at = 0; at < n; at++) {
		memcpy(bytes, whole, n);
		bytes[at] ^= 0x20;
		struct gc_log_taken t = take_bytes(&f, path, bytes, n);
		assert_int_equal(t.entries, at >= first);
		assert_int_equal(t.damaged, 1);
		t = take_bytes(&f, path, whole, at);
		assert_int_equal(t.entries, at >= first);
		const size_t rest = at < first - second ? at : (at - (first - second)) % second;
		assert_int_equal(t.set_aside, rest >= FRAME_HEADER);
		assert_int_equal(t.damaged, rest != 0);
	}
	/* The disk may have got the size of the file, and not its bytes. */
	memcpy(bytes, whole, n);
	memset(bytes + first, 0, sizeof(bytes) - first);
	const struct gc_log_taken t = take_bytes(&f, path, bytes, sizeof(bytes));
	assert_true(t.entries == 1 && !t.damaged);
	/* But not if something follows. */
	bytes[sizeof(bytes) - 1] = 1;
	const struct gc_log_taken u = take_bytes(&f, path, bytes, sizeof(bytes));
	assert_true(u.entries == 1 && u.damaged == 1 && u.set_aside == 1);
	fixture_end(&f);
}

/* An engine that ends closes the journal before the last entries are done. */
static void a_file_is_replaced_after_the_journal_is_closed(void **state)
{
	enum { ENTRIES = 600 };
	static uint32_t number[ENTRIES];
	struct overlay_fixture f;
	char name[GC_PATH + 1], first[256], path[256];
	fixture_begin(&f, 0);
	struct gc_log *l = open_log(&f);
	memset(name, 'p', GC_PATH);
	name[GC_PATH] = '\0';
	for (int i = 0; i < ENTRIES; i++)
		number[i] = put(l, GC_REMOVED, name);
	assert_int_equal(files(&f, "", first), 1);
	journal_close(f.j);
	for (int i = 0; i < ENTRIES; i++) {
		gc_log_clear(l, &number[i]);
		number[i] = put(l, GC_REMOVED, name);
	}
	assert_int_equal(files(&f, "", path), 1);
	assert_string_not_equal(path, first);
	gc_log_free(l);
	fixture_open(&f, 0);
	fixture_end(&f);
}

static void a_later_version_stays(void **state)
{
	struct overlay_fixture f;
	char text[512], path[256];
	auto_bytes struct bytes later = {0};
	fixture_begin(&f, 0);
	struct gc_log *l = open_log(&f);
	put(l, GC_REMOVED, "a");
	gc_log_free(l);
	assert_int_equal(files(&f, "", path), 1);
	assert_int_equal(frame_put_head(&later, GC_MAGIC, GC_VERSION + 1), 0);
	write_file(path, later.data, later.len);
	l = open_log(&f);
	const struct gc_log_taken t = take(l, text);
	assert_true(t.later == 1 && !t.set_aside && !t.damaged);
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
	for (int i = 0; i < 2000; i++) {
		uint32_t number = put(w->l, GC_EXPECTED, "a"), kept = put(w->l, GC_REMOVED, "k");
		put_event(w->l, &number, GC_REMOVED, "a", "");
		gc_log_clear(w->l, &number);
		if (i % 100)
			gc_log_clear(w->l, &kept);
	}
	return NULL;
}

static void threads(void **state)
{
	struct overlay_fixture f;
	char text[512];
	struct worker workers[4];
	fixture_begin(&f, 0);
	struct gc_log *l = open_log(&f);
	for (int i = 0; i < 4; i++) {
		workers[i].l = l;
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(workers[i].thread, NULL);
	gc_log_free(l);
	l = open_log(&f);
	assert_int_equal(take(l, text).entries, 4 * 20);
	gc_log_free(l);
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_left_without_entries),
		cmocka_unit_test(the_next_process_takes_over),
		cmocka_unit_test(objects_are_read_again),
		cmocka_unit_test(a_failure_loses_nothing),
		cmocka_unit_test(a_failing_disk_loses_nothing),
		cmocka_unit_test(a_file_becomes_small_again),
		cmocka_unit_test(paths_are_bounded),
		cmocka_unit_test(damaged_files),
		cmocka_unit_test(a_file_is_replaced_after_the_journal_is_closed),
		cmocka_unit_test(a_later_version_stays),
		cmocka_unit_test(threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
