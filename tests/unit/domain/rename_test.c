/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renames of domains that end between two requests, or meet other programs. After each of them the
 * names that are left lead to the whole domain, and the storage goes with the last one.
 */
#include "change_fixture.h"

#include <domain/renames.h>

#include "domain/storage_deletion.h"
#include "domain/storage_names.h"

#define FROM	"home/a.h5"
#define TO	"work/b.h5"
#define HOUR_NS (INT64_C(3600) * 1000000000)

/* The requests of a first rename in S3. */
enum { CLAIM = 1, PUT, MARKS, DELETE, LAST = DELETE };

static int64_t wall_ns;

static int64_t wall(const struct env *env)
{
	return wall_ns;
}

/* A bucket in S3 with the domain FROM. */
static void set_up(struct world *w)
{
	wall_ns = INT64_C(1700000000000000000);
	world_init(w, 0);
	w->env.wall = wall;
	store_mem_set_lacks(w->gate->base.inner, STORE_MEM_NO_MOVE, NULL, NULL);
	import_as(w, FROM, 1);
	w->seed = 2;
	world_open_gate(w);
}

/* Another process has the same bucket. */
static struct change other_process(struct world *w)
{
	struct change c = change_of(w);
	c.store = w->gate->base.inner;
	return c;
}

static int rename_as(struct world *w, const struct change *c, const char *from, const char *to,
		     struct err *err)
{
	struct schema_document *d = look_up(w, from), *target = look_up(w, to);
	struct change_garbage garbage = {0};
	assert_non_null(d);
	world_open_gate(w);
	const int rc = change_rename_domain(c, from, d, to, target, &garbage, err);
	assert_false(garbage.any);
	schema_document_unref(d);
	schema_document_unref(target);
	return rc;
}

/* As `rm`, and the deletion of the storage later. -EBUSY: the storage stays for now. */
static int remove_as(struct world *w, const struct change *c, const char *path)
{
	struct schema_document *d = look_up(w, path);
	struct change_garbage garbage;
	struct err err = ERR_INIT;
	uint64_t deleted;
	assert_non_null(d);
	int rc = change_remove_domain(c, path, d, &garbage, &err);
	schema_document_unref(d);
	assert_true(rc || garbage.any);
	return rc ? rc : change_collect(c, path, &garbage, &deleted, &err);
}

static uint64_t storage_of_domain(struct world *w, const char *path)
{
	struct schema_document *d = look_up(w, path);
	uint64_t storage;
	assert_non_null(d);
	assert_int_equal(schema_all()[0]->domain_of_root(d->info.root, &storage, NULL), 0);
	schema_document_unref(d);
	return storage;
}

static void assert_names(struct world *w, const char *one, const char *none)
{
	assert_int_equal(world_objects(w, one), OBJECTS);
	assert_int_equal(world_objects(w, none), 0);
}

/* Removing what is left removes everything. */
static void tear_down(struct world *w, const char *last)
{
	const struct change c = other_process(w);
	world_open_gate(w);
	wall_ns += 2 * HOUR_NS;
	assert_int_equal(remove_as(w, &c, last), 0);
	assert_int_equal(world_keys(w, ""), 0);
	world_release(w);
}

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
		assert_int_equal(garbage.any, rc == 0 || at == 2 + DELETE);
		assert_int_equal(world_objects(&w, TO), OBJECTS);
		if (rc == 0) {
			assert_int_equal(change_collect(&c, TO, &garbage, &deleted, &err), 0);
			assert_int_equal(deleted, OBJECTS + CHUNKS);
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
	const uint64_t before = storage_of_domain(&w, TO);
	w.opt.replace = true;
	import_as(&w, FROM, 4);
	w.seed = 2;
	const struct change c = change_of(&w);
	assert_int_equal(change_rename_domain(&c, FROM, d, TO, target, &garbage, &err), -ESTALE);
	assert_false(garbage.any);
	assert_int_equal(storage_of_domain(&w, TO), before);
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
	const uint64_t storage = storage_of_domain(w, FROM);
	struct err err = ERR_INIT;
	switch (then) {
	case FINISH:
		/* It may be running in another process. */
		if (had_new)
			assert_int_equal(change_finish_rename(&c, storage, 1, &err), -EBUSY);
		assert_int_equal(change_finish_rename(&c, storage, 0, &err), 0);
		assert_names(w, had_new ? TO : FROM, had_new ? FROM : TO);
		break;
	case RENAME_AGAIN:
		/* Another process may have finished it before this one renames. */
		if (rename_as(w, &c, FROM, TO, &err))
			assert_int_equal(err.code, -ESTALE);
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
		if (had_new)
			assert_int_equal(remove_as(w, &c, TO),
					 world_objects(w, "else/c.h5") ? 0 : 0);
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
			const uint64_t storage = storage_of_domain(&w, FROM);
			assert_int_equal(change_finish_rename(&c, storage, 0, &err), 0);
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

static struct world *meeting;
static const char *other_from, *other_to;
static int other_rc;

static void rename_meanwhile(struct store *bucket)
{
	const struct change c = other_process(meeting);
	struct schema_document *d = look_up(meeting, other_from);
	struct change_garbage garbage;
	meeting->gate->other_at = 0;
	other_rc = change_rename_domain(&c, other_from, d, other_to, NULL, &garbage, NULL);
	schema_document_unref(d);
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
	assert_int_equal(meet(&w, DELETE, rename_meanwhile, TO, FROM), -ESTALE);
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
		set_up(&w);
		if (at == MARKS)
			continue; /* together with PUT */
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
	const uint64_t storage = storage_of_domain(&w, FROM);
	world_open_gate(&w);
	w.gate->at = PUT;
	w.gate->code = -EIO;
	assert_int_equal(change_rename_domain(&c, FROM, d, TO, NULL, &garbage, &err), -EIO);
	assert_true(garbage.half_done);
	world_open_gate(&w);
	const struct change_garbage gone = {.any = true, .storage = storage};
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

/* ---- deletions ---- */

static unsigned int pauses;

static void no_sleep(const struct env *env, uint64_t ns)
{
	pauses++;
}

static char *mark_key(struct world *w)
{
	static char key[SCHEMA_KEY_MAX + 17];
	const struct document_place place = {.schema = schema_all()[0]};
	assert_int_equal(storage_own_key(&place, storage_of_domain(w, FROM),
					 schema_all()[0]->storage_deletion, key, NULL),
			 0);
	return strcat(key, "0123456789abcdef");
}

/* A storage that is being deleted gets no new name. */
static void test_no_name_for_a_storage_that_is_deleted(void **state)
{
	struct world w;
	struct err err = ERR_INIT;
	set_up(&w);
	w.env.sleep = no_sleep;
	const struct change c = change_of(&w);
	world_put(&w, mark_key(&w), "");
	assert_int_equal(rename_as(&w, &c, FROM, TO, &err), -EBUSY);
	assert_names(&w, FROM, TO);
	world_release(&w);
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
		const struct change_garbage gone = {.any = true,
						    .storage = storage_of_domain(&w, FROM)};
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
		const int named = storage_is_named(&place, gone.storage, &err);
		assert_int_equal(named, at == 1 ? 0 : -EBUSY);
		wall_ns += HOUR_NS + 1;
		pauses = 0;
		assert_int_equal(storage_is_named(&place, gone.storage, &err),
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
		const struct change_garbage gone = {.any = true,
						    .storage = storage_of_domain(&w, FROM)};
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

static void test_damaged_list(void **state)
{
	struct world w;
	struct err err = ERR_INIT;
	char key[SCHEMA_KEY_MAX + 1];
	set_up(&w);
	const struct change c = change_of(&w);
	const struct document_place place = {.schema = schema_all()[0]};
	assert_int_equal(storage_own_key(&place, storage_of_domain(&w, FROM),
					 schema_all()[0]->storage_names, key, NULL),
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
	assert_int_equal(storage_names_init(&names, storage_of_domain(w, FROM), NULL), 0);
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
		cmocka_unit_test(test_late_put),
		cmocka_unit_test(test_no_name_for_a_storage_that_is_deleted),
		cmocka_unit_test(test_wrong_clocks),
		cmocka_unit_test(test_a_killed_deletion),
		cmocka_unit_test(test_a_deletion_meets_a_rename),
		cmocka_unit_test(test_old_names),
		cmocka_unit_test(test_damaged_list),
		cmocka_unit_test(test_hostile_lists),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
