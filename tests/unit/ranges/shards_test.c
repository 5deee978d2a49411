/* SPDX-License-Identifier: Apache-2.0 */
/* The indexes of shards in memory: which are kept, and who waits for one. tests/unit/domain/shard
 * has what a domain makes of them. */
#include "store_fixture.h"

#include <base/checksum.h>
#include <codec/chain.h>
#include <ranges/shards.h>

#include "mem_store.h"
#include "sampling.h"

enum { LARGE = SHARD_CHUNKS_MAX, INDEX = LARGE * SHARD_ENTRY, OBJECTS = 6, KEPT = 64 << 20 };

static const uint64_t span[] = {LARGE}, one[] = {1}, dims[] = {(uint64_t)LARGE * 2000000};
static const uint32_t chunk[] = {1}, order[] = {0};
static const struct shard shard = {.rank = 1,
				   .span = span,
				   .inner = one,
				   .order = order,
				   .nchunks = LARGE,
				   .largest = 100,
				   .at_start = true};
static const struct grid grid = {.rank = 1,
				 .dims = dims,
				 .chunk = chunk,
				 .count = dims,
				 .nchunks = (uint64_t)LARGE * 2000000,
				 .chunk_elems = 1};

struct world {
	struct fixture *f;
	struct store *store;
	struct ranges ranges;
	struct shard_search search;
	unsigned int calls;
	int code;
	struct err err;
};

/* Puts the index of a shard of which chunk 7 has one byte, behind the index. */
static void put_objects(struct world *w)
{
	uint8_t *bytes = malloc(INDEX + 1);
	assert_non_null(bytes);
	memset(bytes, 0xff, INDEX + 1);
	memset(bytes + 7 * SHARD_ENTRY, 0, SHARD_ENTRY);
	bytes[7 * SHARD_ENTRY + 3] = INDEX >> 24;
	bytes[7 * SHARD_ENTRY + 8] = 1;
	for (int i = 0; i < OBJECTS; i++) {
		const char key[] = {(char)('a' + i), '\0'};
		assert_int_equal(call_put(w->store, key, bytes, INDEX + 1, NULL, NULL, NULL), 0);
	}
	free(bytes);
}

static int open_world(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	assert_non_null(w);
	w->f = fixture_new(0);
	w->store = store_count_new(store_mem_new(&w->f->env, NULL), NULL);
	assert_non_null(w->store);
	w->ranges.joins = true;
	ranges_init(&w->ranges, &w->f->env, NULL, NULL);
	*state = w;
	return 0;
}

static int close_world(void **state)
{
	struct world *w = *state;
	ranges_release(&w->ranges);
	store_free(w->store);
	fixture_free(w->f);
	free(w);
	return 0;
}

static uint64_t gets(const struct world *w)
{
	struct store_counts n;
	store_count_read(w->store, &n);
	return n.calls[STORE_GET];
}

static void found(struct shard_search *s, int code, struct range_batch *batch,
		  const struct err *err)
{
	struct world *w = s->arg;
	w->calls++;
	w->code = code;
	err_copy(&w->err, err);
}

static void begin(struct world *w, struct shard_search *s, const char *key, uint64_t number,
		  struct range_batch *batch)
{
	*s = (struct shard_search){.ranges = &w->ranges,
				   .shard = &shard,
				   .grid = &grid,
				   .number = number,
				   .store = w->store,
				   .key = key,
				   .etag = "",
				   .size = UINT64_MAX,
				   .batch = batch,
				   .done = found,
				   .arg = w};
	shard_find(s);
}

/* Searches a chunk in the shard of an object. */
static void find(struct world *w, int object, uint64_t chunk_number)
{
	const char key[] = {(char)('a' + object), '\0'};
	w->calls = 0;
	begin(w, &w->search, key, (uint64_t)object * LARGE + chunk_number, NULL);
	assert_int_equal(w->calls, 1);
	assert_string_equal(w->err.msg, "");
	assert_int_equal(w->code, 0);
	assert_true(w->search.absent == (chunk_number != 7));
	if (chunk_number == 7)
		assert_true(w->search.offset == INDEX && w->search.length == 1);
	assert_non_null(shard_source_object(w->search.source));
	shard_source_unref(w->search.source);
}

/* Four indexes of 16 MiB fit, without what else an entry takes. */
static void the_least_recently_used_index_is_dropped(void **state)
{
	struct world *w = *state;
	put_objects(w);
	for (int i = 0; i < 3; i++) {
		find(w, i, 7);
		find(w, i, 8);
		assert_int_equal(gets(w), i + 1);
	}
	find(w, 0, 9); /* used again */
	find(w, 3, 7); /* drops that of object 1 */
	assert_int_equal(gets(w), 4);
	find(w, 0, 7);
	find(w, 2, 7);
	assert_int_equal(gets(w), 4);
	find(w, 1, 7);
	assert_int_equal(gets(w), 5);
	for (int i = 0; i < OBJECTS; i++) {
		find(w, i, 7);
		assert_true(w->ranges.shard_bytes <= KEPT);
	}
	shards_forget(&w->ranges);
	assert_int_equal(w->ranges.shard_bytes, 0);
	const uint64_t before = gets(w);
	find(w, OBJECTS - 1, 7);
	assert_int_equal(gets(w), before + 1);
}

/* The read of the index is sent at the end of the batch; the second search waits for it. */
static void one_read_serves_all_who_wait(void **state)
{
	struct world *w = *state;
	struct shard_search searches[3];
	put_objects(w);
	struct range_batch *batch = range_batch_begin(&w->ranges);
	for (size_t i = 0; i < 3; i++)
		begin(w, &searches[i], "a", 6 + i, batch);
	assert_int_equal(w->calls, 0);
	assert_int_equal(gets(w), 0);
	range_batch_end(batch);
	assert_int_equal(w->calls, 3);
	assert_int_equal(gets(w), 1);
	assert_true(w->ranges.shard_misses == 3 && w->ranges.shard_hits == 0);
	for (size_t i = 0; i < 3; i++) {
		assert_true(searches[i].absent == (i != 1));
		shard_source_unref(searches[i].source);
	}
	find(w, 0, 7);
	assert_int_equal(w->ranges.shard_hits, 1);
}

/* Who has begun to wait gets the index, but nobody else does. */
static void an_index_that_is_forgotten_while_it_is_read(void **state)
{
	struct world *w = *state;
	struct shard_search search;
	put_objects(w);
	struct range_batch *batch = range_batch_begin(&w->ranges);
	begin(w, &search, "a", 7, batch);
	shards_forget(&w->ranges);
	find(w, 0, 7);
	assert_int_equal(gets(w), 1);
	range_batch_end(batch);
	assert_int_equal(w->calls, 2);
	assert_int_equal(gets(w), 2);
	shard_source_unref(search.source);
	find(w, 0, 7);
	assert_int_equal(gets(w), 2);
}

/* The absence of an object is kept, too. */
static void many_shards_that_are_not_stored(void **state)
{
	struct world *w = *state;
	for (uint64_t i = 0; i < 100000; i++) {
		begin(w, &w->search, "absent", i * LARGE, NULL);
		assert_true(w->search.absent && !w->search.source);
		assert_int_equal(w->search.absence.evidence, STORE_BY_DIRECTORY);
	}
	assert_true(w->ranges.shard_bytes <= KEPT);
	assert_int_equal(gets(w), 100000);
	begin(w, &w->search, "absent", 99999 * (uint64_t)LARGE + 5, NULL);
	assert_int_equal(gets(w), 100000);
}

/* A million small shards at full size: all are the same object. The limit is reached early. */
static void many_shards_that_are_used_once(void **state)
{
	enum { FEW = 8 };
	const uint64_t shards = sampling_everything() ? 1000000 : 200000;
	const uint64_t few[] = {FEW};
	struct world *w = *state;
	uint8_t bytes[FEW * SHARD_ENTRY + 1];
	struct shard small = shard;
	small.span = few;
	small.nchunks = FEW;
	memset(bytes, 0, sizeof(bytes));
	for (size_t i = 0; i < FEW; i++) {
		bytes[i * SHARD_ENTRY] = FEW * SHARD_ENTRY;
		bytes[i * SHARD_ENTRY + 8] = 1;
	}
	assert_int_equal(call_put(w->store, "a", bytes, sizeof(bytes), NULL, NULL, NULL), 0);
	uint64_t most = 0;
	for (uint64_t i = 0; i < shards; i++) {
		w->search = (struct shard_search){.ranges = &w->ranges,
						  .shard = &small,
						  .grid = &grid,
						  .number = i * FEW + i % FEW,
						  .store = w->store,
						  .key = "a",
						  .etag = "",
						  .size = UINT64_MAX,
						  .done = found,
						  .arg = w};
		shard_find(&w->search);
		if (w->code || w->search.length != 1)
			fail_msg("shard %d: %s", (int)i, w->err.msg);
		shard_source_unref(w->search.source);
		most = max_u64(most, w->ranges.shard_bytes);
	}
	assert_in_range(most, KEPT / 2, KEPT);
	assert_int_equal(gets(w), shards);
	assert_int_equal(w->calls, shards);
}

static void what_the_budget_refuses_is_used_once(void **state)
{
	struct world *w = *state;
	put_objects(w);
	struct budget *budget = budget_new(&(struct budget_limits){.bytes = 8 << 20});
	assert_non_null(budget);
	w->f->env.budget = budget;
	find(w, 0, 7);
	find(w, 0, 7);
	assert_int_equal(gets(w), 2);
	assert_int_equal(w->ranges.shard_bytes, 0);
	w->f->env.budget = NULL;
	budget_free(budget);
}

/* Two searches in an encoded shard of FEW chunks and so many bytes, none of which is stored, with a
 * budget of so many. Returns how many requests they take. */
static uint64_t use_encoded(struct world *w, size_t n, uint64_t budget_bytes)
{
	enum { FEW = 10 };
	const uint64_t few[] = {FEW}, before = gets(w);
	const struct codec_array_step step = {.codec = CODEC_CRC32C};
	struct codec_plan plan;
	struct shard encoded = shard;
	uint8_t *bytes = malloc(n + 4);
	assert_non_null(bytes);
	memset(bytes, 0xff, n);
	const uint32_t crc = checksum_crc32c(bytes, n, 0);
	for (unsigned int i = 0; i < 4; i++)
		bytes[n + i] = (uint8_t)(crc >> 8 * i);
	assert_int_equal(call_put(w->store, "a", bytes, n + 4, NULL, NULL, NULL), 0);
	free(bytes);
	assert_int_equal(codec_plan_bytes(&plan, n, &step, 1), 0);
	encoded.span = few;
	encoded.nchunks = FEW;
	encoded.around = &plan.chain;
	struct budget *budget = budget_new(&(struct budget_limits){.bytes = budget_bytes});
	assert_non_null(budget);
	w->f->env.budget = budget;
	for (int i = 0; i < 2; i++) {
		w->calls = 0;
		w->search = (struct shard_search){.ranges = &w->ranges,
						  .shard = &encoded,
						  .grid = &grid,
						  .store = w->store,
						  .key = "a",
						  .etag = "",
						  .size = UINT64_MAX,
						  .done = found,
						  .arg = w};
		shard_find(&w->search);
		assert_int_equal(w->calls, 1);
		assert_string_equal(w->err.msg, "");
		assert_true(w->search.absent);
		shard_source_unref(w->search.source);
	}
	const uint64_t kept = w->ranges.shard_bytes;
	shards_forget(&w->ranges);
	w->f->env.budget = NULL;
	budget_free(budget);
	assert_true(kept == 0 || kept >= n);
	return gets(w) - before;
}

/* Its index fits, and its decoded bytes do not. */
static void so_is_an_encoded_shard(void **state)
{
	assert_int_equal(use_encoded(*state, 4 << 20, 8 << 20), 2);
}

static void an_encoded_shard_above_the_limit_is_kept_alone(void **state)
{
	assert_int_equal(use_encoded(*state, KEPT + (1 << 20), 512 << 20), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
	const struct CMUnitTest tests[] = {
		TEST(the_least_recently_used_index_is_dropped),
		TEST(one_read_serves_all_who_wait),
		TEST(an_index_that_is_forgotten_while_it_is_read),
		TEST(many_shards_that_are_not_stored),
		TEST(many_shards_that_are_used_once),
		TEST(what_the_budget_refuses_is_used_once),
		TEST(so_is_an_encoded_shard),
		TEST(an_encoded_shard_above_the_limit_is_kept_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
