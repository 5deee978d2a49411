/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eight threads change disjoint parts of one draft, while snapshots are read and generations are
 * joined. For the thread sanitizer, and for the order of changes: at the end, and after a recovery,
 * each part must be what its thread has made of it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_do_not_disturb_each_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
