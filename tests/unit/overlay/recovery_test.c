/* SPDX-License-Identifier: Apache-2.0 */
/* What draft_open() makes of the files of a draft: complete, cut at every byte, with every byte
 * changed, and after the machine was started again. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <journal/draft_header.h>
#include "overlay_fixture.h"

enum { FILE_MAX = 10000, RECORD = 32, STATES = 16 };

struct state {
	struct overlay_fixture f;
	char id[JOURNAL_ID];
	char bucket[128], dir[160], map[200], draft[200];
	uint8_t map_bytes[STATES * RECORD];
	size_t map_size;
	/* What the file contains after so many records. */
	uint8_t bytes[STATES + 1][FILE_MAX];
	uint64_t size[STATES + 1];
	unsigned int records;
	unsigned int synced; /* records up to the last sync */
};

static size_t read_all(const char *path, void *buf, size_t n)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	const size_t got = fread(buf, 1, n, f);
	fclose(f);
	return got;
}

static void write_all(const char *path, const void *buf, size_t n)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(buf, 1, n, f), n);
	fclose(f);
}

/* After a call that appended records up to the number `records`. */
static void note_state(struct state *s, struct draft *d, unsigned int records)
{
	size_t got;
	struct stat st;
	s->records = records;
	assert_true(stat(s->map, &st) == 0 && st.st_size == (off_t)records * RECORD);
	assert_int_equal(draft_read(d, 0, s->bytes[records], FILE_MAX, &got, NULL), 0);
	s->size[records] = got;
}

static void find_files(struct state *s)
{
	glob_t found;
	char pattern[128];
	snprintf(pattern, sizeof(pattern), "%s/2/*", s->f.path);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	snprintf(s->bucket, sizeof(s->bucket), "%s", found.gl_pathv[0]);
	snprintf(s->dir, sizeof(s->dir), "%s/%s", s->bucket, s->id);
	snprintf(s->map, sizeof(s->map), "%s/map", s->dir);
	snprintf(s->draft, sizeof(s->draft), "%s/draft", s->dir);
	globfree(&found);
}

/* A draft with each kind of record. */
static void begin(struct state *s)
{
	struct draft_snapshot *snapshot;
	memset(s, 0, sizeof(*s));
	fixture_begin(&s->f, 1 << 30);
	struct draft *d = make_draft(&s->f, &about_new);
	memcpy(s->id, draft_id(d), JOURNAL_ID);
	find_files(s);
	note_state(s, d, 1);
	assert_int_equal(draft_write(d, 0, "first", 5, NULL), 0);
	note_state(s, d, 2);
	assert_int_equal(draft_write(d, 5000, "second", 6, NULL), 0);
	note_state(s, d, 3);
	assert_int_equal(draft_resize(d, 5003, NULL), 0);
	note_state(s, d, 4);
	assert_int_equal(draft_sync(d, NULL), 0);
	note_state(s, d, 5);
	s->synced = 5;
	assert_int_equal(draft_mark(d, 6, NULL), 0);
	note_state(s, d, 6);
	assert_int_equal(draft_allocate(d, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1, 2, NULL),
			 0);
	memcpy(s->bytes[6], "f\0\0st", 5); /* the spool has the hole before the map says so */
	for (unsigned int i = 2; i < 6; i++)
		memcpy(s->bytes[i], "f\0\0st", 5);
	note_state(s, d, 7);
	assert_int_equal(draft_seal(d, &snapshot, NULL), 0);
	note_state(s, d, 8);
	/* A new generation and its write are two records: after the first, nothing has changed. */
	memcpy(s->bytes[9], s->bytes[8], FILE_MAX);
	s->size[9] = s->size[8];
	assert_int_equal(draft_write(d, 2, "third", 5, NULL), 0);
	note_state(s, d, 10);
	draft_snapshot_close(snapshot);
	draft_close(d);
	s->map_size = read_all(s->map, s->map_bytes, sizeof(s->map_bytes));
}

static void end(struct state *s)
{
	fixture_end(&s->f);
}

static void compare(struct state *s, struct draft *d, unsigned int records)
{
	static uint8_t buf[FILE_MAX];
	size_t got;
	assert_int_equal(draft_read(d, 0, buf, FILE_MAX, &got, NULL), 0);
	assert_int_equal(got, s->size[records]);
	assert_memory_equal(buf, s->bytes[records], got);
}

static void open_good(struct state *s, unsigned int records)
{
	struct draft *d;
	struct err err = ERR_INIT;
	if (draft_open(s->f.j, s->id, NULL, &d, &err))
		fail_msg("%s", err.msg);
	compare(s, d, records);
	draft_close(d);
}

/* The draft is refused and set aside. Puts it back. */
static void open_bad(struct state *s, int code, const char *why)
{
	struct draft *d;
	char aside[200];
	struct err err = ERR_INIT;
	assert_int_equal(draft_open(s->f.j, s->id, NULL, &d, &err), code);
	if (why && !strstr(err.msg, why))
		fail_msg("\"%s\" does not contain \"%s\"", err.msg, why);
	assert_non_null(strstr(err.msg, s->id));
	snprintf(aside, sizeof(aside), "%s/unreadable/%s", s->bucket, s->id);
	assert_int_equal(rename(aside, s->dir), 0);
}

static void a_map_may_be_cut_at_every_byte(void **state)
{
	static struct state s;
	begin(&s);
	assert_int_equal(s.map_size, 10 * RECORD);
	for (size_t n = 0; n <= s.map_size; n++) {
		write_all(s.map, s.map_bytes, n);
		if (n < RECORD)
			open_bad(&s, -ENODATA, "the map has no intact record");
		else
			open_good(&s, (unsigned int)(n / RECORD));
	}
	end(&s);
}

/* A change of the last record is a torn write; in any other record it is damage. */
static void no_changed_byte_of_a_map_is_believed(void **state)
{
	static struct state s;
	char why[64];
	begin(&s);
	for (size_t i = 0; i < s.map_size; i++) {
		uint8_t changed[sizeof(s.map_bytes)];
		memcpy(changed, s.map_bytes, s.map_size);
		changed[i] ^= (uint8_t)(1 << i % 8);
		write_all(s.map, changed, s.map_size);
		snprintf(why, sizeof(why), "record %zu of the map is damaged", i / RECORD);
		if (i / RECORD == 9)
			open_good(&s, 9);
		else
			open_bad(&s, -EBADMSG, why);
	}
	end(&s);
}

static void no_changed_byte_of_a_description_is_believed(void **state)
{
	static struct state s;
	uint8_t bytes[4096];
	begin(&s);
	assert_int_equal(read_all(s.draft, bytes, sizeof(bytes)), sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] ^= (uint8_t)(1 << i % 8);
		write_all(s.draft, bytes, sizeof(bytes));
		open_bad(&s, -EBADMSG, "the file `draft`");
		bytes[i] ^= (uint8_t)(1 << i % 8);
	}
	for (size_t n = 0; n < sizeof(bytes); n += 117) {
		write_all(s.draft, bytes, n);
		open_bad(&s, -EBADMSG, "bytes instead of 4096");
	}
	unlink(s.draft);
	open_bad(&s, -EBADMSG, "is missing");
	write_all(s.draft, bytes, sizeof(bytes));
	open_good(&s, 10);
	end(&s);
}

static void after_a_restart_of_the_machine_synced_records_count(void **state)
{
	static struct state s;
	begin(&s);
	journal_close(s.f.j);
	memcpy(s.f.boot, "other boot", 10);
	fixture_open(&s.f, 1 << 30);
	open_good(&s, s.synced);
	/* What follows the sync may not have reached the disk, in any order. */
	memset(s.map_bytes + (size_t)s.synced * RECORD, 0, RECORD);
	write_all(s.map, s.map_bytes, s.map_size);
	open_good(&s, s.synced);
	write_all(s.map, s.map_bytes, (size_t)s.synced * RECORD - 1);
	open_bad(&s, -ENODATA, "nothing was durable");
	/* What precedes it must be there. */
	s.map_bytes[2 * RECORD] ^= 1;
	write_all(s.map, s.map_bytes, s.map_size);
	open_bad(&s, -EBADMSG, "record 2 of the map is damaged");
	end(&s);
}

static void a_spool_that_lost_bytes_is_noticed(void **state)
{
	static struct state s;
	char spool[200];
	begin(&s);
	snprintf(spool, sizeof(spool), "%s/spool.0", s.dir);
	struct stat st;
	assert_int_equal(stat(spool, &st), 0);
	assert_int_equal(truncate(spool, 4095), 0);
	open_bad(&s, -EBADMSG, "spool.0 has 4095 bytes, but 5006 were written");
	assert_int_equal(truncate(spool, st.st_size), 0);
	unlink(s.map);
	open_bad(&s, -EBADMSG, "its map is missing");
	write_all(s.map, s.map_bytes, s.map_size);
	snprintf(spool, sizeof(spool), "%s/spool.1", s.dir);
	unlink(spool);
	open_bad(&s, -EBADMSG, "spool.1 is missing");
	assert_int_equal(symlink("spool.0", spool), 0);
	struct draft *d;
	assert_int_equal(draft_open(s.f.j, s.id, NULL, &d, NULL), -ELOOP);
	end(&s);
}

static void a_mark_can_be_made_durable(void **state)
{
	struct overlay_fixture f;
	struct draft_stat stat;
	char id[JOURNAL_ID];
	fixture_begin(&f, 1 << 30);
	struct draft *d = make_draft(&f, &about_new);
	memcpy(id, draft_id(d), JOURNAL_ID);
	assert_int_equal(draft_sync(d, NULL), 0);
	assert_int_equal(draft_mark(d, 5, NULL), 0);
	assert_int_equal(draft_sync(d, NULL), 0);
	assert_int_equal(draft_mark(d, 6, NULL), 0);
	draft_close(d);
	assert_int_equal(draft_open(f.j, id, NULL, &d, NULL), 0);
	draft_get_stat(d, &stat);
	assert_int_equal(stat.mark, 6);
	draft_close(d);
	journal_close(f.j);
	memcpy(f.boot, "other boot", 10);
	fixture_open(&f, 1 << 30);
	assert_int_equal(draft_open(f.j, id, NULL, &d, NULL), 0);
	draft_get_stat(d, &stat);
	assert_int_equal(stat.mark, 5);
	draft_close(d);
	fixture_end(&f);
}

/* The child's write number i, and what it leaves in the file. */
static uint64_t offset_of_write(uint32_t i)
{
	return (uint64_t)(i * 7919 % 4096) * 100;
}

static void write_until_killed(struct draft *d, volatile uint32_t *done)
{
	for (uint32_t i = 0;; i++) {
		uint32_t values[20];
		for (unsigned int k = 0; k < 20; k++)
			values[k] = i;
		if (draft_write(d, offset_of_write(i), values, sizeof(values), NULL))
			_exit(1);
		*done = i + 1;
	}
}

static void what_was_acknowledged_survives_a_kill(void **state)
{
	static uint32_t expected[4096];
	volatile uint32_t *done =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct overlay_fixture f;
	char id[JOURNAL_ID];
	fixture_begin(&f, 1 << 30);
	for (uint32_t round = 0; round < 8; round++) {
		const uint32_t enough = 1 + round * 700;
		struct draft *d = make_draft(&f, &about_new);
		memcpy(id, draft_id(d), JOURNAL_ID);
		*done = 0;
		const pid_t child = fork();
		if (child == 0)
			write_until_killed(d, done);
		while (*done < enough)
			usleep(100);
		kill(child, SIGKILL);
		int status;
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		draft_close(d); /* the parent's copy, which has written nothing */
		assert_int_equal(draft_open(f.j, id, NULL, &d, NULL), 0);
		memset(expected, 0xff, sizeof(expected));
		for (uint32_t i = 0; i < *done; i++)
			expected[offset_of_write(i) / 100] = i;
		for (uint32_t k = 0; k < 4096; k++) {
			uint32_t value;
			size_t got;
			if (expected[k] == UINT32_MAX || expected[k] + 4096 == *done)
				continue; /* never written, or perhaps overwritten at the end */
			assert_int_equal(
				draft_read(d, (uint64_t)k * 100 + 76, &value, 4, &got, NULL), 0);
			assert_int_equal(got, 4);
			assert_int_equal(value, expected[k]);
		}
		assert_int_equal(draft_drop(d, NULL), 0);
	}
	munmap((void *)(uintptr_t)done, 4096);
	fixture_end(&f);
}

/* ---- a spool whose bytes were changed ---- */

enum leaves { CLOSED, KILLED_WHILE_SEALED, KILLED_AFTER_A_CHANGE, KILLED };

static void leave(struct draft *d, enum leaves how)
{
	static uint8_t bytes[200000];
	struct draft_snapshot *snapshot;
	memset(bytes, 'x', sizeof(bytes));
	assert_int_equal(draft_write(d, 0, bytes, sizeof(bytes), NULL), 0);
	assert_int_equal(draft_write(d, 100, "yy", 2, NULL), 0);
	if (how >= KILLED)
		return;
	assert_int_equal(draft_seal(d, &snapshot, NULL), 0);
	if (how == KILLED_WHILE_SEALED)
		return;
	draft_snapshot_close(snapshot);
	if (how == KILLED_AFTER_A_CHANGE)
		assert_int_equal(draft_write(d, 101, "z", 1, NULL), 0);
}

/* A draft that a process leaves; its path. */
static void leave_draft(struct overlay_fixture *f, enum leaves how, char id[JOURNAL_ID],
			char spool[200])
{
	int status;
	glob_t found;
	char pattern[128];
	struct draft *d;
	const pid_t child = fork();
	if (child == 0) {
		d = make_draft(f, &about_new);
		leave(d, how);
		if (how == CLOSED)
			draft_close(d);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	snprintf(pattern, sizeof(pattern), "%s/2/*/*/spool.0", f->path);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	snprintf(spool, 200, "%s", found.gl_pathv[0]);
	memcpy(id, strrchr(spool, '/') - (JOURNAL_ID - 1), JOURNAL_ID - 1);
	id[JOURNAL_ID - 1] = '\0';
	globfree(&found);
}

static void change_byte(const char *path, off_t at)
{
	const int fd = open(path, O_RDWR | O_CLOEXEC);
	uint8_t byte;
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static void remove_sums(const char *spool)
{
	char path[200];
	snprintf(path, sizeof(path), "%.*s/sums.0", (int)(strrchr(spool, '/') - spool), spool);
	assert_int_equal(unlink(path), 0);
}

static void missing_checksums_are_noticed(void **state)
{
	struct overlay_fixture f;
	struct draft *d;
	struct err err = ERR_INIT;
	char id[JOURNAL_ID], spool[200];
	fixture_begin(&f, 1 << 30);
	leave_draft(&f, KILLED, id, spool);
	remove_sums(spool);
	assert_int_equal(draft_open(f.j, id, NULL, &d, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "sums.0 is missing"));
	assert_int_equal(journal_drop(f.j, id, NULL), 0);
	/* After a restart of the machine, the file would not have counted. */
	leave_draft(&f, KILLED, id, spool);
	remove_sums(spool);
	journal_close(f.j);
	f.boot[0]++;
	fixture_open(&f, 1 << 30);
	assert_int_equal(draft_open(f.j, id, NULL, &d, &err), -ENODATA);
	assert_int_equal(journal_drop(f.j, id, NULL), 0);
	fixture_end(&f);
}

static void a_changed_spool_is_noticed(void **state)
{
	static uint8_t bytes[200000];
	for (int how = CLOSED; how <= KILLED; how++) {
		struct overlay_fixture f;
		char id[JOURNAL_ID], spool[200];
		struct draft *d;
		struct draft_snapshot *snapshot;
		struct err err = ERR_INIT;
		size_t got;
		fixture_begin(&f, 1 << 30);
		leave_draft(&f, how, id, spool);
		assert_int_equal(draft_open(f.j, id, NULL, &d, NULL), 0);
		assert_int_equal(draft_read(d, 0, bytes, sizeof(bytes), &got, NULL), 0);
		assert_int_equal(got, sizeof(bytes));
		assert_int_equal(bytes[101], how == KILLED_AFTER_A_CHANGE ? 'z' : 'y');
		draft_close(d);
		change_byte(spool, 70000);
		assert_int_equal(draft_open(f.j, id, NULL, &d, NULL), 0);
		assert_int_equal(draft_read(d, 70001, bytes, 10, &got, &err), -EBADMSG);
		assert_non_null(strstr(err.msg, id));
		assert_non_null(strstr(err.msg, "spool.0 is damaged"));
		assert_int_equal(draft_read(d, 0, bytes, 65536, &got, NULL), 0);
		assert_int_equal(draft_seal(d, &snapshot, NULL), 0);
		assert_int_equal(
			source_read(draft_snapshot_source(snapshot), 0, bytes, sizeof(bytes), NULL),
			-EBADMSG);
		draft_snapshot_close(snapshot);
		assert_int_equal(draft_drop(d, NULL), 0);
		fixture_end(&f);
	}
}

/* What was durable when the draft was closed is checked after a restart of the machine, too. */
static void a_changed_spool_is_noticed_after_a_restart(void **state)
{
	for (unsigned int synced = 0; synced < 2; synced++) {
		struct overlay_fixture f;
		char id[JOURNAL_ID], spool[200], byte;
		size_t got;
		glob_t found;
		fixture_begin(&f, 1 << 30);
		struct draft *d = make_draft(&f, &about_new);
		memcpy(id, draft_id(d), JOURNAL_ID);
		assert_int_equal(draft_write(d, 0, "abc", 3, NULL), 0);
		assert_int_equal(draft_sync(d, NULL), 0);
		if (!synced)
			assert_int_equal(draft_write(d, 1, "b", 1, NULL), 0);
		draft_close(d);
		snprintf(spool, sizeof(spool), "%s/2/*/*/spool.0", f.path);
		assert_int_equal(glob(spool, 0, NULL, &found), 0);
		change_byte(found.gl_pathv[0], 0);
		globfree(&found);
		journal_close(f.j);
		memcpy(f.boot, "other boot", 10);
		fixture_open(&f, 1 << 30);
		assert_int_equal(draft_open(f.j, id, NULL, &d, NULL), 0);
		assert_int_equal(draft_read(d, 0, &byte, 1, &got, NULL), synced ? -EBADMSG : 0);
		assert_int_equal(draft_drop(d, NULL), 0);
		fixture_end(&f);
	}
}

static void what_lies_beneath_may_be_missing(void **state)
{
	struct overlay_fixture f;
	char id[JOURNAL_ID], bytes[8];
	size_t got;
	struct err err = ERR_INIT;
	fixture_begin(&f, 1 << 30);
	struct draft *d = make_draft(&f, &about_change);
	memcpy(id, draft_id(d), JOURNAL_ID);
	assert_int_equal(draft_write(d, 100, "abcd", 4, NULL), 0);
	draft_close(d);
	assert_int_equal(draft_open(f.j, id, NULL, &d, NULL), 0);
	assert_int_equal(draft_read(d, 100, bytes, 4, &got, NULL), 0);
	assert_memory_equal(bytes, "abcd", 4);
	assert_int_equal(draft_read(d, 100, bytes, 5, &got, &err), -EIO);
	assert_string_equal(err.msg, "what lies beneath the draft is not available");
	assert_int_equal(draft_get_about(d)->beneath, BENEATH_SIZE);
	assert_string_equal(draft_get_about(d)->version, "\"etag\"");
	assert_int_equal(draft_get_about(d)->created_ns, 1234567890123456789);
	draft_close(d);
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_map_may_be_cut_at_every_byte),
		cmocka_unit_test(no_changed_byte_of_a_map_is_believed),
		cmocka_unit_test(no_changed_byte_of_a_description_is_believed),
		cmocka_unit_test(after_a_restart_of_the_machine_synced_records_count),
		cmocka_unit_test(a_spool_that_lost_bytes_is_noticed),
		cmocka_unit_test(a_mark_can_be_made_durable),
		cmocka_unit_test(what_was_acknowledged_survives_a_kill),
		cmocka_unit_test(a_changed_spool_is_noticed),
		cmocka_unit_test(missing_checksums_are_noticed),
		cmocka_unit_test(a_changed_spool_is_noticed_after_a_restart),
		cmocka_unit_test(what_lies_beneath_may_be_missing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
