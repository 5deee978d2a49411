/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A schema that must read an object before it knows the place of a chunk. It is the schema of the
 * small domain, except that all chunks are in one data object. The object "tables/n" has the place
 * of chunk n: a byte for the offset and one for the length; length 0: the chunk is absent.
 */
#include "domain_fixture.h"

#include <errno.h>
#include <bucket/schemas.h>

#define DATA "a/data" /* not below the domain: no listing of the open covers it */

static int locate_by_table(const struct object *o, const struct object *table, uint64_t number,
			   unsigned int *step, const struct schema_answer *answer,
			   struct chunk_place *place, struct err *err)
{
	if ((*step)++ == 0) {
		assert_null(answer);
		snprintf(place->key, place->room, "tables/%d", (int)number);
		place->length = 2;
		return SCHEMA_NEEDS_ANSWER;
	}
	assert_int_equal(*step, 2);
	if (answer->absent)
		return err_set(err, -EIO, "the chunk table is not there");
	if (answer->len != 2)
		return err_set(err, -EIO, "the chunk table is damaged");
	const uint8_t *entry = answer->body;
	place->absent = entry[1] == 0;
	snprintf(place->key, place->room, DATA);
	place->offset = entry[0];
	place->length = entry[1];
	return 0;
}

static int no_prefix(const struct object *o, char *prefix, size_t cap)
{
	return -EOPNOTSUPP;
}

struct test {
	struct fixture *f;
	struct schema_ops schema;
	const struct schema_ops *schemas[2];
	struct domain *domain;
	struct chunk_result chunk;
	struct store_counts before;
	unsigned int calls;
};

static void open_with_table(struct test *t, struct fixture *f)
{
	static const uint8_t entries[][2] = {{3, 16}, {0, 0}, {19, 5}};
	char data[24] = "...";
	*t = (struct test){.f = f, .schema = *schema_all()[0]};
	t->schemas[0] = &t->schema;
	t->schema.locate = locate_by_table;
	t->schema.chunk_prefix = no_prefix;
	memcpy(data + 3, small_ints_chunk, sizeof(small_ints_chunk));
	assert_int_equal(call_put(f->store, DATA, data, sizeof(data), NULL, NULL, NULL), 0);
	for (int i = 0; i < 3; i++) {
		char key[16];
		snprintf(key, sizeof(key), "tables/%d", i);
		assert_int_equal(call_put(f->store, key, entries[i], 2, NULL, NULL, NULL), 0);
	}
	assert_int_equal(domain_open(&(struct domain_bucket){.env = &f->env,
							     .store = f->store,
							     .schemas = t->schemas},
				     "d.h5", NULL, &t->domain, NULL),
			 0);
	f->domain = t->domain;
	store_count_read(f->store, &t->before);
}

static void keep(void *arg, struct chunk_result *chunk)
{
	struct test *t = arg;
	t->chunk = *chunk;
	t->calls++;
}

static void get(struct test *t, const char *id, uint64_t number)
{
	const struct tree *tree = domain_tree(t->domain);
	const struct chunk_source chunks = domain_chunk_source(t->domain);
	for (uint32_t i = 0; i < tree_count(tree); i++)
		if (strcmp(tree_object(tree, tree_nth(tree, i))->o.id, id) == 0)
			chunks.get(chunks.ctx,
				   &(struct chunk_request){.dataset = tree_nth(tree, i),
							   .number = number},
				   keep, t);
	assert_int_equal(t->calls, 1);
	t->calls = 0;
}

static uint64_t gets(struct test *t)
{
	struct store_counts now;
	store_count_read(t->f->store, &now);
	return now.calls[STORE_GET] - t->before.calls[STORE_GET];
}

static void a_table_is_read_and_then_the_chunk(void **state)
{
	struct test t;
	open_with_table(&t, *state);
	get(&t, SMALL_INTS, 0);
	assert_int_equal(t.chunk.code, 0);
	assert_false(t.chunk.absent);
	assert_int_equal(t.chunk.data.elems.fixed.len, sizeof(small_ints_chunk));
	assert_memory_equal(t.chunk.data.elems.fixed.data, small_ints_chunk,
			    sizeof(small_ints_chunk));
	elems_release(&t.chunk.data.elems);
	assert_int_equal(gets(&t), 2);
}

static void a_table_without_an_entry_proves_that_a_chunk_is_absent(void **state)
{
	struct test t;
	open_with_table(&t, *state);
	get(&t, SMALL_INTS, 1);
	assert_int_equal(t.chunk.code, 0);
	assert_true(t.chunk.absent);
	assert_int_equal(gets(&t), 1);
}

static void a_missing_table_is_no_absent_chunk(void **state)
{
	struct test t;
	open_with_table(&t, *state);
	assert_int_equal(call_delete(t.f->store, "tables/1", NULL, NULL), 0);
	get(&t, SMALL_INTS, 1);
	assert_int_equal(t.chunk.code, -EIO);
	assert_false(t.chunk.absent);
	assert_non_null(strstr(t.chunk.err.msg, "domain /d.h5: chunk 1 of " SMALL_INTS));
	assert_non_null(strstr(t.chunk.err.msg, "table"));
}

static void an_error_names_the_chunk_and_its_object(void **state)
{
	struct test t;
	open_with_table(&t, *state);
	get(&t, SMALL_INTS, 2); /* of 5 bytes */
	assert_int_equal(t.chunk.code, -EIO);
	assert_non_null(strstr(t.chunk.err.msg, "domain /d.h5: chunk " DATA));
}

/* The sizes of its chunks are not known. The file is laid out without them. */
static void a_variable_length_dataset_is_shown_and_fails(void **state)
{
	struct test t;
	open_with_table(&t, *state);
	const struct tree *tree = domain_tree(t.domain);
	for (uint32_t i = 0; i < tree_count(tree); i++)
		if (strcmp(tree_object(tree, tree_nth(tree, i))->o.id, SMALL_STRINGS) == 0)
			assert_true(domain_chunks(t.domain, tree_nth(tree, i))->unknown);
}

/* The document of the dataset must be the version that was opened. */
static void a_table_proves_nothing_when_the_dataset_has_changed(void **state)
{
	struct test t;
	open_with_table(&t, *state);
	small_put(t.f->store, SMALL_KEY_INTS, "{}");
	get(&t, SMALL_INTS, 1);
	assert_int_equal(t.chunk.code, -ESTALE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_table_is_read_and_then_the_chunk, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_table_without_an_entry_proves_that_a_chunk_is_absent, setup, teardown),
		cmocka_unit_test_setup_teardown(a_missing_table_is_no_absent_chunk, setup,
						teardown),
		cmocka_unit_test_setup_teardown(an_error_names_the_chunk_and_its_object, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_variable_length_dataset_is_shown_and_fails, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_table_proves_nothing_when_the_dataset_has_changed,
						setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
