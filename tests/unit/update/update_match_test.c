/* SPDX-License-Identifier: Apache-2.0 */
/* Which objects of a file are objects of the domain: they keep their ids. */
#include "update_edits.h"

/* The header of one object is written to the place of another one. */
static void put_header(struct draft *d, const char *from, const char *to)
{
	uint8_t bytes[4096];
	const struct edit_block a = edit_header(d, edit_path(d, from));
	const struct edit_block b = edit_header(d, edit_path(d, to));
	const size_t n = (size_t)(a.end - a.at) + 4;
	assert_true(n <= sizeof(bytes) && n <= b.end - b.at + 4);
	edit_read(d, a.at, bytes, n);
	edit_write(d, b.at, bytes, n);
}

/* Updates, and says whether the object at a path has the id that it had before. */
static bool keeps_id(struct world *w, const char *path)
{
	char before[64], now[64];
	world_id(w, path, before);
	assert_string_not_equal(before, "");
	if (world_update(w))
		fail_msg("%s: %s", path, w->err.msg);
	world_check_same(w);
	world_id(w, path, now);
	assert_string_not_equal(now, "");
	return strcmp(before, now) == 0;
}

static void an_object_of_another_kind_is_new(void **state)
{
	struct world *w = world_begin();
	put_header(w->draft, "a/empty", "scalar");
	assert_false(keeps_id(w, "scalar"));
	assert_int_not_equal(w->result.removed, GC_NONE);
	world_end(w);
}

/* A group without times of its own is taken for the one before; its content is compared. */
static void a_similar_group_is_the_same(void **state)
{
	struct world *w = world_begin();
	put_header(w->draft, "a/empty", "b/inner/below");
	assert_true(keeps_id(w, "b/inner/below"));
	world_end(w);
}

static void another_time_of_birth_is_another_object(void **state)
{
	uint8_t time[4];
	struct world *w = world_begin();
	const uint64_t header = edit_path(w->draft, "b/inner");
	const struct edit_block b = edit_header(w->draft, header);
	edit_read(w->draft, header + 18, time, 4);
	edit_put(time, 4, edit_number(time, 4) + 1);
	edit_write(w->draft, header + 18, time, 4);
	edit_seal(w->draft, &b);
	assert_false(keeps_id(w, "b/inner"));
	assert_int_equal(w->result.puts, 3);
	world_end(w);
}

/* Other times do not count. */
static void another_time_of_change_is_the_same_object(void **state)
{
	struct world *w = world_begin();
	const uint64_t header = edit_path(w->draft, "b/inner");
	const struct edit_block b = edit_header(w->draft, header);
	edit_write(w->draft, header + 10, "\1\2\3\4", 4);
	edit_seal(w->draft, &b);
	world_must_update(w, 0, 0);
	world_end(w);
}

/* A dataset cannot get another type, other maximum dimensions or another fill value. */
static void another_dataset_is_new(void **state)
{
	const uint8_t types[] = {H5_MSG_DATATYPE, H5_MSG_DATASPACE, H5_MSG_FILL};
	for (unsigned int i = 0; i < sizeof(types); i++) {
		struct world *w = world_begin();
		struct edit_message m = edit_typed(w->draft, edit_path(w->draft, "grid"), types[i]);
		if (types[i] == H5_MSG_DATATYPE)
			m.body[1] ^= 8; /* no sign */
		else if (types[i] == H5_MSG_DATASPACE)
			edit_put(m.body + m.len - 8, 8, 1000);
		else
			m.body[m.len - 1] ^= 1;
		edit_replace(w->draft, &m);
		assert_false(keeps_id(w, "grid"));
		world_end(w);
	}
}

/* Puts an equal committed type at another address, and makes it the type of the dataset. */
static void give_other_type(struct draft *d)
{
	const uint64_t type = edit_copy(d, edit_path(d, "type"));
	struct edit_message m = edit_typed(d, edit_path(d, "records"), H5_MSG_DATATYPE);
	assert_int_equal(edit_number(m.body + 2, 8), edit_path(d, "type"));
	edit_put(m.body + 2, 8, type);
	edit_replace(d, &m);
	edit_add_link(d, edit_path(d, ""), "other", 50, type);
}

/* The header of the dataset stays where it is, and the types are equal. */
static void a_dataset_with_another_committed_type_is_new(void **state)
{
	for (unsigned int is_removed = 0; is_removed < 2; is_removed++) {
		char type[64], now[64];
		struct world *w = world_begin_with("import.h5");
		world_id(w, "type", type);
		give_other_type(w->draft);
		if (is_removed) /* the earlier type */
			edit_unlink(w->draft, edit_path(w->draft, ""), "type");
		assert_false(keeps_id(w, "records"));
		auto_gc_kept struct gc_kept kept = {.event.path = NULL};
		assert_int_equal(gc_log_get(w->log, w->result.removed, &kept, NULL), 0);
		assert_int_equal(kept.event.count, 1 + is_removed);
		world_id(w, "type", now);
		assert_string_equal(now, is_removed ? "" : type);
		world_id(w, "other", now);
		assert_string_not_equal(now, "");
		assert_string_not_equal(now, type);
		/* The root group, the type, the dataset with its chunk, and the summary. */
		assert_int_equal(w->result.puts, 5);
		world_end(w);
	}
}

static void the_root_group_stays(void **state)
{
	uint8_t addr[8];
	char other[64], now[64];
	struct world *w = world_begin();
	world_id(w, "a", other);
	edit_put(addr, 8, edit_path(w->draft, "a"));
	edit_write(w->draft, 64, addr, 8);
	assert_true(keeps_id(w, ""));
	world_id(w, "plain", now);
	assert_string_not_equal(now, "");
	assert_int_equal(gate_objects(w->gate, DOMAIN_PATH), 3);
	world_end(w);
}

/* Objects that nothing led to before are new, although the image has them. */
static void a_moved_object_keeps_its_id(void **state)
{
	char before[64], now[64];
	struct world *w = world_begin();
	world_id(w, "c/type", before);
	edit_move(w->draft);
	world_must_update(w, 2, 0);
	world_id(w, "a/type", now);
	assert_string_equal(before, now);
	/* It is removed, and comes back: then it is another object. */
	const uint64_t a = edit_path(w->draft, "a"), type = edit_target(w->draft, a, "type");
	edit_unlink(w->draft, a, "type");
	world_must_update(w, 2, 0);
	edit_add_link(w->draft, edit_path(w->draft, "d"), "type", 60, type);
	world_must_update(w, 3, 0);
	world_id(w, "d/type", now);
	assert_string_not_equal(before, now);
	world_check_same(w);
	world_end(w);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_object_of_another_kind_is_new),
		TEST(a_similar_group_is_the_same),
		TEST(another_time_of_birth_is_another_object),
		TEST(another_time_of_change_is_the_same_object),
		TEST(another_dataset_is_new),
		TEST(a_dataset_with_another_committed_type_is_new),
		TEST(the_root_group_stays),
		TEST(a_moved_object_keeps_its_id),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
