/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of objects of two stores: their versions, and which reads one request serves. */
#include "store_fixture.h"

#include <ranges/ranges.h>

#include "mem_store.h"

enum { SIZE = 1 << 20, READS = 5, MANY = 18 };

struct world {
	struct fixture *f;
	struct store *stores[2];
	struct ranges ranges;
	struct range_object objects[2]; /* one in each store */
	uint8_t *bytes;
	struct range_read reads[MANY];
	int codes[MANY]; /* 1 until the read has ended */
	struct err err;	 /* of the last failure */
};

static void put_object(struct world *w, size_t i, uint8_t first)
{
	w->bytes[0] = first;
	assert_int_equal(call_put(w->stores[i], "some/object", w->bytes, SIZE, NULL, NULL, NULL),
			 0);
}

static int open_world(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	assert_non_null(w);
	w->f = fixture_new(0);
	w->bytes = malloc(SIZE);
	assert_non_null(w->bytes);
	for (size_t i = 0; i < SIZE; i++)
		w->bytes[i] = (uint8_t)(i * 2654435761u >> 13);
	w->ranges.joins = true;
	ranges_init(&w->ranges, &w->f->env, NULL, NULL);
	for (size_t i = 0; i < 2; i++) {
		w->stores[i] = store_count_new(store_mem_new(&w->f->env, NULL), NULL);
		assert_non_null(w->stores[i]);
		put_object(w, i, 0);
		w->objects[i] = (struct range_object){.all = &w->ranges,
						      .store = w->stores[i],
						      .key = "some/object",
						      .name = i ? "second" : "first",
						      .required_size = UINT64_MAX,
						      .size = UINT64_MAX};
	}
	*state = w;
	return 0;
}

static int close_world(void **state)
{
	struct world *w = *state;
	ranges_release(&w->ranges);
	store_free(w->stores[0]);
	store_free(w->stores[1]);
	free(w->bytes);
	fixture_free(w->f);
	free(w);
	return 0;
}

static uint64_t gets(const struct world *w, size_t i)
{
	struct store_counts n;
	store_count_read(w->stores[i], &n);
	return n.calls[STORE_GET];
}

static void arrived(struct range_read *r, int code, struct bytes *body, const struct err *err)
{
	struct world *w = r->arg;
	w->codes[r - w->reads] = code;
	if (code) {
		err_copy(&w->err, err);
		return;
	}
	const uint64_t n = r->short_ok ? min_u64(r->length, SIZE - r->offset) : r->length;
	assert_int_equal(body->len, n);
	assert_memory_equal(body->data, w->bytes + r->offset, n);
}

static void begin(struct world *w, size_t i, struct range_batch *batch, size_t object,
		  uint64_t offset, uint64_t length)
{
	w->codes[i] = 1;
	w->reads[i] = (struct range_read){.object = &w->objects[object],
					  .offset = offset,
					  .length = length,
					  .batch = batch,
					  .done = arrived,
					  .arg = w};
	range_read(&w->reads[i]);
}

static int read_one(struct world *w, size_t object, uint64_t offset, uint64_t length)
{
	begin(w, 0, NULL, object, offset, length);
	return w->codes[0];
}

static void reads_of_one_object_are_joined(void **state)
{
	struct world *w = *state;
	struct range_batch *batch = range_batch_begin(&w->ranges);
	begin(w, 0, batch, 0, 5000, 100); /* out of order, and one inside of another */
	begin(w, 1, batch, 1, 5100, 100);
	begin(w, 2, batch, 0, 1000, 200);
	begin(w, 3, batch, 0, 1050, 50);
	begin(w, 4, batch, 0, SIZE - 100, 100); /* far away */
	assert_int_equal(gets(w, 0) + gets(w, 1), 0);
	range_batch_end(batch);
	for (size_t i = 0; i < READS; i++)
		assert_int_equal(w->codes[i], 0);
	assert_int_equal(gets(w, 0), 2);
	assert_int_equal(gets(w, 1), 1);
}

/* What lies between reads of a shard is often fetched by another request. */
static void the_gaps_of_a_request_have_a_limit(void **state)
{
	enum { LENGTH = 1024, GAP = 4096 };
	struct world *w = *state;
	for (int own = 0; own < 2; own++) {
		struct range_batch *batch = range_batch_begin(&w->ranges);
		const uint64_t before = gets(w, 0);
		w->objects[0].is_own = own;
		for (size_t i = 0; i < MANY; i++)
			begin(w, i, batch, 0, i * (LENGTH + GAP), LENGTH);
		range_batch_end(batch);
		for (size_t i = 0; i < MANY; i++)
			assert_int_equal(w->codes[i], 0);
		assert_int_equal(gets(w, 0) - before, own ? 2 : 1); /* 16 gaps are 64 KiB */
	}
}

/* Only the read that is past the end fails, although one request serves all. */
static void a_joined_read_past_the_end_fails_alone(void **state)
{
	struct world *w = *state;
	struct range_batch *batch = range_batch_begin(&w->ranges);
	begin(w, 0, batch, 0, SIZE - 200, 100);
	begin(w, 1, batch, 0, SIZE - 50, 100);
	range_batch_end(batch);
	assert_int_equal(w->codes[0], 0);
	assert_int_equal(w->codes[1], -EIO);
	assert_string_equal(w->err.msg,
			    "first, bytes 1048526-1048625: the range is past the end of "
			    "the file, which has 1048576 bytes");
	assert_int_equal(gets(w, 0), 1);
	/* The size is known now. */
	assert_int_equal(read_one(w, 0, SIZE, 1), -EIO);
	assert_int_equal(gets(w, 0), 1);
}

static void an_object_has_one_version(void **state)
{
	struct world *w = *state;
	assert_true(range_object_size(&w->objects[0]) == UINT64_MAX);
	assert_int_equal(read_one(w, 0, 10, 10), 0);
	assert_int_equal(range_object_size(&w->objects[0]), SIZE);
	put_object(w, 0, 1);
	assert_false(w->ranges.changed);
	assert_int_equal(read_one(w, 0, 10, 10), -EIO);
	assert_true(w->ranges.changed);
	assert_int_equal(read_one(w, 1, 10, 10), 0);
}

static void a_version_is_required(void **state)
{
	struct world *w = *state;
	struct range_object *o = w->objects;
	struct err err = ERR_INIT;
	assert_int_equal(range_require(&o[0], "", UINT64_MAX, &err), 0);
	assert_int_equal(range_require(&o[0], "", SIZE + 1, &err), 0);
	assert_int_equal(read_one(w, 0, 10, 10), -EIO);
	assert_int_equal(range_require(&o[0], "", SIZE, &err), -EIO);
	assert_string_equal(err.msg, "first: the file is not the version that the domain was made "
				     "from");
	assert_int_equal(range_require(&o[1], "other", UINT64_MAX, &err), 0);
	assert_int_equal(read_one(w, 1, 10, 10), -EIO);
	assert_int_equal(range_require(&o[1], o[1].etag, SIZE, &err), 0);
	assert_int_equal(range_require(&o[1], "third", SIZE, &err), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(reads_of_one_object_are_joined, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(the_gaps_of_a_request_have_a_limit, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(a_joined_read_past_the_end_fails_alone, open_world,
						close_world),
		cmocka_unit_test_setup_teardown(an_object_has_one_version, open_world, close_world),
		cmocka_unit_test_setup_teardown(a_version_is_required, open_world, close_world),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
