/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans that are run: in the order of their phases, with one request for each operation, and with
 * the same bucket at the end however often and wherever a run was interrupted.
 */
#include "apply_fixture.h"
#include <overlay/draft_plan.h>

#include "mem_store.h"
#include "sampling.h"

/* The sanitizers are slow: with them, only some of the requests fail. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { EVERY = 13 };
#else
enum { EVERY = 1 };
#endif

/* ---- tests ---- */

static void runs_in_order(unsigned int flags, unsigned int workers)
{
	struct apply_result out;
	struct world *w = open_world(flags, workers);
	w->trial->is_ordered = true;
	assert_runs(w, false, &out);
	assert_int_equal(atomic_load(&w->trial->changes), COUNT);
	assert_int_equal(atomic_load(&w->trial->others), 0);
	assert_int_equal(atomic_load(&w->trial->retried), 0);
	assert_int_equal(atomic_load(&w->trial->syncs), 8);
	assert_int_equal(out.puts, COUNT - 31);
	assert_int_equal(out.deletes, 31);
	assert_in_range(out.bytes, 10 * out.puts, 17 * out.puts);
	for (unsigned int i = 0; i < COUNT; i++)
		assert_int_equal(w->done[i], 1);
	check_bucket(w);
	/* What is done is not done again. */
	assert_runs(w, true, &out);
	assert_int_equal(out.puts + out.deletes, 0);
	assert_int_equal(atomic_load(&w->trial->changes), 0);
	/* Unless the notes are lost. */
	restart(w, true);
	assert_runs(w, true, &out);
	assert_int_equal(out.puts + out.deletes, COUNT);
	assert_int_equal(atomic_load(&w->trial->retried), COUNT - 31 - 8);
	check_bucket(w);
	assert_int_equal(draft_remove_plan(w->d, NULL), 0);
	close_world(w);
}

static void phases_follow_each_other(void **state)
{
	for (unsigned int i = 0; i < 4; i++) {
		runs_in_order(0, i * 2);
		runs_in_order(IN_DIR, i * 2);
	}
}

/* From request `at` on, the bucket cannot be reached; then another process goes on. */
static void stop_at(unsigned int flags, unsigned int workers, unsigned int at, bool lost)
{
	struct apply_result out;
	struct world *w = open_world(flags, workers);
	w->trial->at = at;
	w->trial->times = FOREVER;
	w->trial->code = -EIO;
	w->trial->lost = lost;
	assert_int_equal(run_plan(w, false, &out, NULL), -EIO);
	assert_in_range(out.puts + out.deletes, 0, at - 1);
	reset_trial(w);
	restart(w, at % 3 == 0);
	assert_runs(w, true, &out);
	check_bucket(w);
	close_world(w);
}

static void another_process_goes_on(void **state)
{
	for (unsigned int at = 1; at <= COUNT; at += EVERY)
		stop_at(0, 0, at, at % 2);
	for (unsigned int at = 1; at <= COUNT; at += 11 * EVERY) {
		stop_at(IN_DIR, 0, at, false);
		stop_at(IN_DIR, 0, at, true);
		stop_at(0, 3, at, false);
		stop_at(0, 3, at, true);
	}
}

/* One request fails. */
static void fail_at(unsigned int flags, unsigned int at, int code, bool lost)
{
	struct apply_result out;
	struct world *w = open_world(flags, 0);
	w->trial->at = at;
	w->trial->times = 1;
	w->trial->code = code;
	w->trial->lost = lost;
	const enum plan_condition condition = w->ops[at - 1].condition;
	const bool is_refusal = code == -ESTALE || code == -EEXIST;
	/* The answer is that a condition has failed, but it has not, or through the same put. */
	int expected = is_refusal && condition != PLAN_ALWAYS ? 0 : is_refusal ? -EIO : code;
	if (flags & WITH_RETRY)
		expected = 0;
	assert_int_equal(run_plan(w, false, &out, NULL), expected);
	if (expected == 0)
		assert_int_equal(out.puts + out.deletes, COUNT);
	else
		assert_runs(w, true, &out);
	check_bucket(w);
	close_world(w);
}

static void each_request_may_fail_once(void **state)
{
	static const int codes[] = {-EIO,    -EACCES,	 -ENOSPC, -ESTALE,    -EEXIST,
				    -ENOMEM, -ECANCELED, -EINVAL, -ETIMEDOUT, -EDQUOT};
	const unsigned int step = sampling_step(5);
	for (unsigned int c = 0; c < sizeof(codes) / sizeof(codes[0]); c++)
		for (unsigned int at = 1 + c; at <= COUNT; at += step * (c ? 17 : 3 * EVERY))
			for (unsigned int lost = 0; lost < 2; lost++)
				fail_at(0, at, codes[c], lost);
	for (unsigned int at = 1; at <= COUNT; at += 17 * step)
		for (unsigned int lost = 0; lost < 2; lost++) {
			fail_at(IN_DIR, at, -EIO, lost);
			fail_at(IN_DIR, at, -ESTALE, lost);
			fail_at(WITH_RETRY, at, -EAGAIN, lost);
		}
}

/* Another program puts or deletes the object of an operation. */
static void conflict_at(unsigned int at, bool is_deleted, unsigned int workers)
{
	struct apply_result out;
	struct err err = ERR_INIT;
	struct call_result res;
	struct world *w = open_world(0, workers);
	const struct plan_operation *op = &w->ops[at];
	/* As long as one of the texts, so that the bytes are compared. */
	if (is_deleted)
		assert_int_equal(call_delete(w->store, op->key, NULL, NULL), 0);
	else
		assert_int_equal(call_put(w->store, op->key, "theirs .........", 10 + at % 7, NULL,
					  NULL, NULL),
				 0);
	for (unsigned int tries = 0; tries < 2; tries++) {
		assert_int_equal(run_plan(w, tries != 0, &out, &err), -ESTALE);
		assert_int_equal(out.conflict, at);
		assert_non_null(strstr(err.msg, op->key));
		for (unsigned int i = 0; i < COUNT; i++)
			if (w->ops[i].phase != op->phase)
				assert_int_equal(w->done[i], w->ops[i].phase < op->phase);
		assert_int_equal(w->done[at], 0);
	}
	const int rc = call_get(w->store, op->key, 0, UINT64_MAX, 0, NULL, &res, NULL);
	assert_int_equal(rc, is_deleted ? -ENOENT : 0);
	if (rc == 0)
		assert_memory_equal(res.body.data, "theirs .........", 10 + at % 7);
	bytes_release(&res.body);
	close_world(w);
}

static void a_conflict_ends_the_run(void **state)
{
	unsigned int i = 0;
	for (unsigned int p = 0; p < PARTS; i += parts[p++].n) {
		const struct part *part = &parts[p];
		if (part->condition == PLAN_ALWAYS || part->phase > 6)
			continue;
		for (unsigned int k = 0; k < part->n; k += 7) {
			conflict_at(i + k, false, k % 4);
			if (part->condition == PLAN_IF_VERSION && part->action == PLAN_PUT &&
			    part->phase != 3)
				conflict_at(i + k, true, k % 4);
		}
	}
}

/* Another program puts the bytes that the plan puts: a conflict all the same. */
static void equal_bytes_at(unsigned int at, unsigned int lacks)
{
	struct apply_result out;
	struct world *w = open_world(0, 0);
	store_mem_set_lacks(w->trial->base.inner, lacks, NULL, NULL);
	assert_int_equal(
		call_put(w->store, w->keys[at], w->texts[at], w->ops[at].length, NULL, NULL, NULL),
		0);
	for (unsigned int tries = 0; tries < 2; tries++) {
		assert_int_equal(run_plan(w, tries != 0, &out, NULL), -ESTALE);
		assert_int_equal(out.conflict, at);
	}
	/* Nor has a later process forgotten that the bucket has refused it. */
	restart(w, false);
	assert_int_equal(run_plan(w, true, &out, NULL), -ESTALE);
	assert_int_equal(out.conflict, at);
	close_world(w);
}

static void equal_bytes_are_a_conflict(void **state)
{
	for (unsigned int at = 1; at < 150; at += 13) {
		equal_bytes_at(at, 0);
		equal_bytes_at(at, STORE_MEM_NO_MARKS);
	}
}

/* The answer to a put is lost. Without marks, the journal knows that it was sent. */
static void a_lost_answer_is_found(unsigned int at, unsigned int lacks, bool loses_notes, int code)
{
	struct apply_result out;
	struct world *w = open_world(0, 0);
	store_mem_set_lacks(w->trial->base.inner, lacks, NULL, NULL);
	w->trial->at = at + 1;
	w->trial->times = 1;
	w->trial->code = -EIO;
	w->trial->lost = true;
	assert_int_equal(run_plan(w, false, &out, NULL), -EIO);
	reset_trial(w);
	restart(w, loses_notes);
	assert_int_equal(run_plan(w, true, &out, NULL), code);
	if (code == 0)
		check_bucket(w);
	close_world(w);
}

/* After a lost answer, another program puts an object of n bytes. Returns how many requests it
 * takes to find the conflict. */
static unsigned int requests_of_conflict(unsigned int at, uint64_t n)
{
	static const char theirs[64] = "theirs";
	struct apply_result out;
	struct world *w = open_world(0, 0);
	store_mem_set_lacks(w->trial->base.inner, STORE_MEM_NO_MARKS, NULL, NULL);
	w->trial->at = at + 1;
	w->trial->times = 1;
	w->trial->code = -EIO;
	w->trial->lost = true;
	assert_int_equal(run_plan(w, false, &out, NULL), -EIO);
	reset_trial(w);
	assert_int_equal(
		call_put(w->store, w->keys[at], theirs, w->ops[at].length + n, NULL, NULL, NULL),
		0);
	reset_trial(w);
	assert_int_equal(run_plan(w, true, &out, NULL), -ESTALE);
	const unsigned int others = atomic_load(&w->trial->others);
	close_world(w);
	return others;
}

/* The bytes are read only if they may be those of the plan. */
static void an_object_of_another_size_is_not_read(void **state)
{
	for (unsigned int at = 1; at < 150; at += 13)
		assert_int_equal(requests_of_conflict(at, 1) + 1, requests_of_conflict(at, 0));
}

static void own_puts_are_known_by_their_marks(void **state)
{
	for (unsigned int at = 1; at < 150; at += 13) {
		a_lost_answer_is_found(at, 0, false, 0);
		a_lost_answer_is_found(at, 0, true, 0);
		a_lost_answer_is_found(at, STORE_MEM_NO_MARKS, false, 0);
		/* Nobody knows who has put these bytes. */
		a_lost_answer_is_found(at, STORE_MEM_NO_MARKS, true, -ESTALE);
	}
}

/* A DELETE and a later put of one key: the put is done, and its note has survived alone. */
static void a_delete_does_not_come_late(void **state)
{
	struct apply_result out;
	struct world *w = open_world(0, 0);
	const struct plan_operation ops[] = {
		{.action = PLAN_DELETE, .phase = 1, .key = "p8/x", .version = ""},
		{.action = PLAN_PUT, .phase = 2, .key = "p8/x", .version = ""},
	};
	struct plan_operation both[2];
	memcpy(both, ops, sizeof(both));
	assert_int_equal(draft_set_body(w->d, &both[1], "new", 3, NULL), 0);
	assert_int_equal(draft_put_plan(w->d, both, 2, NULL, NULL), 0);
	assert_int_equal(call_put(w->store, "p8/x", "new", 3, NULL, NULL, NULL), 0);
	assert_int_equal(draft_note_operation(w->d, 1, PLAN_DONE, NULL), 0);
	reset_trial(w);
	assert_int_equal(run_plan(w, true, &out, NULL), 0);
	assert_int_equal(atomic_load(&w->trial->changes), 0);
	close_world(w);
}

/* Another program comes between two operations of one key. */
static void a_conflict_of_the_second_change(void **state)
{
	struct apply_result out;
	struct world *w = open_world(0, 0);
	unsigned int at = 0;
	while (w->ops[at].phase < 7)
		at++;
	w->cancel_after = at; /* the phases before */
	assert_int_equal(run_plan(w, false, &out, NULL), -ECANCELED);
	atomic_store(&w->cancelled, false);
	assert_int_equal(call_put(w->store, w->keys[at], "theirs", 6, NULL, NULL, NULL), 0);
	assert_int_equal(run_plan(w, true, &out, NULL), -ESTALE);
	assert_int_equal(out.conflict, at);
	close_world(w);
}

static void a_cancelled_run_goes_on_later(void **state)
{
	for (unsigned int at = 1; at < COUNT; at += 5 * EVERY) {
		struct apply_result out;
		struct world *w = open_world(0, at % 4);
		w->cancel_after = at;
		assert_int_equal(run_plan(w, false, &out, NULL), -ECANCELED);
		assert_in_range(out.puts + out.deletes, at, at + 24);
		assert_int_equal(count_done(w), out.puts + out.deletes);
		atomic_store(&w->cancelled, false);
		assert_runs(w, false, &out);
		check_bucket(w);
		for (unsigned int i = 0; i < COUNT; i++)
			assert_int_equal(w->done[i], 1);
		close_world(w);
	}
}

static void notes_may_fail(void **state)
{
	char path[256];
	struct apply_result out;
	struct world *w = open_world(IN_DIR, 2);
	find_file(w, "done", path);
	assert_int_equal(mkfifo(path, 0600), 0);
	struct plan plan;
	assert_int_equal(draft_get_plan(w->d, &plan, NULL), -EINVAL);
	unlink(path);
	assert_int_equal(draft_get_plan(w->d, &plan, NULL), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	const struct apply a = {.env = &w->f.env,
				.store = w->store,
				.draft = w->d,
				.snapshot = w->s,
				.plan = &plan,
				.puts = 3};
	assert_int_equal(apply_run(&a, &out, NULL), 0);
	plan_release(&plan);
	unlink(path);
	assert_int_equal(count_done(w), 0);
	assert_runs(w, true, &out);
	check_bucket(w);
	close_world(w);
}

static void a_damaged_body_is_not_put(void **state)
{
	char path[256];
	struct apply_result out;
	struct err err = ERR_INIT;
	struct world *w = open_world(0, 2);
	find_file(w, "bodies", path);
	const int fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, "?", 1, 0), 1);
	close(fd);
	assert_int_equal(run_plan(w, false, &out, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "p3/080"));
	for (unsigned int i = 0; i < COUNT; i++)
		if (w->ops[i].phase > 3)
			assert_int_equal(w->done[i], 0);
	close_world(w);
}

static void a_phase_has_a_key_once(void **state)
{
	struct apply_result out;
	struct world *w = open_world(0, 0);
	w->ops[5].key = w->keys[7];
	assert_int_equal(draft_put_plan(w->d, w->ops, COUNT, NULL, NULL), 0);
	assert_int_equal(run_plan(w, false, &out, NULL), -EINVAL);
	assert_int_equal(atomic_load(&w->trial->changes), 0);
	close_world(w);
}

/* The order of the phases does not depend on the order in the plan. */
static void a_plan_may_be_in_any_order(void **state)
{
	struct apply_result out;
	struct world *w = open_world(0, 2);
	for (unsigned int i = 0; i < COUNT / 2; i++) {
		const struct plan_operation op = w->ops[i];
		w->ops[i] = w->ops[COUNT - 1 - i];
		w->ops[COUNT - 1 - i] = op;
	}
	assert_int_equal(draft_put_plan(w->d, w->ops, COUNT, NULL, NULL), 0);
	w->trial->is_ordered = true;
	assert_runs(w, false, &out);
	assert_int_equal(atomic_load(&w->trial->changes), COUNT);
	close_world(w);
}

static void an_empty_plan_needs_no_request(void **state)
{
	struct apply_result out;
	struct world *w = open_world(0, 0);
	assert_int_equal(draft_put_plan(w->d, NULL, 0, NULL, NULL), 0);
	assert_runs(w, false, &out);
	assert_int_equal(atomic_load(&w->trial->changes) + atomic_load(&w->trial->syncs), 0);
	close_world(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(phases_follow_each_other),
		cmocka_unit_test(another_process_goes_on),
		cmocka_unit_test(each_request_may_fail_once),
		cmocka_unit_test(a_conflict_ends_the_run),
		cmocka_unit_test(equal_bytes_are_a_conflict),
		cmocka_unit_test(own_puts_are_known_by_their_marks),
		cmocka_unit_test(an_object_of_another_size_is_not_read),
		cmocka_unit_test(a_delete_does_not_come_late),
		cmocka_unit_test(a_conflict_of_the_second_change),
		cmocka_unit_test(a_cancelled_run_goes_on_later),
		cmocka_unit_test(notes_may_fail),
		cmocka_unit_test(a_damaged_body_is_not_put),
		cmocka_unit_test(a_phase_has_a_key_once),
		cmocka_unit_test(a_plan_may_be_in_any_order),
		cmocka_unit_test(an_empty_plan_needs_no_request),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
