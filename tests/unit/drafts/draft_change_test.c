/* SPDX-License-Identifier: Apache-2.0 */
/* When what a program has written to the file of a domain comes into the bucket. */
#include "bucket.h"

#include <errno.h>

#define OLD   "0123456789abcdef"
#define NEW   "fedcba9876543210"
#define CHUNK "db/00000001-00000000/d/1111-222222-000001/0"
enum { STATUS = 20 /* offset of the status flags in the superblock */ };

static struct engine_file *open_domain(struct test_bucket *b)
{
	static const struct bucket_more none = {0};
	struct engine_file *f;
	struct err err = ERR_INIT;
	bucket_folder(b, "home");
	bucket_datasets(b, "home/x.h5", 1, 1, &none);
	bucket_chunk(b, 0, OLD);
	bucket_open_rw(b, 3600, NULL);
	if (engine_open_write(b->engine, "home/x.h5", 0, &f, &err))
		fail_msg("%s", err.msg);
	return f;
}

static void write_at(struct engine_file *f, uint64_t offset, const void *bytes, size_t n)
{
	struct err err = ERR_INIT;
	if (engine_pwrite(f, bytes, n, offset, &err) != (ssize_t)n)
		fail_msg("%s", err.msg);
}

static void write_status(struct engine_file *f, uint8_t status)
{
	write_at(f, STATUS, &status, 1);
}

/* Where the bytes of the chunk are in the file. */
static uint64_t find_chunk(struct engine_file *f)
{
	static uint8_t bytes[1 << 17];
	struct err err = ERR_INIT;
	const ssize_t n = engine_pread(f, bytes, sizeof(bytes), 0, NULL, &err);
	if (n < 0)
		fail_msg("%s", err.msg);
	const uint8_t *at = memmem(bytes, (size_t)n, OLD, strlen(OLD));
	assert_non_null(at);
	return (uint64_t)(at - bytes);
}

static void write_chunk(struct engine_file *f)
{
	write_at(f, find_chunk(f), NEW, strlen(NEW));
}

static void check_chunk(const struct test_bucket *b, const char *text)
{
	char path[256], found[64] = "";
	snprintf(path, sizeof(path), "%s/%s", b->dir, CHUNK);
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	assert_int_equal(fread(found, 1, sizeof(found), file), strlen(text));
	fclose(file);
	assert_string_equal(found, text);
}

/* How many drafts the journal keeps that could not be committed. */
static uint64_t drafts_left(struct test_bucket *b)
{
	struct engine_counts c;
	engine_get_counts(b->engine, &c);
	return c.drafts_left;
}

static void flush(struct engine_file *f)
{
	struct err err = ERR_INIT;
	if (engine_flush(f, &err))
		fail_msg("%s", err.msg);
}

/* The library marks the file while it is open for writing. */
static void a_file_that_was_closed_is_committed(void **state)
{
	struct test_bucket *b = *state;
	struct engine_file *f = open_domain(b);
	write_status(f, 1);
	write_chunk(f);
	flush(f);
	check_chunk(b, OLD);
	write_status(f, 0);
	flush(f);
	check_chunk(b, NEW);
	engine_file_close(f);
	check_chunk(b, NEW);
	struct engine_counts c;
	engine_get_counts(b->engine, &c);
	assert_true(c.scanned_objects > 0);
}

/* An older library does not mark it: then the last close counts. */
static void an_unmarked_file_is_committed_at_the_end(void **state)
{
	struct test_bucket *b = *state;
	struct engine_file *f = open_domain(b);
	write_chunk(f);
	flush(f);
	check_chunk(b, OLD);
	engine_file_close(f);
	check_chunk(b, NEW);
}

/* The program was killed. */
static void a_file_that_was_not_closed_is_not_committed(void **state)
{
	struct test_bucket *b = *state;
	struct engine_file *f = open_domain(b);
	write_status(f, 1);
	write_chunk(f);
	flush(f);
	assert_int_equal(drafts_left(b), 0);
	engine_file_close(f);
	assert_int_equal(drafts_left(b), 1);
	check_chunk(b, OLD);
}

/* A program still reads what was written, so the journal has the draft open. */
static void what_was_not_committed_keeps_the_domain_from_changes(void **state)
{
	struct test_bucket *b = *state;
	struct engine_file *f = open_domain(b), *reader, *again;
	struct engine_stat st;
	bool alone;
	write_status(f, 1);
	assert_true(engine_draft_stat(b->engine, "home/x.h5", &st, &alone));
	assert_int_equal(engine_open_draft(b->engine, st.version, &reader, NULL), 0);
	engine_file_close(f);
	assert_int_equal(drafts_left(b), 1);
	assert_int_equal(engine_open_write(b->engine, "home/x.h5", 0, &again, NULL), -EBUSY);
	engine_file_close(reader);
	assert_int_equal(engine_open_write(b->engine, "home/x.h5", 0, &again, NULL), -EBUSY);
}

static void a_file_that_is_no_hdf5_file_is_not_committed(void **state)
{
	struct test_bucket *b = *state;
	struct engine_file *f = open_domain(b);
	write_status(f, 1);
	write_status(f, 0);
	write_chunk(f);
	write_at(f, 0, "text", 4);
	assert_int_equal(engine_flush(f, NULL), -EIO);
	check_chunk(b, OLD);
	assert_int_equal(drafts_left(b), 0);
	engine_file_close(f);
	assert_int_equal(drafts_left(b), 1);
	check_chunk(b, OLD);
}

/* As a program that only reads, one that writes need not wait for each chunk in turn. */
static void chunks_are_prefetched_for_a_program_that_writes(void **state)
{
	enum { CHUNKS = 100 };
	struct test_bucket *b = *state;
	const struct bucket_more none = {0};
	struct engine_options opt = bucket_rw(b);
	struct engine_counts before, after;
	struct engine_file *f;
	char piece[8], key[128];
	bucket_folder(b, "home");
	bucket_datasets(b, "home/x.h5", 1, 1, &none);
	bucket_put(b, "db/00000001-00000000/d/1111-222222-000001/.dataset.json",
		   "{\"id\": \"d-00000001-00000000-1111-222222-000001\", \"root\": "
		   "\"g-00000001-00000000-8888-888988-888888\", \"created\": 1, "
		   "\"lastModified\": 1, \"type\": {\"class\": \"H5T_INTEGER\", \"base\": "
		   "\"H5T_STD_I32LE\"}, \"shape\": {\"class\": \"H5S_SIMPLE\", \"dims\": [400]}, "
		   "\"attributes\": {}, \"layout\": {\"class\": \"H5D_CHUNKED\", \"dims\": [4]}}");
	for (int i = 0; i < CHUNKS; i++) {
		snprintf(key, sizeof(key), "db/00000001-00000000/d/1111-222222-000001/%d", i);
		bucket_put(b, key, OLD);
	}
	opt.workers = 2;
	bucket_open_as(b, opt);
	assert_int_equal(engine_open_write(b->engine, "home/x.h5", 0, &f, NULL), 0);
	engine_get_counts(b->engine, &before);
	ssize_t n = 8;
	for (uint64_t at = 0; n == 8; at += 8) /* a read never has two chunks */
		n = engine_pread(f, piece, 8, at, NULL, NULL);
	engine_get_counts(b->engine, &after);
	assert_true(after.prefetches > before.prefetches);
	engine_file_close(f);
}

/* ---- data that the domain does not store ---- */

/* A domain with two datasets: the data of /data are in another file, those of /data1 in the
 * domain. */
static struct engine_file *open_linked(struct test_bucket *b)
{
	static const struct bucket_more none = {0};
	struct engine_file *f;
	struct err err = ERR_INIT;
	bucket_folder(b, "home");
	bucket_datasets(b, "home/x.h5", 2, 1, &none);
	bucket_put(b, "raw.h5", OLD OLD);
	bucket_put(b, "db/00000001-00000000/d/1111-222222-000001/.dataset.json",
		   "{\"id\": \"d-00000001-00000000-1111-222222-000001\", \"root\": "
		   "\"g-00000001-00000000-8888-888988-888888\", \"created\": 1, "
		   "\"lastModified\": 1, \"type\": {\"class\": \"H5T_INTEGER\", \"base\": "
		   "\"H5T_STD_I32LE\"}, \"shape\": {\"class\": \"H5S_SIMPLE\", \"dims\": [8]}, "
		   "\"attributes\": {}, \"layout\": {\"class\": \"H5D_CHUNKED\", \"dims\": [8]}, "
		   "\"creationProperties\": {\"layout\": {\"class\": \"H5D_CONTIGUOUS_REF\", "
		   "\"file_uri\": \"/raw.h5\", \"offset\": 0, \"size\": 32}}}");
	bucket_put(b, "db/00000001-00000000/d/1111-222222-000002/0", "ABCDEFGHIJKLMNOP");
	bucket_open_rw(b, 3600, NULL);
	if (engine_open_write(b->engine, "home/x.h5", 0, &f, &err))
		fail_msg("%s", err.msg);
	return f;
}

static void check_refused(struct engine_file *f, uint64_t at, size_t n)
{
	static const uint8_t zeros[64];
	struct err err = ERR_INIT;
	assert_int_equal(engine_pwrite(f, zeros, n, at, &err), -EROFS);
	assert_non_null(strstr(err.msg, "dataset /data,"));
	assert_non_null(strstr(err.msg, "in the file /raw.h5"));
}

/* The write fails, not the close, and all other changes are stored. */
static void linked_data_are_not_written(void **state)
{
	struct test_bucket *b = *state;
	struct engine_file *f = open_linked(b);
	uint8_t bytes[32];
	const uint64_t at = find_chunk(f);
	check_refused(f, at + 31, 1); /* before anything was changed */
	write_status(f, 1);
	check_refused(f, at, 32);
	check_refused(f, at - 8, 9);
	write_at(f, at - 8, "\0\0\0\0\0\0\0", 8);
	assert_int_equal(engine_allocate(f, FALLOC_FL_ZERO_RANGE, at, 4, NULL), -EROFS);
	assert_int_equal(engine_allocate(f, FALLOC_FL_KEEP_SIZE, at, 4, NULL), 0);
	assert_int_equal(engine_pread(f, bytes, 32, at, NULL, NULL), 32);
	assert_memory_equal(bytes, OLD OLD, 32);
	write_status(f, 0);
	flush(f);
	engine_file_close(f);
	assert_int_equal(drafts_left(b), 0);
	assert_int_equal(engine_open_write(b->engine, "home/x.h5", 0, &f, NULL), 0);
	engine_file_close(f);
}

/* A program that replaces the whole file writes where it likes. */
static void an_emptied_file_has_no_linked_data(void **state)
{
	struct test_bucket *b = *state;
	struct engine_file *f = open_linked(b);
	const uint64_t at = find_chunk(f);
	check_refused(f, at, 32);
	assert_int_equal(engine_resize(f, 0, NULL), 0);
	write_at(f, at, NEW, strlen(NEW));
	engine_file_close(f);
}

/* So does one that has cut the data off, and appends to the file. */
static void data_that_were_cut_off_are_no_linked_data(void **state)
{
	struct test_bucket *b = *state;
	struct engine_file *f = open_linked(b);
	const uint64_t at = find_chunk(f);
	write_status(f, 1);
	assert_int_equal(engine_resize(f, at + 16, NULL), 0);
	write_at(f, at + 16, NEW, strlen(NEW));
	check_refused(f, at, 17);
	check_refused(f, at, 1);
	engine_file_close(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bucket_setup, bucket_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_that_was_closed_is_committed),
		TEST(an_unmarked_file_is_committed_at_the_end),
		TEST(a_file_that_was_not_closed_is_not_committed),
		TEST(what_was_not_committed_keeps_the_domain_from_changes),
		TEST(a_file_that_is_no_hdf5_file_is_not_committed),
		TEST(chunks_are_prefetched_for_a_program_that_writes),
		TEST(linked_data_are_not_written),
		TEST(an_emptied_file_has_no_linked_data),
		TEST(data_that_were_cut_off_are_no_linked_data),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
