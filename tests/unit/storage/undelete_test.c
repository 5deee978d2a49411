/* SPDX-License-Identifier: Apache-2.0 */
/* A removed domain is brought back: what a reader sees if that ends after any of its requests, or
 * if another process deletes the storage at any moment. */
#include "rename_fixture.h"

static void no_sleep(const struct env *env, uint64_t ns)
{
}

static char text[4096]; /* of the document of FROM */
static struct storage storage;

/* A bucket without the name, whose storage is still there. */
static void set_up_removed(struct world *w)
{
	struct change_garbage garbage;
	struct err err = ERR_INIT;
	struct bytes emitted = {0};
	set_up(w);
	w->env.sleep = no_sleep;
	const struct change c = change_of(w);
	struct schema_document *d = look_up(w, FROM);
	assert_int_equal(schema_all()[0]->documents->emit(&d->info, &emitted, NULL), 0);
	assert_true(emitted.len < sizeof(text));
	snprintf(text, sizeof(text), "%.*s", (int)emitted.len, (const char *)emitted.data);
	bytes_release(&emitted);
	assert_int_equal(change_remove_domain(&c, FROM, d, false, &garbage, &err), 0);
	schema_document_unref(d);
	storage = garbage.storage;
	world_open_gate(w);
}

static int collect(const struct change *c)
{
	const struct change_garbage garbage = {.storage = storage};
	struct err err = ERR_INIT;
	uint64_t deleted;
	return change_collect(c, FROM, &garbage, &deleted, &err);
}

static bool has_name(struct world *w)
{
	struct schema_document *d = look_up(w, FROM);
	schema_document_unref(d);
	return d != NULL;
}

static void test_it_is_whole(void **state)
{
	struct world w;
	struct err err = ERR_INIT;
	set_up_removed(&w);
	const struct change c = change_of(&w);
	assert_int_equal(change_undelete(&c, FROM, text, &storage, &err), 0);
	assert_int_equal(w.gate->n, 5); /* HEAD, GET, PUT, PUT, LIST */
	assert_int_equal(world_objects(&w, FROM), OBJECTS);
	struct schema_document *d = look_up(&w, FROM);
	assert_string_equal(d->info.owner, "ann");
	schema_document_unref(d);
	/* Whoever deletes the storage finds the name, also if it looks for another one. */
	const struct change other = other_process(&w);
	const struct change_garbage garbage = {.storage = storage};
	uint64_t deleted;
	assert_int_equal(change_collect(&other, "else/where.h5", &garbage, &deleted, &err), 0);
	assert_int_equal(world_objects(&w, FROM), OBJECTS);
	assert_int_equal(change_undelete(&c, FROM, text, &storage, &err), -EEXIST);
	tear_down(&w, FROM);
}

/* Each request fails in turn, before or after it is carried out, alone or with all later ones. The
 * name leads to the whole domain, or there is none. Then the storage can be deleted, if need be an
 * hour later, or the domain is brought back by another attempt. */
static void test_each_failure(void **state)
{
	for (unsigned int how = 0; how < 8; how++) {
		bool met = true;
		for (unsigned int at = 1; met; at++) {
			struct world w;
			struct err err = ERR_INIT;
			set_up_removed(&w);
			const struct change c = change_of(&w);
			w.gate->at = at;
			w.gate->code = -EIO;
			w.gate->after = how & 1;
			w.gate->later = how & 2;
			const int rc = change_undelete(&c, FROM, text, &storage, &err);
			met = at <= w.gate->n;
			world_open_gate(&w);
			assert_int_equal(rc != 0, met);
			if (has_name(&w)) {
				assert_int_equal(collect(&c), 0);
				assert_int_equal(world_objects(&w, FROM), OBJECTS);
			} else if (how & 4) {
				assert_int_equal(change_undelete(&c, FROM, text, &storage, &err),
						 0);
				assert_int_equal(world_objects(&w, FROM), OBJECTS);
			} else {
				wall_ns += 2 * HOUR_NS;
				assert_int_equal(collect(&c), 0);
				assert_int_equal(world_keys(&w, ""), 0);
			}
			world_release(&w);
		}
	}
}

static struct world *deleted_world;
static int deleted_rc;

static void delete_meanwhile(struct store *bucket)
{
	const struct change c = other_process(deleted_world);
	deleted_world->gate->other_at = 0;
	deleted_rc = collect(&c);
}

/* The process that has removed the domain deletes the storage just now. */
static void test_beside_a_deletion(void **state)
{
	bool met = true;
	unsigned int won = 0;
	for (unsigned int at = 1; met; at++) {
		struct world w;
		struct err err = ERR_INIT;
		set_up_removed(&w);
		const struct change c = change_of(&w);
		deleted_world = &w;
		w.gate->other_at = at;
		w.gate->other = delete_meanwhile;
		const int rc = change_undelete(&c, FROM, text, &storage, &err);
		met = at <= w.gate->n;
		world_open_gate(&w);
		assert_int_equal(has_name(&w), rc == 0);
		assert_true(rc == 0 || rc == -ESTALE);
		if (rc == 0)
			assert_int_equal(world_objects(&w, FROM), OBJECTS);
		else
			assert_int_equal(world_keys(&w, ""), 0);
		won += rc == 0 && met;
		world_release(&w);
	}
	assert_true(won > 0 && won < 5);
}

/* What a journal has may be damaged, or of somebody who wants another domain to be deleted. */
static void test_texts(void **state)
{
	struct world w;
	struct err err = ERR_INIT;
	set_up_removed(&w);
	const struct change c = change_of(&w);
	char other[sizeof(text)];
	strcpy(other, text);
	char *root = strstr(other, "g-");
	assert_non_null(root);
	root[2] = root[2] == 'a' ? 'b' : 'a';
	const char *const texts[] = {"", "{}", "{", "[]", other};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(change_undelete(&c, FROM, texts[i], &storage, &err), -EIO);
		assert_non_null(strstr(err.msg, "what the journal has kept is damaged"));
	}
	assert_int_equal(w.gate->n, 0);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_is_whole),
		cmocka_unit_test(test_each_failure),
		cmocka_unit_test(test_beside_a_deletion),
		cmocka_unit_test(test_texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
