/* SPDX-License-Identifier: Apache-2.0 */
/* Records of an index whose parts the test loads itself: how often, and what is kept. */
#include "store_fixture.h"

#include <ranges/place_index.h>

#include "shape_arena.h"

enum { RECORDS = 4, READS = 3 };

struct world {
	struct fixture *f;
	struct ranges ranges;
	const struct dtype *type;
	/* The load that has not ended. */
	chunk_done done;
	void *arg;
	struct chunk_request part;
	unsigned int loads;
	struct place_read reads[READS];
	int codes[READS]; /* 1 until the read has ended */
	int32_t values[READS];
	struct err err; /* of the last failure */
};

static int open_world(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	assert_non_null(w);
	w->f = fixture_new(0);
	w->type = dtype_integer(shape_arena(), 4, true, false, NULL);
	assert_non_null(w->type);
	ranges_init(&w->ranges, &w->f->env, NULL, NULL);
	*state = w;
	return 0;
}

static int close_world(void **state)
{
	struct world *w = *state;
	ranges_release(&w->ranges);
	fixture_free(w->f);
	free(w);
	return 0;
}

static void load(void *ctx, const struct chunk_request *part, chunk_done done, void *arg)
{
	struct world *w = ctx;
	assert_null(w->done);
	w->part = *part;
	w->done = done;
	w->arg = arg;
	w->loads++;
}

static void got(struct place_read *r, int code, const struct elems *value,
		struct range_batch *batch, const struct err *err)
{
	struct world *w = r->arg;
	const size_t i = (size_t)(r - w->reads);
	(void)batch;
	w->codes[i] = code;
	w->values[i] = -1;
	if (value)
		memcpy(&w->values[i], value->fixed.data, sizeof(w->values[i]));
	if (code)
		err_copy(&w->err, err);
}

static void begin(struct world *w, size_t i, uint64_t part, uint64_t record)
{
	w->codes[i] = 1;
	w->reads[i] = (struct place_read){.ranges = &w->ranges,
					  .part = {.dataset = 7, .number = part},
					  .type = w->type,
					  .record = record,
					  .load = load,
					  .ctx = w,
					  .done = got,
					  .arg = w};
	place_read(&w->reads[i]);
}

/* Ends the load: the records of part p are 10 p, 10 p + 1 … */
static void end(struct world *w, int code, bool absent, size_t records)
{
	struct chunk_result result = {.code = code, .absent = absent};
	const chunk_done done = w->done;
	w->done = NULL;
	if (code)
		err_set(&result.err, code, "the store is gone");
	for (size_t i = 0; !code && !absent && i < records; i++) {
		const int32_t value = (int32_t)(10 * w->part.number + i);
		assert_int_equal(bytes_append(&result.data.elems.fixed, &value, 4), 0);
	}
	done(w->arg, &result);
}

static void a_part_is_loaded_once(void **state)
{
	struct world *w = *state;
	begin(w, 0, 3, 1);
	begin(w, 1, 3, 2);
	assert_int_equal(w->loads, 1);
	assert_int_equal(w->codes[0] + w->codes[1], 2);
	end(w, 0, false, RECORDS);
	assert_int_equal(w->values[0], 31);
	assert_int_equal(w->values[1], 32);
	begin(w, 2, 3, 3);
	assert_int_equal(w->values[2], 33);
	assert_int_equal(w->loads, 1);
	begin(w, 0, 4, 0);
	end(w, 0, false, RECORDS);
	assert_int_equal(w->values[0], 40);
	places_forget(&w->ranges);
	begin(w, 0, 3, 1);
	assert_int_equal(w->loads, 3);
	end(w, 0, true, 0);
	assert_int_equal(w->codes[0], 0);
	assert_int_equal(w->values[0], -1); /* absent */
}

static void a_failure_is_that_of_all_who_wait_and_is_not_kept(void **state)
{
	struct world *w = *state;
	begin(w, 0, 3, 1);
	begin(w, 1, 3, 2);
	end(w, -ETIMEDOUT, false, 0);
	assert_int_equal(w->codes[0], -ETIMEDOUT);
	assert_int_equal(w->codes[1], -ETIMEDOUT);
	assert_string_equal(w->err.msg, "the store is gone");
	begin(w, 0, 3, 1);
	end(w, 0, false, 1); /* the part is too short */
	assert_int_equal(w->codes[0], -EIO);
	assert_string_equal(w->err.msg, "the record cannot be read");
}

/* The part is used, but not kept. */
static void a_part_that_does_not_fit_the_budget(void **state)
{
	struct world *w = *state;
	struct budget *small = budget_new(&(struct budget_limits){.bytes = 64}),
		      *all = w->f->env.budget;
	assert_non_null(small);
	w->f->env.budget = small;
	for (unsigned int i = 0; i < 2; i++) {
		begin(w, 0, 3, 1);
		end(w, 0, false, RECORDS);
		assert_int_equal(w->values[0], 31);
		assert_int_equal(w->loads, i + 1);
	}
	w->f->env.budget = all;
	budget_free(small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_part_is_loaded_once, open_world, close_world),
		cmocka_unit_test_setup_teardown(a_failure_is_that_of_all_who_wait_and_is_not_kept,
						open_world, close_world),
		cmocka_unit_test_setup_teardown(a_part_that_does_not_fit_the_budget, open_world,
						close_world),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
