/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is written again and again while its commits fail. What a failed commit has stored is
 * deleted before the next one stores something, unless a domain may have it.
 */
#include "draft_fixture.h"

#include "draft_files.h"
#include <bucket/schemas.h>

#define DOCUMENT "home/x.h5/.domain.json"

static void begin(struct world *w)
{
	world_begin_file(w, "home/x.h5", ONE);
	world_open_gate(w);
}

static size_t stored(struct world *w, uint32_t number)
{
	return world_keys(w, commit_storage(schema_all()[0], draft_id(w->draft), number).prefix);
}

static unsigned int requests_of_a_commit(void)
{
	struct world w;
	begin(&w);
	world_must_commit(&w, COMMIT_DOMAIN);
	const unsigned int n = w.gate->n;
	world_end(&w);
	return n;
}

/* The bucket refuses the request with this number from now on, and all later ones. */
static void shut(struct world *w, unsigned int at, bool after)
{
	world_open_gate(w);
	w->gate->at = at;
	w->gate->later = true;
	w->gate->after = after;
	w->gate->code = -ENOSPC;
}

/* The first commit fails after it has stored something. */
static void fail_first(struct world *w, unsigned int last)
{
	begin(w);
	shut(w, last - 1, false);
	assert_int_equal(world_commit_as(w, 1, true), -ENOSPC);
	assert_true(stored(w, 1) > 0);
	world_open_gate(w);
	world_write_file(w, OTHER);
}

/* The second commit fails at each request, or succeeds. */
static void room_is_made_before_the_first_put(void **state)
{
	const unsigned int last = requests_of_a_commit();
	unsigned int with_objects = 0;
	bool ended = false;
	for (unsigned int at = 1; !ended; at++) {
		struct world w;
		fail_first(&w, last);
		shut(&w, at, false);
		const int rc = world_commit_as(&w, 2, true);
		ended = w.gate->n < at;
		assert_int_equal(rc, ended ? 0 : -ENOSPC);
		if (stored(&w, 2)) {
			assert_int_equal(stored(&w, 1), 0);
			with_objects++;
		}
		/* Whatever could not be deleted is deleted later. */
		world_open_gate(&w);
		world_write_file(&w, ONE);
		assert_int_equal(world_commit_as(&w, 3, true), 0);
		world_collect(&w);
		assert_int_equal(stored(&w, 1) + stored(&w, 2), 0);
		assert_int_equal(world_objects(&w, "home/x.h5"), 2);
		world_end(&w);
	}
	assert_true(with_objects > 2);
}

/* The third commit does not look for the storage of the first one. */
static void storage_is_deleted_once(void **state)
{
	const unsigned int last = requests_of_a_commit();
	struct world w;
	struct draft_stat stat;
	fail_first(&w, last);
	for (uint32_t number = 2; number <= 3; number++) {
		world_write_file(&w, number == 2 ? OTHER : ONE);
		w.gate->sync = -ENOSPC;
		assert_int_equal(world_commit_as(&w, number, true), -ENOSPC);
		assert_int_equal(w.left.dropped, number);
		assert_int_equal(stored(&w, number - 1), 0);
		assert_true(stored(&w, number) > 0);
	}
	draft_get_stat(w.draft, &stat);
	assert_int_equal(commit_record_decode(stat.mark).failed, 1);
	world_end(&w);
}

/* ---- the answer to the document was lost ---- */

static void lose_document(struct world *w, unsigned int last)
{
	begin(w);
	shut(w, last, true);
	assert_int_equal(world_commit_as(w, 1, true), -ENOSPC);
	assert_int_equal(world_objects(w, "home/x.h5"), 2);
	world_open_gate(w);
	world_write_file(w, OTHER);
}

static void move_document(struct world *w)
{
	struct store *bucket = w->gate->base.inner;
	struct call_result res;
	assert_int_equal(call_get(bucket, DOCUMENT, 0, STORE_TO_END, 0, NULL, &res, NULL), 0);
	world_put(w, "far/renamed.h5/.domain.json", res.body.data, res.body.len);
	assert_int_equal(call_delete(bucket, DOCUMENT, NULL, NULL), 0);
	bytes_release(&res.body);
}

/* The bucket has the domain of the first commit. Another program may have renamed it. */
static void storage_of_a_domain_stays(void **state)
{
	const unsigned int last = requests_of_a_commit();
	for (int moved = 0; moved < 2; moved++) {
		const char *path = moved ? "far/renamed.h5" : "home/x.h5";
		bool ended = false;
		for (unsigned int at = 1; !ended; at++) {
			struct world w;
			lose_document(&w, last);
			if (moved)
				move_document(&w);
			shut(&w, at, false);
			const int rc = world_commit_as(&w, 2, true);
			ended = w.gate->n < at;
			/* Without the list of names, the commit succeeds, and the storage of the
			 * first one stays. */
			assert_true(rc == -ENOSPC || (rc == 0 && at > last));
			/* A program has it open, perhaps: so nothing is deleted at once. */
			assert_int_equal(stored(&w, 1), 3);
			assert_int_equal(world_objects(&w, path), 2);
			world_end(&w);
		}
	}
}

/* The program removes the file, and waits for one request only. */
static void a_bucket_that_does_not_answer_is_asked_once(void **state)
{
	const unsigned int last = requests_of_a_commit();
	struct world w;
	lose_document(&w, last);
	shut(&w, 2, false);
	assert_int_equal(world_commit_as(&w, 2, true), -ENOSPC);
	assert_int_equal(commit_record_of(w.draft).number, 2);
	shut(&w, 1, false);
	draft_commit_forget(&w.e->bucket, w.draft, &w.left);
	assert_int_equal(w.gate->n, 1);
	world_open_gate(&w);
	world_collect(&w);
	assert_int_equal(world_objects(&w, "home/x.h5"), 2);
	world_end(&w);
}

/* A later process does not know what was lost. */
static void without_memory_it_stays(void **state)
{
	const unsigned int last = requests_of_a_commit();
	struct world w;
	struct draft_snapshot *s;
	fail_first(&w, last);
	const size_t before = stored(&w, 1);
	w.gate->sync = -ENOSPC;
	assert_int_equal(draft_seal(w.draft, &s, NULL), 0);
	const struct commit c = {.bucket = &w.e->bucket,
				 .draft = w.draft,
				 .snapshot = s,
				 .number = 2,
				 .is_last = true};
	assert_int_equal(draft_commit(&c, &w.result, &w.err), -ENOSPC);
	draft_snapshot_close(s);
	assert_int_equal(stored(&w, 1), before);
	world_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(room_is_made_before_the_first_put),
		cmocka_unit_test(storage_is_deleted_once),
		cmocka_unit_test(storage_of_a_domain_stays),
		cmocka_unit_test(a_bucket_that_does_not_answer_is_asked_once),
		cmocka_unit_test(without_memory_it_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
