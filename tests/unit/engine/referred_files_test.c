/* SPDX-License-Identifier: Apache-2.0 */
/* Which files domains may refer to, and under which keys they are found. */
#include "bucket.h"

#include <errno.h>

#include <engine/referred_files.h>

struct place {
	struct files *files;
	struct err err;
	struct found_file file;
	struct store *own;
};

static int make(struct place *p, struct test_bucket *b, const char *bucket, const char *name,
		const char *allow)
{
	static struct env env;
	struct engine_options opt;
	env = env_real(NULL, NULL);
	engine_options_init(&opt);
	opt.bucket = bucket;
	opt.bucket_name = name;
	opt.allow_uri = allow;
	opt.s3.no_sign_request = true;
	opt.s3.endpoint = "http://127.0.0.1:1";
	opt.s3.region = "r";
	*p = (struct place){.err = ERR_INIT, .own = (struct store *)b};
	return files_new(&env, &opt, p->own, NULL, &p->files, &p->err);
}

static int resolve(struct place *p, const char *uri)
{
	const struct file_finder *f = files_interface(p->files);
	p->err = (struct err)ERR_INIT;
	p->file.store = NULL;
	return f->resolve(f->ctx, uri, &p->file, &p->err);
}

static void is_own(struct place *p, const char *uri, const char *key)
{
	if (resolve(p, uri))
		fail_msg("%s: %s", uri, p->err.msg);
	assert_ptr_equal(p->file.store, p->own);
	assert_string_equal(p->file.key, key);
}

static void is_refused(struct place *p, const char *uri, int code)
{
	if (resolve(p, uri) != code)
		fail_msg("%s: %s", uri, p->err.msg);
}

static const char *base_name(const struct test_bucket *b)
{
	return strrchr(b->dir, '/') + 1;
}

static const char *join(const char *a, const char *b, const char *c)
{
	static char out[8][512];
	static int next;
	next = (next + 1) % 8;
	snprintf(out[next], sizeof(out[next]), "%s%s%s", a, b, c);
	return out[next];
}

static void a_directory_has_the_name_of_its_last_component(void **state)
{
	struct test_bucket *b = *state;
	struct place p;
	assert_int_equal(make(&p, b, b->dir, NULL, NULL), 0);
	is_own(&p, join("", base_name(b), "/data/x.h5"), "data/x.h5");
	is_own(&p, join("s3://", base_name(b), "/data/x.h5"), "data/x.h5");
	is_own(&p, join("file://", b->dir, "/data/x.h5"), "data/x.h5");
	is_own(&p, "/data/x.h5", "data/x.h5");
	is_refused(&p, "other/data/x.h5", -EACCES);
	assert_non_null(strstr(p.err.msg,
			       "; to read it, use -o bucket_name=other if it is a copy of "
			       "that bucket, otherwise -o allow_uri=s3://other/data/"));
	is_refused(&p, join("file://", b->dir, "-2/x"), -EACCES);
	is_refused(&p, "file:///etc/passwd", -EACCES);
	files_free(p.files);
}

static void the_name_can_be_given(void **state)
{
	struct test_bucket *b = *state;
	struct place p;
	assert_int_equal(make(&p, b, b->dir, "links", NULL), 0);
	is_own(&p, "links/data/x.h5", "data/x.h5");
	is_refused(&p, join("", base_name(b), "/data/x.h5"), -EACCES);
	files_free(p.files);
	assert_int_equal(make(&p, b, b->dir, "a/b", NULL), -EINVAL);
	assert_int_equal(make(&p, b, b->dir, "..", NULL), -EINVAL);
}

static void a_prefix_of_an_s3_bucket_shows_what_is_below_it(void **state)
{
	struct test_bucket *b = *state;
	struct place p;
	assert_int_equal(make(&p, b, "s3://bkt/pre/fix", NULL, NULL), 0);
	is_own(&p, "bkt/pre/fix/x.h5", "x.h5");
	is_own(&p, "s3://bkt/pre/fix/x.h5", "x.h5");
	is_refused(&p, "bkt/pre/x.h5", -EACCES);
	assert_string_equal(p.err.msg, "bkt/pre/x.h5 is outside of the bucket \"bkt/pre/fix/\"; "
				       "to read it, use -o allow_uri=s3://bkt/pre/");
	is_refused(&p, "bkt/pre/fixture/x.h5", -EACCES);
	files_free(p.files);
}

static void malformed_uris_are_refused(void **state)
{
	static const struct {
		const char *uri;
		int code;
	} rows[] = {
		{"", -EINVAL},
		{"x.h5", -EINVAL},
		{"b/", -EINVAL},
		{"b//x", -EINVAL},
		{"b/../x", -EINVAL},
		{"b/a/..", -EINVAL},
		{"b/./x", -EINVAL},
		{"../x", -EACCES},
		{"/", -EINVAL},
		{"//x", -EINVAL},
		{"/../x", -EINVAL},
		{"s3://", -EINVAL},
		{"s3:///x", -EINVAL},
		{"s3://b", -EINVAL},
		{"s3://key:secret@b/x", -EINVAL},
		{"user@b/x", -EINVAL},
		{"file://host/x", -EINVAL},
		{"file:///a/../x", -EINVAL},
		{"file://", -EINVAL},
		{"http://b/x", -EOPNOTSUPP},
		{"gs://b/x", -EOPNOTSUPP},
	};
	struct test_bucket *b = *state;
	struct place p;
	assert_int_equal(make(&p, b, b->dir, "b", NULL), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		is_refused(&p, rows[i].uri, rows[i].code);
	is_refused(&p, "s3://key:secret@b/x", -EINVAL);
	assert_null(strstr(p.err.msg, "secret"));
	is_refused(&p, "https://key:secret@b/x", -EINVAL);
	assert_null(strstr(p.err.msg, "secret"));
	files_free(p.files);
}

static void allowed_places_have_stores_of_their_own(void **state)
{
	struct test_bucket *b = *state;
	struct place p;
	assert_int_equal(make(&p, b, "s3://bkt", NULL, join("file:///usr/,file://", b->dir, "")),
			 0);
	assert_int_equal(resolve(&p, join("file://", b->dir, "/sub/x")), 0);
	assert_ptr_not_equal(p.file.store, p.own);
	assert_string_equal(p.file.key, "sub/x");
	assert_true(p.file.local_etags); /* the mounted bucket is not a directory */
	assert_false(files_has_local_etags(p.files));
	is_refused(&p, join("file://", b->dir, "2/x"), -EACCES);
	is_refused(&p, "other/x", -EACCES);
	files_free(p.files);
}

/* The bucket is asked for when the mount begins, so a wrong name is an error at once. */
static void an_allowed_bucket_must_be_reachable(void **state)
{
	struct test_bucket *b = *state;
	struct place p;
	assert_true(make(&p, b, "s3://bkt", NULL, "s3://other/") < 0);
	assert_non_null(strstr(p.err.msg, "allow_uri=s3://other/"));
}

static void wrong_values_of_allow_uri_are_refused(void **state)
{
	static const char *const wrong[] = {
		"other",	  "http://x/",	     "s3://",		"s3:///x",
		"file://host/x/", "s3://u:p@other/", "file:///a/../b/", "file:///no/such/directory",
	};
	struct test_bucket *b = *state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct place p;
		if (make(&p, b, b->dir, NULL, wrong[i]) == 0)
			fail_msg("%s", wrong[i]);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, bucket_setup, bucket_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_directory_has_the_name_of_its_last_component),
		TEST(the_name_can_be_given),
		TEST(a_prefix_of_an_s3_bucket_shows_what_is_below_it),
		TEST(malformed_uris_are_refused),
		TEST(allowed_places_have_stores_of_their_own),
		TEST(an_allowed_bucket_must_be_reachable),
		TEST(wrong_values_of_allow_uri_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
