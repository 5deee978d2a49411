/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a domain: order of objects, reference counts, left-out objects, rounds of requests. */
#include "domain_fixture.h"

#include <errno.h>
#include <unistd.h>

#include <hsmount/log.h>
#include <bucket/schemas.h>

static struct domain *open_domain(struct fixture *f)
{
	struct domain *d = NULL;
	struct err err = ERR_INIT;
	int rc = domain_open(
		&(struct domain_bucket){.env = &f->env, .store = f->store, .schemas = schema_all()},
		"d.h5", NULL, &d, &err);
	if (rc)
		print_error("%s\n", err.msg);
	assert_int_equal(rc, 0);
	return d;
}

/* The object with this id, or NULL. */
static const struct tree_object *find(const struct domain *d, const char *id)
{
	for (uint32_t i = 0; i < tree_count(domain_tree(d)); i++) {
		const struct tree_object *mo =
			tree_object(domain_tree(d), tree_nth(domain_tree(d), i));
		if (strcmp(mo->o.id, id) == 0)
			return mo;
	}
	return NULL;
}

static bool has_problem(const struct domain *d, const char *what)
{
	for (uint32_t i = 0; tree_problem(domain_tree(d), i); i++)
		if (strstr(tree_problem(domain_tree(d), i), what))
			return true;
	return false;
}

static void objects_come_breadth_first(void **state)
{
	static const char *const expected[] = {SMALL_ROOT, SMALL_GROUP, SMALL_INTS, SMALL_TYPE,
					       SMALL_STRINGS};
	struct domain *d = open_domain(*state);
	assert_int_equal(tree_count(domain_tree(d)), 5);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(
			tree_object(domain_tree(d), tree_nth(domain_tree(d), (uint32_t)i))->o.id,
			expected[i]);
	for (size_t i = 3; i < 5; i++)
		assert_non_null(find(d, expected[i]));
	domain_unref(d);
}

static void references_are_counted(void **state)
{
	struct domain *d = open_domain(*state);
	assert_int_equal(find(d, SMALL_ROOT)->refcount, 2); /* the domain and "up" */
	assert_int_equal(find(d, SMALL_GROUP)->refcount, 1);
	assert_int_equal(find(d, SMALL_INTS)->refcount, 2);
	assert_int_equal(find(d, SMALL_TYPE)->refcount, 2); /* a link and a dataset */
	domain_unref(d);
}

static void orphans_and_dangling_links_are_left_out(void **state)
{
	struct domain *d = open_domain(*state);
	assert_null(find(d, SMALL_ORPHAN));
	assert_int_equal(find(d, SMALL_ROOT)->o.group.nlinks, 2);
	assert_non_null(tree_problem(domain_tree(d), 0));
	assert_non_null(strstr(tree_problem(domain_tree(d), 0), "dangling"));
	assert_null(tree_problem(domain_tree(d), 1));
	domain_unref(d);
}

static void opening_takes_one_get_per_document(void **state)
{
	struct fixture *f = *state;
	struct store_counts before, after;
	store_count_read(f->store, &before);
	struct domain *d = open_domain(f);
	store_count_read(f->store, &after);
	/* The domain document and six objects; the listing of everything, and those of g, d and t.
	 */
	assert_int_equal(after.calls[STORE_GET] - before.calls[STORE_GET], 7);
	assert_int_equal(after.calls[STORE_LIST] - before.calls[STORE_LIST], 4);
	/* Of the object that the dangling link names. */
	assert_int_equal(after.calls[STORE_HEAD] - before.calls[STORE_HEAD], 1);
	domain_unref(d);
}

static void known_chunks_come_from_the_listing(void **state)
{
	struct domain *d = open_domain(*state);
	for (uint32_t i = 0; i < tree_count(domain_tree(d)); i++) {
		uint32_t number = tree_nth(domain_tree(d), i);
		const struct chunk_list *chunks = domain_chunks(d, number);
		if (strcmp(tree_object(domain_tree(d), number)->o.id, SMALL_INTS) == 0) {
			assert_true(chunks->listed);
			assert_int_equal(chunks->n, 1);
			assert_int_equal(chunks->numbers[0], 1);
		} else if (strcmp(tree_object(domain_tree(d), number)->o.id, SMALL_STRINGS) == 0) {
			assert_int_equal(chunks->n, 1);
			assert_int_equal(chunks->decoded[0], sizeof(small_strings_chunk));
		}
	}
	domain_unref(d);
}

static void chunks_out_of_range_are_ignored(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(small_put(f->store, SMALL_PREFIX "/d/0002-000000-000001/9", "x"), 0);
	assert_int_equal(small_put(f->store, SMALL_PREFIX "/d/0002-000000-000001/1_0", "x"), 0);
	struct domain *d = open_domain(f);
	for (uint32_t i = 0; i < tree_count(domain_tree(d)); i++)
		if (strcmp(tree_object(domain_tree(d), tree_nth(domain_tree(d), i))->o.id,
			   SMALL_INTS) == 0)
			assert_int_equal(domain_chunks(d, tree_nth(domain_tree(d), i))->n, 1);
	domain_unref(d);
}

static void a_broken_object_is_left_out_alone(void **state)
{
	static const char *const broken[] = {
		"{", "[]", "{'id':'" SMALL_STRINGS "'}",
		"{" SMALL_HEAD(SMALL_INTS) ",'type':{},'shape':{'class':'H5S_NULL'}}"};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		assert_int_equal(small_put(f->store, SMALL_KEY_INTS, broken[i]), 0);
		struct domain *d = open_domain(f);
		assert_null(find(d, SMALL_INTS));
		assert_non_null(find(d, SMALL_STRINGS));
		if (!has_problem(d, SMALL_KEY_INTS))
			fail_msg("%s: no problem names the key", broken[i]);
		if (!has_problem(d, "no usable object " SMALL_INTS))
			fail_msg("%s: no problem names the link's target", broken[i]);
		domain_unref(d);
	}
}

static void a_broken_root_is_an_error_with_its_key(void **state)
{
	struct fixture *f = *state;
	struct domain *d = NULL;
	struct err err = ERR_INIT;
	assert_int_equal(small_put(f->store, SMALL_PREFIX "/.group.json", "{'id':"), 0);
	assert_int_equal(domain_open(&(struct domain_bucket){.env = &f->env,
							     .store = f->store,
							     .schemas = schema_all()},
				     "d.h5", NULL, &d, &err),
			 -EIO);
	assert_null(d);
	assert_non_null(strstr(err.msg, SMALL_PREFIX "/.group.json"));
	assert_non_null(strstr(err.msg, "domain /d.h5"));
}

static void missing_domains_and_folders_are_told_apart(void **state)
{
	struct fixture *f = *state;
	struct domain *d = NULL;
	assert_int_equal(domain_open(&(struct domain_bucket){.env = &f->env,
							     .store = f->store,
							     .schemas = schema_all()},
				     "none.h5", NULL, &d, NULL),
			 -ENOENT);
	small_put(f->store, "folder/.domain.json", "{'owner':'a','acls':{}}");
	assert_int_equal(domain_open(&(struct domain_bucket){.env = &f->env,
							     .store = f->store,
							     .schemas = schema_all()},
				     "folder", NULL, &d, NULL),
			 -EISDIR);
}

/* Puts a group with n dangling links, and a link to another group. */
static void put_dangling(struct fixture *f, const char *key, const char *head, const char *link,
			 unsigned int n)
{
	char text[16384];
	size_t len =
		(size_t)snprintf(text, sizeof(text), "{%s,'attributes':{},'links':{%s", head, link);
	for (unsigned int i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					",'l%u':" SMALL_HARD(SMALL_MISSING, "1"), i);
	snprintf(text + len, sizeof(text) - len, "}}");
	assert_int_equal(small_put(f->store, key, text), 0);
}

/* The number of lines that an open logs for two groups with n and m dangling links. */
static unsigned int logged_lines(struct fixture *f, unsigned int n, unsigned int m)
{
	put_dangling(f, SMALL_PREFIX "/.group.json", SMALL_HEAD(SMALL_ROOT),
		     "'sub':" SMALL_HARD(SMALL_GROUP, "1"), n);
	put_dangling(f, SMALL_KEY_GROUP, SMALL_HEAD(SMALL_GROUP),
		     "'up':" SMALL_HARD(SMALL_ROOT, "1"), m);
	FILE *to = tmpfile();
	const int saved = dup(STDERR_FILENO);
	assert_true(to && saved >= 0);
	dup2(fileno(to), STDERR_FILENO);
	f->env.log = log_new("test", LOG_LEVEL_WARNING);
	struct domain *d = open_domain(f);
	log_free(f->env.log);
	f->env.log = NULL;
	dup2(saved, STDERR_FILENO);
	close(saved);
	domain_unref(d);
	unsigned int lines = 0;
	rewind(to);
	for (int c; (c = fgetc(to)) != EOF;)
		lines += c == '\n';
	fclose(to);
	return lines;
}

static void at_most_fifty_problems_are_logged(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(logged_lines(f, 1, 0), 1);
	assert_int_equal(logged_lines(f, 25, 25), 50);
	/* And one line about those that are not logged. */
	assert_int_equal(logged_lines(f, 25, 26), 51);
	assert_int_equal(logged_lines(f, 40, 40), 51);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(objects_come_breadth_first, setup, teardown),
		cmocka_unit_test_setup_teardown(references_are_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(orphans_and_dangling_links_are_left_out, setup,
						teardown),
		cmocka_unit_test_setup_teardown(opening_takes_one_get_per_document, setup,
						teardown),
		cmocka_unit_test_setup_teardown(known_chunks_come_from_the_listing, setup,
						teardown),
		cmocka_unit_test_setup_teardown(chunks_out_of_range_are_ignored, setup, teardown),
		cmocka_unit_test_setup_teardown(a_broken_object_is_left_out_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(a_broken_root_is_an_error_with_its_key, setup,
						teardown),
		cmocka_unit_test_setup_teardown(at_most_fifty_problems_are_logged, setup, teardown),
		cmocka_unit_test_setup_teardown(missing_domains_and_folders_are_told_apart, setup,
						teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
