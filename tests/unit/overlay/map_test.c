/* SPDX-License-Identifier: Apache-2.0 */
/* Maps that no draft has written: each is refused with its reason. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "overlay/map.h"

enum { RECORDS_MAX = 20 };

struct replayed {
	struct layers layers;
	struct frames_memory memory;
	struct budget_charge charge;
	struct map_state state;
	int rc;
	struct err err;
};

static int read_at(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	memcpy(buf, (uint8_t *)ctx + offset, n);
	return 0;
}

/* Numbers the records, up to one without a type, and replays them. */
static void replay(struct replayed *r, const struct map_record *records, struct budget *budget)
{
	uint8_t bytes[RECORDS_MAX * MAP_RECORD];
	uint32_t n = 0;
	for (; n < RECORDS_MAX && records[n].type; n++) {
		struct map_record record = records[n];
		record.sequence = n;
		map_encode(&record, bytes + (size_t)n * MAP_RECORD);
	}
	struct source source = {.size = n * MAP_RECORD, .read_at = read_at, .ctx = bytes};
	*r = (struct replayed){.charge = {.budget = budget, .use = BUDGET_DRAFTS}};
	r->state = (struct map_state){
		.layers = &r->layers, .memory = &r->memory, .charge = &r->charge};
	r->rc = map_replay(&source, true, &r->state, &r->err);
}

static void release(struct replayed *r)
{
	layers_release(&r->layers);
	assert_int_equal(r->memory.used, 0);
	budget_set(&r->charge, 0, NULL);
}

static void a_wrong_map_is_refused_with_its_reason(void **state)
{
	static const struct map_record start = {.type = MAP_START, .generation = MAP_MAGIC};
	static const struct {
		struct map_record second;
		const char *why;
	} cases[] = {
		{{MAP_START, 0, MAP_MAGIC, 0, 0}, "record 1 of the map is not expected there"},
		{{MAP_WRITE, 0, 0, FRAMES_LIMIT, 1}, "record 1 of the map has an offset outside"},
		{{MAP_WRITE, 0, 0, UINT64_MAX, 2}, "record 1 of the map has an offset outside"},
		{{MAP_WRITE, 0, 0, 5, 0}, "record 1 of the map has an invalid range"},
		{{MAP_WRITE, 0, 1, 0, 5}, "record 1 of the map names a generation that is not"},
		{{MAP_SIZE, 0, 0, 0, FRAMES_LIMIT + 1},
		 "record 1 of the map has an offset outside"},
		{{MAP_SIZE, 0, 0, 1, 1}, "record 1 of the map has an invalid range"},
		{{MAP_ZERO, 0, 0, 0, 1}, "record 1 of the map has an offset outside"},
		{{MAP_SEAL, 0, 0, 0, 1}, "record 1 of the map seals a file of another size"},
		{{MAP_FOLD, 0, 0, 0, 0}, "record 1 of the map folds the only generation"},
		{{MAP_BEGIN, 0, 0, 0, 0}, "record 1 of the map begins a generation again"},
	};
	struct replayed r;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct map_record records[RECORDS_MAX] = {start, cases[i].second};
		replay(&r, records, NULL);
		assert_int_equal(r.rc, -EBADMSG);
		if (strncmp(r.err.msg, cases[i].why, strlen(cases[i].why)) != 0)
			fail_msg("%s", r.err.msg);
		release(&r);
	}
	const struct map_record no_start[RECORDS_MAX] = {{MAP_WRITE, 0, 0, 0, 5}};
	replay(&r, no_start, NULL);
	assert_string_equal(r.err.msg, "record 0 of the map is not expected there");
	release(&r);
	const struct map_record bad_start[RECORDS_MAX] = {{MAP_START, 0, 1, 0, 5}};
	replay(&r, bad_start, NULL);
	assert_string_equal(r.err.msg,
			    "record 0 of the map is not the first record of a map of version 2");
	release(&r);
}

static void generations_are_limited(void **state)
{
	struct map_record records[RECORDS_MAX] = {{.type = MAP_START, .generation = MAP_MAGIC}};
	struct replayed r;
	for (uint32_t i = 1; i < LAYERS_MAX; i++)
		records[i] = (struct map_record){.type = MAP_BEGIN, .generation = 3 * i};
	replay(&r, records, NULL);
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.layers.n, LAYERS_MAX);
	release(&r);
	records[LAYERS_MAX] = (struct map_record){.type = MAP_BEGIN, .generation = 1000};
	replay(&r, records, NULL);
	assert_int_equal(r.rc, -EBADMSG);
	assert_string_equal(r.err.msg, "record 16 of the map begins too many generations");
	release(&r);
}

static void memory_is_limited_by_the_budget(void **state)
{
	struct budget *budget =
		budget_new(&(struct budget_limits){.bytes = 1000, .option = "cache_size"});
	const struct map_record records[RECORDS_MAX] = {
		{.type = MAP_START, .generation = MAP_MAGIC}, {MAP_WRITE, 0, 0, 5, 5}};
	struct replayed r;
	replay(&r, records, budget);
	assert_int_equal(r.rc, -ENOMEM);
	assert_non_null(strstr(r.err.msg, "cache_size"));
	release(&r);
	budget_free(budget);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wrong_map_is_refused_with_its_reason),
		cmocka_unit_test(generations_are_limited),
		cmocka_unit_test(memory_is_limited_by_the_budget),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
