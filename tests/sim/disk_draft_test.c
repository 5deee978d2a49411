/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drafts on a disk that loses its power. A seed decides what is written to a draft, and at which
 * call for the disk the machine stops. What draft_sync() has acknowledged is there afterwards.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "overlay_fixture.h"

#include "disk.h"

enum { SEEDS = 300, OPS = 30, CALLS = 120, SIZE = 200000, VALUES = 255, LONGEST = 70000 };

/* The bytes of the file, as far as they are certain: those of the last draft_sync(), unless
 * something has changed them since. */
struct model {
	uint8_t bytes[SIZE], synced[SIZE];
	bool changed[SIZE]; /* since then */
	uint64_t size;
	/* At and since that time. The draft also synchronises itself, so all of them may be there.
	 */
	uint64_t sizes[2 * OPS];
	unsigned int n_sizes;
	bool is_synced;
};

struct run {
	struct overlay_fixture f;
	struct disk *disk;
	struct draft_snapshot *snapshot;
	struct rng r;
	char life[64]; /* where the disk is after the crash */
	unsigned int calls, last;
	bool stopped;
	struct model m;
};

static ssize_t stop(void *ctx, enum disk_call call, const char *name, size_t n)
{
	struct run *run = ctx;
	if (run->stopped || ++run->calls < run->last)
		return 0;
	run->stopped = true;
	disk_crash(run->disk, run->life, &run->r, DISK_POWER);
	return 0;
}

static void change(struct model *m, uint64_t from, uint64_t to, uint8_t value)
{
	for (uint64_t i = from; i < to; i++) {
		m->bytes[i] = value;
		m->changed[i] = true;
	}
}

static void resize(struct model *m, uint64_t size)
{
	change(m, size < m->size ? size : m->size, size < m->size ? m->size : size, 0);
	m->size = size;
	m->sizes[m->n_sizes++] = size;
}

static void write_some(struct run *run, struct draft *d)
{
	static uint8_t bytes[LONGEST];
	const uint64_t at = rng_once_in(&run->r, 2) ? run->m.size : rng_below(&run->r, SIZE);
	const uint64_t wanted = 1 + rng_below(&run->r, rng_once_in(&run->r, 2) ? 300 : LONGEST);
	const uint64_t n = wanted < SIZE - at ? wanted : SIZE - at;
	const uint8_t value = (uint8_t)(1 + rng_below(&run->r, VALUES));
	if (at + n > run->m.size)
		resize(&run->m, at + n);
	change(&run->m, at, at + n, value);
	memset(bytes, value, n);
	assert_int_equal(draft_write(d, at, bytes, n, NULL), 0);
}

static void resize_some(struct run *run, struct draft *d)
{
	const uint64_t size = rng_below(&run->r, SIZE);
	resize(&run->m, size);
	assert_int_equal(draft_resize(d, size, NULL), 0);
}

static void zero_some(struct run *run, struct draft *d)
{
	const uint64_t at = rng_below(&run->r, SIZE - 1);
	const uint64_t n = 1 + rng_below(&run->r, (unsigned int)(SIZE - at));
	const uint64_t end = at + n < run->m.size ? at + n : run->m.size;
	change(&run->m, at < end ? at : end, end, 0);
	assert_int_equal(draft_allocate(d, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, n, NULL),
			 0);
}

static void sync_all(struct run *run, struct draft *d)
{
	struct model *m = &run->m;
	assert_int_equal(draft_sync(d, NULL), 0);
	if (run->stopped)
		return;
	memcpy(m->synced, m->bytes, sizeof(m->synced));
	memset(m->changed, 0, sizeof(m->changed));
	m->sizes[0] = m->size;
	m->n_sizes = 1;
	m->is_synced = true;
}

/* Begins a commit, or ends it. What is written meanwhile takes a new generation. */
static void seal(struct run *run, struct draft *d)
{
	if (run->snapshot) {
		if (rng_once_in(&run->r, 2))
			draft_snapshot_accept(run->snapshot);
		draft_snapshot_close(run->snapshot);
		run->snapshot = NULL;
		return;
	}
	assert_int_equal(draft_seal(d, &run->snapshot, NULL), 0);
	if (rng_once_in(&run->r, 2))
		assert_int_equal(draft_mark(d, rng_next(&run->r), NULL), 0);
}

static void work(struct run *run, struct draft *d)
{
	for (unsigned int i = 0; i < OPS && !run->stopped; i++) {
		switch (rng_below(&run->r, 10)) {
		case 0:
			resize_some(run, d);
			break;
		case 1:
			zero_some(run, d);
			break;
		case 2:
		case 3:
			sync_all(run, d);
			break;
		case 4:
			seal(run, d);
			break;
		default:
			write_some(run, d);
		}
	}
}

static void check(struct run *run, struct draft *d, uint64_t seed)
{
	static uint8_t bytes[SIZE];
	const struct model *m = &run->m;
	struct err err = ERR_INIT;
	size_t got;
	bool found = false;
	for (unsigned int i = 0; i < m->n_sizes; i++)
		found |= size_of(d) == m->sizes[i];
	if (!found)
		fail_msg("seed %u: %u bytes", (unsigned int)seed, (unsigned int)size_of(d));
	if (draft_read(d, 0, bytes, SIZE, &got, &err))
		fail_msg("seed %u: %s", (unsigned int)seed, err.msg);
	for (size_t i = 0; i < got; i++)
		if (!m->changed[i] && bytes[i] != m->synced[i])
			fail_msg("seed %u: byte %zu", (unsigned int)seed, i);
}

/* Returns whether there was something to check. */
static bool run_seed(uint64_t seed)
{
	static struct run run;
	struct draft *d;
	struct err err = ERR_INIT;
	char id[JOURNAL_ID], command[256], old[64];
	run = (struct run){.r = rng_derive(seed, 1)};
	fixture_begin(&run.f, 1 << 30);
	snprintf(run.life, sizeof(run.life), "%.50s-after", run.f.path);
	assert_int_equal(mkdir(run.life, 0700), 0);
	run.disk = disk_new(run.f.path);
	run.last = 1 + rng_below(&run.r, CALLS);
	disk_set_hook(run.disk, stop, &run);
	d = make_draft(&run.f, &about_new);
	snprintf(id, sizeof(id), "%s", draft_id(d));
	work(&run, d);
	if (!run.stopped)
		disk_crash(run.disk, run.life, &run.r, DISK_POWER);
	run.stopped = true;
	draft_snapshot_close(run.snapshot);
	draft_drop(d, NULL);
	journal_close(run.f.j);
	snprintf(old, sizeof(old), "%s", run.f.path);
	snprintf(run.f.path, sizeof(run.f.path), "%s", run.life);
	run.f.boot[0]++;
	fixture_open(&run.f, 1 << 30);
	const int rc = draft_open(run.f.j, id, NULL, &d, &err);
	if (rc && run.m.is_synced)
		fail_msg("seed %u: %s", (unsigned int)seed, err.msg);
	if (!rc && run.m.is_synced)
		check(&run, d, seed);
	if (!rc)
		assert_int_equal(draft_drop(d, NULL), 0);
	journal_close(run.f.j);
	budget_free(run.f.budget);
	disk_free(run.disk);
	snprintf(command, sizeof(command), "rm -rf %s %s", old, run.life);
	assert_int_equal(system(command), 0);
	return run.m.is_synced;
}

static void what_is_synced_survives(void **state)
{
	unsigned int checked = 0;
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		checked += run_seed(seed);
	assert_true(checked > SEEDS / 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_synced_survives)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
