/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bucket with a domain, and old storage of a commit that was killed before it has put its
 * document. Whatever happens while the bucket is cleaned, a storage to which a name leads is whole
 * in the end, and a later call deletes what is left behind.
 */
#include "import_fixture.h"

#include <hsmount/clean.h>

#include <domain/documents.h>
#include <engine/parts.h>
#include <storage/change.h>

#include "storages.h"

#define NAMED	   "home/a.h5"
#define LATE	   "work/late.h5"
#define SECOND_NS  INT64_C(1000000000)
#define HOUR_NS	   (3600 * SECOND_NS)
#define DAY_NS	   (24 * HOUR_NS)
#define LEFT_KEYS  (OBJECTS + CHUNKS)
#define NAMED_KEYS (STORED + 1)

enum { LEFT = 0x77 /* the number of the storage */ };

static int64_t bucket_ns;  /* the clock of the bucket, which is that of all machines … */
static int64_t wrong_ns;   /* … but for so much of the one that cleans */
static uint64_t random_ns; /* so that no two marks have the same key */

static int64_t bucket_clock(void)
{
	return bucket_ns;
}

static int64_t wall(const struct env *env)
{
	return bucket_ns + wrong_ns;
}

static uint64_t now(const struct env *env)
{
	return (uint64_t)bucket_ns;
}

/* A process reads this clock before it puts a mark, and before each DELETE. There it may be stopped
 * for a while, in which others go on. */
static unsigned int boots, stopped_at;
static struct store *stopped_bucket;
static void (*meanwhile)(struct store *bucket);

static uint64_t boot(const struct env *env)
{
	if (++boots == stopped_at) {
		stopped_at = 0;
		meanwhile(stopped_bucket);
	}
	return (uint64_t)bucket_ns;
}

static void sleep_ns(const struct env *env, uint64_t ns)
{
	bucket_ns += (int64_t)ns;
}

static void numbers(const struct env *env, void *bytes, size_t n)
{
	memset(bytes, 0, n);
	random_ns += 0x10001;
	memcpy(bytes, &random_ns, n < sizeof(random_ns) ? n : sizeof(random_ns));
}

struct bucket_left {
	struct world w;
	struct engine e;
	struct import_commit commit;
	struct engine_clean opt;
	struct engine_clean_totals totals;
	char lines[2048];
	unsigned int items, asked;
	int answer;
};

static int take_item(void *arg, const struct engine_clean_item *item)
{
	struct bucket_left *b = arg;
	b->items++;
	return 0;
}

static int ask(void *arg, const struct engine_clean_totals *totals)
{
	struct bucket_left *b = arg;
	b->asked++;
	return b->answer;
}

static void take_line(void *arg, const char *line)
{
	struct bucket_left *b = arg;
	const size_t n = strlen(b->lines);
	snprintf(b->lines + n, sizeof(b->lines) - n, "%s\n", line);
}

/* Commits as a process that goes on with storage which it has put earlier. */
static int commit(struct bucket_left *b, struct store *store, const char *path, struct err *err)
{
	struct import_options opt = b->w.opt;
	struct import_result unused;
	opt.commit = &b->commit;
	opt.store = store;
	opt.path = path;
	opt.file.check = NULL;
	*err = (struct err)ERR_INIT;
	return domain_import(&opt, &unused, err);
}

static int nothing(void *ctx, struct err *err)
{
	return 0;
}

static void set_up(struct bucket_left *b)
{
	struct err err;
	*b = (struct bucket_left){.answer = 1};
	bucket_ns = INT64_C(1700000000000000000);
	wrong_ns = 0;
	random_ns = 0;
	world_init(&b->w, 0);
	b->w.env.random = numbers;
	b->w.env.wall = wall;
	b->w.env.now = now;
	b->w.env.boot = NULL;
	b->w.env.sleep = sleep_ns;
	store_mem_set_clock(b->w.gate->base.inner, bucket_clock);
	store_mem_set_lacks(b->w.gate->base.inner, STORE_MEM_NO_MOVE, NULL, NULL);
	b->w.opt.path = NAMED;
	world_must_import(&b->w, NULL);
	b->commit = (struct import_commit){.storage = storage_nth(LEFT),
					   .modified_ns = bucket_ns,
					   .in_order = true,
					   .continues = true,
					   .begin = nothing,
					   .publish = nothing,
					   .ctx = b};
	gate_fail(b->w.gate, LEFT_KEYS + 1, -EIO);
	b->w.gate->later = true;
	assert_int_equal(commit(b, b->w.store, LATE, &err), -EIO);
	world_open_gate(&b->w);
	assert_int_equal(world_keys(&b->w, b->commit.storage.prefix), LEFT_KEYS);
	bucket_ns += 2 * DAY_NS;
	b->e.bucket.env = b->w.env;
	b->e.bucket.env.boot = boot;
	b->e.bucket.store = b->w.store;
	b->e.bucket.domains.schemas = schema_all();
	b->opt = (struct engine_clean){
		.age_s = 86400, .item = take_item, .ask = ask, .line = take_line, .arg = b};
}

static int clean(struct bucket_left *b, struct err *err)
{
	*err = (struct err)ERR_INIT;
	b->lines[0] = '\0';
	b->items = 0;
	return engine_clean(&b->e, &b->opt, &b->totals, err);
}

/* The domain that has a name is whole. */
static void assert_named(struct bucket_left *b)
{
	assert_int_equal(world_objects(&b->w, NAMED), OBJECTS);
	assert_true(world_keys(&b->w, "") >= NAMED_KEYS);
}

static void assert_cleaned(struct bucket_left *b)
{
	assert_named(b);
	assert_int_equal(world_keys(&b->w, ""), NAMED_KEYS);
}

static void left_storage_is_deleted(void **state)
{
	struct bucket_left b;
	struct err err;
	set_up(&b);
	b.opt.dry_run = true;
	assert_int_equal(clean(&b, &err), 0);
	assert_int_equal(b.w.gate->ops[STORE_PUT] + b.w.gate->ops[STORE_DELETE], 0);
	assert_int_equal(b.totals.items[ENGINE_CLEAN_STORAGE], 1);
	assert_int_equal(b.totals.objects, LEFT_KEYS);
	assert_int_equal(b.asked, 0);
	b.opt.dry_run = false;
	b.answer = 0;
	assert_int_equal(clean(&b, &err), 0);
	assert_int_equal(b.asked, 1);
	assert_int_equal(world_keys(&b.w, b.commit.storage.prefix), LEFT_KEYS);
	b.answer = 1;
	assert_int_equal(clean(&b, &err), 0);
	assert_int_equal(b.totals.items[ENGINE_CLEAN_STORAGE], 1);
	assert_cleaned(&b);
	b.asked = 0;
	assert_int_equal(clean(&b, &err), 0);
	assert_int_equal(b.asked + b.items, 0);
	world_release(&b.w);
}

/* The clock of the bucket decides, whatever this machine believes. */
static void young_storage_stays(void **state)
{
	static const int64_t wrong[] = {0, 30 * DAY_NS, -30 * DAY_NS};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct bucket_left b;
		struct err err;
		set_up(&b);
		wrong_ns = wrong[i];
		b.opt.age_s = 2 * 86400 + 60;
		assert_int_equal(clean(&b, &err), 0);
		assert_int_equal(b.totals.kept, 1);
		assert_int_equal(world_keys(&b.w, b.commit.storage.prefix), LEFT_KEYS);
		bucket_ns += 61 * SECOND_NS;
		assert_int_equal(clean(&b, &err), 0);
		assert_cleaned(&b);
		world_release(&b.w);
	}
}

static void a_short_age_is_refused(void **state)
{
	struct bucket_left b;
	struct err err;
	set_up(&b);
	b.opt.age_s = 3599;
	assert_int_equal(clean(&b, &err), -EINVAL);
	world_release(&b.w);
}

static int put_and_agree(void *arg, const struct engine_clean_totals *totals)
{
	struct bucket_left *b = arg;
	char key[128];
	snprintf(key, sizeof(key), "%snew", b->commit.storage.prefix);
	world_put(&b->w, key, "1");
	return 1;
}

/* A commit has begun to put objects once more while the person was asked. */
static void storage_that_grows_stays(void **state)
{
	struct bucket_left b;
	struct err err;
	set_up(&b);
	b.opt.ask = put_and_agree;
	assert_int_equal(clean(&b, &err), 0);
	assert_non_null(strstr(b.lines, "is kept: it is younger"));
	assert_int_equal(b.totals.kept, 1);
	assert_int_equal(world_keys(&b.w, b.commit.storage.prefix), LEFT_KEYS + 1);
	world_release(&b.w);
}

/* A prefix limits what is deleted, not which names are read. */
static void a_prefix_limits_what_is_deleted(void **state)
{
	struct bucket_left b;
	struct err err;
	set_up(&b);
	b.opt.prefix = "db/ffff";
	assert_int_equal(clean(&b, &err), 0);
	assert_int_equal(world_keys(&b.w, b.commit.storage.prefix), LEFT_KEYS);
	b.opt.prefix = b.commit.storage.prefix;
	assert_int_equal(clean(&b, &err), 0);
	assert_cleaned(&b);
	world_release(&b.w);
}

/* A name, wherever it is, keeps the storage. What cannot be read may be a name. */
static void a_bucket_that_cannot_be_read(void **state)
{
	static const struct {
		const char *key, *text;
		int rc;
	} rows[] = {
		{"x/.domain.json", "[", -EIO},
		{"x/.domain.json", "{\"root\": \"g-1\"}", -EIO},
		{"x/.domain.json", "{\"root\": 5}", -EIO},
		/* The id of a group that is no root group. */
		{"x/.domain.json", "{\"root\": \"g-00000000-00000077-1234-000000-000001\"}", -EIO},
		{"db/.import-1.json", "{", -EIO},
		/* Neither of these names a storage: a folder, and a domain of schema v1. */
		{"x/.domain.json", FOLDER, 0},
		{"x/.domain.json", "{\"root\": \"g-19a5e2c0-7d5a-11ea-8d48-0242ac120002\"}", 0},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bucket_left b;
		struct err err;
		set_up(&b);
		world_put(&b.w, rows[i].key, rows[i].text);
		const int rc = clean(&b, &err);
		if (rc != rows[i].rc)
			fail_msg("row %zu: %d: %s", i, rc, err.msg);
		assert_int_equal(world_keys(&b.w, b.commit.storage.prefix), rc ? LEFT_KEYS : 0);
		assert_named(&b);
		world_release(&b.w);
	}
}

/* Each request fails in turn: alone, or with all later ones, as when the process is killed; before
 * or after it has reached the bucket. */
static void requests_that_fail(void **state)
{
	for (unsigned int how = 0; how < 4; how++) {
		bool met = true;
		for (unsigned int at = 1; met; at++) {
			struct bucket_left b;
			struct err err;
			set_up(&b);
			gate_fail(b.w.gate, at, -EIO);
			b.w.gate->later = how % 2;
			b.w.gate->after = how / 2;
			const int rc = clean(&b, &err);
			met = b.w.gate->n >= at;
			world_open_gate(&b.w);
			if (!met)
				assert_int_equal(rc, 0);
			else if (how % 2)
				assert_true(rc < 0);
			assert_named(&b);
			if (clean(&b, &err))
				fail_msg("%s", err.msg);
			assert_cleaned(&b);
			world_release(&b.w);
		}
	}
}

/* ---- other programs ---- */

static struct bucket_left *meeting;
static int other_rc;
static struct err other_err;

/* Lets `other` run before each request of a call in turn. */
static void at_each_request(int (*call)(struct bucket_left *b, struct err *err),
			    void (*other)(struct store *bucket),
			    void (*judge)(struct bucket_left *b, int rc))
{
	bool met = true;
	for (unsigned int at = 1; met; at++) {
		struct bucket_left b;
		struct err err;
		set_up(&b);
		meeting = &b;
		other_rc = 0;
		b.w.gate->other_at = at;
		b.w.gate->other = other;
		const int rc = call(&b, &err);
		met = b.w.gate->n >= at;
		world_open_gate(&b.w);
		if (met)
			judge(&b, rc);
		world_release(&b.w);
	}
}

static void beside(void (*other)(struct store *bucket),
		   void (*judge)(struct bucket_left *b, int rc))
{
	at_each_request(clean, other, judge);
}

/* The same with a process that is stopped wherever it reads the clock. */
static void while_stopped(void (*other)(struct store *bucket),
			  void (*judge)(struct bucket_left *b, int rc))
{
	bool met = true;
	for (unsigned int at = 1; met; at++) {
		struct bucket_left b;
		struct err err;
		set_up(&b);
		meeting = &b;
		other_rc = 0;
		boots = 0;
		stopped_at = at;
		stopped_bucket = b.w.gate->base.inner;
		meanwhile = other;
		const int rc = clean(&b, &err);
		met = !stopped_at;
		stopped_at = 0;
		if (met)
			judge(&b, rc);
		world_release(&b.w);
	}
}

static void go_on(struct store *bucket)
{
	meeting->w.gate->other_at = 0;
	other_rc = commit(meeting, bucket, LATE, &other_err);
}

static void judge_commit(struct bucket_left *b, int rc)
{
	struct err err;
	if (other_rc)
		fail_msg("%s", other_err.msg);
	assert_int_equal(rc, 0);
	for (int i = 0; i < 2; i++) {
		assert_named(b);
		assert_int_equal(world_objects(&b->w, LATE), OBJECTS);
		assert_int_equal(world_keys(&b->w, ""), NAMED_KEYS + LEFT_KEYS + 1);
		bucket_ns += 3 * DAY_NS;
		assert_int_equal(clean(b, &err), 0);
	}
}

/* A mount goes on with a commit of two days ago, while the other process stands still. The commit
 * succeeds with a whole domain, and the other process does not disturb it any more. */
static void a_commit_that_goes_on(void **state)
{
	while_stopped(go_on, judge_commit);
}

static void finish(struct store *bucket);

static void judge_one(struct bucket_left *b, int rc)
{
	assert_int_equal(other_rc, 0);
	assert_named(b);
	assert_true(world_keys(&b->w, "") >= NAMED_KEYS + LEFT_KEYS);
}

/* A DELETE may be on its way when the process is stopped. No other one follows. */
static void a_request_on_its_way(void **state)
{
	beside(go_on, judge_one);
	beside(finish, judge_one);
}

/* The last step of such a commit alone. */
static void finish(struct store *bucket)
{
	struct import_options opt = meeting->w.opt;
	struct import_result unused;
	bool found;
	meeting->w.gate->other_at = 0;
	opt.commit = &meeting->commit;
	opt.store = bucket;
	opt.path = LATE;
	other_err = (struct err)ERR_INIT;
	other_rc = domain_import_finish(&opt, &found, &unused, &other_err);
	if (!other_rc && !found)
		other_rc = commit(meeting, bucket, LATE, &other_err);
}

static void the_last_step_of_a_commit(void **state)
{
	while_stopped(finish, judge_commit);
}

/* The machine of a commit sleeps for days, and another one cleans the bucket to the end. */
static void sleep_long(struct store *bucket)
{
	struct err err;
	meeting->w.gate->other_at = 0;
	meeting->e.bucket.store = bucket;
	bucket_ns += 3 * DAY_NS;
	assert_int_equal(clean(meeting, &err), 0);
}

static int commit_late(struct bucket_left *b, struct err *err)
{
	b->commit.storage = storage_nth(LEFT + 1);
	b->commit.continues = false;
	return commit(b, b->w.store, LATE, err);
}

static void judge_late(struct bucket_left *b, int rc)
{
	assert_int_equal(rc, 0);
	assert_int_equal(world_keys(&b->w, b->commit.storage.prefix), LEFT_KEYS);
	assert_int_equal(world_objects(&b->w, LATE), OBJECTS);
}

static void a_commit_that_sleeps(void **state)
{
	at_each_request(commit_late, sleep_long, judge_late);
}

static void clean_too(struct store *bucket)
{
	struct engine other = meeting->e;
	struct engine_clean_totals totals;
	meeting->w.gate->other_at = 0;
	other.bucket.store = bucket;
	other_err = (struct err)ERR_INIT;
	other_rc = engine_clean(&other, &meeting->opt, &totals, &other_err);
}

static void judge_second(struct bucket_left *b, int rc)
{
	assert_int_equal(other_rc, 0);
	assert_int_equal(rc, 0);
	assert_cleaned(b);
}

static void two_at_once(void **state)
{
	beside(clean_too, judge_second);
	while_stopped(clean_too, judge_second);
}

/* Renames the domain that has a name, to a name that is read before the old one. */
static void rename_named(struct store *bucket)
{
	const struct change c = {.env = &meeting->w.env,
				 .store = bucket,
				 .schema = schema_all()[0],
				 .owner = "ann",
				 .now_ns = bucket_ns};
	const struct document_place place = {
		.env = &meeting->w.env, .store = bucket, .schema = schema_all()[0]};
	struct schema_document *d = NULL;
	struct change_garbage garbage;
	meeting->w.gate->other_at = 0;
	assert_int_equal(document_get(&place, NAMED, &d, NULL), 0);
	other_rc = change_rename_domain(&c, NAMED, d, "a.h5", NULL, &garbage, NULL);
	schema_document_unref(d);
}

static void judge_rename(struct bucket_left *b, int rc)
{
	assert_int_equal(other_rc, 0);
	assert_int_equal(rc, 0);
	assert_int_equal(world_objects(&b->w, "a.h5"), OBJECTS);
	assert_int_equal(world_keys(&b->w, b->commit.storage.prefix), 0);
}

static void a_rename(void **state)
{
	beside(rename_named, judge_rename);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(left_storage_is_deleted),
		cmocka_unit_test(young_storage_stays),
		cmocka_unit_test(a_short_age_is_refused),
		cmocka_unit_test(storage_that_grows_stays),
		cmocka_unit_test(a_prefix_limits_what_is_deleted),
		cmocka_unit_test(a_bucket_that_cannot_be_read),
		cmocka_unit_test(requests_that_fail),
		cmocka_unit_test(a_commit_that_goes_on),
		cmocka_unit_test(a_commit_that_sleeps),
		cmocka_unit_test(the_last_step_of_a_commit),
		cmocka_unit_test(a_request_on_its_way),
		cmocka_unit_test(two_at_once),
		cmocka_unit_test(a_rename),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
