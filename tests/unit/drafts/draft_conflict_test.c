/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two programs write one name at the same time. The storage of the slower commit is deleted if
 * nobody can have seen it, and stays if somebody may have.
 */
#include "draft_fixture.h"

#include "draft_files.h"
#include <bucket/schemas.h>

#define DOCUMENT "x.h5/.domain.json"

static struct world *here; /* for the callbacks of the gate */
static bool replaces;	   /* the name has a domain, which both programs replace */

/* ---- the other program ---- */

static void move(struct store *bucket, const char *from, const char *to)
{
	struct call_result res;
	assert_int_equal(call_get(bucket, from, 0, STORE_TO_END, 0, NULL, &res, NULL), 0);
	assert_int_equal(call_put(bucket, to, res.body.data, res.body.len, NULL, NULL, NULL), 0);
	assert_int_equal(call_delete(bucket, from, NULL, NULL), 0);
	bytes_release(&res.body);
}

/* It has put all objects before, and now puts the document. */
static void win(struct store *bucket)
{
	move(bucket, "winner.h5/.domain.json", DOCUMENT);
}

/* It renames what the slower one has put, and then wins. */
static void rename_and_win(struct store *bucket)
{
	move(bucket, DOCUMENT, "home/renamed.h5/.domain.json");
	win(bucket);
}

/* It wins, and removes its file before the slower program looks. */
static void vanish(struct store *bucket)
{
	assert_int_equal(call_delete(bucket, DOCUMENT, NULL, NULL), 0);
}

static void win_and_vanish(struct store *bucket)
{
	win(bucket);
	here->gate->other = vanish;
	here->gate->other_at = here->gate->n + 1;
}

static void win_and_shut(struct store *bucket)
{
	win(bucket);
	here->gate->at = here->gate->n + 1;
	here->gate->code = -EIO;
}

/* ---- the slower program ---- */

static void begin(struct world *w)
{
	world_begin(w, false, 0);
	here = w;
	world_draft(w, "winner.h5");
	world_write_file(w, OTHER);
	world_must_commit(w, COMMIT_DOMAIN);
	if (replaces) {
		world_draft(w, "x.h5");
		world_write_file(w, ONE);
		world_must_commit(w, COMMIT_DOMAIN);
	}
	world_draft(w, "x.h5");
	world_write_file(w, ONE);
	world_open_gate(w);
}

/* A store above the gate that repeats what fails with -EAGAIN. */
static void begin_patient(struct world *w)
{
	static const struct store_retry_options quick = {
		.attempts = 3, .base_ms = 1, .cap_ms = 1, .budget_ms = 60000};
	begin(w);
	w->e->bucket.store = store_retry_new(w->e->bucket.store, &quick, NULL);
	assert_non_null(w->e->bucket.store);
	world_names(w);
	assert_null(world_find(w, "x.h5")); /* as the open of the file has looked it up */
	world_open_gate(w);
}

/* The number of the request that puts the document. */
static unsigned int last_request(void)
{
	struct world w;
	begin(&w);
	world_must_commit(&w, COMMIT_DOMAIN);
	const unsigned int n = w.gate->n;
	world_end(&w);
	return n;
}

static struct commit_record mark_of(const struct world *w)
{
	struct draft_stat stat;
	draft_get_stat(w->draft, &stat);
	return commit_record_decode(stat.mark);
}

static size_t stored(struct world *w, uint32_t number)
{
	return world_keys(w, commit_storage(schema_all()[0], draft_id(w->draft), number).prefix);
}

static void check_winner(struct world *w)
{
	assert_int_equal(world_objects(w, "x.h5"), 2);
	assert_int_equal(world_chunks(w, "x.h5"), 3);
}

static void check_refused(struct world *w, uint32_t number)
{
	const struct commit_record m = mark_of(w);
	assert_int_equal(m.state, COMMIT_REFUSED);
	assert_int_equal(m.number, number);
	world_collect(w);
	assert_int_equal(stored(w, number), 0);
}

/* The storage stays as long as the draft. */
static void check_kept(struct world *w, uint32_t number)
{
	assert_int_equal(mark_of(w).state, COMMIT_BEGUN);
	world_collect(w);
	assert_int_equal(stored(w, number), 3);
}

/* ---- the tests ---- */

/* The other program wins at each request. */
static void refused_storage_is_deleted(void **state)
{
	bool ended = false;
	unsigned int conflicts = 0;
	for (unsigned int at = 1; !ended; at++) {
		struct world w;
		begin(&w);
		auto_free char *before = world_content(&w, "db/");
		w.gate->other_at = at;
		w.gate->other = win;
		const int rc = world_commit(&w, true);
		ended = w.gate->n < at;
		if (!ended) {
			assert_int_equal(rc, -ESTALE);
			conflicts++;
			check_refused(&w, 1);
			auto_free char *after = world_content(&w, "db/");
			assert_string_equal(before, after);
			check_winner(&w);
		} else {
			assert_int_equal(rc, 0);
		}
		world_end(&w);
	}
	/* One request asks for the names of a domain that is replaced. */
	assert_int_equal(conflicts, replaces ? 5 : 4);
}

static void so_it_is_if_both_replace_a_domain(void **state)
{
	replaces = true;
	refused_storage_is_deleted(state);
	replaces = false;
}

/* A directory cannot have the document, because an object has its name. */
static void an_object_in_the_way_refuses_it(void **state)
{
	struct world w;
	world_begin(&w, true, 0);
	world_draft(&w, "x.h5");
	world_write_file(&w, ONE);
	world_put(&w, "x.h5", "text", 4);
	assert_int_equal(world_commit(&w, true), -ESTALE);
	check_refused(&w, 1);
	world_check_object(&w, "x.h5", "text", 4);
	assert_int_equal(world_keys(&w, ""), 1);
	world_end(&w);
}

static void a_plain_file_is_refused(void **state)
{
	struct world w;
	world_begin(&w, false, 0);
	world_draft(&w, "a");
	world_write(&w, "mine", 4);
	world_put(&w, "a", "theirs", 6);
	assert_int_equal(world_commit(&w, true), -ESTALE);
	check_refused(&w, 1);
	world_check_object(&w, "a", "theirs", 6);
	world_end(&w);
}

/* The answer to the document was lost. The other program has seen the domain and renamed it, or the
 * put never arrived. */
static void after_a_lost_answer_it_stays(void **state)
{
	const unsigned int last = last_request();
	for (int arrived = 0; arrived < 2; arrived++) {
		struct world w;
		begin_patient(&w);
		w.gate->at = last;
		w.gate->after = arrived;
		w.gate->code = -EAGAIN;
		w.gate->other_at = last + 1;
		w.gate->other = arrived ? rename_and_win : win;
		assert_int_equal(world_commit(&w, true), -ESTALE);
		check_kept(&w, 1);
		check_winner(&w);
		assert_int_equal(world_objects(&w, "home/renamed.h5"), arrived ? 2 : 0);
		world_end(&w);
	}
}

/* Answers to other requests do not matter. */
static void other_answers_may_be_lost(void **state)
{
	const unsigned int last = last_request();
	for (unsigned int at = 1; at < last; at++) {
		struct world w;
		begin_patient(&w);
		w.gate->at = at;
		w.gate->after = true;
		w.gate->code = -EAGAIN;
		w.gate->other_at = last + 1;
		w.gate->other = win;
		assert_int_equal(world_commit(&w, true), -ESTALE);
		check_refused(&w, 1);
		check_winner(&w);
		world_end(&w);
	}
}

/* The commit is made again after a failure, with its number or the next one. Its first attempt may
 * be seen, the second one may not. */
static void an_earlier_attempt_may_be_seen(void **state)
{
	const unsigned int last = last_request();
	for (uint32_t number = 1; number <= 2; number++) {
		struct world w;
		begin(&w);
		w.gate->at = last;
		w.gate->after = w.gate->later = true;
		w.gate->code = -EIO;
		assert_int_equal(world_commit(&w, true), -EIO);
		world_open_gate(&w);
		rename_and_win(w.gate->base.inner);
		assert_int_equal(world_commit_as(&w, number, true), -ESTALE);
		if (number == 1)
			check_kept(&w, 1);
		else
			check_refused(&w, 2);
		assert_int_equal(stored(&w, 1), 3);
		assert_int_equal(world_objects(&w, "home/renamed.h5"), 2);
		check_winner(&w);
		world_end(&w);
	}
}

static void rename_domain(struct world *w, const char *from, const char *to)
{
	const struct change c = {.env = &w->e->bucket.env,
				 .store = w->e->bucket.store,
				 .schema = schema_all()[0],
				 .owner = "ann"};
	struct change_garbage garbage;
	struct names_node *n = world_find(w, from);
	assert_non_null(n);
	assert_int_equal(
		change_rename_domain(&c, from, n->doc.document, to, NULL, &garbage, &w->err), 0);
	names_node_unref(n);
}

/* The other program renames it in the way of this project, so the bucket knows of both names. If
 * the draft has not changed, all is done. */
static void what_was_renamed_is_not_stored_again(void **state)
{
	const unsigned int last = last_request();
	for (uint32_t number = 1; number <= 2; number++) {
		struct world w;
		begin(&w);
		w.gate->at = last;
		w.gate->after = w.gate->later = true;
		w.gate->code = -EIO;
		assert_int_equal(world_commit(&w, true), -EIO);
		world_open_gate(&w);
		rename_domain(&w, "x.h5", "home/renamed.h5");
		assert_int_equal(world_commit_as(&w, number, true), number == 1 ? 0 : -ESTALE);
		if (number == 2)
			assert_non_null(strstr(w.err.msg, "home/renamed.h5"));
		assert_null(world_find(&w, "x.h5"));
		assert_int_equal(world_objects(&w, "home/renamed.h5"), 2);
		assert_int_equal(stored(&w, 2), 0);
		world_end(&w);
	}
}

/* The domain got its first name back. */
static void what_was_renamed_back_is_replaced(void **state)
{
	const unsigned int last = last_request();
	for (uint32_t number = 1; number <= 2; number++) {
		struct world w;
		begin(&w);
		w.gate->at = last;
		w.gate->after = w.gate->later = true;
		w.gate->code = -EIO;
		assert_int_equal(world_commit(&w, true), -EIO);
		world_open_gate(&w);
		rename_domain(&w, "x.h5", "home/renamed.h5");
		rename_domain(&w, "home/renamed.h5", "x.h5");
		assert_int_equal(world_commit_as(&w, number, true), 0);
		assert_int_equal(world_objects(&w, "x.h5"), 2);
		assert_int_equal(world_keys(&w, "home/renamed.h5"), 0);
		world_end(&w);
	}
}

/* A draft has become a domain, and programs go on writing to it. Another program changes the domain
 * in place meanwhile, so its document stays as it was. Summaries of the service are no change. */
static void a_change_in_place_is_a_conflict(void **state)
{
	static const char *const keys[] = {NULL, ".info.json", ".summary.json", "d/1-2-3/0",
					   ".group.json"};
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct world w;
		char key[256];
		begin(&w);
		assert_int_equal(world_commit_as(&w, 1, false), 0);
		snprintf(key, sizeof(key), "%s%s", w.stored.storage.prefix, keys[i] ? keys[i] : "");
		if (keys[i])
			world_put(&w, key, "{}", 2);
		world_write_file(&w, OTHER);
		assert_int_equal(world_commit_as(&w, 2, true), i > 2 ? -ESTALE : 0);
		if (i > 2)
			check_refused(&w, 2);
		world_end(&w);
	}
}

/* After the refusal, nothing shows what has the name. */
static void without_the_other_document_it_stays(void **state)
{
	const unsigned int last = last_request();
	void (*const others[])(struct store *) = {win_and_vanish, win_and_shut};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct world w;
		begin(&w);
		w.gate->other_at = last;
		w.gate->other = others[i];
		assert_int_equal(world_commit(&w, true), -ESTALE);
		world_open_gate(&w);
		check_kept(&w, 1);
		world_end(&w);
	}
}

/* The process is killed at each request, before or after the bucket got it, and the other program
 * wins. Then the storage is unknown to the next process, which keeps it if it is complete. */
static void a_killed_process_notes_nothing(void **state)
{
	const unsigned int last = last_request();
	for (unsigned int at = 1; at <= last + 1; at++)
		for (int after = 0; after < 2; after++) {
			struct world w;
			atomic_uint_fast64_t left = 0;
			if (at == last && after)
				continue; /* it has won */
			begin(&w);
			w.gate->at = at;
			w.gate->later = true;
			w.gate->after = after;
			w.gate->code = -EIO;
			w.gate->other_at = at;
			w.gate->other = win;
			if (at > last)
				w.gate->other_at = last;
			assert_true(world_commit(&w, true) < 0);
			assert_int_not_equal(mark_of(&w).state, COMMIT_REFUSED);
			char id[JOURNAL_ID];
			strcpy(id, draft_id(w.draft));
			draft_close(w.draft);
			w.draft = NULL;
			world_open_gate(&w);
			world_names(&w);
			drafts_recover(&w.e->bucket, w.e->drafts, w.f.j, NULL, &left);
			assert_int_equal(left, 1);
			check_winner(&w);
			assert_int_equal(draft_open(w.f.j, id, NULL, &w.draft, NULL), 0);
			const size_t before = stored(&w, 1);
			world_collect(&w);
			assert_int_equal(stored(&w, 1), before);
			if (at >= last)
				assert_int_equal(before, 3);
			world_end(&w);
		}
}

/* A commit that was refused is not made again: its storage is being deleted. */
static void its_number_is_not_used_again(void **state)
{
	struct world w;
	begin(&w);
	win(w.gate->base.inner);
	assert_int_equal(world_commit(&w, true), -ESTALE);
	assert_int_equal(world_commit_as(&w, 1, true), -EINVAL);
	assert_int_equal(call_delete(w.gate->base.inner, DOCUMENT, NULL, NULL), 0);
	assert_int_equal(world_commit_as(&w, 2, true), 0);
	world_collect(&w);
	assert_int_equal(stored(&w, 1), 0);
	assert_int_equal(stored(&w, 2), 3);
	assert_int_equal(world_objects(&w, "x.h5"), 2);
	world_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused_storage_is_deleted),
		cmocka_unit_test(so_it_is_if_both_replace_a_domain),
		cmocka_unit_test(an_object_in_the_way_refuses_it),
		cmocka_unit_test(a_plain_file_is_refused),
		cmocka_unit_test(after_a_lost_answer_it_stays),
		cmocka_unit_test(other_answers_may_be_lost),
		cmocka_unit_test(an_earlier_attempt_may_be_seen),
		cmocka_unit_test(what_was_renamed_is_not_stored_again),
		cmocka_unit_test(what_was_renamed_back_is_replaced),
		cmocka_unit_test(a_change_in_place_is_a_conflict),
		cmocka_unit_test(without_the_other_document_it_stays),
		cmocka_unit_test(a_killed_process_notes_nothing),
		cmocka_unit_test(its_number_is_not_used_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
