/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the contract of a store. They run over every implementation and wrapper. The state is a
 * struct fixture with an empty store.
 */
#ifndef TEST_STORE_CONTRACT_H
#define TEST_STORE_CONTRACT_H

#include "store_fixture.h"

#include "patterned_source.h"
#include "store_marks.h"

static void test_versions_agree(void **state)
{
	const struct fixture *f = *state;
	struct store *s = f->s;
	static const uint8_t body[] = {0, 1, 0xff, '\n', 0};
	struct store_meta put, head;
	struct call_result res;
	struct err err = ERR_INIT;
	auto_page struct store_page page = {0};
	assert_int_equal(call_put(s, "d/x", body, sizeof(body), NULL, &put, &err), 0);
	assert_int_equal(put.size, sizeof(body));
	assert_true(put.etag[0]);
	assert_int_equal(call_head(s, "d/x", &head, &err), 0);
	assert_int_equal(call_get(s, "d/x", 0, UINT64_MAX, 0, NULL, &res, &err), 0);
	assert_int_equal(call_list_all(s, "", false, 10, &page, &err), 0);
	assert_int_equal(page.n, 1);
	const struct store_meta *seen[] = {&head, &res.meta, &page.items[0].meta};
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(seen[i]->size, put.size);
		assert_int_equal(seen[i]->mtime_ns,
				 f->put_knows_no_time ? head.mtime_ns : put.mtime_ns);
		assert_string_equal(seen[i]->etag, put.etag);
	}
	assert_int_equal(res.body.len, sizeof(body));
	assert_memory_equal(res.body.data, body, sizeof(body));
	bytes_release(&res.body);

	struct store_meta again;
	assert_int_equal(call_put(s, "d/x", body, sizeof(body), NULL, &again, &err), 0);
	assert_int_equal(strcmp(again.etag, put.etag) == 0, f->version_is_content);
	for (int i = 0; i < 3; i++) {
		const struct store_meta old = again;
		const struct store_cond cond = {.if_match = old.etag, .is_new_version = true};
		assert_int_equal(call_put(s, "d/x", body, sizeof(body), &cond, &again, &err), 0);
		assert_string_not_equal(again.etag, old.etag);
	}
	assert_int_equal(call_get(s, "d/x", 0, UINT64_MAX, 0, NULL, &res, &err), 0);
	assert_int_equal(res.body.len, sizeof(body));
	assert_memory_equal(res.body.data, body, sizeof(body));
	bytes_release(&res.body);
	assert_int_equal(call_put(s, "d/x", body, 3, NULL, &again, &err), 0);
	assert_string_not_equal(again.etag, put.etag);
}

static void test_empty_object(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	struct store_meta meta = {.size = 1};
	assert_int_equal(call_put(s, "empty", NULL, 0, NULL, &meta, NULL), 0);
	assert_int_equal(meta.size, 0);
	assert_object(s, "empty", "");
}

static void assert_note(struct store *s, const char *key, const char *want)
{
	struct err err = ERR_INIT;
	char note[STORE_NOTE_MAX + 1];
	if (call_note(s, key, note, &err))
		fail_msg("%s", err.msg);
	assert_string_equal(note, want);
}

/* The note belongs to the version: who replaces the object replaces the note. */
static void test_notes(void **state)
{
	struct fixture *f = *state;
	const struct store_cond absent = {.if_none_match = "*"};
	char longest[STORE_NOTE_MAX + 1] = "", note[STORE_NOTE_MAX + 1];
	struct patterned body, other;
	struct call_result res;
	struct err err = ERR_INIT;
	for (size_t i = 0; i < STORE_NOTE_MAX; i += 2)
		strcat(longest, "\xc3\xa9");
	const char *const notes[] = {"x", "100 % of it: a/b?c=d&e \"\\\" +", longest};
	put_text(f->s, "plain", "1");
	assert_note(f->s, "plain", "");
	for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
		const char *want = fixture_has_notes(f) ? notes[i] : "";
		patterned_init(&body, 100000);
		if (call_put_note(f->s, "d/x", i % 2 ? &body.source : NULL, notes[i], NULL, &err))
			fail_msg("%s", err.msg);
		assert_note(f->s, "d/x", want);
		assert_int_equal(call_get(f->s, "d/x", 0, 1, 0, NULL, &res, NULL), 0);
		assert_string_equal(res.note, res.has_note ? want : "");
		bytes_release(&res.body);
		/* Other bytes: a repeated attempt with the same ones counts as successful. */
		patterned_init(&other, 7);
		assert_int_equal(call_put_note(f->s, "d/x", &other.source, "y", &absent, NULL),
				 -EEXIST);
		assert_note(f->s, "d/x", want);
	}
	put_text(f->s, "d/x", "2");
	assert_note(f->s, "d/x", "");
	assert_listing(f->s, "d/", false, "d/x");
	assert_int_equal(call_note(f->s, "d/absent", note, &err), -ENOENT);
}

/* A body that is read from a source, and an error of the source in the middle. */
static void test_body_from_a_source(void **state)
{
	static const uint64_t sizes[] = {0, 1, 65536, (3 << 20) + 1};
	struct store *s = ((struct fixture *)*state)->s;
	const struct store_cond absent = {.if_none_match = "*"};
	struct err err = ERR_INIT;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct patterned p, other;
		struct store_meta meta;
		struct call_result res;
		patterned_init(&p, sizes[i]);
		patterned_init(&other, sizes[i] + 2);
		if (call_put_source(s, "d/body", &p.source, i % 2, NULL, &meta, &err))
			fail_msg("%s", err.msg);
		assert_int_equal(meta.size, sizes[i]);
		assert_int_equal(call_get(s, "d/body", 0, UINT64_MAX, 0, NULL, &res, NULL), 0);
		assert_string_equal(res.meta.etag, meta.etag);
		patterned_assert(res.body.data, res.body.len, sizes[i]);
		bytes_release(&res.body);
		const struct source_part part = {.source = &p.source, .n = sizes[i]};
		if (call_put_part(s, "d/part", &part, &err))
			fail_msg("%s", err.msg);
		assert_int_equal(call_get(s, "d/part", 0, UINT64_MAX, 0, NULL, &res, NULL), 0);
		patterned_assert(res.body.data, res.body.len, sizes[i]);
		bytes_release(&res.body);
		/* Equal bytes would count as an earlier attempt of this put. */
		assert_int_equal(
			call_put_source(s, "d/body", &other.source, false, &absent, NULL, &err),
			-EEXIST);
	}
}

static void test_body_that_cannot_be_read(void **state)
{
	static const struct {
		int code, want;
	} cases[] = {{-EBADMSG, -EBADMSG}, {-EIO, -EIO},       {-EAGAIN, -EIO},
		     {-ENOENT, -EIO},	   {-ESTALE, -ESTALE}, {-ENOMEM, -ENOMEM}};
	struct store *s = ((struct fixture *)*state)->s;
	put_text(s, "d/old", "1");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct patterned p;
		struct err err = ERR_INIT;
		patterned_init(&p, 3 << 20);
		p.fail_at = (3 << 20) - 1;
		p.code = cases[i].code;
		assert_int_equal(call_put_source(s, "d/old", &p.source, true, NULL, NULL, &err),
				 cases[i].want);
		assert_int_equal(err.code, cases[i].want);
		assert_non_null(strstr(err.msg, "d/old"));
		if (cases[i].code != -EAGAIN)
			assert_non_null(strstr(err.msg, "the pattern is torn"));
		assert_int_equal(p.failures, 1); /* it was not repeated */
		assert_int_equal(call_put_source(s, "d/new", &p.source, true, NULL, NULL, &err),
				 cases[i].want);
	}
	assert_object(s, "d/old", "1");
	assert_listing(s, "d/", false, "d/old");
}

static void test_absent(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	struct store_meta meta;
	struct err err = ERR_INIT;
	char component[400];
	memset(component, 'x', sizeof(component) - 1);
	component[sizeof(component) - 1] = '\0';
	put_text(s, "there", "1");
	put_text(s, "dir/below", "1");
	const char *keys[] = {"absent", "dir", "dir/absent", "there/below", component};
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		assert_code(s, keys[i], -ENOENT);
		assert_int_equal(call_head(s, keys[i], &meta, &err), -ENOENT);
		assert_non_null(strstr(err.msg, keys[i]));
		assert_int_equal(call_delete(s, keys[i], NULL, NULL), 0);
	}
	assert_object(s, "there", "1");
	assert_object(s, "dir/below", "1");
	assert_listing(s, "nowhere/", false, "");
	assert_listing(s, "there/", false, "");
	assert_listing(s, "there/", true, "");
}

static void test_ranges(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	static const struct {
		uint64_t offset, length, max;
		int code;
		const char *want;
	} cases[] = {
		{0, UINT64_MAX, 0, 0, "0123456789"},
		{0, 10, 10, 0, "0123456789"},
		{0, 1, 0, 0, "0"},
		{3, 4, 4, 0, "3456"},
		{9, 1, 0, 0, "9"},
		{8, 100, 2, 0, "89"},
		{8, UINT64_MAX, 0, 0, "89"},
		{10, 1, 0, 0, ""},
		{10, UINT64_MAX, 1, 0, ""},
		{11, 5, 0, 0, ""},
		{UINT64_MAX, UINT64_MAX, 0, 0, ""},
		{UINT64_MAX - 1, 5, 0, 0, ""},
		{4, 0, 0, 0, ""},
		{0, UINT64_MAX, 9, -EFBIG, ""},
		{0, 5, 4, -EFBIG, ""},
		{5, UINT64_MAX, 4, -EFBIG, ""},
	};
	put_text(s, "digits", "0123456789");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct call_result res;
		assert_int_equal(call_get(s, "digits", cases[i].offset, cases[i].length,
					  cases[i].max, NULL, &res, NULL),
				 cases[i].code);
		assert_int_equal(res.body.len, strlen(cases[i].want));
		if (res.body.len)
			assert_memory_equal(res.body.data, cases[i].want, res.body.len);
		if (res.code == 0)
			assert_int_equal(res.meta.size, 10);
		bytes_release(&res.body);
	}
}

static void test_ranges_from_the_end(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	static const struct {
		uint64_t length, max;
		int code;
		const char *want;
	} cases[] = {
		{1, 0, 0, "9"},
		{4, 4, 0, "6789"},
		{10, 0, 0, "0123456789"},
		{11, 0, 0, "0123456789"},
		{INT64_MAX, 0, 0, "0123456789"},
		{0, 0, 0, ""},
		{4, 3, -EFBIG, ""},
	};
	put_text(s, "digits", "0123456789");
	put_text(s, "empty", "");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_request struct store_request *req = store_request_new(s, STORE_GET);
		struct store_answer *a = &req->answer;
		store_request_key(req, "digits");
		req->range = (struct store_range){.length = cases[i].length, .from_end = true};
		req->max = cases[i].max;
		store_run(s, req);
		assert_int_equal(store_failure(a, NULL), cases[i].code);
		assert_int_equal(a->body.len, strlen(cases[i].want));
		if (a->body.len)
			assert_memory_equal(a->body.data, cases[i].want, a->body.len);
		if (!cases[i].code)
			assert_int_equal(a->meta.size, 10);
		store_request_reset(req, STORE_GET);
		store_request_key(req, "empty");
		req->range = (struct store_range){.length = 5, .from_end = true};
		store_run(s, req);
		assert_int_equal(a->state, STORE_PRESENT);
		assert_int_equal(a->body.len + a->meta.size, 0);
	}
}

/* Only an absent object has a proof of absence, with its evidence. */
static void test_proof_of_absence(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	static const struct {
		const char *key;
		bool absent;
	} cases[] = {{"there", false}, {"absent", true}, {"", false}, {"no/such/place", true}};
	put_text(s, "there", "1");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_request struct store_request *req = store_request_new(s, STORE_GET);
		store_request_key(req, cases[i].key);
		store_run(s, req);
		const struct store_absence *proof = store_absence(&req->answer);
		assert_int_equal(proof != NULL, cases[i].absent);
		assert_true(!proof || proof->evidence >= STORE_BY_LISTING);
	}
}

static void test_bad_keys(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	char large[STORE_KEY_MAX + 2];
	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	const char *keys[] = {"",
			      "/",
			      "/x",
			      "x/",
			      "x//y",
			      ".",
			      "..",
			      "../x",
			      "x/..",
			      "x/../y",
			      "x/./y",
			      "./x",
			      "../../etc/passwd",
			      large};
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct store_meta meta;
		assert_false(store_key_ok(keys[i]));
		assert_code(s, keys[i], -EINVAL);
		assert_int_equal(call_head(s, keys[i], &meta, NULL), -EINVAL);
		assert_int_equal(call_put(s, keys[i], "x", 1, NULL, NULL, NULL), -EINVAL);
		const int rc = store_key_is_marker(keys[i]) ? 0 : -EINVAL;
		assert_int_equal(call_delete(s, keys[i], NULL, NULL), rc);
	}
	assert_listing(s, "", false, "");
}

/* A directory marker is no directory. */
static void test_delete_of_a_marker(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	put_text(s, "d/x", "1");
	put_text(s, "e", "2");
	assert_int_equal(call_delete(s, "d/", NULL, NULL), 0);
	assert_int_equal(call_delete(s, "e/", NULL, NULL), 0);
	assert_int_equal(call_delete(s, "f/", NULL, NULL), 0);
	assert_int_equal(call_delete(s, "d//", NULL, NULL), -EINVAL);
	assert_listing(s, "", false, "d/x e");
}

static void test_odd_keys(void **state)
{
	const struct fixture *f = *state;
	struct store *s = f->s;
	const char *keys[] = {"...",	       "..x/y..",
			      ".hidden",       "\x01\x1f\x7f",
			      "a b?*%#+&=\"<", f->utf8_keys ? "caf\xc3\xa9 " : "caf\xc3\xa9 \xff"};
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		put_text(s, keys[i], keys[i]);
		assert_object(s, keys[i], keys[i]);
	}
	auto_page struct store_page page = {0};
	assert_int_equal(call_list_all(s, "", false, 100, &page, NULL), 0);
	assert_int_equal(page.n, sizeof(keys) / sizeof(keys[0]));
}

static void test_put_conditions(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	const struct store_cond absent = {.if_none_match = "*"};
	struct store_meta first, second;
	struct err err = ERR_INIT;
	assert_int_equal(call_put(s, "d/x", "1", 1, &absent, &first, &err), 0);
	assert_int_equal(call_put(s, "d/x", "2", 1, &absent, NULL, &err), -EEXIST);
	assert_object(s, "d/x", "1");

	const struct store_cond same = {.if_match = first.etag};
	assert_int_equal(call_put(s, "d/x", "3", 1, &same, &second, &err), 0);
	assert_int_equal(call_put(s, "d/x", "4", 1, &same, NULL, &err), -ESTALE);
	assert_object(s, "d/x", "3");
	assert_int_equal(call_put(s, "d/absent", "5", 1, &same, NULL, &err), -ESTALE);
	assert_int_equal(call_put(s, "nowhere/absent", "5", 1, &same, NULL, &err), -ESTALE);
	assert_code(s, "d/absent", -ENOENT);
	assert_listing(s, "d/", false, "d/x");
}

static void test_get_conditions(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	struct store_meta old, now;
	struct call_result res;
	assert_int_equal(call_put(s, "x", "1", 1, NULL, &old, NULL), 0);
	assert_int_equal(call_put(s, "x", "2", 1, NULL, &now, NULL), 0);
	const struct {
		struct store_cond cond;
		int code;
	} cases[] = {
		{{.if_match = now.etag}, 0},
		{{.if_match = old.etag}, -ESTALE},
		{{.if_none_match = old.etag}, 0},
		{{.if_none_match = now.etag}, -EALREADY},
		{{.if_match = now.etag, .if_none_match = now.etag}, -EALREADY},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(call_get(s, "x", 0, UINT64_MAX, 0, &cases[i].cond, &res, NULL),
				 cases[i].code);
		assert_int_equal(res.body.len, cases[i].code ? 0 : 1);
		bytes_release(&res.body);
	}
}

static void test_delete(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	struct store_meta meta;
	assert_int_equal(call_put(s, "a/b/c/x", "1", 1, NULL, &meta, NULL), 0);
	put_text(s, "a/y", "2");
	const struct store_cond other = {.if_match = "no such version"};
	const struct store_cond same = {.if_match = meta.etag};
	assert_int_equal(call_delete(s, "a/b/c/x", &other, NULL), -ESTALE);
	assert_object(s, "a/b/c/x", "1");
	assert_int_equal(call_delete(s, "a/b/c/x", &same, NULL), 0);
	assert_int_equal(call_delete(s, "a/b/c/x", &same, NULL), 0);
	assert_code(s, "a/b/c/x", -ENOENT);
	assert_listing(s, "a/", true, "a/y"); /* the directories that it emptied are removed too */
	assert_int_equal(call_delete(s, "a/y", NULL, NULL), 0);
	assert_listing(s, "", true, "");
	put_text(s, "a/b/c/x", "3"); /* and are made again */
	assert_object(s, "a/b/c/x", "3");
}

static void test_delete_of_nothing(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	struct store_meta meta;
	bool was_absent = true;
	assert_int_equal(call_put(s, "d/x", "1", 1, NULL, &meta, NULL), 0);
	assert_int_equal(call_delete_version(s, "d/x", "no such version", &was_absent), -ESTALE);
	assert_false(was_absent);
	assert_int_equal(call_delete_version(s, "d/x", meta.etag, &was_absent), 0);
	assert_false(was_absent);
	assert_int_equal(call_delete_version(s, "d/x", meta.etag, &was_absent), 0);
	assert_true(was_absent);
}

/* In byte order, which is not the order of names level by level. */
static const char *const tree[] = {
	"a!",	   "a-b", "a-c/x",   "a.b/c/d", "a.b/c.d", "a/b", "a/b-c",
	"a/b.c/d", "a0",  "b/a/a/a", "b/a/a/b", "b/b",	   "c",	  "\xc3\xa9/x",
};
enum { TREE_SIZE = sizeof(tree) / sizeof(tree[0]) };

static void make_tree(struct store *s)
{
	for (size_t i = TREE_SIZE; i-- > 0;)
		put_text(s, tree[i], "x");
}

static void test_listing(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	static const struct {
		const char *prefix;
		bool delimit;
		const char *want;
	} cases[] = {
		{"", false,
		 "a! a-b a-c/x a.b/c.d a.b/c/d a/b a/b-c a/b.c/d a0 b/a/a/a b/a/a/b b/b c "
		 "\xc3\xa9/x"},
		{"", true, "a! a-b a-c/ a.b/ a/ a0 b/ c \xc3\xa9/"},
		{"a", false, "a! a-b a-c/x a.b/c.d a.b/c/d a/b a/b-c a/b.c/d a0"},
		{"a", true, "a! a-b a-c/ a.b/ a/ a0"},
		{"a/", false, "a/b a/b-c a/b.c/d"},
		{"a/", true, "a/b a/b-c a/b.c/"},
		{"a/b", true, "a/b a/b-c a/b.c/"},
		{"a/b.", true, "a/b.c/"},
		{"a/b.c", false, "a/b.c/d"},
		{"a/b.c/", true, "a/b.c/d"},
		{"a.", true, "a.b/"},
		{"a.b/c", true, "a.b/c.d a.b/c/"},
		{"b/a/", false, "b/a/a/a b/a/a/b"},
		{"b/a/", true, "b/a/a/"},
		{"c", false, "c"},
		{"c/", false, ""},
		{"a//", false, ""},
		{"/", false, ""},
		{"./", false, ""},
		{"../", false, ""},
		{"b/../", true, ""},
		{"zz", false, ""},
	};
	make_tree(s);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_listing(s, cases[i].prefix, cases[i].delimit, cases[i].want);
}

static void assert_pages_equal_whole(struct store *s, const char *prefix, bool delimit,
				     uint32_t max)
{
	auto_page struct store_page whole = {0};
	char after[STORE_KEY_MAX + 1];
	struct call_list req = {.prefix = prefix, .delimit = delimit, .max = max};
	assert_int_equal(call_list_all(s, prefix, delimit, 1000, &whole, NULL), 0);
	for (size_t seen = 0;;) {
		auto_page struct store_page page = {0};
		assert_int_equal(call_list_page(s, &req, &page, NULL), 0);
		assert_true(seen + page.n <= whole.n);
		for (size_t i = 0; i < page.n; i++, seen++) {
			assert_string_equal(page.items[i].key, whole.items[seen].key);
			assert_int_equal(page.items[i].is_prefix, whole.items[seen].is_prefix);
			assert_string_equal(page.items[i].meta.etag, whole.items[seen].meta.etag);
		}
		assert_int_equal(page.more, seen < whole.n);
		if (!page.more)
			return;
		assert_int_equal(page.n, max);
		strcpy(after, page.next);
		req.start_after = after;
	}
}

static void test_pages(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	const char *prefixes[] = {"", "a", "a/", "b/a/", "zz"};
	make_tree(s);
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		for (uint32_t max = 1; max <= TREE_SIZE + 1; max++)
			for (int delimit = 0; delimit < 2; delimit++)
				assert_pages_equal_whole(s, prefixes[i], delimit, max);
}

/* Also for a start_after that is not a key, exactly the greater items are listed. */
static void test_start_after(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	const char *starts[] = {"",    "a",	 "a!",	    "a-",     "a-b",	 "a-c",
				"a.b", "a.b/",	 "a.b/c",   "a.b/c/", "a.b/c/d", "a/",
				"a/b", "a/b.c/", "a/b.c/z", "a0",     "b/a",	 "b/a/a/a",
				"c",   "c/",	 "zz",	    "\xff"};
	make_tree(s);
	for (int delimit = 0; delimit < 2; delimit++) {
		auto_page struct store_page whole = {0};
		assert_int_equal(call_list_all(s, "", delimit, 1000, &whole, NULL), 0);
		for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
			auto_page struct store_page page = {0};
			const struct call_list req = {.prefix = "",
						      .delimit = delimit,
						      .max = 100,
						      .start_after = starts[i]};
			assert_int_equal(call_list_page(s, &req, &page, NULL), 0);
			size_t first = 0;
			while (first < whole.n && strcmp(whole.items[first].key, starts[i]) <= 0)
				first++;
			assert_int_equal(page.n, whole.n - first);
			for (size_t k = 0; k < page.n; k++)
				assert_string_equal(page.items[k].key, whole.items[first + k].key);
		}
	}
}

/* Items that come after the last one do not count for the limit. */
static void test_until(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	const char *ends[] = {"!", "a", "a-b", "a-c", "a.b/c", "a/b", "b/a/a/a", "c", "zz"};
	auto_page struct store_page whole = {0};
	make_tree(s);
	assert_int_equal(call_list_all(s, "", false, 1000, &whole, NULL), 0);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		auto_page struct store_page page = {0};
		struct call_list req = {.prefix = "", .limit = 0, .until = ends[i]};
		while (req.limit < whole.n && strcmp(whole.items[req.limit].key, ends[i]) <= 0)
			req.limit++;
		assert_int_equal(call_list(s, &req, true, &page, NULL), 0);
		assert_false(page.more);
		assert_int_equal(page.n, req.limit);
		for (size_t k = 0; k < page.n; k++)
			assert_string_equal(page.items[k].key, whole.items[k].key);
	}
}

static void test_list_limit(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	make_tree(s);
	for (int delimit = 0; delimit < 2; delimit++) {
		const uint32_t n = delimit ? 9 : 14;
		for (uint32_t limit = 0; limit <= n + 1; limit++) {
			struct store_page page;
			struct err err = ERR_INIT;
			int rc = call_list_all(s, "", delimit, limit, &page, &err);
			assert_int_equal(rc, limit < n ? -E2BIG : 0);
			assert_int_equal(page.n, rc ? 0 : n);
			assert_true(!rc || err.code == -E2BIG);
			store_page_release(&page);
		}
	}
}

static void test_many(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	enum { N = 100 };
	char keys[N][16];
	struct call_get reqs[N];
	struct call_result results[N];
	for (int i = 0; i < N; i++) {
		snprintf(keys[i], sizeof(keys[i]), "k/%d", i);
		if (i % 3)
			put_text(s, keys[i], keys[i]);
		reqs[i] = (struct call_get){.key = keys[i], .length = UINT64_MAX};
	}
	reqs[1].key = "../x";
	assert_int_equal(call_get_many(s, reqs, N, results), 0);
	assert_int_equal(call_get_many(s, NULL, 0, NULL), 0);
	for (int i = 0; i < N; i++) {
		assert_int_equal(results[i].code, i == 1 ? -EINVAL : i % 3 ? 0 : -ENOENT);
		if (results[i].code == 0) {
			assert_int_equal(results[i].body.len, strlen(keys[i]));
			assert_memory_equal(results[i].body.data, keys[i], results[i].body.len);
		}
		bytes_release(&results[i].body);
	}
}

static void test_round(void **state)
{
	struct store *s = ((struct fixture *)*state)->s;
	struct call_get reqs[] = {
		{.op = STORE_GET, .key = "b/b", .length = UINT64_MAX},
		{.op = STORE_HEAD, .key = "nowhere"},
	};
	struct call_result results[2];
	struct call_list_job jobs[] = {
		{.prefix = "a/", .delimit = true, .limit = 10},
		{.prefix = "b/", .limit = 2},
		{.prefix = "nowhere/", .limit = 10},
		{.prefix = "b/", .limit = 3},
	};
	const char *want[] = {"a/b a/b-c a/b.c/", "", "", "b/a/a/a b/a/a/b b/b"};
	make_tree(s);
	assert_int_equal(call_round(s, reqs, 2, results, jobs, 4), 0);
	assert_int_equal(results[0].code, 0);
	assert_int_equal(results[1].code, -ENOENT);
	bytes_release(&results[0].body);
	for (size_t i = 0; i < 4; i++) {
		char text[256];
		assert_int_equal(jobs[i].code, i == 1 ? -E2BIG : 0);
		join_page(&jobs[i].page, text, sizeof(text));
		assert_string_equal(text, want[i]);
		store_page_release(&jobs[i].page);
	}
}

/* setup makes the fixture with an empty store; its teardown is fixture_teardown. */
static int fixture_teardown(void **state)
{
	fixture_free(*state);
	return 0;
}

#define CONTRACT_TEST(test, setup)                                                                 \
	{                                                                                          \
#setup ": " #test, test, setup, fixture_teardown, NULL                             \
	}
#define CONTRACT_TESTS(setup)                                                                      \
	CONTRACT_TEST(test_versions_agree, setup), CONTRACT_TEST(test_empty_object, setup),        \
		CONTRACT_TEST(test_notes, setup), CONTRACT_TEST(test_body_from_a_source, setup),   \
		CONTRACT_TEST(test_body_that_cannot_be_read, setup),                               \
		CONTRACT_TEST(test_absent, setup), CONTRACT_TEST(test_ranges, setup),              \
		CONTRACT_TEST(test_ranges_from_the_end, setup),                                    \
		CONTRACT_TEST(test_proof_of_absence, setup), CONTRACT_TEST(test_bad_keys, setup),  \
		CONTRACT_TEST(test_delete_of_a_marker, setup),                                     \
		CONTRACT_TEST(test_odd_keys, setup), CONTRACT_TEST(test_put_conditions, setup),    \
		CONTRACT_TEST(test_get_conditions, setup), CONTRACT_TEST(test_delete, setup),      \
		CONTRACT_TEST(test_delete_of_nothing, setup), CONTRACT_TEST(test_move, setup),     \
		CONTRACT_TEST(test_marks, setup), CONTRACT_TEST(test_own_mark, setup),             \
		CONTRACT_TEST(test_listing, setup), CONTRACT_TEST(test_pages, setup),              \
		CONTRACT_TEST(test_start_after, setup), CONTRACT_TEST(test_until, setup),          \
		CONTRACT_TEST(test_list_limit, setup), CONTRACT_TEST(test_many, setup),            \
		CONTRACT_TEST(test_round, setup)

#endif
