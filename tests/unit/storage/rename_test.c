/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renames of domains that end between two requests, or meet other programs. After each of them the
 * names that are left lead to the whole domain, and the storage goes with the last one.
 */
#include "rename_fixture.h"
#include <bucket/schemas.h>

#include "mem_store.h"

/* The requests of a first rename in S3. */
enum { CLAIM = 1, PUT, MARKS, DELETE, LAST = DELETE };

static void test_requests(void **state)
{
	struct world w;
	struct err err = ERR_INIT;
	set_up(&w);
	struct renames *ours = renames_new(&w.env);
	struct change c = change_of(&w);
	c.renames = ours;
	assert_int_equal(rename_as(&w, &c, FROM, TO, &err), 0);
	assert_int_equal(w.gate->n, LAST);
	assert_int_equal(w.gate->ops[STORE_PUT], 2);
	assert_int_equal(w.gate->ops[STORE_DELETE], 1);
	assert_names(&w, TO, FROM);
	/* This process knows that there is a list, and that the first rename is complete. */
	assert_int_equal(rename_as(&w, &c, TO, FROM, &err), 0);
	assert_int_equal(w.gate->n, LAST + 1);
	assert_int_equal(w.gate->ops[STORE_GET], 1);
	assert_names(&w, FROM, TO);
	/* Another one does not. */
	const struct change other = change_of(&w);
	assert_int_equal(rename_as(&w, &other, FROM, TO, &err), 0);
	assert_names(&w, TO, FROM);
	renames_free(ours);
	tear_down(&w, TO);
}

/* In a store that moves objects, a rename has no moment at which there are two names. */
static void test_one_step(void **state)
{
	struct world w;
	struct err err = ERR_INIT;
	set_up(&w);
	store_mem_set_lacks(w.gate->base.inner, 0, NULL, NULL);
	const struct change c = change_of(&w);
	assert_int_equal(rename_as(&w, &c, FROM, TO, &err), 0);
	assert_int_equal(w.gate->ops[STORE_PUT], 1);
	assert_int_equal(w.gate->ops[STORE_DELETE], 0);
	assert_names(&w, TO, FROM);
	tear_down(&w, TO);
}

/* A rename over another domain: each name leads to one of the two. */
static void test_replace(void **state)
{
	for (unsigned int at = 0; at <= LAST + 2; at++) {
		struct world w;
		struct err err = ERR_INIT;
		struct change_garbage garbage;
		uint64_t deleted;
		set_up(&w);
		import_as(&w, TO, 3);
		w.seed = 2;
		struct schema_document *d = look_up(&w, FROM), *target = look_up(&w, TO);
		const struct change c = change_of(&w);
		world_open_gate(&w);
		w.gate->at = at;
		w.gate->code = -EIO;
		/* Two requests more: for the names of the domain that is replaced, and whether the
		 * old name still leads to the domain. They are all sent one after the other. */
		const int rc = change_rename_domain(&c, FROM, d, TO, target, &garbage, &err);
		world_open_gate(&w);
		assert_int_equal(rc, at == 0 ? 0 : -EIO);
		assert_int_equal(garbage.storage.schema != NULL, rc == 0 || at == 2 + DELETE);
		assert_int_equal(world_objects(&w, TO), OBJECTS);
		if (rc == 0) {
			assert_int_equal(change_collect(&c, TO, &garbage, &deleted, &err), 0);
			assert_int_equal(deleted, STORED);
			assert_names(&w, TO, FROM);
			tear_down(&w, TO);
		} else {
			assert_int_equal(world_objects(&w, FROM), OBJECTS);
			world_release(&w);
		}
		schema_document_unref(d);
		schema_document_unref(target);
	}
}

/* Another program has replaced the old name before the rename has begun. The file that has the new
 * name must not be replaced by the one that is gone. */
static void test_a_replaced_name_replaces_nothing(void **state)
{
	struct world w;
	struct err err = ERR_INIT;
	struct change_garbage garbage;
	set_up(&w);
	import_as(&w, TO, 3);
	struct schema_document *d = look_up(&w, FROM), *target = look_up(&w, TO);
	const struct storage before = storage_of_domain(&w, TO);
	w.opt.replace = true;
	import_as(&w, FROM, 4);
	w.seed = 2;
	const struct change c = change_of(&w);
	assert_int_equal(change_rename_domain(&c, FROM, d, TO, target, &garbage, &err), -ESTALE);
	assert_null(garbage.storage.schema);
	assert_true(same_storage(STORAGE_OF(&w, TO), &before));
	assert_int_equal(world_objects(&w, TO), OBJECTS);
	schema_document_unref(d);
	schema_document_unref(target);
	world_release(&w);
}

/* A rename ends after any of its requests, and this is what happens next. */
enum then { FINISH, RENAME_AGAIN, REMOVE_OLD, REMOVE_NEW, MOVE_OLD, MOVE_NEW, THENS };

static void go_on(struct world *w, enum then then, bool had_new)
{
	const struct change c = other_process(w);
	const struct storage storage = storage_of_domain(w, FROM);
	struct err err = ERR_INIT;
	switch (then) {
	case FINISH:
		/* It may be running in another process. */
		if (had_new)
			assert_int_equal(change_finish_rename(&c, &storage, 1, &err), -EBUSY);
		assert_int_equal(change_finish_rename(&c, &storage, 0, &err), 0);
		assert_names(w, had_new ? TO : FROM, had_new ? FROM : TO);
		break;
	case RENAME_AGAIN:
		assert_int_equal(rename_as(w, &c, FROM, TO, &err), 0);
		assert_names(w, TO, FROM);
		break;
	case REMOVE_OLD:
		remove_as(w, &c, FROM);
		if (had_new)
			assert_names(w, TO, FROM);
		break;
	case REMOVE_NEW:
		if (had_new)
			assert_int_equal(remove_as(w, &c, TO), 0);
		assert_names(w, FROM, TO);
		break;
	case MOVE_OLD:
		rename_as(w, &c, FROM, "else/c.h5", &err);
		assert_int_equal(world_objects(w, FROM), 0);
		if (!had_new)
			break;
		/* Unless it was refused, the first rename was finished instead, so the new name is
		 * the last one. */
		if (world_objects(w, "else/c.h5") == 0) {
			assert_int_equal(remove_as(w, &c, TO), -EBUSY);
			assert_names(w, TO, FROM);
			wall_ns += HOUR_NS / 60;
		}
		assert_int_equal(remove_as(w, &c, TO), 0);
		break;
	case MOVE_NEW:
		if (had_new) {
			assert_int_equal(rename_as(w, &c, TO, "else/c.h5", &err), 0);
			assert_names(w, "else/c.h5", TO);
			assert_int_equal(world_objects(w, FROM), 0);
		}
		break;
	case THENS:
		break;
	}
}

static void test_stops(void **state)
{
	for (unsigned int i = 0; i < 2 * LAST * THENS; i++) {
		struct world w;
		struct err err = ERR_INIT;
		const unsigned int at = 1 + i / 2 % LAST;
		const enum then then = (enum then)(i / 2 / LAST);
		set_up(&w);
		struct schema_document *d = look_up(&w, FROM);
		struct change_garbage garbage = {0};
		const struct change c = change_of(&w);
		world_open_gate(&w);
		w.gate->at = at;
		w.gate->later = true; /* the process is killed */
		w.gate->after = i % 2;
		w.gate->code = -EIO;
		assert_int_equal(change_rename_domain(&c, FROM, d, TO, NULL, &garbage, &err), -EIO);
		schema_document_unref(d);
		world_open_gate(&w);
		const bool had_new = world_objects(&w, TO), had_old = world_objects(&w, FROM);
		assert_true(had_new || had_old);
		assert_int_equal(had_new, at > PUT || (at == PUT && i % 2));
		if (had_old)
			go_on(&w, then, had_new);
		world_release(&w);
	}
}

/* The bucket refuses to delete the old name. Both names stay until somebody decides. */
static void test_refused(void **state)
{
	for (enum then then = FINISH; then < THENS; then++) {
		struct world w;
		struct err err = ERR_INIT;
		set_up(&w);
		struct schema_document *d = look_up(&w, FROM);
		struct change_garbage garbage = {0};
		const struct change c = change_of(&w);
		world_open_gate(&w);
		w.gate->at = DELETE;
		w.gate->code = -EACCES;
		assert_int_equal(change_rename_domain(&c, FROM, d, TO, NULL, &garbage, &err),
				 -EACCES);
		assert_non_null(strstr(err.msg, FROM));
		assert_non_null(strstr(err.msg, TO));
		assert_false(garbage.half_done);
		schema_document_unref(d);
		world_open_gate(&w);
		assert_int_equal(world_objects(&w, FROM), OBJECTS);
		if (then == FINISH) {
			const struct storage storage = storage_of_domain(&w, FROM);
			assert_int_equal(change_finish_rename(&c, &storage, 0, &err), 0);
			assert_int_equal(world_objects(&w, FROM), OBJECTS);
			assert_int_equal(world_objects(&w, TO), OBJECTS);
		} else if (then == MOVE_NEW) {
			/* The old name is still known when the newest one is removed. */
			assert_int_equal(rename_as(&w, &c, TO, "else/c.h5", &err), 0);
			assert_int_equal(remove_as(&w, &c, "else/c.h5"), 0);
			assert_names(&w, FROM, TO);
		} else {
			go_on(&w, then, true);
		}
		world_release(&w);
	}
}

/* ---- two processes ---- */

static void replace_meanwhile(struct store *bucket)
{
	const struct change c = other_process(meeting);
	struct schema_document *d = look_up(meeting, other_from);
	struct schema_document *target = look_up(meeting, other_to);
	struct change_garbage garbage;
	meeting->gate->other_at = 0;
	other_rc = change_rename_domain(&c, other_from, d, other_to, target, &garbage, NULL);
	schema_document_unref(d);
	schema_document_unref(target);
}

static void remove_meanwhile(struct store *bucket)
{
	const struct change c = other_process(meeting);
	meeting->gate->other_at = 0;
	other_rc = remove_as(meeting, &c, other_from);
}

/* A rename of FROM to TO, and what another process does before its request `at`. */
static int meet(struct world *w, unsigned int at, void (*other)(struct store *bucket),
		const char *from, const char *to)
{
	struct err err = ERR_INIT;
	struct schema_document *d = look_up(w, FROM);
	struct change_garbage garbage;
	const struct change c = change_of(w);
	meeting = w;
	other_from = from;
	other_to = to;
	world_open_gate(w);
	/* The gate counts only this process. */
	w->gate->other_at = at;
	w->gate->other = other;
	const int rc = change_rename_domain(&c, FROM, d, TO, NULL, &garbage, &err);
	schema_document_unref(d);
	world_open_gate(w);
	return rc;
}

static void test_there_and_back(void **state)
{
	struct world w;
	set_up(&w);
	assert_int_equal(meet(&w, DELETE, rename_meanwhile, TO, FROM), -EBUSY);
	assert_int_equal(other_rc, 0);
	assert_names(&w, FROM, TO);
	tear_down(&w, FROM);
}

static void test_two_claims(void **state)
{
	struct world w;
	set_up(&w);
	assert_int_equal(meet(&w, CLAIM, rename_meanwhile, FROM, "else/c.h5"), -ESTALE);
	assert_int_equal(other_rc, 0);
	assert_names(&w, "else/c.h5", FROM);
	assert_int_equal(world_objects(&w, TO), 0);
	tear_down(&w, "else/c.h5");
}

/* The other process finishes this rename before it begins its own. */
static void test_a_rename_is_overtaken(void **state)
{
	struct world w;
	set_up(&w);
	assert_int_equal(meet(&w, DELETE, rename_meanwhile, TO, "else/c.h5"), -EBUSY);
	assert_int_equal(other_rc, 0);
	assert_names(&w, "else/c.h5", FROM);
	assert_int_equal(world_objects(&w, TO), 0);
	tear_down(&w, "else/c.h5");
}

static void test_the_old_name_is_removed(void **state)
{
	for (unsigned int at = CLAIM; at <= LAST; at++) {
		struct world w;
		if (at == MARKS)
			continue; /* together with PUT */
		set_up(&w);
		const int rc = meet(&w, at, remove_meanwhile, FROM, NULL);
		assert_true(rc == -ESTALE || rc == -EBUSY || rc == -EIO);
		/* A rename may have begun, so the storage was not deleted. */
		if (at > CLAIM)
			assert_int_equal(other_rc, at == DELETE ? 0 : -EBUSY);
		if (at > CLAIM)
			assert_names(&w, TO, FROM);
		world_release(&w);
	}
}

/* A rename of FROM to TO that was killed before its DELETE. */
static void set_up_half_done(struct world *w)
{
	struct err err = ERR_INIT;
	set_up(w);
	const struct change c = change_of(w);
	struct schema_document *d = look_up(w, FROM);
	struct change_garbage garbage = {0};
	world_open_gate(w);
	w->gate->at = DELETE;
	w->gate->later = true;
	w->gate->code = -EIO;
	assert_int_equal(change_rename_domain(&c, FROM, d, TO, NULL, &garbage, &err), -EIO);
	assert_true(garbage.half_done);
	schema_document_unref(d);
	world_open_gate(w);
	meeting = w;
	wall_ns += HOUR_NS / 60;
}

/* A program removes the new name while another process finishes the rename. One name stays. */
static void test_a_name_is_removed_while_the_other_one_is(void **state)
{
	for (unsigned int at = 1;; at++) {
		struct world w;
		struct err err = ERR_INIT;
		set_up_half_done(&w);
		const struct change c = change_of(&w);
		const struct storage storage = storage_of_domain(&w, FROM);
		other_from = TO;
		other_rc = 1;
		world_open_gate(&w);
		w.gate->other_at = at;
		w.gate->other = remove_meanwhile;
		const int rc = change_finish_rename(&c, &storage, 0, &err);
		world_open_gate(&w);
		assert_true(rc == 0 || rc == -ESTALE);
		assert_names(&w, other_rc ? TO : FROM, other_rc ? FROM : TO);
		if (other_rc == 1) {
			assert_int_equal(rc, 0);
			world_release(&w);
			break;
		}
		assert_true(other_rc == 0 || other_rc == -EBUSY);
		tear_down(&w, other_rc ? TO : FROM);
	}
}

/* A program removes the new name, or puts another domain over it, while another process repeats the
 * rename. Neither is repeated: the new name may be the last one. */
static void test_a_name_is_removed_while_it_is_given(void **state)
{
	for (int replaces = 0; replaces <= 1; replaces++)
		for (unsigned int at = 1;; at++) {
			struct world w;
			struct err err = ERR_INIT;
			struct change_garbage garbage;
			set_up_half_done(&w);
			import_as(&w, "home/w.h5", 5);
			w.seed = 9;
			const struct change c = change_of(&w);
			struct schema_document *d = look_up(&w, TO), *by = look_up(&w, "home/w.h5");
			other_from = FROM;
			other_to = TO;
			other_rc = 1;
			world_open_gate(&w);
			w.gate->other_at = at;
			w.gate->other = replace_meanwhile;
			const int rc =
				replaces ? change_rename_domain(&c, "home/w.h5", by, TO, d,
								&garbage, &err)
					 : change_remove_domain(&c, TO, d, false, &garbage, &err);
			world_open_gate(&w);
			schema_document_unref(d);
			schema_document_unref(by);
			/* At last the other domain has its new name, and loses it again. */
			assert_true(rc == (other_rc == 1 ? 0 : -EBUSY) || (replaces && rc == 0));
			assert_int_equal(world_objects(&w, other_rc == 1 ? FROM : TO), OBJECTS);
			world_release(&w);
			if (other_rc == 1)
				break;
		}
}

/* The put of the new name has no answer, and arrives when the old name is gone. */
static void test_late_put(void **state)
{
	struct world w;
	struct err err = ERR_INIT;
	uint64_t deleted;
	set_up(&w);
	struct schema_document *d = look_up(&w, FROM);
	struct change_garbage garbage = {0};
	const struct change c = change_of(&w);
	const struct storage storage = storage_of_domain(&w, FROM);
	world_open_gate(&w);
	w.gate->at = PUT;
	w.gate->code = -EIO;
	assert_int_equal(change_rename_domain(&c, FROM, d, TO, NULL, &garbage, &err), -EIO);
	assert_true(garbage.half_done);
	world_open_gate(&w);
	const struct change_garbage gone = {.storage = storage};
	assert_int_equal(remove_as(&w, &c, FROM), -EBUSY);
	wall_ns += HOUR_NS / 2;
	assert_int_equal(change_collect(&c, FROM, &gone, &deleted, &err), -EBUSY);
	const struct document_place place = {
		.env = &w.env, .store = w.store, .schema = schema_all()[0]};
	const struct store_cond absent = {.if_none_match = "*"};
	assert_int_equal(document_put(&place, TO, &d->info, &absent, NULL, &err), 0);
	wall_ns += HOUR_NS;
	assert_int_equal(change_collect(&c, FROM, &gone, &deleted, &err), 0);
	assert_int_equal(deleted, 0);
	assert_names(&w, TO, FROM);
	schema_document_unref(d);
	tear_down(&w, TO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_one_step),
		cmocka_unit_test(test_replace),
		cmocka_unit_test(test_a_replaced_name_replaces_nothing),
		cmocka_unit_test(test_stops),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_two_claims),
		cmocka_unit_test(test_a_rename_is_overtaken),
		cmocka_unit_test(test_the_old_name_is_removed),
		cmocka_unit_test(test_a_name_is_removed_while_the_other_one_is),
		cmocka_unit_test(test_a_name_is_removed_while_it_is_given),
		cmocka_unit_test(test_late_put),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
