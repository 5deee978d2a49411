/* SPDX-License-Identifier: Apache-2.0 */
/* Deletions of storage that meet renames, marks, and lists of names that are old, damaged or made
 * on purpose. */
#include "rename_fixture.h"
#include <bucket/schemas.h>

#include "mem_store.h"

static unsigned int pauses;

static void no_sleep(const struct env *env, uint64_t ns)
{
	pauses++;
}

static char *mark_key(struct world *w)
{
	static char key[SCHEMA_KEY_MAX + 17];
	const struct document_place place = {.schema = schema_all()[0]};
	assert_int_equal(storage_own_key(&place, STORAGE_OF(w, FROM),
					 schema_all()[0]->storage->deletion, key, NULL),
			 0);
	return strcat(key, "0123456789abcdef");
}

/* A storage that is being deleted gets no new name, and what has this name stays. */
static void test_no_name_for_a_storage_that_is_deleted(void **state)
{
	for (int i = 0; i < 4; i++) {
		const bool moves = i % 2, replaces = i / 2;
		struct world w;
		struct err err = ERR_INIT;
		set_up(&w);
		w.env.sleep = no_sleep;
		const struct change c = change_of(&w);
		if (moves)
			store_mem_set_lacks(w.gate->base.inner, 0, NULL, NULL);
		if (replaces)
			import_as(&w, TO, 5);
		w.seed = 9;
		world_put(&w, mark_key(&w), "");
		assert_int_equal(rename_as(&w, &c, FROM, TO, &err), -EBUSY);
		assert_int_equal(world_objects(&w, FROM), OBJECTS);
		assert_int_equal(world_objects(&w, TO), replaces ? OBJECTS : 0);
		world_release(&w);
	}
}

static int64_t bucket_ns;

static int64_t bucket_clock(void)
{
	return bucket_ns;
}

/* The clock of a machine may be wrong by hours. Marks count for an hour by the clock of the bucket.
 */
static void test_wrong_clocks(void **state)
{
	static const struct {
		int64_t hours; /* how wrong the clock of this process is */
		int64_t age;   /* of the mark, minutes */
		int rc;
	} cases[] = {{0, 5, -EBUSY}, {5, 5, -EBUSY}, {-5, 5, -EBUSY},
		     {0, 61, 0},     {5, 61, 0},     {-5, 61, 0}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;
		struct err err = ERR_INIT;
		set_up(&w);
		w.env.sleep = no_sleep;
		pauses = 0;
		bucket_ns = wall_ns - cases[i].hours * HOUR_NS;
		store_mem_set_clock(w.gate->base.inner, bucket_clock);
		const struct change c = change_of(&w);
		world_put(&w, mark_key(&w), "");
		bucket_ns += cases[i].age * (HOUR_NS / 60);
		assert_int_equal(rename_as(&w, &c, FROM, TO, &err), cases[i].rc);
		assert_int_equal(pauses > 0, cases[i].rc != 0);
		assert_names(&w, cases[i].rc ? FROM : TO, cases[i].rc ? TO : FROM);
		world_release(&w);
	}
}

/* What clocks of two machines may differ by. */
static const int64_t wrong_hours[] = {5, -5};

/* The bucket has a clock of its own. */
static void set_up_clocks(struct world *w)
{
	set_up(w);
	bucket_ns = wall_ns - 2 * HOUR_NS;
	store_mem_set_clock(w->gate->base.inner, bucket_clock);
}

/* A rename of FROM to TO of which this request, and all later ones, have no answer. */
static void rename_until(struct world *w, const struct change *c, unsigned int at)
{
	struct err err = ERR_INIT;
	struct change_garbage garbage;
	struct schema_document *d = look_up(w, FROM);
	world_open_gate(w);
	w->gate->at = at;
	w->gate->later = true;
	w->gate->code = -EIO;
	assert_int_equal(change_rename_domain(c, FROM, d, TO, NULL, &garbage, &err), -EIO);
	schema_document_unref(d);
	world_open_gate(w);
}

/* For an hour by the clock of the bucket, a name may arrive whose request had no answer: that of a
 * rename, or that of a commit. */
static void test_late_names_and_wrong_clocks(void **state)
{
	for (size_t i = 0; i < 4; i++) {
		struct world w;
		struct err err = ERR_INIT;
		uint64_t deleted;
		set_up_clocks(&w);
		const struct change c = change_of(&w);
		const struct storage storage = storage_of_domain(&w, FROM);
		const struct change_garbage gone = {.storage = storage};
		if (i / 2)
			assert_int_equal(change_expect_name(&c, &storage, TO, &err), 0);
		else
			rename_until(&w, &c, 2);
		wall_ns += wrong_hours[i % 2] * HOUR_NS;
		assert_int_equal(remove_as(&w, &c, FROM), -EBUSY);
		bucket_ns += 59 * MINUTE_NS;
		assert_int_equal(change_collect(&c, FROM, &gone, &deleted, &err), -EBUSY);
		bucket_ns += 2 * MINUTE_NS;
		assert_int_equal(change_collect(&c, FROM, &gone, &deleted, &err), 0);
		assert_int_equal(world_keys(&w, ""), 0);
		world_release(&w);
	}
}

/* The name that a rename may still give is kept when another process renames the domain. */
static void test_pending_names_and_wrong_clocks(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		struct world w;
		struct err err = ERR_INIT;
		set_up_clocks(&w);
		const struct change c = change_of(&w);
		rename_until(&w, &c, 2);
		wall_ns += wrong_hours[i] * HOUR_NS;
		for (unsigned int n = 0; n < 3; n++) {
			bucket_ns += 15 * MINUTE_NS;
			assert_int_equal(rename_as(&w, &c, n % 2 ? "a.h5" : FROM,
						   n % 2 ? FROM : "a.h5", &err),
					 0);
		}
		assert_int_equal(remove_as(&w, &c, "a.h5"), -EBUSY);
		world_release(&w);
	}
}

/* A process takes the last rename over, and is killed before it deletes the old name. */
static void take_over(struct world *w, const struct change *c, const struct storage *storage)
{
	auto_names struct storage_names names = {.storage = *storage};
	const struct document_place place = {
		.env = &w->env, .store = w->gate->base.inner, .schema = schema_all()[0]};
	for (unsigned int at = 1; names.rename.state != RENAME_TAKEN; at++) {
		world_open_gate(w);
		w->gate->at = at;
		w->gate->later = true;
		w->gate->code = -EIO;
		assert_int_equal(change_finish_rename(c, storage, 0, NULL), -EIO);
		assert_int_equal(storage_names_read(&place, &names, NULL), 0);
	}
	world_open_gate(w);
}

/* For half a minute after a process has taken a rename over, its new name is not removed; and a
 * rename is taken over when it is half a minute old. */
static void test_taken_over_and_wrong_clocks(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		struct world w;
		struct err err = ERR_INIT;
		set_up_clocks(&w);
		const struct change c = change_of(&w);
		const struct storage storage = storage_of_domain(&w, FROM);
		rename_until(&w, &c, 4);
		wall_ns += wrong_hours[i] * HOUR_NS;
		bucket_ns += MINUTE_NS / 3;
		assert_int_equal(change_finish_rename(&c, &storage, MINUTE_NS / 2, &err), -EBUSY);
		bucket_ns += MINUTE_NS / 3;
		take_over(&w, &c, &storage);
		assert_int_equal(remove_as(&w, &c, TO), -EBUSY);
		bucket_ns += MINUTE_NS;
		assert_int_equal(remove_as(&w, &c, TO), 0);
		assert_names(&w, FROM, TO);
		world_release(&w);
	}
}

/* A deletion that was killed may be repeated at once. Until then its mark counts for an hour, and
 * it may have deleted the root group, after which nobody gives the storage a name. */
static void test_a_killed_deletion(void **state)
{
	for (unsigned int at = 1; at <= 8; at++) {
		struct world w;
		struct err err = ERR_INIT;
		uint64_t deleted, again;
		set_up(&w);
		w.env.sleep = no_sleep;
		const struct change c = change_of(&w);
		const struct change_garbage gone = {.storage = storage_of_domain(&w, FROM)};
		struct schema_document *d = look_up(&w, FROM);
		assert_int_equal(call_delete(w.store, FROM "/.domain.json", NULL, NULL), 0);
		world_open_gate(&w);
		w.gate->at = at;
		w.gate->later = true;
		w.gate->code = -EIO;
		assert_int_equal(change_collect(&c, FROM, &gone, &deleted, &err), -EIO);
		world_open_gate(&w);
		const struct document_place place = {
			.env = &w.env, .store = w.store, .schema = schema_all()[0]};
		w.seed = 7;
		const int named = storage_is_named(&place, &gone.storage, &err);
		assert_int_equal(named, at == 1 ? 0 : -EBUSY);
		wall_ns += HOUR_NS + 1;
		pauses = 0;
		assert_int_equal(storage_is_named(&place, &gone.storage, &err),
				 deleted ? -ESTALE : 0);
		assert_int_equal(pauses, 0);
		assert_int_equal(change_collect(&c, FROM, &gone, &again, &err), 0);
		assert_int_equal(world_keys(&w, ""), 0);
		schema_document_unref(d);
		world_release(&w);
	}
}

/* Another process renames the domain into a folder that the deletion does not look into, before any
 * of the requests of the deletion. */
static void test_a_deletion_meets_a_rename(void **state)
{
	for (unsigned int at = 1;; at++) {
		struct world w;
		struct err err = ERR_INIT;
		uint64_t deleted;
		set_up(&w);
		w.env.sleep = no_sleep;
		const struct change c = change_of(&w);
		const struct change_garbage gone = {.storage = storage_of_domain(&w, FROM)};
		meeting = &w;
		other_from = FROM;
		other_to = TO;
		other_rc = 1;
		world_open_gate(&w);
		w.gate->other_at = at;
		w.gate->other = rename_meanwhile;
		/* The name that has lost the storage is in a third folder. */
		const int rc = change_collect(&c, "else/x.h5", &gone, &deleted, &err);
		const unsigned int n = w.gate->n;
		world_open_gate(&w);
		if (at > n) {
			/* Names that no rename has given are not known. */
			world_release(&w);
			break;
		}
		/* Nothing is lost unless the rename says so. */
		if (other_rc == 0) {
			assert_names(&w, TO, FROM);
			assert_int_equal(deleted, 0);
		}
		assert_true(rc == 0 || rc == -EBUSY);
		world_release(&w);
	}
}

static void rename_and_remove(struct store *bucket)
{
	const struct change c = other_process(meeting);
	struct schema_document *d = look_up(meeting, FROM);
	rename_meanwhile(bucket);
	if (d && other_rc == 0)
		other_rc = remove_as(meeting, &c, other_to);
	schema_document_unref(d);
}

/* Before any request of a rename over another file, another process renames the domain elsewhere
 * and removes it. The file that had the name is lost only if the domain is there in its place. */
static void test_a_name_that_arrives_late(void **state)
{
	unsigned int late = 0;
	for (unsigned int at = 1;; at++) {
		struct world w;
		struct err err = ERR_INIT;
		set_up(&w);
		w.env.sleep = no_sleep;
		w.seed = 5;
		import_as(&w, TO, 5);
		struct schema_document *d = look_up(&w, FROM), *target = look_up(&w, TO);
		const struct change c = change_of(&w);
		struct change_garbage garbage;
		meeting = &w;
		other_from = FROM;
		other_to = "else/c.h5";
		other_rc = 1;
		world_open_gate(&w);
		w.gate->other_at = at;
		w.gate->other = rename_and_remove;
		const int rc = change_rename_domain(&c, FROM, d, TO, target, &garbage, &err);
		const bool met = at <= w.gate->n;
		world_open_gate(&w);
		assert_int_equal(world_objects(&w, TO), OBJECTS);
		late += met && rc && garbage.storage.schema;
		schema_document_unref(d);
		schema_document_unref(target);
		wall_ns += 2 * HOUR_NS;
		assert_int_equal(remove_as(&w, &c, TO), 0);
		assert_int_equal(world_objects(&w, "else/c.h5"), 0);
		world_release(&w);
		if (!met)
			break;
	}
	assert_true(late > 0);
}

static bool has_deleted;

static void delete_old(struct store *bucket)
{
	bool was_absent = true;
	has_deleted = !call_delete_version(bucket, FROM "/.domain.json", NULL, &was_absent) &&
		      !was_absent;
}

/* A rename to a third name has been slow, and deletes the old document while another process
 * repeats a rename that was interrupted. Only one of the two succeeds. */
static void test_repeated_beside_a_third_name(void **state)
{
	bool met = true;
	for (unsigned int at = 1; met; at++) {
		struct world w;
		struct err err = ERR_INIT;
		struct change_garbage garbage;
		set_up(&w);
		const struct change c = change_of(&w);
		const struct document_place place = {
			.env = &w.env, .store = w.store, .schema = schema_all()[0]};
		struct schema_document *d = look_up(&w, FROM);
		world_open_gate(&w);
		w.gate->at = 2; /* the PUT of the new name */
		w.gate->later = true;
		w.gate->code = -EIO;
		assert_int_equal(
			change_rename_domain(&c, FROM, d, "else/c.h5", NULL, &garbage, &err), -EIO);
		world_open_gate(&w);
		rename_until(&w, &c, 7);
		assert_int_equal(document_put(&place, "else/c.h5", &d->info,
					      &(struct store_cond){0}, NULL, &err),
				 0);
		struct schema_document *target = look_up(&w, TO);
		assert_non_null(target);
		has_deleted = false;
		world_open_gate(&w);
		w.gate->other_at = at;
		w.gate->other = delete_old;
		const int rc = change_rename_domain(&c, FROM, d, TO, target, &garbage, &err);
		met = at <= w.gate->n;
		world_open_gate(&w);
		assert_int_equal(rc, has_deleted ? -ESTALE : 0);
		schema_document_unref(d);
		schema_document_unref(target);
		world_release(&w);
	}
}

/* Names leave the list after a day, but not as long as they lead to the storage. */
static void test_old_names(void **state)
{
	struct world w;
	struct err err = ERR_INIT;
	set_up(&w);
	const struct change c = change_of(&w);
	auto_names struct storage_names names = {.storage = storage_of_domain(&w, FROM)};
	const struct document_place place = {
		.env = &w.env, .store = w.store, .schema = schema_all()[0]};
	assert_int_equal(rename_as(&w, &c, FROM, TO, &err), 0);
	wall_ns += 25 * HOUR_NS;
	assert_int_equal(rename_as(&w, &c, TO, "else/c.h5", &err), 0);
	assert_int_equal(storage_names_read(&place, &names, &err), 0);
	assert_int_equal(names.n, 2);
	struct schema_document *d = look_up(&w, "else/c.h5");
	assert_int_equal(document_put(&place, TO, &d->info, &(struct store_cond){0}, NULL, &err),
			 0);
	schema_document_unref(d);
	wall_ns += 25 * HOUR_NS;
	assert_int_equal(rename_as(&w, &c, "else/c.h5", FROM, &err), 0);
	assert_int_equal(storage_names_read(&place, &names, &err), 0);
	assert_int_equal(names.n, 3);
	assert_int_equal(remove_as(&w, &c, FROM), 0);
	assert_names(&w, TO, FROM);
	world_release(&w);
}

/* A program that gives one file a new name again and again is not refused. */
static void test_full_list(void **state)
{
	struct world w;
	struct err err = ERR_INIT;
	char names[2][32];
	set_up(&w);
	const struct change c = change_of(&w);
	/* There is one thread, and the thread sanitizer takes much longer. */
#ifdef __SANITIZE_THREAD__
	const unsigned int n = 100;
#else
	const unsigned int n = STORAGE_NAMES_MAX + 100;
#endif
	strcpy(names[0], FROM);
	for (unsigned int i = 0; i < n; i++) {
		snprintf(names[1 - i % 2], sizeof(names[0]), "home/%u.h5", i);
		wall_ns += MINUTE_NS / 10;
		if (rename_as(&w, &c, names[i % 2], names[1 - i % 2], &err))
			fail_msg("%u: %s", i, err.msg);
	}
	tear_down(&w, names[n % 2]);
}

/* A program gives one file a thousand names within a minute, and goes on a minute later. */
static void test_full_list_of_one_minute(void **state)
{
	struct world w;
	struct err err = ERR_INIT;
	char path[32];
	set_up_clocks(&w);
	const struct change c = change_of(&w);
	auto_names struct storage_names names = {.storage = storage_of_domain(&w, FROM)};
	const struct document_place place = {
		.env = &w.env, .store = w.store, .schema = schema_all()[0]};
	assert_int_equal(rename_as(&w, &c, FROM, TO, &err), 0);
	assert_int_equal(storage_names_read(&place, &names, &err), 0);
	for (unsigned int i = 0; names.n < STORAGE_NAMES_MAX; i++) {
		snprintf(path, sizeof(path), "home/%u.h5", i);
		assert_int_equal(storage_names_add(&names, path, bucket_ns, &err), 0);
	}
	assert_int_equal(storage_names_put(&place, &names, &err), 0);
	assert_int_equal(rename_as(&w, &c, TO, "else/c.h5", &err), -ENOSPC);
	assert_names(&w, TO, "else/c.h5");
	bucket_ns += MINUTE_NS;
	assert_int_equal(rename_as(&w, &c, TO, "else/c.h5", &err), 0);
	tear_down(&w, "else/c.h5");
}

/* Removing needs no room in the bucket, unless a rename is half done: then the list of names has to
 * say that nobody finishes it. */
static void test_removed_from_a_full_bucket(void **state)
{
	for (int half = 0; half < 2; half++) {
		struct world w;
		struct err err = ERR_INIT;
		struct change_garbage garbage;
		set_up(&w);
		const struct change c = change_of(&w);
		if (half)
			rename_until(&w, &c, 4);
		else
			assert_int_equal(rename_as(&w, &c, FROM, TO, &err), 0);
		struct schema_document *d = look_up(&w, TO);
		world_open_gate(&w);
		w.gate->at = 2; /* the PUT of the list */
		w.gate->code = -ENOSPC;
		assert_int_equal(change_remove_domain(&c, TO, d, false, &garbage, &err),
				 half ? -ENOSPC : 0);
		assert_int_equal(world_objects(&w, TO), half ? OBJECTS : 0);
		schema_document_unref(d);
		world_release(&w);
	}
}

static void test_damaged_list(void **state)
{
	struct world w;
	struct err err = ERR_INIT;
	char key[SCHEMA_KEY_MAX + 1];
	set_up(&w);
	const struct change c = change_of(&w);
	const struct document_place place = {.schema = schema_all()[0]};
	assert_int_equal(storage_own_key(&place, STORAGE_OF(&w, FROM),
					 schema_all()[0]->storage->names, key, NULL),
			 0);
	world_put(&w, key, "no list");
	assert_int_equal(rename_as(&w, &c, FROM, TO, &err), -EIO);
	assert_non_null(strstr(err.msg, key));
	assert_int_equal(remove_as(&w, &c, FROM), -EIO);
	assert_names(&w, FROM, TO);
	world_release(&w);
}

/* The list of FROM with a last rename that no rename has written. */
static void put_list(struct world *w, const char *from, const char *to, const char *etag)
{
	auto_names struct storage_names names = {0};
	const struct document_place place = {
		.env = &w->env, .store = w->store, .schema = schema_all()[0]};
	const struct rename_record record = {
		.state = RENAME_BEGUN, .number = 1, .version = etag, .from = from, .to = to};
	assert_int_equal(storage_names_init(&names, STORAGE_OF(w, FROM), NULL), 0);
	assert_int_equal(storage_names_add(&names, FROM, wall_ns, NULL), 0);
	assert_int_equal(storage_names_set_rename(&names, &record, NULL), 0);
	assert_int_equal(storage_names_put(&place, &names, NULL), 0);
}

/* A list that was made on purpose does not delete the only name, or another domain. */
static void test_hostile_lists(void **state)
{
	static const char *const victims[] = {FROM, "home/other.h5"};
	for (size_t i = 0; i < 2; i++) {
		struct world w;
		struct err err = ERR_INIT;
		set_up(&w);
		const struct change c = change_of(&w);
		import_as(&w, victims[1], 5);
		struct schema_document *d = look_up(&w, victims[i]);
		put_list(&w, victims[i], FROM, d->etag);
		schema_document_unref(d);
		assert_int_equal(rename_as(&w, &c, FROM, TO, &err), i == 0 ? -EIO : 0);
		assert_names(&w, i == 0 ? FROM : TO, i == 0 ? TO : FROM);
		assert_int_equal(world_objects(&w, victims[1]), OBJECTS);
		world_release(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_name_for_a_storage_that_is_deleted),
		cmocka_unit_test(test_wrong_clocks),
		cmocka_unit_test(test_late_names_and_wrong_clocks),
		cmocka_unit_test(test_pending_names_and_wrong_clocks),
		cmocka_unit_test(test_taken_over_and_wrong_clocks),
		cmocka_unit_test(test_a_killed_deletion),
		cmocka_unit_test(test_a_deletion_meets_a_rename),
		cmocka_unit_test(test_a_name_that_arrives_late),
		cmocka_unit_test(test_repeated_beside_a_third_name),
		cmocka_unit_test(test_old_names),
		cmocka_unit_test(test_full_list),
		cmocka_unit_test(test_full_list_of_one_minute),
		cmocka_unit_test(test_removed_from_a_full_bucket),
		cmocka_unit_test(test_damaged_list),
		cmocka_unit_test(test_hostile_lists),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
