/* SPDX-License-Identifier: Apache-2.0 */
/* Drafts that become plain objects. */
#include "draft_fixture.h"

static void a_new_file_is_one_put(void **state)
{
	struct world w;
	world_begin_text(&w, "home/a.txt", "hello");
	world_open_gate(&w);
	world_must_commit(&w, COMMIT_OBJECT);
	assert_int_equal(w.gate->n, 1);
	assert_string_equal(w.result.kept, "");
	world_check_object(&w, "home/a.txt", "hello", 5);
	world_check_version(&w, "home/a.txt");
	/* Once more, over the own object. */
	world_write(&w, "hello!", 6);
	world_open_gate(&w);
	world_must_commit(&w, COMMIT_OBJECT);
	assert_int_equal(w.gate->n, 1);
	world_check_object(&w, "home/a.txt", "hello!", 6);
	world_end(&w);
}

static void an_empty_file_is_an_empty_object(void **state)
{
	struct world w;
	world_begin(&w, false, 0);
	world_draft(&w, "empty");
	world_must_commit(&w, COMMIT_OBJECT);
	world_check_object(&w, "empty", "", 0);
	world_end(&w);
}

static void the_change_of_another_writer_is_kept(void **state)
{
	struct world w;
	world_begin_text(&w, "a", "mine");
	world_put(&w, "a", "theirs", 6);
	assert_int_equal(world_commit(&w, true), -ESTALE);
	assert_string_equal(w.err.msg,
			    "a: another program has changed it since it was opened for writing");
	assert_int_equal(world_commit(&w, true), -ESTALE);
	world_check_object(&w, "a", "theirs", 6);
	world_draft(&w, "a");
	world_write(&w, "mine", 4);
	world_put(&w, "a", "again", 5);
	assert_int_equal(world_commit(&w, true), -ESTALE);
	world_check_object(&w, "a", "again", 5);
	world_end(&w);
}

/* In a directory, nothing else can have the name of a folder or of a domain. */
static void another_program_makes_a_domain(void **state)
{
	struct world w;
	world_begin(&w, true, 0);
	world_draft(&w, "a");
	world_write(&w, "mine", 4);
	world_put(&w, "a/.domain.json", "{}", 2);
	assert_int_equal(world_commit(&w, true), -ESTALE);
	world_check_object(&w, "a/.domain.json", "{}", 2);
	world_end(&w);
}

/* The answer is lost, and the object is found. */
static void a_repeated_put_finds_its_object(void **state)
{
	struct world w;
	world_begin_text(&w, "a", "mine");
	gate_fail(w.gate, 1, -EIO);
	w.gate->after = true;
	assert_int_equal(world_commit(&w, true), -EIO);
	world_open_gate(&w);
	assert_int_equal(world_commit_as(&w, 1, true), 0);
	assert_int_equal(w.gate->ops[STORE_PUT], 0);
	assert_int_equal(w.result.kind, COMMIT_OBJECT);
	world_check_version(&w, "a");
	world_end(&w);
}

/* The answer is lost, and the program goes on writing. What its earlier attempt has put is no
 * conflict; what another program has put over it is one. */
static void later_bytes_replace_an_own_object(void **state)
{
	for (int theirs = 0; theirs < 2; theirs++) {
		struct world w;
		world_begin_text(&w, "a", "mine");
		gate_fail(w.gate, 1, -EIO);
		w.gate->after = true;
		assert_int_equal(world_commit_as(&w, 1, false), -EIO);
		world_open_gate(&w);
		if (theirs)
			world_put(&w, "a", "theirs", 6);
		world_write(&w, "mine, later", 11);
		assert_int_equal(world_commit_as(&w, 2, true), theirs ? -ESTALE : 0);
		world_check_object(&w, "a", theirs ? "theirs" : "mine, later", theirs ? 6 : 11);
		if (!theirs)
			world_check_version(&w, "a");
		world_end(&w);
	}
}

/* ---- a put that was sent twice ---- */

/* Says that puts were sent again and found another version, and answers no HEAD. */
struct unsure {
	struct store base;
	bool is_sure;
};

static void unsure_submit(struct store *s, struct store_request *req)
{
	if (req->op == STORE_HEAD && !((struct unsure *)s)->is_sure)
		store_fail(s, req, -EIO, "refused by the test");
	else
		store_pass(s, req);
}

static void unsure_completed(struct store *s, struct store_request *req)
{
	if (req->op != STORE_PUT || ((struct unsure *)s)->is_sure) {
		store_complete(s, req);
		return;
	}
	req->answer.repeated = true;
	store_fail(s, req, -ESTALE, "it has another version");
}

static const struct store_ops unsure_ops = {.name = "unsure",
					    .submit = unsure_submit,
					    .completed = unsure_completed,
					    .free = store_wrapper_free};

/* If it cannot be found out whose object it is, the commit fails, and is no conflict: it may be
 * repeated, and then finds its object. */
static void an_unsure_put_is_no_conflict(void **state)
{
	struct world w;
	world_begin_text(&w, "a", "mine");
	struct unsure *u = calloc(1, sizeof(*u));
	assert_non_null(u);
	store_wrap(&u->base, &unsure_ops, w.e->bucket.store, 0, 0);
	w.e->bucket.store = &u->base;
	assert_int_equal(world_commit_as(&w, 1, true), -EIO);
	u->is_sure = true;
	world_open_gate(&w);
	assert_int_equal(world_commit_as(&w, 1, true), 0);
	assert_int_equal(w.gate->ops[STORE_PUT], 0);
	world_check_object(&w, "a", "mine", 4);
	world_end(&w);
}

static void numbers_increase(void **state)
{
	struct world w;
	world_begin_text(&w, "a", "one");
	world_must_commit(&w, COMMIT_OBJECT);
	assert_int_equal(world_commit_as(&w, 1, true), -EINVAL);
	assert_string_equal(w.err.msg, "a: commit 1 was made before");
	world_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_file_is_one_put),
		cmocka_unit_test(an_empty_file_is_an_empty_object),
		cmocka_unit_test(the_change_of_another_writer_is_kept),
		cmocka_unit_test(another_program_makes_a_domain),
		cmocka_unit_test(a_repeated_put_finds_its_object),
		cmocka_unit_test(later_bytes_replace_an_own_object),
		cmocka_unit_test(an_unsure_put_is_no_conflict),
		cmocka_unit_test(numbers_increase),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
