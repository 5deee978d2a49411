/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates of a domain that another program removes, replaces or changes meanwhile. An update
 * succeeds only if the domain still has what was changed.
 */
#include "update_edits.h"
#include <overlay/draft_plan.h>
#include <bucket/schemas.h>

/* ---- what another program does ---- */

static void domain_key(char key[SCHEMA_KEY_MAX + 1])
{
	assert_true(schema_all()[0]->documents->key(DOMAIN_PATH, key, SCHEMA_KEY_MAX + 1) > 0);
}

static void remove_domain(struct store *bucket)
{
	char key[SCHEMA_KEY_MAX + 1];
	domain_key(key);
	assert_int_equal(call_delete(bucket, key, NULL, NULL), 0);
}

/* Replaces the first `from` in an object by `to`. Both are as long as each other. */
static void edit_text(struct store *bucket, const char *key, const char *from, const char *to)
{
	struct call_result res;
	assert_int_equal(call_get(bucket, key, 0, STORE_TO_END, 0, NULL, &res, NULL), 0);
	auto_free char *text = strndup((const char *)res.body.data, res.body.len);
	bytes_release(&res.body);
	char *at = strstr(text, from);
	assert_non_null(at);
	memcpy(at, to, strlen(to));
	assert_int_equal(call_put(bucket, key, text, strlen(text), NULL, NULL, NULL), 0);
}

static void change_acl(struct store *bucket)
{
	char key[SCHEMA_KEY_MAX + 1];
	domain_key(key);
	edit_text(bucket, key, "true", " 1  ");
}

static void replace_domain(struct store *bucket)
{
	char key[SCHEMA_KEY_MAX + 1];
	domain_key(key);
	edit_text(bucket, key, "\"root\": \"g-", "\"root\": \"g-12345678");
}

static void replace_damaged(struct store *bucket)
{
	char key[SCHEMA_KEY_MAX + 1];
	domain_key(key);
	assert_int_equal(call_put(bucket, key, "{", 1, NULL, NULL, NULL), 0);
}

/* The key of the root group, and the id of the dataset `line`. All domains of these tests have the
 * same ids. */
static char root_key[SCHEMA_KEY_MAX + 1], line_id[64], grid_id[64];

static void rename_line(struct store *bucket)
{
	edit_text(bucket, root_key, "\"line\"", "\"lisp\"");
}

static void unlink_line(struct store *bucket)
{
	edit_text(bucket, root_key, line_id, grid_id);
}

/* ---- cases ---- */

static void write_line(struct draft *d)
{
	const int16_t numbers[] = {1, 2, 3, 4, 5};
	edit_write(d, edit_chunk(d, edit_path(d, "line"), 1, 0), numbers, sizeof(numbers));
}

static const struct confirm_case {
	const char *name;
	void (*make)(struct draft *d);
	void (*other)(struct store *bucket);
	int code;
	unsigned int requests; /* after the PUTs; of those that succeed */
} cases[] = {
	{"nobody changes it", write_line, NULL, 0, 3},
	{"nobody changes it, an attribute", edit_attribute, NULL, 0, 1},
	{"the domain is removed", write_line, remove_domain, -ESTALE, 0},
	{"the domain is removed, an attribute", edit_attribute, remove_domain, -ESTALE, 0},
	{"the domain is replaced", write_line, replace_domain, -ESTALE, 0},
	{"its document is damaged", write_line, replace_damaged, -EIO, 0},
	{"its access list is changed", write_line, change_acl, 0, 4},
	{"the link is renamed", write_line, rename_line, 0, 0},
	{"the dataset is unlinked", write_line, unlink_line, -ESTALE, 0},
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static struct world *begin(const struct confirm_case *c)
{
	struct world *w = world_begin();
	world_key(w, "", root_key);
	world_id(w, "line", line_id);
	world_id(w, "grid", grid_id);
	c->make(w->draft);
	gate_open(w->gate);
	return w;
}

static unsigned int requests(const struct world *w)
{
	return w->gate->n - w->gate->last_change;
}

/* The plan stays in the journal, and nothing is noted for deletion. */
static void check_failed(struct world *w, const struct confirm_case *c, int rc)
{
	struct plan plan;
	if (rc != c->code)
		fail_msg("%s: %d instead of %d: %s", c->name, rc, c->code, w->err.msg);
	assert_int_equal(draft_get_plan(w->draft, &plan, NULL), 0);
	assert_true(plan.subject.count == 1 && plan.subject.root);
	plan_release(&plan);
	assert_int_equal(w->result.removed, GC_NONE);
}

/* The other program acts before the first PUT, or before the first request that follows the last
 * one. */
static void check_case(const struct confirm_case *c, bool is_late)
{
	struct world *w = begin(c);
	if (c->other && is_late) {
		w->gate->other = c->other;
		w->gate->other_at = c->make == edit_attribute ? 3 : 2;
	} else if (c->other) {
		c->other(w->gate->base.inner);
	}
	const int rc = world_update(w);
	if (c->code) {
		check_failed(w, c, rc);
		/* It may be tried again, also by a later process. */
		check_failed(w, c, world_update(w));
		check_failed(w, c, world_resume(w));
	} else {
		if (rc)
			fail_msg("%s: %s", c->name, w->err.msg);
		assert_int_equal(world_changes(w), 1);
		if (c->requests)
			assert_int_equal(requests(w), c->requests);
	}
	world_end(w);
}

static void what_was_changed_must_be_in_the_domain(void **state)
{
	for (unsigned int i = 0; i < CASES; i++) {
		/* A put of the attributes of the root group finds that its links have changed. */
		check_case(&cases[i], false);
		check_case(&cases[i], true);
	}
}

/* The daemon is killed between the last PUT and the questions. */
static void a_later_process_asks_too(void **state)
{
	for (unsigned int i = 0; i < CASES; i++) {
		const struct confirm_case *c = &cases[i];
		struct world *w = begin(c);
		gate_fail(w->gate, c->make == edit_attribute ? 3 : 2, -EHOSTUNREACH);
		w->gate->later = true;
		assert_int_equal(world_update(w), -EHOSTUNREACH);
		assert_int_equal(world_changes(w), 1);
		gate_open(w->gate);
		if (c->other)
			c->other(w->gate->base.inner);
		const int rc = world_resume(w);
		if (c->code)
			check_failed(w, c, rc);
		else
			assert_int_equal(rc, 0);
		world_end(w);
	}
}

/* Whichever request fails, the update has not succeeded. */
static void each_failed_request_is_an_error(void **state)
{
	for (unsigned int i = 0; i < 2; i++) {
		bool has_failed = true;
		for (unsigned int at = 1; has_failed; at++) {
			struct world *w = begin(&cases[i]);
			gate_fail(w->gate, at, -EIO);
			const int rc = world_update(w);
			has_failed = w->gate->n >= at;
			assert_int_equal(rc, has_failed ? -EIO : 0);
			world_end(w);
		}
	}
}

/* The version of the document of the domain is known after it was read once. */
static void a_changed_document_is_read_once(void **state)
{
	struct world *w = begin(&cases[0]);
	change_acl(w->gate->base.inner);
	assert_int_equal(world_update(w), 0);
	assert_int_equal(w->gate->ops[STORE_GET], 1);
	fill_chunk(w->draft, 0, 5);
	world_must_update(w, 1, 0);
	assert_int_equal(w->gate->ops[STORE_GET], 0);
	world_end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_changed_must_be_in_the_domain),
		cmocka_unit_test(a_later_process_asks_too),
		cmocka_unit_test(each_failed_request_is_an_error),
		cmocka_unit_test(a_changed_document_is_read_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
