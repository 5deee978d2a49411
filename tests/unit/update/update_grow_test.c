/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datasets that grow over objects that other commits have left at the new places, and commits that
 * fail while they let a dataset grow.
 */
#include "disk_calls.h"
#include "update_edits.h"

#include <update/complete.h>
#include <overlay/draft_plan.h>
#include <bucket/schemas.h>

#include "update/update_internal.h"
#include "mem_store.h"

enum { LINE_CHUNK = 5 /* elements of a chunk of "line" */ };

/* Without a summary, so that only the requests for the dataset count. */
static struct world *begin(void)
{
	char key[SCHEMA_KEY_MAX + 1];
	struct world *w = world_begin();
	world_summary_key(w, key);
	world_close(w);
	assert_int_equal(call_delete(w->gate->base.inner, key, NULL, NULL), 0);
	world_open(w);
	return w;
}

/* The key of chunk i of "line", which has keys that end in the number. */
static void line_key(struct world *w, uint64_t i, char key[SCHEMA_KEY_MAX + 1])
{
	world_chunk_key(w, "line", 0, key);
	char *slash = strrchr(key, '/');
	snprintf(slash + 1, 8, "%llu", (unsigned long long)i);
}

static uint64_t old_chunks(struct world *w)
{
	const uint32_t number = find_object(domain_tree(w->domain), "line");
	return tree_object(domain_tree(w->domain), number)->o.dataset.grid.nchunks;
}

static void put_leftover(struct world *w, uint64_t chunk, int16_t value)
{
	const int16_t values[LINE_CHUNK] = {value, value, value, value, value};
	char key[SCHEMA_KEY_MAX + 1];
	line_key(w, chunk, key);
	gate_put(w->gate, key, (const char *)values, sizeof(values));
}

static void grow_line(struct world *w, uint64_t chunks)
{
	edit_resize(w->draft, edit_path(w->draft, "line"), 0, LINE_CHUNK * chunks);
}

/* ---- places without a chunk ---- */

/* Nothing is there: the cheapest question is enough. */
static void new_places_are_looked_at(void **state)
{
	struct world *w = begin();
	const uint64_t old = old_chunks(w);
	grow_line(w, old + 1);
	world_must_update(w, 1, 0);
	assert_int_equal(w->gate->ops[STORE_LIST], 0);
	world_end(w);
}

/* What is there does not become a chunk. */
static void leftovers_are_removed(void **state)
{
	for (unsigned int more = 1; more <= 20; more += 19) { /* HEADs, a listing */
		struct world *w = begin();
		const uint64_t old = old_chunks(w);
		char key[SCHEMA_KEY_MAX + 1];
		put_leftover(w, old, 999);
		put_leftover(w, old + more, 777); /* outside of the new shape, too */
		grow_line(w, old + more);
		gate_open(w->gate);
		if (world_update(w))
			fail_msg("%s", w->err.msg);
		/* The claim and the shape. */
		assert_int_equal(w->result.puts, 2);
		line_key(w, old, key);
		assert_false(world_has(w, key));
		line_key(w, old + more, key);
		assert_true(world_has(w, key));
		world_check_same(w);
		world_end(w);
	}
}

/* ---- places that get a chunk ---- */

/* The domain has the first two of four chunks. The file still has all of them, and the next update
 * lets the dataset grow over them. */
static struct world *begin_short(void)
{
	struct world *w = begin();
	grow_line(w, 2);
	world_must_update(w, 1, 3); /* with the summary */
	for (unsigned int i = 2; i < 4; i++) {
		const int16_t values[LINE_CHUNK] = {1, 2, 3, 4, (int16_t)i};
		const uint64_t line = edit_path(w->draft, "line");
		edit_write(w->draft, edit_chunk(w->draft, line, 1, i), values, sizeof(values));
	}
	grow_line(w, 4);
	gate_open(w->gate);
	return w;
}

static bool has_chunk(struct world *w, uint64_t i)
{
	char key[SCHEMA_KEY_MAX + 1];
	line_key(w, i, key);
	return world_has(w, key);
}

static void chunks_are_put_where_nothing_is(void **state)
{
	struct world *w = begin_short();
	if (world_update(w))
		fail_msg("%s", w->err.msg);
	/* Two chunks and the document; the summary is gone already. */
	assert_int_equal(w->gate->ops[STORE_PUT], 3);
	assert_int_equal(w->gate->ops[STORE_LIST], 0);
	assert_int_equal(w->gate->ops[STORE_GET], 1);
	world_check_same(w);
	world_end(w);
}

/* A put finds the object. It is overwritten after the dataset was claimed. */
static void leftovers_are_overwritten(void **state)
{
	struct world *w = begin_short();
	put_leftover(w, 3, 999);
	assert_int_equal(world_update(w), 0);
	assert_int_equal(w->begun, 3);
	assert_int_equal(w->gate->ops[STORE_LIST], 2); /* before and after the claim */
	world_check_same(w);
	world_must_update(w, 0, 0);
	world_end(w);
}

/* ---- two commits ---- */

static char doc_key[SCHEMA_KEY_MAX + 1];

/* Another program puts the document of "line". */
static void change_document(struct store *bucket)
{
	struct call_result res;
	assert_int_equal(call_get(bucket, doc_key, 0, STORE_TO_END, 0, NULL, &res, NULL), 0);
	bytes_append(&res.body, " ", 1);
	assert_int_equal(call_put(bucket, doc_key, res.body.data, res.body.len, NULL, NULL, NULL),
			 0);
	bytes_release(&res.body);
}

/* The update fails with -ESTALE, and takes back what it has put, but nothing else. */
static void check_taken_back(struct world *w, int rc, bool has_theirs)
{
	struct plan plan;
	assert_int_equal(rc, -ESTALE);
	assert_false(has_chunk(w, 2));
	assert_int_equal(has_chunk(w, 3), has_theirs);
	assert_int_equal(draft_get_plan(w->draft, &plan, NULL), 0);
	for (uint32_t i = 0; i < plan.count; i++)
		assert_true(plan.operations[i].phase == PHASE_CLAIM || !plan.operations[i].done);
	plan_release(&plan);
}

static void a_loser_takes_back_what_it_has_put(void **state)
{
	/* Request 1 reads the document, 2 and 3 put chunks, 4 puts the document. */
	for (unsigned int at = 2; at <= 4; at++) {
		struct world *w = begin_short();
		world_key(w, "line", doc_key);
		w->gate->other = change_document;
		w->gate->other_at = at;
		check_taken_back(w, world_update(w), false);
		check_taken_back(w, world_update(w), false);
		check_taken_back(w, world_resume(w), false);
		world_end(w);
	}
}

/* The other program has put a chunk, too. */
static void what_others_have_put_stays(void **state)
{
	struct world *w = begin_short();
	world_key(w, "line", doc_key);
	put_leftover(w, 3, 999);
	w->gate->other = change_document;
	w->gate->other_at = 3; /* before the claim */
	check_taken_back(w, world_update(w), true);
	world_end(w);
}

/* The daemon is killed, and another program lets the dataset grow meanwhile. */
static void a_later_process_takes_it_back(void **state)
{
	struct world *w = begin_short();
	world_key(w, "line", doc_key);
	gate_fail(w->gate, 4, -EHOSTUNREACH);
	w->gate->later = true;
	assert_int_equal(world_update(w), -EHOSTUNREACH);
	assert_true(has_chunk(w, 2) && has_chunk(w, 3));
	gate_open(w->gate);
	/* The document was sent, so it is not certain that it was never there. */
	change_document(w->gate->base.inner);
	assert_int_equal(world_resume(w), -ESTALE);
	assert_true(has_chunk(w, 2) && has_chunk(w, 3));
	world_end(w);
	w = begin_short();
	gate_fail(w->gate, 3, -EHOSTUNREACH);
	w->gate->later = true;
	assert_int_equal(world_update(w), -EHOSTUNREACH);
	assert_true(has_chunk(w, 2));
	gate_open(w->gate);
	change_document(w->gate->base.inner);
	check_taken_back(w, world_resume(w), false);
	world_end(w);
}

/* As the commit of another mount. */
static void commit_document(struct store *bucket)
{
	struct call_result res;
	assert_int_equal(call_get(bucket, doc_key, 0, STORE_TO_END, 0, NULL, &res, NULL), 0);
	struct store_request *req = store_request_new(bucket, STORE_PUT);
	store_request_key(req, doc_key);
	req->mark = "0123456789abcdef-0";
	const struct piece body = {res.body.data, res.body.len};
	req->pieces = &body;
	req->n_pieces = 1;
	store_run(bucket, req);
	assert_int_equal(store_failure(&req->answer, NULL), 0);
	store_request_free(req);
	bytes_release(&res.body);
}

/* The daemon is killed before it puts a chunk, and another mount lets the dataset grow, which finds
 * the new places empty. No chunk is put there after that. */
static void a_later_process_puts_no_chunk_in_vain(void **state)
{
	struct world *w = begin_short();
	world_key(w, "line", doc_key);
	gate_fail(w->gate, 2, -EHOSTUNREACH);
	w->gate->later = true;
	assert_int_equal(world_update(w), -EHOSTUNREACH);
	commit_document(w->gate->base.inner);
	gate_open(w->gate);
	check_taken_back(w, world_resume(w), false);
	assert_int_equal(w->gate->ops[STORE_PUT], 0);
	world_end(w);
}

static unsigned int looks;

static void must_be_durable(struct store *bucket)
{
	looks++;
	disk_assert_durable("the request for the shape is noted");
}

/* The machine loses its power after the commit was acknowledged. The plan may come back, because
 * its removal is not synchronised. If the note about the shape were lost, the chunks would be
 * withdrawn when another program has changed the dataset since. */
static void the_note_about_a_shape_survives_the_machine(void **state)
{
	struct world *w = begin_short();
	disk_watch(NULL);
	w->gate->other = must_be_durable;
	w->gate->other_at = 4; /* the document */
	assert_int_equal(world_update(w), 0);
	disk_unwatch();
	assert_int_equal(looks, 1);
	world_end(w);
}

/* Without marks, nobody knows who has put an object. */
static void without_marks_nothing_is_removed(void **state)
{
	struct world *w = begin_short();
	world_key(w, "line", doc_key);
	store_mem_set_lacks(w->gate->base.inner, STORE_MEM_NO_MARKS, NULL, NULL);
	w->gate->other = change_document;
	w->gate->other_at = 4;
	assert_int_equal(world_update(w), -ESTALE);
	assert_true(has_chunk(w, 2) && has_chunk(w, 3));
	world_end(w);
}

/* ---- the domain is gone ---- */

static char name_key[SCHEMA_KEY_MAX + 1], root_key[SCHEMA_KEY_MAX + 1];

static void remove_all(struct store *bucket)
{
	assert_int_equal(call_delete(bucket, name_key, NULL, NULL), 0);
	assert_int_equal(call_delete(bucket, root_key, NULL, NULL), 0);
}

static void remove_name(struct store *bucket)
{
	assert_int_equal(call_delete(bucket, name_key, NULL, NULL), 0);
}

static void what_is_left_of_a_removed_domain_goes(void **state)
{
	for (unsigned int k = 0; k < 2; k++) {
		struct world *w = begin_short();
		schema_all()[0]->documents->key(DOMAIN_PATH, name_key, sizeof(name_key));
		world_key(w, "", root_key);
		w->gate->other = k ? remove_all : remove_name;
		w->gate->other_at = 5; /* the first question after the puts */
		assert_int_equal(world_update(w), -ESTALE);
		assert_int_equal(has_chunk(w, 2), !k);
		assert_true(has_chunk(w, 0)); /* somebody else has put it */
		world_end(w);
	}
}

/* ---- chunks outside of a smaller shape ---- */

static char cut_key[SCHEMA_KEY_MAX + 1];

static void change_chunk(struct store *bucket)
{
	assert_int_equal(call_put(bucket, cut_key, "0123456789", 10, NULL, NULL, NULL), 0);
}

static void change_both(struct store *bucket)
{
	change_chunk(bucket);
	change_document(bucket);
}

/* Another program has written to a chunk outside of the new shape. It is no chunk any more, unless
 * the document has changed again. */
static void a_cut_is_looked_at_again(void **state)
{
	for (unsigned int k = 0; k < 2; k++) {
		struct world *w = begin();
		world_key(w, "line", doc_key);
		line_key(w, 3, cut_key);
		grow_line(w, 3);
		gate_open(w->gate);
		w->gate->other = k ? change_both : change_chunk;
		w->gate->other_at = 3; /* the document was read and put */
		if (world_update(w))
			fail_msg("%s", w->err.msg);
		assert_int_equal(has_chunk(w, 3), k);
		world_end(w);
	}
}

static struct gate *busy;

static void change_always(struct store *bucket)
{
	change_chunk(bucket);
	busy->other_at = busy->n + 3; /* a question for the chunk, one for the document, a delete */
}

/* A program that writes all the time does not keep an update from ending. */
static void a_cut_is_not_looked_at_for_ever(void **state)
{
	struct world *w = begin();
	world_key(w, "line", doc_key);
	line_key(w, 3, cut_key);
	grow_line(w, 3);
	gate_open(w->gate);
	busy = w->gate;
	w->gate->other = change_always;
	w->gate->other_at = 3;
	assert_int_equal(world_update(w), -ESTALE);
	assert_int_equal(w->gate->ops[STORE_DELETE], 1 + 4);
	world_end(w);
}

/* The questions for the chunk and for the document, and the delete, fail: so does the update, and
 * the next one removes the chunk. */
static void a_cut_that_cannot_be_looked_at_is_an_error(void **state)
{
	for (unsigned int at = 4; at <= 6; at++) {
		struct world *w = begin();
		world_key(w, "line", doc_key);
		line_key(w, 3, cut_key);
		grow_line(w, 3);
		gate_fail(w->gate, at, -EACCES);
		w->gate->other = change_chunk;
		w->gate->other_at = 3;
		assert_int_equal(world_update(w), -EACCES);
		assert_true(has_chunk(w, 3));
		gate_open(w->gate);
		if (world_update(w))
			fail_msg("%s", w->err.msg);
		assert_false(has_chunk(w, 3));
		world_end(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_places_are_looked_at),
		cmocka_unit_test(leftovers_are_removed),
		cmocka_unit_test(chunks_are_put_where_nothing_is),
		cmocka_unit_test(leftovers_are_overwritten),
		cmocka_unit_test(a_loser_takes_back_what_it_has_put),
		cmocka_unit_test(what_others_have_put_stays),
		cmocka_unit_test(a_later_process_takes_it_back),
		cmocka_unit_test(a_later_process_puts_no_chunk_in_vain),
		cmocka_unit_test(the_note_about_a_shape_survives_the_machine),
		cmocka_unit_test(without_marks_nothing_is_removed),
		cmocka_unit_test(what_is_left_of_a_removed_domain_goes),
		cmocka_unit_test(a_cut_is_looked_at_again),
		cmocka_unit_test(a_cut_is_not_looked_at_for_ever),
		cmocka_unit_test(a_cut_that_cannot_be_looked_at_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
