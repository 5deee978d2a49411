/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole files: numbers and paths of objects, groups that contain themselves, links, references,
 * damage of one object, a source whose pages arrive later.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include <data/tree_diff.h>
#include <h5file/h5file.h>

#include "small_file.h"

static struct h5file *open_file(struct small_file *s)
{
	struct h5file *f = NULL;
	struct err err = ERR_INIT;
	const struct h5file_options opt = {.claim_chunks = true};
	int rc = h5file_open(&s->src.source, &opt, &f, &err);
	if (rc)
		fail_msg("%s", err.msg);
	return f;
}

static const struct object *object(const struct h5file *f, uint32_t number)
{
	return &tree_object(h5file_tree(f), number)->o;
}

static const char *problem(const struct h5file *f, uint64_t n)
{
	const struct h5file_problem *p = h5file_problem(f, n);
	return p ? p->text : "";
}

/* / has "a" (a group), "b" (numbers), "b2" (the same), "soft"; /a has "root" and "deep". */
static void make(struct small_file *s)
{
	small_begin(s);
	const uint64_t b = small_numbers(s, 10);
	small_object(s);
	small_group(s, true);
	small_link(s, "root", 0);
	small_link(s, "deep", 0);
	const uint64_t a = small_end(s);
	const uint64_t deep = small_numbers(s, 3);
	const uint64_t refs[] = {deep, 0, 12345};
	const struct dspace three = small_vector(3);
	small_object(s);
	small_group(s, false);
	small_link(s, "b2", b);
	small_link(s, "b", b);
	small_link(s, "a", a);
	small_add_link(s,
		       &(struct h5_link){
			       .name = "soft", .name_len = 4, .cls = LINK_SOFT, .path = "/soft"});
	small_attr(s, "refs", dtype_reference(s->arena, DTYPE_REF_OBJECT, NULL), &three, refs);
	const uint64_t root = small_end(s);
	/* Write /a once more, now with the addresses of its links. */
	const size_t n = s->n;
	s->n = a;
	small_object(s);
	small_group(s, true);
	small_link(s, "root", root);
	small_link(s, "deep", deep);
	assert_int_equal(small_end(s), a);
	s->n = n;
	small_finish(s, root);
}

static void small_comment(struct small_file *s, const char *text, size_t n)
{
	struct emit e = small_body(s);
	emit_bytes(&e, text, n);
	small_message(s, H5_MSG_COMMENT, &e);
}

/* The second one has no NUL, the third one is empty, the fourth one claims to be shared. */
static void reads_comments(void **state)
{
	static const struct {
		const char *text;
		size_t n;
		uint8_t flags;
		const char *comment;
	} rows[] = {{"caf\xe9\0\0", 6, 0, "caf\xe9"},
		    {"caf\xe9", 4, 0, NULL},
		    {"\0", 1, 0, NULL},
		    {"shared", 7, H5_MSG_SHARED, NULL}};
	enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
	static struct small_file s;
	uint64_t addr[ROWS];
	small_begin(&s);
	for (size_t i = 0; i < ROWS; i++) {
		small_object(&s);
		small_group(&s, false);
		small_comment(&s, rows[i].text, rows[i].n);
		s.msgs[s.header.n - 1].flags = rows[i].flags;
		addr[i] = small_end(&s);
	}
	small_object(&s);
	small_group(&s, true);
	for (size_t i = 0; i < ROWS; i++)
		small_link(&s, (const char *[]){"a", "b", "c", "d"}[i], addr[i]);
	small_comment(&s, "root", 5);
	small_finish(&s, small_end(&s));
	struct h5file *f = open_file(&s);
	assert_string_equal(object(f, 0)->comment, "root");
	for (uint32_t i = 0; i < ROWS; i++) {
		const char *found = object(f, i + 1)->comment;
		assert_int_equal(!found, !rows[i].comment);
		if (found)
			assert_string_equal(found, rows[i].comment);
	}
	assert_int_equal(h5file_problems(f), 2);
	assert_int_equal(h5file_problems_of(f, H5FILE_UNSUPPORTED), 2);
	assert_string_equal(h5file_problem(f, 0)->path, "/b");
	assert_non_null(strstr(problem(f, 0), "the comment is left out: comment: "));
	assert_string_equal(h5file_problem(f, 1)->path, "/d");
	h5file_close(f);
	small_release(&s);
}

static void reads_a_hierarchy(void **state)
{
	static struct small_file s;
	make(&s);
	struct h5file *f = open_file(&s);
	const struct tree *t = h5file_tree(f);
	assert_int_equal(tree_count(t), 4);
	assert_string_equal(object(f, 0)->id, "/");
	assert_string_equal(object(f, 1)->id, "/a");
	assert_string_equal(object(f, 2)->id, "/b");
	assert_string_equal(object(f, 3)->id, "/a/deep");
	const struct object *root = object(f, 0), *a = object(f, 1);
	assert_int_equal(root->group.nlinks, 4);
	/* by name, because the group does not track the order */
	assert_string_equal(root->group.links[0].name, "a");
	assert_string_equal(root->group.links[2].name, "b2");
	assert_int_equal(root->group.links[2].target, 2);
	assert_string_equal(root->group.links[3].path, "/soft");
	/* in the order of their creation */
	assert_string_equal(a->group.links[0].name, "root");
	assert_int_equal(a->group.links[0].target, 0);
	assert_int_equal(tree_object(t, 2)->refcount, 2);
	/* One warning: the third reference leads to no object. */
	uint64_t refs[3];
	elems_read(&root->attrs[0].value, 0, refs, sizeof(refs));
	assert_int_equal(refs[0], 3 + 1);
	assert_int_equal(refs[1], 0);
	assert_int_equal(refs[2], 0);
	assert_int_equal(h5file_problems(f), 1);
	assert_int_equal(h5file_problem(f, 0)->severity, H5FILE_WARNING);
	assert_non_null(strstr(problem(f, 0), "12345"));
	h5file_close(f);
	small_release(&s);
}

static void a_damaged_object_leaves_the_others(void **state)
{
	static struct small_file s;
	make(&s);
	struct h5file *f = open_file(&s);
	const uint64_t header = h5file_dataset(f, 2)->header;
	h5file_close(f);
	s.bytes[header + 8] ^= 1;
	f = open_file(&s);
	assert_true(tree_object(h5file_tree(f), 2)->broken);
	assert_null(h5file_dataset(f, 2));
	assert_int_equal(tree_count(h5file_tree(f)), 3);
	assert_int_equal(object(f, 0)->group.nlinks, 2);
	assert_int_equal(h5file_problem(f, 0)->severity, H5FILE_DAMAGED);
	assert_string_equal(h5file_problem(f, 0)->path, "/b");
	char addr[32];
	snprintf(addr, sizeof(addr), "at %u", (unsigned int)header);
	assert_non_null(strstr(problem(f, 0), addr));
	h5file_close(f);
	small_release(&s);
}

static void a_damaged_root_group_fails(void **state)
{
	static struct small_file s;
	struct h5file *f = NULL;
	struct err err = ERR_INIT;
	make(&s);
	s.bytes[s.n - 1] ^= 1; /* the root group's header is last */
	assert_int_equal(h5file_open(&s.src.source, NULL, &f, &err), -EIO);
	assert_non_null(strstr(err.msg, "root group"));
	assert_null(f);
	small_release(&s);
}

static void a_truncated_file_is_reported(void **state)
{
	static struct small_file s;
	make(&s);
	s.bytes[40] += 8; /* end of file in the superblock */
	struct h5file *f = open_file(&s);
	assert_int_equal(tree_count(h5file_tree(f)), 4);
	assert_int_equal(h5file_problem(f, 0)->object, OBJECT_NONE);
	assert_non_null(strstr(problem(f, 0), "truncated"));
	h5file_close(f);
	small_release(&s);
}

static void overlapping_data_are_reported(void **state)
{
	static struct small_file s;
	small_begin(&s);
	const struct dspace space = small_vector(4);
	const uint32_t v[8] = {0};
	const uint64_t at = small_put(&s, v, sizeof(v));
	uint64_t d[2];
	for (int i = 0; i < 2; i++) {
		const struct h5_layout l = {
			.cls = LAYOUT_CONTIGUOUS, .addr = at + 8U * (unsigned)i, .size = 16};
		small_object(&s);
		small_dataset(&s, dtype_integer(s.arena, 4, false, false, NULL), &space, &l, NULL);
		d[i] = small_end(&s);
	}
	small_object(&s);
	small_group(&s, false);
	small_link(&s, "x", d[0]);
	small_link(&s, "y", d[1]);
	small_finish(&s, small_end(&s));
	struct h5file *f = open_file(&s);
	assert_int_equal(h5file_problems(f), 1);
	assert_int_equal(h5file_problem(f, 0)->severity, H5FILE_DAMAGED);
	h5file_close(f);
	small_release(&s);
}

/* A source that has each page only after it was requested, one thread: the caller fetches what is
 * missing and starts again, and the result is the same. */
static void starts_again_when_pages_arrive(void **state)
{
	static struct small_file s, here;
	enum { PAGE = 64 };
	make(&s);
	make(&here);
	struct h5file *f = NULL, *whole = open_file(&here);
	struct err err = ERR_INIT;
	const struct h5file_options opt = {.claim_chunks = true};
	const struct tree_diff_sink sink = {0};
	uint64_t differences = 0;
	int rc, starts = 0;
	mem_src_hide(&s.src, PAGE);
	while ((rc = h5file_open(&s.src.source, &opt, &f, &err)) == -EAGAIN) {
		assert_null(f);
		mem_src_fetch(&s.src);
		starts++;
	}
	assert_int_equal(rc, 0);
	assert_true(starts > 5);
	assert_true(s.src.fetched <= s.n / PAGE + 1);
	assert_int_equal(h5file_problems(f), h5file_problems(whole));
	assert_int_equal(tree_diff(h5file_tree(f), h5file_tree(whole),
				   TREE_DIFF_TIMES | TREE_DIFF_GRIDS | TREE_DIFF_ORDER, &sink, NULL,
				   &differences, &err),
			 0);
	assert_int_equal(differences, 0);
	h5file_close(f);
	h5file_close(whole);
	small_release(&s);
	small_release(&here);
}

/* What an open charges is returned, whether it succeeds or not. */
static void memory_is_charged(void **state)
{
	static struct small_file s;
	for (int fits = 0; fits < 2; fits++) {
		struct budget *b = budget_new(&(struct budget_limits){
			.bytes = fits ? 64 << 20 : 4096, .metadata_min = 1024, .option = "x"});
		const struct h5file_options opt = {.budget = b};
		struct budget_stats stats;
		struct h5file *f = NULL;
		struct err err = ERR_INIT;
		make(&s);
		assert_int_equal(h5file_open(&s.src.source, &opt, &f, &err), fits ? 0 : -ENOMEM);
		budget_get_stats(b, &stats);
		assert_int_equal(stats.used[BUDGET_TREES] > 0, fits);
		h5file_close(f);
		budget_get_stats(b, &stats);
		assert_int_equal(stats.used[BUDGET_TREES], 0);
		budget_free(b);
		small_release(&s);
	}
}

/* A chain of groups: no recursion, and paths do not need memory for each level. */
static void deep_nesting(void **state)
{
	enum { LEVELS = 1500 };
	static struct small_file s;
	char name[200];
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	small_begin(&s);
	uint64_t addr = 0;
	for (int i = 0; i < LEVELS && s.n < SMALL_MAX - 1024; i++) {
		small_object(&s);
		small_group(&s, false);
		if (addr)
			small_link(&s, i % 50 ? "n" : name, addr);
		addr = small_end(&s);
	}
	small_finish(&s, addr);
	struct h5file *f = open_file(&s);
	assert_int_equal(tree_count(h5file_tree(f)), LEVELS);
	for (uint32_t i = 0; i < LEVELS; i++)
		assert_true(strlen(object(f, i)->id) <= 4096);
	assert_non_null(strstr(object(f, LEVELS - 1)->id, "/.../n"));
	assert_int_equal(h5file_problems(f), 0);
	h5file_close(f);
	small_release(&s);
}

/* ---- datasets that are known ---- */

struct known {
	struct h5file *whole; /* the same file, of which everything was read */
	bool (*has)(const struct object *o);
	int code; /* not 0: the result of is_known() */
};

static int is_known(void *ctx, uint64_t addr, struct err *err)
{
	const struct known *k = ctx;
	if (k->code)
		return err_set(err, k->code, "not known");
	return k->has(object(k->whole, h5file_at(k->whole, addr)));
}

static bool is_dataset(const struct object *o)
{
	return o->kind == OBJECT_DATASET;
}

static bool is_below_a(const struct object *o)
{
	return strcmp(o->id, "/a") == 0;
}

static struct h5file *open_known(struct small_file *s, struct known *k)
{
	struct h5file *f = NULL;
	const struct h5file_known known = {.is_known = is_known, .ctx = k};
	const struct h5file_options opt = {.known = &known};
	assert_int_equal(h5file_open(&s->src.source, &opt, &f, NULL), 0);
	assert_int_equal(tree_count(h5file_tree(f)), tree_count(h5file_tree(k->whole)));
	return f;
}

/* Their numbers are those of the whole file, and they can be read later. */
static void known_datasets_are_not_read(void **state)
{
	static struct small_file s;
	static const struct tree_diff_sink sink = {0};
	uint64_t different;
	make(&s);
	struct known k = {.whole = open_file(&s), .has = is_dataset};
	struct h5file *f = open_known(&s, &k);
	for (uint32_t i = 0; i < tree_numbers(h5file_tree(f)); i++) {
		assert_int_equal(tree_object(h5file_tree(f), i)->unread,
				 is_dataset(object(k.whole, i)));
		assert_int_equal(h5file_address(f, i), h5file_address(k.whole, i));
		assert_null(h5file_dataset(f, i));
	}
	for (uint32_t i = 0; i < tree_numbers(h5file_tree(f)); i++)
		assert_int_equal(h5file_read(f, i, NULL), 0);
	assert_int_equal(tree_diff(h5file_tree(f), h5file_tree(k.whole), TREE_DIFF_GRIDS, &sink,
				   NULL, &different, NULL),
			 0);
	assert_int_equal(different, 0);
	h5file_close(f);
	const struct h5file_known known = {.is_known = is_known, .ctx = &k};
	const struct h5file_options opt = {.known = &known};
	k.code = -EIO;
	assert_int_equal(h5file_open(&s.src.source, &opt, &f, NULL), -EIO);
	h5file_close(k.whole);
	small_release(&s);
}

/* The file does not have what the caller expects there. */
static void what_is_known_may_be_wrong(void **state)
{
	static struct small_file s;
	make(&s);
	struct known k = {.whole = open_file(&s), .has = is_dataset};
	struct h5file *f = open_known(&s, &k);
	for (uint32_t i = 0; i < tree_numbers(h5file_tree(f)); i++) {
		if (!tree_object(h5file_tree(f), i)->unread)
			continue;
		uint8_t *byte = &s.bytes[h5file_address(f, i)];
		*byte ^= 1;
		assert_int_equal(h5file_read(f, i, NULL), -EIO);
		assert_true(tree_object(h5file_tree(f), i)->unread);
		*byte ^= 1;
		assert_int_equal(h5file_read(f, i, NULL), 0);
	}
	h5file_close(f);
	h5file_close(k.whole);
	small_release(&s);
}

static void a_known_dataset_is_a_group(void **state)
{
	static struct small_file s;
	make(&s);
	struct known k = {.whole = open_file(&s), .has = is_below_a};
	struct h5file *f = NULL;
	struct err err = ERR_INIT;
	const struct h5file_known known = {.is_known = is_known, .ctx = &k};
	const struct h5file_options opt = {.known = &known};
	assert_int_equal(h5file_open(&s.src.source, &opt, &f, NULL), 0);
	uint32_t a = 0;
	while (!is_below_a(object(k.whole, a)))
		a++;
	assert_int_equal(h5file_read(f, h5file_at(f, h5file_address(k.whole, a)), &err), -EIO);
	assert_non_null(strstr(err.msg, "no dataset"));
	h5file_close(f);
	h5file_close(k.whole);
	small_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_hierarchy),
		cmocka_unit_test(reads_comments),
		cmocka_unit_test(a_damaged_object_leaves_the_others),
		cmocka_unit_test(a_damaged_root_group_fails),
		cmocka_unit_test(a_truncated_file_is_reported),
		cmocka_unit_test(overlapping_data_are_reported),
		cmocka_unit_test(starts_again_when_pages_arrive),
		cmocka_unit_test(memory_is_charged),
		cmocka_unit_test(deep_nesting),
		cmocka_unit_test(known_datasets_are_not_read),
		cmocka_unit_test(what_is_known_may_be_wrong),
		cmocka_unit_test(a_known_dataset_is_a_group),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
