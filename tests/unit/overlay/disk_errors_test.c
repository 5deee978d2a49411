/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that fails at each call that changes it, and a daemon that is killed there: see
 * disk_calls.h. One script of changes runs again and again; a model says
 * for each byte which changes may be seen there. Afterwards, the draft can be opened, and no byte
 * is wrong.
 */
#include "disk_calls.h"

#include <glob.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <overlay/draft_plan.h>

#include "overlay/sums_format.h"
#include "overlay_fixture.h"

/* The sanitizers are slow: with them, only some of the calls fail. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { EVERY = 7 };
#else
enum { EVERY = 1 };
#endif

/* ---- the model ---- */

enum { MAX = 150000, STEPS = 32, SIZES = STEPS + 1 };

/* Change k writes the byte k; 0 is a byte that was never written or was set to zero. Bit k of a
 * byte says that it may be k. */
struct model {
	uint32_t allowed[MAX];
	uint64_t size[SIZES]; /* that the file may have */
	unsigned int n_sizes;
	bool made, dropped; /* draft_create() has succeeded; draft_drop() has begun */
	/* draft_put_plan() has begun and draft_remove_plan() not ended; the reverse */
	bool may_have_plan, must_have_plan;
};

static void model_begin(struct model *m)
{
	memset(m, 0, sizeof(*m));
	for (unsigned int i = 0; i < MAX; i++)
		m->allowed[i] = 1;
	m->n_sizes = 1;
}

static void allow(struct model *m, uint64_t start, uint64_t end, unsigned int k, bool certain)
{
	for (uint64_t i = start; i < end; i++)
		m->allowed[i] = (certain ? 0 : m->allowed[i]) | 1u << k;
}

static void add_size(struct model *m, uint64_t size)
{
	for (unsigned int i = 0; i < m->n_sizes; i++)
		if (m->size[i] == size)
			return;
	assert_true(m->n_sizes < SIZES);
	m->size[m->n_sizes++] = size;
}

/* A write to the end: the file may have grown from each of its sizes. */
static void grow(struct model *m, uint64_t end, bool certain)
{
	const unsigned int n = m->n_sizes;
	uint64_t old[SIZES];
	memcpy(old, m->size, sizeof(old));
	if (certain)
		m->n_sizes = 0;
	for (unsigned int i = 0; i < n; i++)
		add_size(m, old[i] > end ? old[i] : end);
}

static void resize(struct model *m, uint64_t size, bool certain)
{
	if (certain)
		m->n_sizes = 0;
	add_size(m, size);
	allow(m, size, MAX, 0, certain);
}

static void assert_fits(const struct model *m, const uint8_t *bytes, uint64_t size)
{
	bool possible = false;
	for (unsigned int i = 0; i < m->n_sizes; i++)
		possible |= m->size[i] == size;
	if (!possible)
		fail_msg("call %u: size %llu", disk.at, (unsigned long long)size);
	for (uint64_t i = 0; i < size; i++)
		if (bytes[i] >= STEPS || !(m->allowed[i] >> bytes[i] & 1))
			fail_msg("call %u: byte %llu is %u, allowed %x", disk.at,
				 (unsigned long long)i, bytes[i], m->allowed[i]);
}

/* ---- the script ---- */

enum what { WRITE, RESIZE, ZERO, SYNC, MARK, SEAL, UNSEAL, DESCRIBE, PLAN, UNPLAN };

/* Each kind of change, before, within and after a snapshot; generations that are joined; plans that
 * are removed before and after the end of their snapshot. */
static const struct step {
	enum what what;
	uint32_t at, n;
} script[] = {
	{WRITE, 0, 70000},    {WRITE, 80000, 10},   {WRITE, 100, 50},	   {RESIZE, 60000, 0},
	{SYNC, 0, 0},	      {WRITE, 60000, 9000}, {ZERO, 4000, 9000},	   {MARK, 0, 0},
	{SEAL, 0, 0},	      {WRITE, 50, 100},	    {WRITE, 70000, 60000}, {RESIZE, 100000, 0},
	{PLAN, 0, 0},	      {SYNC, 0, 0},	    {UNPLAN, 0, 0},	   {UNSEAL, 0, 0},
	{WRITE, 99000, 3000}, {SEAL, 0, 0},	    {PLAN, 0, 0},	   {WRITE, 98000, 5000},
	{ZERO, 98500, 10},    {UNSEAL, 0, 0},	    {SEAL, 0, 0},	   {UNSEAL, 0, 0},
	{DESCRIBE, 0, 0},     {WRITE, 1, 1},	    {UNPLAN, 0, 0},	   {RESIZE, 500, 0},
	{SYNC, 0, 0},	      {WRITE, 700, 7},
};
enum { SCRIPT = sizeof(script) / sizeof(script[0]) };
_Static_assert((int)SCRIPT < (int)STEPS, "a change has a bit");

struct run {
	struct draft *d;
	struct draft_snapshot *snapshot;
	struct model *m;
	uint8_t sealed[MAX]; /* what the snapshot had at first */
};

static int change(struct run *r, unsigned int k, const struct step *s)
{
	static uint8_t bytes[MAX];
	memset(bytes, (int)k, sizeof(bytes));
	switch (s->what) {
	case WRITE:
		return draft_write(r->d, s->at, bytes, s->n, NULL);
	case RESIZE:
		return draft_resize(r->d, s->at, NULL);
	case ZERO:
		return draft_allocate(r->d, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, s->at, s->n,
				      NULL);
	case SYNC:
		return draft_sync(r->d, NULL);
	case MARK:
		return draft_mark(r->d, k, NULL);
	case DESCRIBE:
		return draft_describe(r->d, "p", "/p", "", NULL);
	default:
		return 0;
	}
}

static void note(struct model *m, unsigned int k, const struct step *s, bool certain)
{
	if (s->what == WRITE) {
		allow(m, s->at, s->at + s->n, k, certain);
		grow(m, s->at + s->n, certain);
	} else if (s->what == RESIZE) {
		resize(m, s->at, certain);
	} else if (s->what == ZERO) {
		allow(m, s->at, s->at + s->n, 0, certain);
	}
}

static void read_snapshot(struct run *r, uint8_t *bytes)
{
	struct source *source = draft_snapshot_source(r->snapshot);
	assert_int_equal(source_read(source, 0, bytes, (size_t)source->size, NULL), 0);
}

static void seal(struct run *r)
{
	if (draft_seal(r->d, &r->snapshot, NULL)) {
		r->snapshot = NULL;
		return;
	}
	read_snapshot(r, r->sealed);
	/* As long as there is a plan, it is the snapshot of the plan. */
	if (!r->m->may_have_plan)
		assert_fits(r->m, r->sealed, draft_snapshot_source(r->snapshot)->size);
}

static void unseal(struct run *r)
{
	static uint8_t bytes[MAX];
	if (!r->snapshot)
		return;
	read_snapshot(r, bytes);
	assert_memory_equal(bytes, r->sealed, draft_snapshot_source(r->snapshot)->size);
	draft_snapshot_close(r->snapshot);
	r->snapshot = NULL;
}

static void compare(struct draft *d, const struct model *m)
{
	static uint8_t bytes[MAX];
	size_t got;
	assert_int_equal(draft_read(d, 0, bytes, MAX, &got, NULL), 0);
	assert_fits(m, bytes, got);
}

/* ---- plans ---- */

static const char body[] = "the body of a plan", key[] = "key";

static int put_plan(struct run *r)
{
	struct plan_operation op = {.action = PLAN_PUT, .body = PLAN_FILE, .key = key};
	struct plan_operation ops[2] = {op, op};
	int rc = r->snapshot ? 0 : -EINVAL;
	for (unsigned int i = 0; rc == 0 && i < 2; i++) {
		ops[i].version = "";
		ops[i].length = sizeof(body);
		plan_digest(body, sizeof(body), ops[i].sha256);
		rc = draft_add_body(r->d, body, sizeof(body), &ops[i].offset, NULL);
	}
	if (rc == 0) {
		r->m->may_have_plan = true;
		rc = draft_put_plan(r->d, ops, 2, NULL, NULL);
	}
	r->m->must_have_plan = rc == 0;
	return rc ? rc : draft_note_operation(r->d, 1, PLAN_DONE, NULL);
}

static void remove_plan(struct run *r)
{
	r->m->must_have_plan = false;
	if (draft_remove_plan(r->d, NULL) == 0)
		r->m->may_have_plan = false;
}

/* If there is a plan, its bodies are there. */
static void check_plan(struct draft *d, const struct model *m)
{
	struct plan plan;
	char bytes[sizeof(body)];
	const int rc = draft_get_plan(d, &plan, NULL);
	assert_true(rc == 0 || (rc == -ENOENT && !m->must_have_plan));
	assert_true(rc != 0 || m->may_have_plan);
	for (uint32_t i = 0; rc == 0 && i < plan.count; i++)
		assert_int_equal(draft_read_planned(d, NULL, &plan.operations[i], bytes, NULL), 0);
	plan_release(&plan);
}

/* Runs the script; what was not successful may have happened or not. At the end the draft is closed
 * or dropped. */
static void run_script(struct overlay_fixture *f, struct model *m, bool drops)
{
	static struct run r;
	r = (struct run){.m = m};
	if (draft_create(f->j, &about_new, NULL, &r.d, NULL))
		return;
	m->made = true;
	for (unsigned int i = 0; i < SCRIPT; i++) {
		const unsigned int k = i + 1;
		note(m, k, &script[i], false);
		if (script[i].what == SEAL)
			seal(&r);
		else if (script[i].what == UNSEAL)
			unseal(&r);
		else if (script[i].what == PLAN)
			put_plan(&r);
		else if (script[i].what == UNPLAN)
			remove_plan(&r);
		else if (change(&r, k, &script[i]) == 0)
			note(m, k, &script[i], true);
		if (i % 4 == 0)
			compare(r.d, m);
	}
	unseal(&r);
	compare(r.d, m);
	m->dropped = drops;
	if (drops)
		draft_drop(r.d, NULL);
	else
		draft_close(r.d);
}

/* ---- what is found ---- */

static unsigned int frames_unknown; /* of all runs */

struct found {
	char id[JOURNAL_ID];
	unsigned int left, unreadable;
};

static int note_item(void *ctx, const struct journal_item *item)
{
	struct found *f = ctx;
	if (item->state == JOURNAL_UNREADABLE)
		f->unreadable++;
	else
		f->left++;
	memcpy(f->id, item->id, JOURNAL_ID);
	return 0;
}

/* Frames whose entry in a file of checksums says that it is unknown. */
static unsigned int count_unknown(const char *path)
{
	uint8_t bytes[SUMS_ENTRY];
	const uint32_t generation = (uint32_t)strtoul(strrchr(path, '.') + 1, NULL, 10);
	unsigned int n = 0;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	for (uint32_t i = 0; pread(fd, bytes, SUMS_ENTRY, SUMS_HEADER + i * SUMS_ENTRY) > 0; i++) {
		struct sum_entry entry;
		if (sum_entry_decode(generation, i, bytes, &entry))
			fail_msg("call %u: %s: entry %u is damaged", disk.at, path, i);
		n += entry.unknown;
	}
	close(fd);
	return n;
}

/* When the daemon was killed, only the frames have no checksum that were being overwritten. */
static void assert_checksums(const struct overlay_fixture *f)
{
	char pattern[128];
	glob_t found;
	unsigned int unknown = 0;
	snprintf(pattern, sizeof(pattern), "%s/2/*/*/sums.*", f->path);
	if (glob(pattern, 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			unknown += count_unknown(found.gl_pathv[i]);
	globfree(&found);
	assert_in_range(unknown, 0, MAX / SUMS_FRAME + 1);
	frames_unknown += unknown;
}

/* Another process opens the journal. */
static void recover(struct overlay_fixture *f, const struct model *m)
{
	struct found found = {.left = 0};
	struct draft *d;
	struct err err = ERR_INIT;
	disk.how = WORKS;
	journal_close(f->j);
	fixture_open(f, 1 << 30);
	assert_int_equal(journal_list(f->j, note_item, &found, NULL), 0);
	assert_int_equal(found.unreadable, 0);
	/* It may have got its name a moment ago, or lost it. */
	assert_in_range(found.left, m->made && !m->dropped, 1);
	if (found.left) {
		if (draft_open(f->j, found.id, NULL, &d, &err))
			fail_msg("call %u: %s", disk.at, err.msg);
		compare(d, m);
		check_plan(d, m);
		assert_int_equal(draft_drop(d, NULL), 0);
	}
	assert_int_equal(room_used(f), 0);
}

static struct model *new_model(void)
{
	struct model *m =
		mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(m != MAP_FAILED);
	model_begin(m);
	return m;
}

/* Makes the disk fail at each call in turn. */
static void fail_everywhere(enum how how, int code, bool drops)
{
	struct overlay_fixture f;
	bool reached = true;
	fixture_begin(&f, 1 << 30);
	for (unsigned int at = 1; reached; at += EVERY) {
		struct model *m = new_model();
		disk_fail(how, at, code);
		run_script(&f, m, drops);
		reached = disk.calls >= at;
		recover(&f, m);
		munmap(m, sizeof(*m));
	}
	assert_true(disk.at > 60);
	fixture_end(&f);
}

static void the_disk_fails_once(void **state)
{
	fail_everywhere(FAILS_ONCE, EIO, true);
	fail_everywhere(FAILS_ONCE, ENOSPC, false);
}

static void the_disk_fails_for_good(void **state)
{
	fail_everywhere(FAILS_FOR_GOOD, EIO, false);
	fail_everywhere(FAILS_FOR_GOOD, ENOSPC, true);
}

static void the_disk_fails_after_half_of_a_write(void **state)
{
	fail_everywhere(FAILS_AFTER_HALF, EIO, false);
	fail_everywhere(FAILS_AFTER_HALF, ENOSPC, false);
}

static void kill_everywhere(enum how how, bool drops)
{
	struct overlay_fixture f;
	bool reached = true;
	fixture_begin(&f, 1 << 30);
	for (unsigned int at = 1; reached; at += EVERY) {
		struct model *m = new_model();
		int status;
		disk.at = at;
		const pid_t child = fork();
		if (child == 0) {
			disk_fail(how, at, 0);
			run_script(&f, m, drops);
			_exit(7);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		reached = WEXITSTATUS(status) == 0;
		if (!reached)
			assert_int_equal(WEXITSTATUS(status), 7);
		assert_checksums(&f);
		recover(&f, m);
		munmap(m, sizeof(*m));
	}
	assert_true(disk.at > 60);
	assert_true(frames_unknown > 0);
	fixture_end(&f);
}

static void the_daemon_is_killed(void **state)
{
	kill_everywhere(KILLED_BEFORE, true);
	kill_everywhere(KILLED_AFTER_HALF, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_disk_fails_once),
		cmocka_unit_test(the_disk_fails_for_good),
		cmocka_unit_test(the_disk_fails_after_half_of_a_write),
		cmocka_unit_test(the_daemon_is_killed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
