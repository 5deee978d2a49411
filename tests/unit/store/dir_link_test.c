/* SPDX-License-Identifier: Apache-2.0 */
/* The directory store and symbolic links: a link is followed only if it stays in the bucket. */
#include "store_fixture.h"

#include <sys/resource.h>

static int setup(void **state)
{
	struct fixture *f = fixture_new(0);
	char path[128];
	fixture_dir(f);
	snprintf(path, sizeof(path), "%s/secret", f->dir);
	write_file(path, "secret");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	fixture_free(*state);
	return 0;
}

static void make_link(const struct fixture *f, const char *to, const char *key)
{
	assert_int_equal(symlink(to, path_of(f, key)), 0);
}

/* The listing fails, because it would have to prove absence, and the reason names the key. */
static void assert_no_listing(const struct fixture *f, const char *prefix, unsigned int how,
			      int code, const char *key)
{
	struct err err = ERR_INIT;
	struct store_page page;
	assert_int_equal(call_list_how(f->s, prefix, how, 1000, &page, &err), code);
	assert_non_null(strstr(err.msg, key));
}

static void assert_secret_untouched(const struct fixture *f)
{
	char path[128], text[16] = "";
	snprintf(path, sizeof(path), "%s/secret", f->dir);
	int fd = open(path, O_RDONLY);
	assert_int_equal(read(fd, text, sizeof(text) - 1), 6);
	close(fd);
	assert_string_equal(text, "secret");
}

static void test_links_that_lead_out(void **state)
{
	struct fixture *f = *state;
	struct store_meta meta;
	char absolute[128];
	snprintf(absolute, sizeof(absolute), "%s/secret", f->dir);
	make_link(f, "../secret", "file");
	make_link(f, absolute, "absolute");
	make_link(f, "file", "chain");
	make_link(f, "..", "up");
	make_link(f, "/proc/self/root/etc", "proc");
	make_link(f, "/proc/self/cwd", "magic");
	put_text(f->s, "x", "1");
	static const char *const keys[] = {"file",	  "absolute",	 "chain",   "up/secret",
					   "up/bucket/x", "proc/passwd", "magic/x", "proc/../x"};
	for (size_t i = 0; i < 7; i++) {
		assert_code(f->s, keys[i], -EACCES);
		assert_int_equal(call_head(f->s, keys[i], &meta, NULL), -EACCES);
		assert_int_equal(call_delete(f->s, keys[i], NULL, NULL), -EACCES);
	}
	assert_code(f->s, keys[7], -EINVAL);
	assert_int_equal(call_put(f->s, "up/new", "x", 1, NULL, NULL, NULL), -EACCES);
	assert_int_equal(call_put(f->s, "up/a/b/new", "x", 1, NULL, NULL, NULL), -EACCES);
	assert_listing(f->s, "", true, "x");
	assert_no_listing(f, "file", 0, -EACCES, "object file");
	assert_no_listing(f, "absolute", 0, -EACCES, "object absolute");
	assert_no_listing(f, "absolute", CALL_DELIMIT | CALL_COMPLETE, -EACCES, "object absolute");
	assert_no_listing(f, "up", 0, -EACCES, "object up");
	assert_listing(f->s, "x", false, "x");
	assert_secret_untouched(f);
}

static void test_listing_through_a_link_that_leads_out(void **state)
{
	struct fixture *f = *state;
	struct store_page page;
	struct err err = ERR_INIT;
	make_link(f, "..", "up");
	assert_int_equal(call_list_how(f->s, "up/", true, 100, &page, &err), -EACCES);
	assert_non_null(strstr(err.msg, "up"));
}

/* A put replaces the link, not its target. */
static void test_put_over_a_link(void **state)
{
	struct fixture *f = *state;
	struct stat st;
	make_link(f, "../secret", "file");
	put_text(f->s, "file", "mine");
	assert_object(f->s, "file", "mine");
	assert_int_equal(lstat(path_of(f, "file"), &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_secret_untouched(f);
}

static void test_links_inside(void **state)
{
	struct fixture *f = *state;
	put_text(f->s, "d/x", "1");
	put_text(f->s, "e/y", "2");
	make_link(f, "d/x", "file");
	make_link(f, "../e", "d/e");
	assert_object(f->s, "file", "1");
	assert_object(f->s, "d/e/y", "2");
	assert_listing(f->s, "", true, "d/ e/ file");
	assert_listing(f->s, "", false, "d/e/y d/x e/y file");
	assert_listing(f->s, "d/e", true, "d/e/");
	assert_listing(f->s, "d/e/", true, "d/e/y");

	assert_int_equal(call_delete(f->s, "d/e", NULL, NULL),
			 0); /* not an object, so nothing is deleted */
	assert_object(f->s, "d/e/y", "2");
	assert_int_equal(call_delete(f->s, "file", NULL, NULL), 0); /* deletes the link */
	assert_object(f->s, "d/x", "1");
	put_text(f->s, "d/e/z", "3");
	assert_object(f->s, "e/z", "3");
	assert_int_equal(call_delete(f->s, "d/e/y", NULL, NULL), 0);
	assert_int_equal(call_delete(f->s, "d/e/z", NULL, NULL), 0);
	assert_code(f->s, "e/y", -ENOENT);
}

/* A dangling link is an entry, so it does not prove that the object is absent. */
static void test_links_that_lead_nowhere(void **state)
{
	struct fixture *f = *state;
	put_text(f->s, "d/x", "1");
	put_text(f->s, "other/x", "1");
	make_link(f, "nowhere", "d/dangling");
	make_link(f, "../nowhere", "d/dir");
	make_link(f, "x/y", "d/through");
	make_link(f, "x", "d/file");
	static const struct {
		const char *key;
		int code;
	} cases[] = {
		{"d/dangling", -ENOLINK}, {"d/dangling/x", -ENOLINK}, {"d/dir/a/b", -ENOLINK},
		{"d/through", -ENOLINK},  {"d/through/x", -ENOLINK},  {"d/file/x", -ENOENT},
		{"d/x/y/z", -ENOENT},	  {"d/y", -ENOENT},	      {"e/f/g", -ENOENT},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_code(f->s, cases[i].key, cases[i].code);
		assert_int_equal(call_head(f->s, cases[i].key, NULL, NULL), cases[i].code);
	}
	assert_listing(f->s, "d/", true, "d/file d/x");
	assert_no_listing(f, "d/da", 0, -ENOLINK, "d/dangling");
	assert_no_listing(f, "d/da", CALL_DELIMIT | CALL_COMPLETE, -ENOLINK, "d/dangling");
	assert_no_listing(f, "d/dir/", CALL_DELIMIT, -ENOLINK, "d/dir");
	assert_listing(f->s, "d/file/", false, "");
	assert_listing(f->s, "d/y/", false, "");
	assert_listing(f->s, "other/", false, "other/x");
}

/* A listing fails if no entry at all can be examined. A later page may consist of such entries. */
static void test_listing_of_dangling_links_only(void **state)
{
	struct fixture *f = *state;
	const struct call_list first = {.prefix = "d/", .delimit = true};
	const struct call_list later = {.prefix = "d/", .delimit = true, .start_after = "d/a"};
	struct store_page page;
	assert_int_equal(mkdir(path_of(f, "d"), 0777), 0);
	make_link(f, "nowhere", "d/b");
	assert_int_equal(call_list_page(f->s, &first, &page, NULL), -ENOLINK);
	put_text(f->s, "d/a", "1");
	assert_int_equal(call_list_page(f->s, &later, &page, NULL), 0);
	assert_int_equal(page.n, 0);
	store_page_release(&page);
}

/* The links lead to a directory that the process may not search. */
static void test_links_into_a_closed_directory(void **state)
{
	struct fixture *f = *state;
	const bool root = geteuid() == 0;
	struct store_page page;
	struct err err = ERR_INIT;
	put_text(f->s, "shut/x", "1");
	put_text(f->s, "d/y", "2");
	make_link(f, "../shut/x", "d/x");
	make_link(f, "../shut/none", "d/none");
	assert_int_equal(chmod(path_of(f, "shut"), 0700), 0);
	if (root)
		assert_int_equal(seteuid(65534), 0);
	const int object = call_head(f->s, "d/x", NULL, NULL);
	const int none = call_head(f->s, "d/none", NULL, NULL);
	const int whole = call_list_how(f->s, "d/", 0, 10, &page, &err);
	const int names = call_list_how(f->s, "d/", CALL_DELIMIT | CALL_COMPLETE, 10, &page, NULL);
	if (root)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(object, root ? -EACCES : 0);
	assert_int_equal(none, root ? -EACCES : -ENOLINK);
	assert_int_equal(whole, root ? -EACCES : -ENOLINK);
	assert_int_equal(names, root ? -EACCES : -ENOLINK);
	assert_non_null(strstr(err.msg, "d/"));
}

/* Without free descriptors a listing fails; it does not leave out entries. */
static void test_links_without_descriptors(void **state)
{
	struct fixture *f = *state;
	struct store_page page;
	struct rlimit old, few;
	put_text(f->s, "d/x", "1");
	make_link(f, "x", "d/y");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	const int next = dup(STDERR_FILENO);
	close(next);
	few = old;
	int complete = 0, listed = 0;
	for (rlim_t more = 0; more < 4; more++) {
		few.rlim_cur = (rlim_t)next + more;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		for (unsigned int how = 0; how < 2; how++) {
			memset(&page, 0, sizeof(page));
			const int rc = call_list_how(f->s, "d/", how, 10, &page, NULL);
			complete += rc == 0;
			listed += rc == 0 && page.n == 2;
			assert_true(rc == 0 || rc == -EMFILE);
			store_page_release(&page);
		}
		const int object = call_head(f->s, "d/none", NULL, NULL);
		assert_true(object == -ENOENT || object == -EMFILE);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(listed, complete);
	assert_in_range(complete, 1, 7);
}

static void test_circles(void **state)
{
	struct fixture *f = *state;
	put_text(f->s, "d/x", "1");
	make_link(f, ".", "here");
	assert_no_listing(f, "", 0, -ELOOP, "here");
	make_link(f, "..", "d/above");
	assert_no_listing(f, "d/", 0, -ELOOP, "d/above/");
	make_link(f, "self", "self");
	assert_no_listing(f, "self", 0, -EACCES, "self");
	assert_listing(f->s, "", true, "d/ here/");
	assert_object(f->s, "d/above/here/d/x", "1");
	assert_code(f->s, "self", -EACCES);
}

/* d0 has two links to d1, d1 has two to d2, and so on: 2^40 paths without a cycle. */
static void test_bomb(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_page page;
	enum { DEPTH = 40 };
	for (int i = 0; i < DEPTH; i++) {
		char dir[32], to[32];
		snprintf(dir, sizeof(dir), "d%d", i);
		assert_int_equal(mkdir(path_of(f, dir), 0777), 0);
		snprintf(to, sizeof(to), "../d%d", i + 1);
		snprintf(dir, sizeof(dir), "d%d/a", i);
		make_link(f, to, dir);
		snprintf(dir, sizeof(dir), "d%d/b", i);
		make_link(f, to, dir);
	}
	assert_int_equal(mkdir(path_of(f, "d40"), 0777), 0);
	assert_int_equal(call_list_how(f->s, "d0/", false, 1000, &page, &err), -ELOOP);
	const struct call_list req = {.prefix = "d0/", .max = 10};
	assert_int_equal(call_list_page(f->s, &req, &page, &err), -ELOOP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_links_that_lead_out, setup, teardown),
		cmocka_unit_test_setup_teardown(test_listing_through_a_link_that_leads_out, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_put_over_a_link, setup, teardown),
		cmocka_unit_test_setup_teardown(test_links_inside, setup, teardown),
		cmocka_unit_test_setup_teardown(test_links_that_lead_nowhere, setup, teardown),
		cmocka_unit_test_setup_teardown(test_listing_of_dangling_links_only, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_links_into_a_closed_directory, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_links_without_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_circles, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bomb, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
