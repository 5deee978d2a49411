/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object of a store as a source: which requests it sends, what it keeps, and an object that
 * changes.
 */
#include "store_fixture.h"

#include <ranges/store_source.h>

#include "mem_store.h"

enum { SIZE = 3 << 20, SECTOR = 64, FETCH_MIN = 512 };

struct world {
	struct fixture *f;
	struct store_source *s;
	struct source *source;
	uint8_t *bytes;
};

static void put_object(struct world *w, size_t n)
{
	const struct piece piece = {w->bytes, n};
	auto_request struct store_request *req = store_request_new(w->f->s, STORE_PUT);
	store_request_key(req, "raw/x");
	req->pieces = &piece;
	req->n_pieces = 1;
	store_run(w->f->s, req);
	assert_int_equal(req->answer.state, STORE_PRESENT);
}

static void open_world(struct world *w, uint64_t keep, const char *etag)
{
	*w = (struct world){.f = fixture_new(0)};
	w->f->s = store_mem_new(&w->f->env, NULL);
	assert_non_null(w->f->s);
	w->bytes = malloc(SIZE);
	assert_non_null(w->bytes);
	for (size_t i = 0; i < SIZE; i++)
		w->bytes[i] = (uint8_t)(i * 2654435761u >> 13);
	put_object(w, SIZE);
	w->s = store_source_new(&(struct store_source_options){
		.store = w->f->s, .key = "raw/x", .size = SIZE, .etag = etag, .keep = keep});
	assert_non_null(w->s);
	w->source = store_source_source(w->s);
}

static void close_world(struct world *w)
{
	store_source_free(w->s);
	free(w->bytes);
	fixture_free(w->f);
}

static void check_read(struct world *w, uint64_t offset, size_t n)
{
	uint8_t *buf = malloc(n);
	struct err err = ERR_INIT;
	assert_non_null(buf);
	if (source_read(w->source, offset, buf, n, &err))
		fail_msg("%s", err.msg);
	assert_memory_equal(buf, w->bytes + offset, n);
	free(buf);
}

static void check_counts(const struct world *w, uint64_t requests, uint64_t bytes, uint64_t rounds)
{
	struct store_source_counts c;
	store_source_counts(w->s, &c);
	assert_int_equal(c.requests, requests);
	assert_int_equal(c.bytes, bytes);
	assert_int_equal(c.rounds, rounds);
}

static void a_read_is_kept(void **state)
{
	struct world w;
	open_world(&w, 0, NULL);
	check_read(&w, 1000, 10);
	check_counts(&w, 1, 1536 - 960, 1); /* at least FETCH_MIN, in whole sectors */
	check_read(&w, 1000, FETCH_MIN);
	check_counts(&w, 1, 576, 1);
	check_read(&w, 960, 1000); /* only what is absent */
	check_counts(&w, 2, 576 + 1984 - 1536, 2);
	check_read(&w, SIZE - 5, 5); /* the last sector */
	check_counts(&w, 3, 1024 + SECTOR, 3);
	close_world(&w);
}

static void announced_ranges_come_with_a_read(void **state)
{
	struct world w;
	open_world(&w, 0, NULL);
	for (uint64_t i = 1; i <= 10; i++)
		source_advise(w.source, i * 65536, 2048);
	source_advise(w.source, SIZE, 1); /* outside */
	check_counts(&w, 0, 0, 0);
	check_read(&w, 0, 64);
	check_counts(&w, 11, FETCH_MIN + 10 * 2048, 1);
	for (uint64_t i = 1; i <= 10; i++)
		check_read(&w, i * 65536, 2048);
	check_counts(&w, 11, FETCH_MIN + 10 * 2048, 1);
	close_world(&w);
}

static void small_gaps_are_merged(void **state)
{
	struct world w;
	open_world(&w, 0, NULL);
	/* 256 bytes between ranges of 4,096: a sixteenth. */
	for (uint64_t i = 1; i <= 8; i++)
		source_advise(w.source, 65536 + i * 4352, 4096);
	/* 2,048 bytes between ranges of 4,096: too much. */
	for (uint64_t i = 1; i <= 4; i++)
		source_advise(w.source, (1 << 20) + i * 6144, 4096);
	check_read(&w, 0, 64);
	check_counts(&w, 6, FETCH_MIN + 8 * 4096 + 7 * 256 + 4 * 4096, 1);
	close_world(&w);
}

static void long_reads_are_not_kept(void **state)
{
	struct world w;
	open_world(&w, 0, NULL);
	check_read(&w, 100, 2 << 20);
	check_counts(&w, 1, 2 << 20, 1);
	check_read(&w, 100, 2 << 20);
	check_counts(&w, 2, 4 << 20, 2);
	close_world(&w);
}

static void the_oldest_pages_are_evicted(void **state)
{
	struct world w;
	open_world(&w, 1, NULL); /* the least that is possible: more than the object */
	for (uint64_t at = 0; at < SIZE; at += 4096)
		check_read(&w, at, 4096);
	check_counts(&w, SIZE / 4096, SIZE, SIZE / 4096);
	close_world(&w);
}

static void an_object_that_changes(void **state)
{
	struct world w;
	struct err err = ERR_INIT;
	uint8_t byte;
	open_world(&w, 0, "another version");
	assert_int_equal(source_read(w.source, 0, &byte, 1, &err), -ESTALE);
	assert_string_equal(err.msg, "raw/x has changed while it was read");
	close_world(&w);

	open_world(&w, 0, NULL);
	check_read(&w, 0, 1);
	put_object(&w, SIZE - 1);
	err_clear(&err);
	assert_int_equal(source_read(w.source, 9000, &byte, 1, &err), -ESTALE);
	auto_request struct store_request *req = store_request_new(w.f->s, STORE_DELETE);
	store_request_key(req, "raw/x");
	store_run(w.f->s, req);
	err_clear(&err);
	assert_int_equal(source_read(w.source, 9000, &byte, 1, &err), -ESTALE);
	assert_string_equal(err.msg, "raw/x was deleted while it was read");
	check_read(&w, 0, 1);
	store_request_free(req);
	req = NULL;
	close_world(&w);
}

static void a_cancelled_read(void **state)
{
	struct world w;
	atomic_bool cancelled = true;
	struct err err = ERR_INIT;
	uint8_t byte;
	open_world(&w, 0, NULL);
	struct store_source *s = store_source_new(&(struct store_source_options){
		.store = w.f->s, .key = "raw/x", .size = SIZE, .cancelled = &cancelled});
	assert_int_equal(source_read(store_source_source(s), 0, &byte, 1, &err), -ECANCELED);
	store_source_free(s);
	store_source_free(NULL);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_read_is_kept),
		cmocka_unit_test(announced_ranges_come_with_a_read),
		cmocka_unit_test(small_gaps_are_merged),
		cmocka_unit_test(long_reads_are_not_kept),
		cmocka_unit_test(the_oldest_pages_are_evicted),
		cmocka_unit_test(an_object_that_changes),
		cmocka_unit_test(a_cancelled_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
