/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the contract of a store, see store_contract.h: marks and moves. */
#ifndef TEST_STORE_MARKS_H
#define TEST_STORE_MARKS_H

#include "store_fixture.h"

static void assert_mark(struct store *s, const char *key, const char *want)
{
	struct err err = ERR_INIT;
	char mark[STORE_MARK_MAX + 1];
	if (call_mark(s, key, mark, &err))
		fail_msg("%s", err.msg);
	assert_string_equal(mark, want);
}

/* The mark belongs to the version, as the note does. */
static void test_marks(void **state)
{
	struct fixture *f = *state;
	char longest[STORE_MARK_MAX + 1] = "", mark[STORE_MARK_MAX + 1];
	memset(longest, 'z', STORE_MARK_MAX);
	const char *const marks[] = {"0", "00a1b2c3d4e5f607-12", longest};
	put_text(f->s, "plain", "1");
	assert_mark(f->s, "plain", "");
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		assert_int_equal(call_put_mark(f->s, "d/x", "1", marks[i], NULL, NULL, NULL), 0);
		assert_mark(f->s, "d/x", fixture_has_notes(f) ? marks[i] : "");
	}
	if (fixture_has_notes(f))
		assert_int_not_equal(store_keeps_marks(f->s), STORE_MARKS_DROPPED);
	put_text(f->s, "d/x", "2");
	assert_mark(f->s, "d/x", "");
	assert_int_equal(call_mark(f->s, "absent", mark, NULL), -ENOENT);
}

/* A condition that fails because of an earlier attempt of the same request counts as met. Equal
 * bytes alone are a conflict. */
static void test_own_mark(void **state)
{
	struct fixture *f = *state;
	const struct store_cond absent = {.if_none_match = "*"};
	struct store_meta old, first, now;
	if (!fixture_has_notes(f))
		skip();
	assert_int_equal(call_put_mark(f->s, "d/x", "1", "a-0", &absent, &first, NULL), 0);
	assert_int_equal(store_keeps_marks(f->s), STORE_MARKS_KEPT);
	assert_int_equal(call_put_mark(f->s, "d/x", "1", "a-0", &absent, &now, NULL), 0);
	assert_string_equal(now.etag, first.etag);
	assert_int_equal(call_put_mark(f->s, "d/x", "1", "b-0", &absent, NULL, NULL), -EEXIST);
	assert_int_equal(call_put_mark(f->s, "d/x", "1", NULL, &absent, NULL, NULL), -EEXIST);

	old = first;
	const struct store_cond same = {.if_match = old.etag};
	assert_int_equal(call_put_mark(f->s, "d/x", "2", "a-1", &same, &first, NULL), 0);
	assert_int_equal(call_put_mark(f->s, "d/x", "2", "a-1", &same, &now, NULL), 0);
	assert_string_equal(now.etag, first.etag);
	assert_int_equal(call_put_mark(f->s, "d/x", "2", "b-1", &same, NULL, NULL), -ESTALE);
	assert_int_equal(call_put_mark(f->s, "d/x", "2", NULL, &same, NULL, NULL), -ESTALE);
	assert_mark(f->s, "d/x", "a-1");
	put_text(f->s, "d/x", "3");
	assert_int_equal(call_put_mark(f->s, "d/x", "2", "a-1", &same, NULL, NULL), -ESTALE);
	assert_object(f->s, "d/x", "3");
	assert_int_equal(call_delete(f->s, "d/x", NULL, NULL), 0);
	assert_int_equal(call_put_mark(f->s, "d/x", "2", "a-1", &same, NULL, NULL), -ESTALE);
}

/* Moves d/from, whose content is "1". */
static void assert_move(struct store *s, const char *version, const char *to,
			const struct store_cond *cond, int code)
{
	struct store_meta meta = {0}, head;
	struct err err = ERR_INIT;
	assert_int_equal(store_move(s, "d/from", version, to, cond, &meta, &err), code);
	assert_int_equal(err.code, code);
	if (code) {
		assert_object(s, "d/from", "1");
		return;
	}
	assert_code(s, "d/from", -ENOENT);
	assert_object(s, to, "1");
	assert_int_equal(call_head(s, to, &head, NULL), 0);
	assert_string_equal(head.etag, meta.etag);
	assert_int_equal(head.size, meta.size);
}

static void test_move(void **state)
{
	struct fixture *f = *state;
	struct store *s = f->s;
	const struct store_cond absent = {.if_none_match = "*"}, other = {.if_match = "other"};
	struct store_meta meta, there;
	if (f->no_move) {
		assert_int_equal(store_move(s, "a", "", "b", NULL, NULL, NULL), -EOPNOTSUPP);
		return;
	}
	assert_int_equal(call_put_mark(s, "d/from", "1", "m-1", NULL, &meta, NULL), 0);
	assert_move(s, "", "d/from", NULL, -EINVAL);
	assert_move(s, "", "../x", NULL, -EINVAL);
	assert_move(s, "other", "new/d/to", NULL, -ESTALE);
	assert_move(s, "", "new/d/to", &other, -ESTALE);
	assert_listing(s, "", true, "d/");
	if (f->no_move_if_absent)
		assert_move(s, "", "new/d/to", &absent, -EOPNOTSUPP);
	assert_move(s, meta.etag, "new/d/to", f->no_move_if_absent ? NULL : &absent, 0);
	assert_mark(s, "new/d/to", fixture_has_notes(f) ? "m-1" : "");
	assert_listing(s, "", true, "new/");
	assert_int_equal(store_move(s, "d/from", "", "y", NULL, NULL, NULL), -ENOENT);
	assert_int_equal(store_move(s, "d/from", meta.etag, "y", NULL, NULL, NULL), -ESTALE);
	assert_code(s, "y", -ENOENT);

	put_text(s, "d/from", "1");
	assert_int_equal(call_put(s, "there", "2", 1, NULL, &there, NULL), 0);
	const struct store_cond same = {.if_match = there.etag};
	assert_move(s, "", "there", &absent, -EEXIST);
	assert_move(s, "", "there", &other, -ESTALE);
	assert_object(s, "there", "2");
	assert_move(s, "", "there", &same, 0);
	put_text(s, "d/from", "1");
	put_text(s, "there", "2");
	assert_move(s, "", "there", NULL, 0);
	assert_listing(s, "", true, "new/ there");
}

#endif
