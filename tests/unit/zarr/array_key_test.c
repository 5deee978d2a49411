/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of chunks: of every encoding, and back; and a dimension, which has none. */
#include "zarr_store.h"

#include "schema/zarr/zarr_space.h"

static const uint64_t dims[] = {30, 5};
static const uint32_t chunk[] = {2, 5};
static const uint64_t count[] = {15, 1};

static struct object array(const struct zarr_locator *l)
{
	return (struct object){
		.kind = OBJECT_DATASET,
		.dataset = {.locator = l,
			    .grid = {.rank = 2,
				     .dims = dims,
				     .chunk = chunk,
				     .count = count,
				     .nchunks = 15}},
	};
}

static void keys_of_chunks_are_those_of_the_encoding(void **state)
{
	static const struct {
		const char *store, *path;
		bool is_default;
		char separator;
		const char *key, *prefix;
	} rows[] = {
		{"d/x.zarr", "g/a", false, '.', "d/x.zarr/g/a/11.0", "d/x.zarr/g/a/"},
		{"d/x.zarr", "g/a", false, '/', "d/x.zarr/g/a/11/0", "d/x.zarr/g/a/"},
		{"d/x.zarr", "g/a", true, '/', "d/x.zarr/g/a/c/11/0", "d/x.zarr/g/a/c"},
		{"d/x.zarr", "g/a", true, '.', "d/x.zarr/g/a/c.11.0", "d/x.zarr/g/a/c"},
		{"d", "", false, '.', "d/11.0", "d/"},
		{"", "a", false, '.', "a/11.0", "a/"},
		{"", "", false, '.', "11.0", ""},
		{"", "", true, '/', "c/11/0", "c"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct zarr_locator l = {
			.store = rows[i].store,
			.path = rows[i].path,
			.is_default = rows[i].is_default,
			.separator = rows[i].separator,
			.rank = 2,
		};
		const struct object o = array(&l);
		char key[256], prefix[256];
		struct chunk_place place = {.key = key, .room = sizeof(key)};
		unsigned int step = 0;
		uint64_t number = 99;
		assert_int_equal(zarr_locate(&o, NULL, 11, &step, NULL, &place, NULL), 0);
		assert_false(place.absent);
		assert_string_equal(key, rows[i].key);
		assert_int_equal(zarr_chunk_prefix(&o, prefix, sizeof(prefix)),
				 strlen(rows[i].prefix));
		assert_string_equal(prefix, rows[i].prefix);
		assert_true(zarr_chunk_of_key(&o, key, &number));
		assert_int_equal(number, 11);
	}
}

/* A chunk of the array has 6 by 5 elements of 4 bytes, and holds three of the dataset. The last one
 * of these along the first dimension has one row. */
static void a_chunk_that_is_cut_is_read_in_parts(void **state)
{
	static const uint64_t stored[] = {6, 5}, tall[] = {30, 5}, odd[] = {29, 5};
	static const struct {
		const uint64_t *stored;
		uint64_t number;
		const char *key;
		uint64_t offset, length, first;
		bool ends_early;
		uint64_t last; /* chunk of the object */
	} rows[] = {
		{stored, 0, "s/a/0.0", 0, 40, 0, false, 2},
		{stored, 2, "s/a/0.0", 80, 40, 0, false, 2},
		{stored, 3, "s/a/1.0", 0, 40, 3, false, 5},
		{stored, 14, "s/a/4.0", 80, 40, 12, false, 14},
		{tall, 14, "s/a/0.0", 560, 40, 0, false, 14},
		{odd, 14, "s/a/0.0", 560, 20, 0, true, 14},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct zarr_locator l = {.store = "s",
					       .path = "a",
					       .separator = '.',
					       .rank = 2,
					       .elem_size = 4,
					       .stored_chunk = rows[i].stored};
		struct object o = array(&l);
		char key[64], prefix[64];
		struct chunk_place place = {.key = key, .room = sizeof(key)};
		unsigned int step = 0;
		uint64_t number;
		o.dataset.grid.chunk_elems = 10;
		assert_int_equal(zarr_locate(&o, NULL, rows[i].number, &step, NULL, &place, NULL),
				 0);
		assert_string_equal(key, rows[i].key);
		assert_int_equal(place.offset, rows[i].offset);
		assert_int_equal(place.length, rows[i].length);
		assert_true(place.is_shared);
		assert_int_equal(place.first, rows[i].first);
		assert_int_equal(place.ends_early, rows[i].ends_early);
		assert_true(zarr_chunk_of_key(&o, key, &number));
		assert_int_equal(number, rows[i].first);
		/* The parts follow each other in the object. */
		struct chunk_place part = {0};
		uint64_t end = 0;
		do {
			assert_true(zarr_chunk_part(&o, number, &part));
			assert_int_equal(part.first, rows[i].first);
			assert_int_equal(part.offset, end);
			end += part.length;
		} while (zarr_next_part(&o, &number));
		assert_int_equal(end, part.object_size);
		assert_int_equal(number, rows[i].last);
		assert_false(zarr_chunk_of_key(&o, "s/a/5.0", &number));
		assert_int_equal(zarr_chunk_prefix(&o, prefix, sizeof(prefix)), -EOPNOTSUPP);
	}
}

/* A shard has 4 x 5 elements: two chunks of the dataset. */
static void a_shard_has_the_key_of_several_chunks(void **state)
{
	static const uint64_t span[] = {2, 1}, one[] = {1, 1};
	static const uint32_t order[] = {0, 1};
	static const struct shard shard = {
		.rank = 2, .span = span, .inner = one, .order = order, .nchunks = 2};
	const struct zarr_locator l = {
		.store = "s", .path = "a", .is_default = true, .separator = '/', .rank = 2};
	struct object o = array(&l);
	char key[64], prefix[64];
	struct chunk_place place = {.key = key, .room = sizeof(key)};
	unsigned int step = 0;
	uint64_t number = 99;
	o.dataset.shard = &shard;
	assert_int_equal(zarr_locate(&o, NULL, 11, &step, NULL, &place, NULL), SCHEMA_NEEDS_SHARD);
	assert_string_equal(key, "s/a/c/5/0");
	assert_true(place.offset == 0 && place.length == CHUNK_TO_END);
	assert_int_equal(zarr_chunk_prefix(&o, prefix, sizeof(prefix)), -EOPNOTSUPP);
	assert_true(zarr_chunk_of_key(&o, key, &number));
	assert_int_equal(number, 10);
	assert_false(zarr_chunk_part(&o, 10, &place));
	assert_true(zarr_next_part(&o, &number));
	assert_int_equal(number, 11);
	assert_false(zarr_next_part(&o, &number));
	/* The last shard overlaps the edge: there are 15 chunks. */
	assert_true(zarr_chunk_of_key(&o, "s/a/c/7/0", &number));
	assert_int_equal(number, 14);
	assert_false(zarr_next_part(&o, &number));
	assert_false(zarr_chunk_of_key(&o, "s/a/c/8/0", &number));
	assert_false(zarr_chunk_of_key(&o, "s/a/c/9223372036854775807/0", &number));
}

static void other_keys_are_none_of_chunks(void **state)
{
	static const char *const keys[] = {
		"s/a/.zarray",
		"s/a/15.0",
		"s/a/1.1",
		"s/a/01.0",
		"s/a/1",
		"s/a/1.0.0",
		"s/a/1/0",
		"s/a/1.0x",
		"s/a/-1.0",
		"s/a/",
		"s/b/1.0",
		"s/a/c/1/0",
		"s/a/18446744073709551617.0",
		"s/a/a.0",
		"s/a/1.:",
		"s/a/00.0",
	};
	const struct zarr_locator l = {.store = "s", .path = "a", .separator = '.', .rank = 2};
	const struct object o = array(&l);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		uint64_t number;
		assert_false(zarr_chunk_of_key(&o, keys[i], &number));
	}
}

static void a_scalar_has_one_chunk(void **state)
{
	static const uint64_t one[] = {1};
	static const uint32_t narrow[] = {1};
	for (int is_default = 0; is_default < 2; is_default++) {
		const struct zarr_locator l = {
			.store = "s", .path = "a", .separator = '.', .is_default = is_default};
		const struct object o = {
			.kind = OBJECT_DATASET,
			.dataset = {.locator = &l,
				    .grid = {.rank = 1,
					     .dims = one,
					     .chunk = narrow,
					     .count = one,
					     .nchunks = 1}},
		};
		char key[64];
		struct chunk_place place = {.key = key, .room = sizeof(key)};
		unsigned int step = 0;
		uint64_t number = 99;
		assert_int_equal(zarr_locate(&o, NULL, 0, &step, NULL, &place, NULL), 0);
		assert_string_equal(key, is_default ? "s/a/c" : "s/a/0");
		assert_true(zarr_chunk_of_key(&o, key, &number));
		assert_int_equal(number, 0);
	}
}

/* No request finds out that a dimension without a variable has no chunks. */
static void a_dimension_has_no_chunks(void **state)
{
	const struct zarr_locator l = {.store = "s", .separator = '.'};
	const struct object o = array(&l);
	char key[64] = "";
	struct chunk_place place = {.key = key, .room = sizeof(key)};
	unsigned int step = 0;
	uint64_t number;
	assert_int_equal(zarr_locate(&o, NULL, 11, &step, NULL, &place, NULL), 0);
	assert_true(place.absent);
	assert_int_equal(zarr_chunk_prefix(&o, key, sizeof(key)), 0);
	assert_false(zarr_chunk_of_key(&o, "s//1.0", &number));
}

/* The document of this array does not say the separator, and no listing has shown it. A byte of the
 * chunk shows whether its key has a dot. */
static void a_chunk_shows_the_separator(void **state)
{
	const struct zarr_locator l = {
		.store = "s", .path = "a", .separator = '.', .rank = 2, .is_guessed = true};
	const struct object o = array(&l);
	for (int is_absent = 0; is_absent < 2; is_absent++) {
		const struct schema_answer answer = {.absent = is_absent};
		char key[64];
		struct chunk_place place = {.key = key, .room = sizeof(key)};
		unsigned int step = 0;
		assert_int_equal(zarr_locate(&o, NULL, 11, &step, NULL, &place, NULL),
				 SCHEMA_NEEDS_ANSWER);
		assert_string_equal(key, "s/a/11.0");
		assert_int_equal(place.length, 1);
		place = (struct chunk_place){.key = key, .room = sizeof(key)};
		assert_int_equal(zarr_locate(&o, NULL, 11, &step, &answer, &place, NULL), 0);
		assert_string_equal(key, is_absent ? "s/a/11/0" : "s/a/11.0");
		assert_true(place.length == CHUNK_TO_END);
	}
	uint64_t number = 99;
	assert_true(zarr_chunk_of_key(&o, "s/a/3/0", &number));
	assert_int_equal(number, 3);
	assert_true(zarr_chunk_of_key(&o, "s/a/4.0", &number));
	assert_int_equal(number, 4);
}

static void a_key_fits_or_is_refused(void **state)
{
	static const char *const rows[][3] = {
		{"d/x", "a/0", "d/x/a/0"}, {"", "a", "a"}, {"d", "", "d"}, {"", "", ""}};
	const struct zarr_locator l = {.store = "d", .path = "a", .separator = '.', .rank = 2};
	const struct object o = array(&l);
	char key[64];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const size_t n = strlen(rows[i][2]);
		for (size_t room = 0; room < sizeof(key); room++) {
			const int got = zarr_key(rows[i][0], rows[i][1], key, room);
			assert_int_equal(got, room > n ? (int)n : -ENAMETOOLONG);
			if (got >= 0)
				assert_string_equal(key, rows[i][2]);
		}
	}
	for (size_t room = 0; room < sizeof(key); room++) {
		struct chunk_place place = {.key = key, .room = room};
		struct err err = ERR_INIT;
		unsigned int step = 0;
		assert_int_equal(zarr_locate(&o, NULL, 11, &step, NULL, &place, &err),
				 room > strlen("d/a/11.0") ? 0 : -ENAMETOOLONG);
		assert_int_equal(zarr_chunk_prefix(&o, key, room),
				 room > strlen("d/a/") ? (int)strlen("d/a/") : -ENAMETOOLONG);
	}
}

/* The number of a chunk may have 20 digits. */
static void large_numbers_have_all_their_digits(void **state)
{
	static const uint64_t large[] = {UINT64_C(1) << 62}, all[] = {UINT64_C(1) << 62};
	static const uint32_t one[] = {1};
	const struct zarr_locator l = {.store = "s", .path = "a", .separator = '.', .rank = 1};
	const struct object o = {
		.kind = OBJECT_DATASET,
		.dataset = {.locator = &l,
			    .grid = {.rank = 1,
				     .dims = large,
				     .chunk = one,
				     .count = all,
				     .nchunks = UINT64_C(1) << 62}},
	};
	char key[64];
	struct chunk_place place = {.key = key, .room = sizeof(key)};
	unsigned int step = 0;
	uint64_t number = 0;
	assert_int_equal(zarr_locate(&o, NULL, (UINT64_C(1) << 62) - 1, &step, NULL, &place, NULL),
			 0);
	assert_string_equal(key, "s/a/4611686018427387903");
	assert_true(zarr_chunk_of_key(&o, key, &number));
	assert_true(number == (UINT64_C(1) << 62) - 1);
	assert_false(zarr_chunk_of_key(&o, "s/a/4611686018427387904", &number));
	assert_false(zarr_chunk_of_key(&o, "s/a/18446744073709551616", &number));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_of_chunks_are_those_of_the_encoding),
		cmocka_unit_test(a_chunk_that_is_cut_is_read_in_parts),
		cmocka_unit_test(a_shard_has_the_key_of_several_chunks),
		cmocka_unit_test(other_keys_are_none_of_chunks),
		cmocka_unit_test(a_scalar_has_one_chunk),
		cmocka_unit_test(a_dimension_has_no_chunks),
		cmocka_unit_test(a_chunk_shows_the_separator),
		cmocka_unit_test(a_key_fits_or_is_refused),
		cmocka_unit_test(large_numbers_have_all_their_digits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
