/* SPDX-License-Identifier: Apache-2.0 */
/* The access control list of a new file, which is set before the bucket has the file. */
#include "drafts_fixture.h"

#include <sys/xattr.h>

#include "draft_files.h"
#include "store_calls.h"

#define ALL                                                                                        \
	"{\"create\":true,\"read\":true,\"update\":true,\"delete\":true,\"readACL\":true,"         \
	"\"updateACL\":true}"
#define BOB  "{\"bob\":" ALL "}"
#define EVE  "{\"eve\":" ALL ",\"ann\":" ALL "}"
#define ANN  "{\"ann\":" ALL "}" /* the list of a domain without another one */
#define ACLS "user.hsds.acls"

static int set(struct world *w, const char *path, const char *text, int flags)
{
	return engine_setxattr(w->e, path, ACLS, text, strlen(text), flags, NULL);
}

static void check(struct world *w, const char *path, const char *list)
{
	char buf[1024];
	assert_string_equal(note_of(w, path, ACLS, buf, sizeof(buf)), list);
}

/* Whether the attribute is one of those of the path. */
static bool is_listed(struct world *w, const char *path)
{
	char names[1024];
	const ssize_t n = engine_listxattr(w->e, path, names, sizeof(names), NULL);
	assert_true(n >= 0);
	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1)
		if (strcmp(names + at, ACLS) == 0)
			return true;
	return false;
}

static struct engine_file *write_domain(struct world *w, const char *path, const char *file)
{
	size_t n;
	auto_free uint8_t *bytes = file_bytes(file, &n);
	struct engine_file *f = open_write(w, path, NEW);
	assert_int_equal(engine_pwrite(f, bytes, n, 0, NULL), n);
	return f;
}

static void make_domain(struct world *w, const char *path, const char *list)
{
	struct engine_file *f = write_domain(w, path, ONE);
	if (list)
		assert_int_equal(set(w, path, list, 0), 0);
	close_ok(f);
}

static void the_domain_gets_the_list(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	struct engine_file *f = write_domain(&w, "x.h5", ONE);
	assert_false(is_listed(&w, "x.h5"));
	check(&w, "x.h5", "");
	assert_int_equal(set(&w, "x.h5", BOB, XATTR_REPLACE), -ENODATA);
	assert_int_equal(set(&w, "x.h5", "{", 0), -EINVAL);
	assert_int_equal(set(&w, "x.h5", BOB, XATTR_CREATE), 0);
	assert_int_equal(set(&w, "x.h5", EVE, XATTR_CREATE), -EEXIST);
	check(&w, "x.h5", BOB);
	assert_int_equal(set(&w, "x.h5", EVE, XATTR_REPLACE), 0);
	assert_true(is_listed(&w, "x.h5"));
	check(&w, "x.h5", EVE);
	assert_int_equal(changes_of(&w), 0);
	close_ok(f);
	check(&w, "x.h5", EVE);
	assert_int_equal(world_objects(&w, "x.h5"), 2);
	/* From now on the document has the list. */
	assert_int_equal(set(&w, "x.h5", BOB, 0), 0);
	check(&w, "x.h5", BOB);
	make_domain(&w, "x.h5", NULL);
	check(&w, "x.h5", BOB);
	make_domain(&w, "y.h5", NULL);
	check(&w, "y.h5", ANN);
	make_domain(&w, "z.h5", "{}");
	check(&w, "z.h5", "{}");
	table_end(&w);
}

static void a_list_that_was_set_later_counts(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	struct engine_file *f = write_domain(&w, "x.h5", ONE);
	assert_int_equal(set(&w, "x.h5", BOB, 0), 0);
	flush_ok(f);
	check(&w, "x.h5", BOB);
	assert_int_equal(set(&w, "x.h5", EVE, 0), 0);
	put_text(f, 0, "\x89HDF");
	close_ok(f);
	check(&w, "x.h5", EVE);
	table_end(&w);
}

static void a_plain_file_loses_it(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	struct engine_file *f = open_write(&w, "a", NEW);
	put_text(f, 0, "text");
	assert_int_equal(set(&w, "a", BOB, 0), 0);
	close_ok(f);
	check(&w, "a", "");
	assert_int_equal(set(&w, "a", BOB, 0), -EOPNOTSUPP);
	check_bucket(&w, "a", "text");
	table_end(&w);
}

static void it_follows_the_file(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	make_domain(&w, "old.h5", EVE);
	struct engine_file *f = write_domain(&w, "new", ONE);
	assert_int_equal(set(&w, "new", BOB, 0), 0);
	assert_int_equal(engine_rename(w.e, "new", "x.h5", 0, NULL), 0);
	check(&w, "x.h5", BOB);
	assert_int_equal(engine_rename(w.e, "x.h5", "old.h5", 0, NULL), 0);
	close_ok(f);
	check(&w, "old.h5", BOB);
	table_end(&w);
}

/* The list of the name counts that was set last. */
static void a_name_that_exists_has_its_own(void **state)
{
	struct world w;
	table_begin(&w, false, 0);
	make_domain(&w, "old.h5", NULL);
	struct engine_file *f = write_domain(&w, "new", ONE);
	assert_int_equal(set(&w, "new", BOB, 0), 0);
	assert_int_equal(engine_rename(w.e, "new", "old.h5", 0, NULL), 0);
	assert_int_equal(set(&w, "old.h5", EVE, 0), 0);
	check(&w, "old.h5", EVE);
	close_ok(f);
	check(&w, "old.h5", EVE);
	table_end(&w);
}

/* Another program gives its domain the name. */
static void replace(struct store *bucket)
{
	struct call_result res;
	assert_int_equal(
		call_get(bucket, "other.h5/.domain.json", 0, STORE_TO_END, 0, NULL, &res, NULL), 0);
	assert_int_equal(call_put(bucket, "x.h5/.domain.json", res.body.data, res.body.len, NULL,
				  NULL, NULL),
			 0);
	bytes_release(&res.body);
}

/* The domain is replaced before each request of the call. The draft is older than the new one. */
static void it_hides_no_conflict(void **state)
{
	unsigned int at = 0;
	for (bool ended = false; !ended;) {
		struct world w;
		table_begin(&w, false, 0);
		make_domain(&w, "other.h5", NULL);
		make_domain(&w, "x.h5", NULL);
		struct engine_file *f = write_domain(&w, "x.h5", ONE);
		world_open_gate(&w);
		w.gate->other_at = ++at;
		w.gate->other = replace;
		assert_int_equal(set(&w, "x.h5", BOB, 0), 0);
		ended = w.gate->n < at;
		world_open_gate(&w);
		assert_int_equal(engine_flush(f, NULL), ended ? 0 : -ESTALE);
		engine_file_close(f);
		table_end(&w);
	}
	assert_true(at > 2);
}

/* The number of the request that puts the document. */
static unsigned int last_request(void)
{
	struct world w;
	table_begin(&w, false, 0);
	struct engine_file *f = write_domain(&w, "x.h5", ONE);
	world_open_gate(&w);
	flush_ok(f);
	const unsigned int n = w.gate->n;
	engine_file_close(f);
	table_end(&w);
	return n;
}

/* The answer to the document is lost, or the bucket does not get it. The list is set before or
 * afterwards. */
static void a_commit_that_fails_keeps_it(void **state)
{
	const unsigned int last = last_request();
	for (int arrives = 0; arrives < 2; arrives++)
		for (int later = 0; later < 2; later++) {
			struct world w;
			table_begin(&w, false, 0);
			struct engine_file *f = write_domain(&w, "x.h5", ONE);
			if (!later)
				assert_int_equal(set(&w, "x.h5", BOB, 0), 0);
			world_open_gate(&w);
			w.gate->at = last;
			w.gate->after = arrives;
			w.gate->code = -EIO;
			assert_int_equal(engine_flush(f, NULL), -EIO);
			assert_int_equal(in_bucket(&w, "x.h5/.domain.json"), arrives);
			world_open_gate(&w);
			check(&w, "x.h5", later ? "" : BOB);
			if (later)
				assert_int_equal(set(&w, "x.h5", BOB, 0), 0);
			close_ok(f);
			world_names(&w);
			check(&w, "x.h5", BOB);
			assert_int_equal(world_objects(&w, "x.h5"), 2);
			table_end(&w);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_domain_gets_the_list),
		cmocka_unit_test(a_list_that_was_set_later_counts),
		cmocka_unit_test(a_plain_file_loses_it),
		cmocka_unit_test(it_follows_the_file),
		cmocka_unit_test(a_name_that_exists_has_its_own),
		cmocka_unit_test(it_hides_no_conflict),
		cmocka_unit_test(a_commit_that_fails_keeps_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
