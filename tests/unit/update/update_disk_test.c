/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates with a journal on a disk that fails at the n-th call of libc, for n = 1, 2, … until
 * nothing fails. The update returns the error, which is not taken for damage of the file, and the
 * next one gives the bucket that an update without a failure gives.
 */
#include "disk_calls.h"
#include <overlay/draft_plan.h>

#include <glob.h>

#include "update_edits.h"

/* The sanitizers are slow: with them, only some of the calls fail. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { EVERY = 9 };
#else
enum { EVERY = 1 };
#endif

/* Each way in which an update adds a body, documents of two phases among them. */
static const struct disk_case {
	const char *name;
	void (*make)(struct draft *d);
	bool reads; /* they fail, too */
} cases[] = {
	{"a dataset shrinks and grows", edit_shrink_and_write, true},
	{"a group is removed", edit_delete_group, false},
	{"two objects move in a circle", edit_circle, false},
	{"a new dataset", edit_new_dataset, false},
	{"nothing changes", edit_same_bytes, false},
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

/* From now on, all bodies are in the file `bodies`: the plan has no room for them. */
static void fill_plan(struct draft *d)
{
	static const char bytes[PLAN_INLINE_MAX];
	struct plan_operation op = {.action = PLAN_PUT};
	for (unsigned int i = 0; i < PLAN_INLINE_SUM / PLAN_INLINE_MAX; i++)
		assert_int_equal(draft_set_body(d, &op, bytes, sizeof(bytes), NULL), 0);
	assert_int_equal(op.body, PLAN_INLINE);
}

static struct world *begin(const struct disk_case *c)
{
	struct world *w = world_begin();
	c->make(w->draft);
	fill_plan(w->draft);
	return w;
}

/* The bucket before and after an update that nothing disturbs. Heap. */
struct contents {
	char *before, *after;
};

static struct contents run_whole(const struct disk_case *c)
{
	struct world *w = begin(c);
	struct contents all = {.before = gate_content(w->gate, "")};
	if (world_update(w))
		fail_msg("%s: %s", c->name, w->err.msg);
	all.after = gate_content(w->gate, "");
	world_end(w);
	return all;
}

/* What an update may do without: to note that an operation is done, because it may be done twice;
 * to remove the files that mean nothing once the plan is gone, with a sync of the directory in
 * between; and to read a document again that was put, for the cache. */
static bool is_ignored(const struct world *w)
{
	const char *const ignored[][2] = {
		{"openat", "done"}, {"write", "done"},	    {"unlinkat", "done"},
		{"fsync", w->id},   {"unlinkat", "bodies"}, {"pread", "bodies"},
	};
	const char *name = disk_base_name(disk.failed_path);
	for (unsigned int i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		if (strcmp(disk.failed, ignored[i][0]) == 0 && strcmp(name, ignored[i][1]) == 0)
			return true;
	return false;
}

/* The kernel reports a lost page once, so nothing is durable any more after a failed sync. */
static bool is_lost(const struct world *w, int rc)
{
	return (rc == -EIO || rc == -ENOSPC) &&
	       (strstr(w->err.msg, "an earlier sync of the draft failed") ||
		strstr(w->err.msg, "cannot sync the file `bodies`"));
}

/* False: the call n was not reached. */
static bool fail_at(const struct disk_case *c, const struct contents *all, unsigned int n, int code)
{
	struct world *w = begin(c);
	disk.reads = c->reads;
	disk_fail(FAILS_ONCE, n, code);
	const int rc = world_update(w);
	const bool reached = disk.calls >= n;
	disk.how = WORKS;
	if (rc != (reached ? -code : 0) && !(rc == 0 && is_ignored(w)))
		fail_msg("%s: call %u, %s of %s, fails: %d %s", c->name, n,
			 reached ? disk.failed : "nothing", disk.failed_path, rc, w->err.msg);
	assert_false(w->result.refused);
	const int again = rc ? world_update(w) : 0;
	if (again && !is_lost(w, again))
		fail_msg("%s: after call %u, %s of %s: %s", c->name, n, disk.failed,
			 disk.failed_path, w->err.msg);
	auto_free char *end = gate_content(w->gate, "");
	if (strcmp(end, again ? all->before : all->after) != 0)
		fail_msg("%s: after call %u, %s of %s, the bucket is not the same", c->name, n,
			 disk.failed, disk.failed_path);
	world_end(w);
	return reached;
}

static void each_failure_of_the_disk_is_an_error(void **state)
{
	for (unsigned int i = 0; i < CASES; i++) {
		const struct contents all = run_whole(&cases[i]);
		unsigned int n = 1 + i % EVERY;
		while (fail_at(&cases[i], &all, n, n % 2 ? ENOSPC : EIO))
			n += EVERY;
		free(all.before);
		free(all.after);
		assert_true(n > 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_failure_of_the_disk_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
