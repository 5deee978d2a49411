/* SPDX-License-Identifier: Apache-2.0 */
/* Open files: versions, shared images, plain objects, and what an open costs. */
#include "bucket.h"

#include "engine/engine_internal.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

static struct engine_file *open_ok(struct test_bucket *b, const char *path)
{
	struct engine_file *f = NULL;
	struct err err = ERR_INIT;
	if (engine_file_open(b->engine, path, &f, &err))
		fail_msg("%s: %s", path, err.msg);
	return f;
}

/* Opens and closes the file. version: -ESTALE if another one is opened; 0: any. */
static int open_code(struct test_bucket *b, const char *path, uint64_t version)
{
	struct engine_file *f = NULL;
	struct engine_stat st;
	int rc = engine_file_open(b->engine, path, &f, NULL);
	if (rc)
		return rc;
	engine_file_stat(f, &st);
	engine_file_close(f);
	return version && st.version != version ? -ESTALE : 0;
}

static struct engine_stat stat_of(struct engine_file *f)
{
	struct engine_stat st;
	engine_file_stat(f, &st);
	return st;
}

static uint64_t images(struct test_bucket *b)
{
	struct engine_counts c;
	engine_get_counts(b->engine, &c);
	return c.images;
}

static void sizes_are_exact_once_opened(void **state)
{
	struct test_bucket *b = *state;
	struct engine_stat before, st, after;
	bucket_domain(b, 1, "x.h5");
	bucket_open(b, 1, 0);
	assert_int_equal(engine_lookup(b->engine, "x.h5", &before, NULL), 0);
	assert_int_equal(before.version, 0);
	struct engine_file *f = open_ok(b, "x.h5");
	st = stat_of(f);
	assert_true(st.size_exact && st.version && st.size > 96);
	uint8_t *body = malloc(st.size + 1);
	assert_int_equal(engine_pread(f, body, st.size + 1, 0, NULL, NULL), st.size);
	assert_memory_equal(body, "\x89HDF\r\n\x1a\n", 8);
	assert_int_equal(engine_pread(f, body, 8, st.size, NULL, NULL), 0);
	assert_int_equal(engine_pread(f, body, 8, UINT64_MAX, NULL, NULL), -EINVAL);
	free(body);
	engine_file_close(f);
	assert_int_equal(engine_lookup(b->engine, "x.h5", &after, NULL), 0);
	assert_true(after.size_exact);
	assert_int_equal(after.size, st.size);
	assert_int_equal(after.version, st.version);
	assert_int_equal(after.mode, 0400);
}

static void an_unchanged_domain_keeps_its_image(void **state)
{
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "x.h5");
	bucket_open(b, 1000, 0);
	struct engine_file *f = open_ok(b, "x.h5");
	uint64_t version = stat_of(f).version;
	engine_file_close(f);
	struct bucket_counts before = bucket_counts(b);
	f = open_ok(b, "x.h5");
	assert_int_equal(stat_of(f).version, version);
	engine_file_close(f);
	/* The document, with a condition, and the listing. */
	assert_int_equal(bucket_counts(b).gets, before.gets + 1);
	assert_int_equal(bucket_counts(b).lists, before.lists + 1);
	assert_int_equal(bucket_counts(b).heads, before.heads);
	assert_int_equal(images(b), 1);
}

/* The open uses the document that the look-up has just read. */
static void a_first_open_reads_the_document_once(void **state)
{
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "x.h5");
	bucket_open(b, 1000, 0);
	struct bucket_counts before = bucket_counts(b);
	assert_int_equal(open_code(b, "x.h5", 0), 0);
	/* The documents of x.h5 and x, an object x.h5, the root group. */
	assert_int_equal(bucket_counts(b).gets, before.gets + 4);
	/* This time the cached document is older than the call, so it is requested again. */
	before = bucket_counts(b);
	assert_int_equal(open_code(b, "x.h5", 0), 0);
	assert_int_equal(bucket_counts(b).gets, before.gets + 1);
}

/* All bytes of a file; the caller frees. */
static uint8_t *body_of(struct engine_file *f)
{
	size_t n = stat_of(f).size;
	uint8_t *body = malloc(n);
	assert_non_null(body);
	assert_int_equal(engine_pread(f, body, n, 0, NULL, NULL), n);
	return body;
}

static void a_changed_domain_is_another_version(void **state)
{
	struct test_bucket *b = *state;
	struct engine_stat st;
	bucket_domain(b, 1, "x.h5");
	bucket_open(b, 1, 0);
	struct engine_file *old = open_ok(b, "x.h5");
	uint64_t old_version = stat_of(old).version;
	uint8_t *before = body_of(old);
	bucket_put_root(b, 1, 5);
	assert_int_equal(open_code(b, "x.h5", old_version), -ESTALE);
	struct engine_file *new = open_ok(b, "x.h5");
	assert_int_not_equal(stat_of(new).version, old_version);
	assert_int_equal(images(b), 2);
	/* The open file keeps the old version. */
	uint8_t *after = body_of(old), *now = body_of(new);
	assert_memory_equal(before, after, stat_of(old).size);
	assert_true(stat_of(old).size != stat_of(new).size ||
		    memcmp(before, now, stat_of(old).size) != 0);
	engine_file_close(old);
	assert_int_equal(images(b), 1);
	assert_int_equal(engine_lookup(b->engine, "x.h5", &st, NULL), 0);
	assert_int_equal(st.version, stat_of(new).version);
	engine_file_close(new);
	free(before);
	free(after);
	free(now);
}

static void a_deleted_domain_cannot_be_opened_again(void **state)
{
	struct test_bucket *b = *state;
	char head[8];
	bucket_domain(b, 1, "x.h5");
	bucket_open(b, 1000, 0);
	struct engine_file *f = open_ok(b, "x.h5");
	bucket_remove(b, "x.h5/.domain.json");
	assert_int_equal(open_code(b, "x.h5", 0), -ENOENT);
	assert_int_equal(engine_pread(f, head, 8, 0, NULL, NULL), 8);
	engine_file_close(f);
	assert_int_equal(images(b), 0);
	struct engine_stat st;
	assert_int_equal(engine_lookup(b->engine, "x.h5", &st, NULL), -ENOENT);
}

static void a_domain_that_was_damaged_opens_when_it_is_whole(void **state)
{
	struct test_bucket *b = *state;
	struct engine_file *f;
	struct err err = ERR_INIT;
	bucket_domain(b, 1, "x.h5");
	bucket_put(b, "db/00000001-00000000/.group.json", "{\"id\": ");
	bucket_open(b, 1000, 0);
	assert_int_equal(engine_file_open(b->engine, "x.h5", &f, &err), -EIO);
	assert_non_null(strstr(err.msg, "00000001-00000000"));
	bucket_put_root(b, 1, 0);
	assert_int_equal(open_code(b, "x.h5", 0), 0);
}

static void only_so_many_idle_images_are_kept(void **state)
{
	enum { DOMAINS = 80, KEPT = 64 };
	struct test_bucket *b = *state;
	char path[32];
	for (unsigned int i = 1; i <= DOMAINS; i++) {
		snprintf(path, sizeof(path), "%02u.h5", i);
		bucket_domain(b, i, path);
	}
	bucket_open(b, 1000, 0);
	for (unsigned int i = 1; i <= DOMAINS; i++) {
		snprintf(path, sizeof(path), "%02u.h5", i);
		assert_int_equal(open_code(b, path, 0), 0);
	}
	assert_int_equal(images(b), KEPT);
	/* The size of a domain is remembered after its image was dropped. */
	struct engine_stat st;
	assert_int_equal(engine_lookup(b->engine, "01.h5", &st, NULL), 0);
	assert_true(st.size_exact && st.version);
}

struct opener {
	struct test_bucket *b;
	struct engine_file *file;
	int code;
};

static void *open_once(void *arg)
{
	struct opener *o = arg;
	o->code = engine_file_open(o->b->engine, "x.h5", &o->file, NULL);
	return NULL;
}

static void many_openers_share_one_image(void **state)
{
	enum { OPENERS = 16 };
	struct test_bucket *b = *state;
	pthread_t threads[OPENERS];
	struct opener openers[OPENERS];
	bucket_domain(b, 1, "x.h5");
	bucket_open(b, 1000, 4);
	for (int i = 0; i < OPENERS; i++) {
		openers[i] = (struct opener){.b = b};
		assert_int_equal(pthread_create(&threads[i], NULL, open_once, &openers[i]), 0);
	}
	for (int i = 0; i < OPENERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(images(b), 1);
	for (int i = 0; i < OPENERS; i++) {
		assert_int_equal(openers[i].code, 0);
		assert_int_equal(stat_of(openers[i].file).version,
				 stat_of(openers[0].file).version);
	}
	for (int i = 0; i < OPENERS; i++)
		engine_file_close(openers[i].file);
}

/* Opening requests the document of a path that was a domain, without a look-up before it. */
static void a_domain_is_not_looked_up_to_be_opened(void **state)
{
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "x.h5");
	bucket_open(b, 0, 0);
	assert_int_equal(open_code(b, "x.h5", 0), 0);
	const struct bucket_counts before = bucket_counts(b);
	assert_int_equal(open_code(b, "x.h5", 0), 0);
	const struct bucket_counts after = bucket_counts(b);
	assert_int_equal(after.gets - before.gets, 1);
	assert_int_equal(after.lists - before.lists, 1);
	assert_int_equal(after.heads, before.heads);
	/* The path becomes a folder, nothing, and a domain again. */
	bucket_folder(b, "x.h5");
	assert_int_equal(open_code(b, "x.h5", 0), -EISDIR);
	bucket_remove(b, "x.h5/.domain.json");
	assert_int_equal(open_code(b, "x.h5", 0), -ENOENT);
	bucket_domain(b, 2, "x.h5");
	assert_int_equal(open_code(b, "x.h5", 0), 0);
}

static void valid_metadata_costs_no_requests(void **state)
{
	struct test_bucket *b = *state;
	struct engine_stat st;
	bucket_domain(b, 1, "d/x.h5");
	bucket_domain(b, 2, "d/bare");
	bucket_put(b, "d/plain", "one");
	bucket_open_cached(b, 1000);
	static const char *const paths[] = {"d/x.h5", "d/bare.h5", "d/plain"};
	assert_string_equal(bucket_list(b, "d").text, "bare.h5 plain= x.h5");
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(open_code(b, paths[i], 0), 0);
	const uint64_t before = bucket_requests(b);
	bucket_put_root(b, 1, 3);
	bucket_put(b, "d/new", "");
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(engine_lookup(b->engine, paths[i], &st, NULL), 0);
		assert_int_equal(open_code(b, paths[i], st.version), 0);
	}
	assert_string_equal(bucket_list(b, "d").text, "bare.h5 plain= x.h5");
	assert_int_equal(bucket_requests(b), before);
}

static uint64_t much_later(const struct env *env)
{
	return env_real(NULL, NULL).now(env) + UINT64_C(1001) * 1000000000;
}

static void metadata_expires(void **state)
{
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "x.h5");
	bucket_open_cached(b, 1000);
	struct engine_file *f = open_ok(b, "x.h5");
	const uint64_t version = stat_of(f).version;
	engine_file_close(f);
	bucket_list(b, "");
	bucket_put_root(b, 1, 3);
	bucket_put(b, "new", "");
	b->engine->bucket.env.now = much_later;
	f = open_ok(b, "x.h5");
	assert_int_not_equal(stat_of(f).version, version);
	engine_file_close(f);
	assert_string_equal(bucket_list(b, "").text, "new= x.h5");
}

/* A read detects that an object was replaced. Then the next open sends requests. */
static void a_stale_read_ends_the_validity_of_metadata(void **state)
{
	struct test_bucket *b = *state;
	char buf[16];
	bucket_put(b, "plain", "one");
	bucket_open_cached(b, 1000);
	struct engine_file *f = open_ok(b, "plain");
	bucket_put(b, "plain", "twotwo");
	assert_int_equal(engine_pread(f, buf, 16, 0, NULL, NULL), -ESTALE);
	engine_file_close(f);
	f = open_ok(b, "plain");
	assert_int_equal(engine_pread(f, buf, 16, 0, NULL, NULL), 6);
	engine_file_close(f);
}

/* The same for a chunk. The open that sends requests makes the result of opens valid again. */
static void a_stale_chunk_ends_the_validity_of_an_open(void **state)
{
	struct test_bucket *b = *state;
	char buf[1 << 14];
	bucket_datasets(b, "x.h5", 1, 0, &(struct bucket_more){0});
	bucket_chunk(b, 0, "0123456789abcdef");
	bucket_open_cached(b, 1000);
	struct engine_file *f = open_ok(b, "x.h5");
	const uint64_t version = stat_of(f).version;
	bucket_chunk(b, 0, "0123456789");
	bucket_chunk(b, 0, "fedcba9876543210");
	ssize_t n = 0;
	for (uint64_t at = 0; n >= 0 && at < stat_of(f).size; at += (uint64_t)n)
		n = engine_pread(f, buf, sizeof(buf), at, NULL, NULL);
	assert_int_equal(n, -ESTALE);
	engine_file_close(f);
	assert_int_equal(open_code(b, "x.h5", version), -ESTALE);
	const uint64_t before = bucket_requests(b);
	assert_int_equal(open_code(b, "x.h5", 0), 0);
	assert_int_equal(bucket_requests(b), before);
}

static void directories_have_times(void **state)
{
	struct test_bucket *b = *state;
	struct engine_stat st;
	bucket_folder(b, "d");
	bucket_put(b, "prefix/plain", "");
	const int64_t now = (int64_t)time(NULL);
	bucket_open(b, 1000, 0);
	assert_int_equal(engine_lookup(b->engine, "d", &st, NULL), 0);
	assert_int_equal(st.mtime_ns, 2000000000); /* of its document */
	assert_int_equal(st.ctime_ns, 2000000000);
	assert_int_equal(engine_lookup(b->engine, "prefix", &st, NULL), 0);
	assert_in_range(st.mtime_ns / 1000000000, now, now + 1000); /* of the engine's start */
	assert_int_equal(st.ctime_ns, st.mtime_ns);
}

static void plain_objects_are_read_through(void **state)
{
	struct test_bucket *b = *state;
	char buf[16];
	bucket_put(b, "dir/plain", "0123456789");
	bucket_put(b, "empty", "");
	bucket_open(b, 1, 0);
	struct engine_file *f = open_ok(b, "dir/plain");
	assert_int_equal(stat_of(f).size, 10);
	assert_int_equal(engine_pread(f, buf, 16, 0, NULL, NULL), 10);
	assert_memory_equal(buf, "0123456789", 10);
	assert_int_equal(engine_pread(f, buf, 3, 4, NULL, NULL), 3);
	assert_memory_equal(buf, "456", 3);
	assert_int_equal(engine_pread(f, buf, 3, 10, NULL, NULL), 0);
	assert_int_equal(engine_seek(f, 4, SEEK_DATA), 4);
	assert_int_equal(engine_seek(f, 4, SEEK_HOLE), 10);
	assert_int_equal(engine_seek(f, 10, SEEK_DATA), -ENXIO);
	assert_int_equal(engine_seek(f, 0, SEEK_SET), -EINVAL);
	engine_file_close(f);
	f = open_ok(b, "empty");
	assert_int_equal(engine_pread(f, buf, 3, 0, NULL, NULL), 0);
	engine_file_close(f);
}

static void a_replaced_plain_object_is_another_version(void **state)
{
	struct test_bucket *b = *state;
	char buf[16];
	struct engine_stat st;
	bucket_put(b, "plain", "one");
	bucket_open(b, 1000, 0);
	struct engine_file *f = open_ok(b, "plain");
	uint64_t version = stat_of(f).version;
	assert_true(version && engine_file_cacheable(f));
	bucket_put(b, "plain", "twotwo");
	/* A read never mixes both versions. */
	assert_int_equal(engine_pread(f, buf, 16, 0, NULL, NULL), -ESTALE);
	engine_file_close(f);
	assert_int_equal(open_code(b, "plain", version), -ESTALE);
	assert_int_equal(engine_lookup(b->engine, "plain", &st, NULL), 0);
	assert_int_not_equal(st.version, version);
	assert_int_equal(st.size, 6);
	assert_int_equal(open_code(b, "plain", st.version), 0);
}

/* With open_ttl=0 an open requests the object's version. If that fails, no version is known. */
static void an_object_of_unknown_version_is_not_opened(void **state)
{
	struct test_bucket *b = *state;
	struct engine_options opt;
	struct engine_file *f;
	struct err err = ERR_INIT;
	bucket_put(b, "plain", "one");
	engine_options_init(&opt);
	opt.workers = 0;
	opt.metadata_ttl = 0;
	opt.debug_fault = "fail:2:EACCES@plain"; /* the first request is the look-up's */
	bucket_open_as(b, opt);
	assert_int_equal(engine_file_open(b->engine, "plain", &f, &err), -EACCES);
	assert_int_equal(strncmp(err.msg, "object plain: ", strlen("object plain: ")), 0);
	assert_int_equal(bucket_counts(b).heads, 1);
	assert_int_equal(open_code(b, "plain", 0), 0);
}

/* A read fails with an error of reads, not with that of a request. */
static void a_request_for_an_object_that_fails(void **state)
{
	struct test_bucket *b = *state;
	struct engine_options opt;
	struct err err = ERR_INIT;
	char buf[16];
	bucket_put(b, "plain", "one");
	engine_options_init(&opt);
	opt.workers = 0;
	opt.metadata_ttl = 0;
	opt.debug_fault = "fail:3:EFBIG@plain"; /* after the look-up and the open */
	bucket_open_as(b, opt);
	struct engine_file *f = open_ok(b, "plain");
	const ssize_t failed = engine_pread(f, buf, 16, 0, NULL, &err);
	engine_file_close(f);
	assert_int_equal(failed, -EIO);
	assert_non_null(strstr(err.msg, "EFBIG"));
}

static void a_directory_is_no_file(void **state)
{
	struct test_bucket *b = *state;
	bucket_folder(b, "d");
	bucket_open(b, 1, 0);
	assert_int_equal(open_code(b, "d", 0), -EISDIR);
	assert_int_equal(open_code(b, "", 0), -EISDIR);
	assert_int_equal(open_code(b, "nothing", 0), -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bucket_setup, bucket_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sizes_are_exact_once_opened),
		TEST(an_unchanged_domain_keeps_its_image),
		TEST(a_first_open_reads_the_document_once),
		TEST(a_changed_domain_is_another_version),
		TEST(a_deleted_domain_cannot_be_opened_again),
		TEST(a_domain_that_was_damaged_opens_when_it_is_whole),
		TEST(only_so_many_idle_images_are_kept),
		TEST(many_openers_share_one_image),
		TEST(an_object_of_unknown_version_is_not_opened),
		TEST(a_domain_is_not_looked_up_to_be_opened),
		TEST(valid_metadata_costs_no_requests),
		TEST(metadata_expires),
		TEST(a_stale_read_ends_the_validity_of_metadata),
		TEST(a_stale_chunk_ends_the_validity_of_an_open),
		TEST(directories_have_times),
		TEST(plain_objects_are_read_through),
		TEST(a_replaced_plain_object_is_another_version),
		TEST(a_request_for_an_object_that_fails),
		TEST(a_directory_is_no_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
