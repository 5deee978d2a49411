/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eight threads change disjoint parts of one draft, while snapshots are read and generations are
 * joined. For the thread sanitizer, and for the order of changes: at the end, and after a recovery,
 * each part must be what its thread has made of it. And a process that is killed while its threads
 * write: the checksums are true.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "overlay/sums_format.h"
#include "overlay_fixture.h"

enum { THREADS = 8, PART = 40000, FILE_SIZE = THREADS * PART, ROUNDS = 1500 };

struct worker {
	struct draft *d;
	unsigned int number;
	uint32_t random;
	uint8_t model[PART], buf[PART];
	const char *failed;
};

static uint32_t next_random(struct worker *w)
{
	w->random = w->random * 1664525 + 1013904223;
	return w->random >> 8;
}

static void expect(struct worker *w, bool truth, const char *what)
{
	if (!truth && !w->failed)
		w->failed = what;
}

/* The last part is also truncated: its thread alone changes the size of the file. */
static void truncate_part(struct worker *w, uint32_t offset)
{
	const uint64_t start = (uint64_t)w->number * PART;
	expect(w, draft_resize(w->d, start + offset, NULL) == 0, "truncation");
	memset(w->model + offset, 0, PART - offset);
	expect(w, draft_resize(w->d, FILE_SIZE, NULL) == 0, "extension");
}

static void do_one(struct worker *w)
{
	const uint64_t start = (uint64_t)w->number * PART;
	const uint32_t offset = next_random(w) % PART;
	const uint32_t n = 1 + next_random(w) % (PART - offset);
	size_t got = 0;
	switch (next_random(w) % 8) {
	case 0:
		if (w->number == THREADS - 1) {
			truncate_part(w, offset);
			break;
		}
		memset(w->model + offset, 0, n);
		expect(w,
		       draft_allocate(w->d, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				      start + offset, n, NULL) == 0,
		       "hole");
		break;
	case 1:
	case 2:
	case 3:
		expect(w, draft_read(w->d, start + offset, w->buf, n, &got, NULL) == 0, "read");
		expect(w, got == n && memcmp(w->buf, w->model + offset, n) == 0, "bytes");
		break;
	default:
		memset(w->model + offset, (int)next_random(w), n);
		expect(w, draft_write(w->d, start + offset, w->model + offset, n, NULL) == 0,
		       "write");
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	for (unsigned int i = 0; i < ROUNDS; i++)
		do_one(w);
	return NULL;
}

/* Reads the snapshot twice: it does not change. */
static void *commit(void *arg)
{
	struct worker *w = arg;
	static uint8_t first[FILE_SIZE], second[FILE_SIZE];
	for (unsigned int i = 0; i < ROUNDS / 10; i++) {
		struct draft_snapshot *s;
		if (draft_seal(w->d, &s, NULL)) {
			expect(w, false, "seal");
			return NULL;
		}
		struct source *source = draft_snapshot_source(s);
		const size_t n = (size_t)source->size;
		expect(w, source_read(source, 0, first, n, NULL) == 0, "snapshot");
		expect(w, draft_sync(w->d, NULL) == 0, "sync");
		expect(w, source_read(source, 0, second, n, NULL) == 0, "snapshot");
		expect(w, memcmp(first, second, n) == 0, "changed snapshot");
		draft_snapshot_close(s);
	}
	return NULL;
}

static void compare(struct draft *d, const struct worker *workers)
{
	static uint8_t bytes[FILE_SIZE];
	size_t got;
	assert_int_equal(draft_read(d, 0, bytes, FILE_SIZE, &got, NULL), 0);
	assert_int_equal(got, FILE_SIZE);
	for (unsigned int i = 0; i < THREADS; i++)
		assert_memory_equal(bytes + i * PART, workers[i].model, PART);
}

static void threads_do_not_disturb_each_other(void **state)
{
	static struct worker workers[THREADS + 1];
	struct overlay_fixture f;
	pthread_t threads[THREADS + 1];
	char id[JOURNAL_ID];
	fixture_begin(&f, 1 << 30);
	struct draft *d = make_draft(&f, &about_change);
	assert_int_equal(draft_resize(d, FILE_SIZE, NULL), 0);
	for (unsigned int i = 0; i <= THREADS; i++) {
		workers[i] = (struct worker){.d = d, .number = i, .random = i + 1};
		for (unsigned int k = 0; k < PART; k++)
			workers[i].model[k] =
				i * PART + k < BENEATH_SIZE ? beneath_byte(i * PART + k) : 0;
	}
	for (unsigned int i = 0; i <= THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, i < THREADS ? work : commit, &workers[i]),
			0);
	for (unsigned int i = 0; i <= THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned int i = 0; i <= THREADS; i++)
		if (workers[i].failed)
			fail_msg("thread %u: %s", i, workers[i].failed);
	compare(d, workers);
	memcpy(id, draft_id(d), JOURNAL_ID);
	draft_close(d);
	assert_int_equal(draft_open(f.j, id, &fixture_beneath, &d, NULL), 0);
	compare(d, workers);
	assert_int_equal(draft_drop(d, NULL), 0);
	fixture_end(&f);
}

/* ---- killed ---- */

enum { KILLS = 12, FRAMES = (FILE_SIZE + SUMS_FRAME - 1) / SUMS_FRAME };

static void *write_without_end(void *arg)
{
	struct worker *w = arg;
	const uint64_t start = (uint64_t)w->number * PART;
	for (;;) {
		const uint32_t offset = next_random(w) % PART;
		const uint32_t n = 1 + next_random(w) % (next_random(w) % 8 ? 500 : PART - offset);
		const uint32_t end = offset + n < PART ? offset + n : PART;
		memset(w->buf, (int)w->number + 1, end - offset);
		if (draft_write(w->d, start + offset, w->buf, end - offset, NULL))
			_exit(1);
	}
}

/* The process that is killed. It says when all of the file is written. */
static _Noreturn void write_until_killed(struct overlay_fixture *f, uint32_t seed, int ready)
{
	static struct worker workers[THREADS];
	static uint8_t zeros[FILE_SIZE];
	pthread_t thread;
	alarm(60); /* if the test fails before it kills */
	struct draft *d = make_draft(f, &about_new);
	if (draft_write(d, 0, zeros, FILE_SIZE, NULL) || write(ready, "", 1) != 1)
		_exit(1);
	for (unsigned int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){.d = d, .number = i, .random = seed + i};
		pthread_create(&thread, NULL, write_without_end, &workers[i]);
	}
	pthread_join(thread, NULL);
	_exit(1);
}

/* Returns the directory of the draft that was left, and its id. */
static void leave_by_kill(struct overlay_fixture *f, uint32_t seed, char directory[200], char *id)
{
	const struct timespec some_time = {.tv_nsec = (long)(1 + seed % 7) * 3000000};
	char pattern[128], byte;
	glob_t found;
	int ready[2], status;
	assert_int_equal(pipe(ready), 0);
	const pid_t child = fork();
	if (child == 0)
		write_until_killed(f, seed, ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	nanosleep(&some_time, NULL);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	close(ready[0]);
	close(ready[1]);
	snprintf(pattern, sizeof(pattern), "%s/2/*/*/draft", f->path);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	snprintf(directory, 200, "%.*s", (int)strlen(found.gl_pathv[0]) - 6, found.gl_pathv[0]);
	memcpy(id, strrchr(directory, '/') + 1, JOURNAL_ID);
	globfree(&found);
}

/* Opens the draft and reads all of it; each byte is zero or that of the thread of its part. */
static int read_all(struct overlay_fixture *f, const char *id)
{
	static uint8_t bytes[FILE_SIZE];
	struct draft *d;
	size_t got;
	assert_int_equal(draft_open(f->j, id, NULL, &d, NULL), 0);
	const int rc = draft_read(d, 0, bytes, FILE_SIZE, &got, NULL);
	for (size_t i = 0; rc == 0 && i < FILE_SIZE; i++)
		assert_true(bytes[i] == 0 || bytes[i] == i / PART + 1);
	draft_close(d);
	return rc;
}

/* A changed byte of each frame is noticed, unless the frame was being written. */
static void a_process_is_killed(void **state)
{
	unsigned int unknown = 0;
	for (uint32_t seed = 1; seed <= KILLS; seed++) {
		struct overlay_fixture f;
		char directory[200], path[220], id[JOURNAL_ID];
		fixture_begin(&f, 1 << 30);
		leave_by_kill(&f, seed, directory, id);
		assert_int_equal(read_all(&f, id), 0);
		snprintf(path, sizeof(path), "%s/spool.0", directory);
		const int spool = open(path, O_RDWR | O_CLOEXEC);
		snprintf(path, sizeof(path), "%s/sums.0", directory);
		const int sums = open(path, O_RDONLY | O_CLOEXEC);
		for (uint32_t i = 0; i < FRAMES; i++) {
			struct sum_entry entry;
			uint8_t bytes[SUMS_ENTRY], byte;
			const off_t at = (off_t)i * SUMS_FRAME + seed;
			assert_int_equal(
				pread(sums, bytes, sizeof(bytes), SUMS_HEADER + i * SUMS_ENTRY),
				sizeof(bytes));
			assert_int_equal(sum_entry_decode(0, i, bytes, &entry), 0);
			unknown += entry.unknown;
			if (entry.unknown)
				continue;
			assert_int_equal(pread(spool, &byte, 1, at), 1);
			byte ^= 1;
			assert_int_equal(pwrite(spool, &byte, 1, at), 1);
			assert_int_equal(read_all(&f, id), -EBADMSG);
			byte ^= 1;
			assert_int_equal(pwrite(spool, &byte, 1, at), 1);
		}
		close(spool);
		close(sums);
		assert_int_equal(journal_drop(f.j, id, NULL), 0);
		fixture_end(&f);
	}
	assert_in_range(unknown, 0, KILLS * FRAMES - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_is_killed), /* first: it forks */
		cmocka_unit_test(threads_do_not_disturb_each_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
