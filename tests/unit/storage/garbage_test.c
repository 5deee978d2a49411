/* SPDX-License-Identifier: Apache-2.0 */
/* The storage of removed domains: when it is deleted, with a clock that the test moves. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <storage/garbage.h>
#include "storages.h"

#define SECOND UINT64_C(1000000000)

static const struct storage none;
static bool all_at_end; /* of the next world */

/* The schema of new domains, but that the ids of root groups are the numbers of storages. */
static struct schema_storage numbers;
static struct schema_ops schema;

static int of_root(const char *root, struct storage *out, struct err *err)
{
	numbers.of_number(strtoull(root, NULL, 10), out);
	return 0;
}

static void random_bytes(const struct env *env, void *bytes, size_t n)
{
	memset(bytes, 7, n);
}

struct world {
	struct env env;
	uint64_t now;
	uint64_t read; /* the storage that a file reads, or 0 */
	int code;      /* of deletions */
	int64_t wall;  /* seconds since the epoch */
	char deleted[256], finished[64];
	int verdict;
	uint32_t records; /* that have been given out */
	int note_code;
	char notes[512]; /* what is noted, in the order of changes */
	struct garbage *q;
};

static uint64_t now(const struct env *env)
{
	return ((const struct world *)env->ctx)->now;
}

static int64_t wall(const struct env *env)
{
	return ((const struct world *)env->ctx)->wall * (int64_t)SECOND;
}

static bool is_read(void *ctx, const struct storage *storage)
{
	return ((const struct world *)ctx)->read == storage_number(storage);
}

static int collect(void *ctx, const char *path, const struct change_garbage *g,
		   const atomic_bool *cancelled, struct err *err)
{
	struct world *w = ctx;
	const size_t n = strlen(w->deleted);
	if (w->code)
		return err_set(err, w->code, "refused");
	snprintf(w->deleted + n, sizeof(w->deleted) - n, "%s=%u ", path,
		 (unsigned int)storage_number(&g->storage));
	return 0;
}

static int collect_objects(void *ctx, uint32_t number, const atomic_bool *cancelled,
			   struct err *err)
{
	struct world *w = ctx;
	const size_t n = strlen(w->deleted);
	if (w->code)
		return err_set(err, w->code, "refused");
	snprintf(w->deleted + n, sizeof(w->deleted) - n, "objects %u ", number);
	return 0;
}

static int judge(void *ctx, const struct garbage_note *expected, const atomic_bool *cancelled,
		 struct err *err)
{
	return ((const struct world *)ctx)->verdict;
}

static int note(void *ctx, uint32_t *record, const struct garbage_note *entry, struct err *err)
{
	struct world *w = ctx;
	const size_t n = strlen(w->notes);
	if (w->note_code)
		return err_set(err, w->note_code, "no room");
	if (*record == GC_NONE)
		*record = w->records++;
	snprintf(w->notes + n, sizeof(w->notes) - n, "%u:%s:%s=%u>%u ", *record,
		 entry->state == GC_EXPECTED ? "expected" : "removed", entry->path,
		 (unsigned int)storage_number(&entry->storage),
		 (unsigned int)storage_number(&entry->next));
	return 0;
}

static void forget(void *ctx, uint32_t *record)
{
	struct world *w = ctx;
	const size_t n = strlen(w->notes);
	assert_int_not_equal(*record, GC_NONE);
	snprintf(w->notes + n, sizeof(w->notes) - n, "-%u ", *record);
	*record = GC_NONE;
}

static int finish_rename(void *ctx, const struct storage *storage, bool is_ours,
			 const atomic_bool *cancelled, struct err *err)
{
	struct world *w = ctx;
	const size_t n = strlen(w->finished);
	if (w->code)
		return err_set(err, w->code, "the bucket is away");
	snprintf(w->finished + n, sizeof(w->finished) - n, "%u%s ",
		 (unsigned int)storage_number(storage), is_ours ? "" : "?");
	return 0;
}

static void setup(struct world *w, bool threaded)
{
	*w = (struct world){.now = 100 * SECOND,
			    .wall = 5000,
			    .env = {.now = now, .wall = wall, .random = random_bytes, .ctx = w}};
	const struct garbage_ops ops = {.is_read = is_read,
					.collect = collect,
					.collect_objects = collect_objects,
					.judge = judge,
					.finish_rename = finish_rename,
					.note = note,
					.forget = forget,
					.ctx = w};
	const struct garbage_options opt = {
		.delay_ns = GARBAGE_DELAY_NS, .all_at_end = all_at_end, .threaded = threaded};
	w->q = garbage_new(&w->env, &ops, &opt);
	assert_non_null(w->q);
}

static void add(struct world *w, const char *path, uint64_t storage)
{
	struct change_garbage g = {.half_done = false};
	if (storage)
		g.storage = storage_nth(storage);
	garbage_add(w->q, path, &g);
}

/* Returns the document of a domain with this storage, or NULL if it is 0. It stays valid until the
 * next call. */
static const struct schema_document *document(uint64_t storage)
{
	static char root[24];
	static struct schema_document d = {.schema = &schema,
					   .info = {.root = root, .owner = "ann"}};
	snprintf(root, sizeof(root), "%u", (unsigned int)storage);
	return storage ? &d : NULL;
}

static struct garbage_entry *expect(struct world *w, const char *path, uint64_t storage,
				    const struct storage *next)
{
	return garbage_expect(w->q, path, document(storage), next);
}

/* Moves the clock and deletes what is due. Returns the seconds until something else is due. */
static uint64_t after(struct world *w, uint64_t seconds)
{
	w->now += seconds * SECOND;
	w->wall += (int64_t)seconds;
	const uint64_t next = garbage_collect(w->q, w->now);
	return next == UINT64_MAX ? UINT64_MAX : (next - w->now) / SECOND;
}

static void test_delay(void **state)
{
	struct world w;
	setup(&w, false);
	assert_int_equal(after(&w, 0), UINT64_MAX);
	add(&w, "none", 0);
	assert_int_equal(after(&w, 0), UINT64_MAX);
	add(&w, "a", 1);
	assert_int_equal(after(&w, 10), 20);
	add(&w, "b", 2);
	assert_int_equal(after(&w, 19), 1);
	assert_string_equal(w.deleted, "");
	assert_int_equal(after(&w, 1), 10);
	assert_string_equal(w.deleted, "a=1 ");
	assert_int_equal(after(&w, 10), UINT64_MAX);
	assert_string_equal(w.deleted, "a=1 b=2 ");
	/* At the end, what is not due is left to the next process. */
	add(&w, "c", 3);
	garbage_free(w.q);
	assert_string_equal(w.deleted, "a=1 b=2 ");
	assert_null(strstr(w.notes, "-2 "));
	/* Unless all is to be deleted then. */
	all_at_end = true;
	setup(&w, false);
	all_at_end = false;
	add(&w, "d", 4);
	garbage_free(w.q);
	assert_string_equal(w.deleted, "d=4 ");
}

/* Storage that a file reads waits for the last reader, also if the delay is over. */
static void test_readers(void **state)
{
	struct world w;
	setup(&w, false);
	add(&w, "a", 1);
	w.read = 1;
	assert_int_equal(after(&w, 30), 5);
	assert_int_equal(after(&w, 1000), 5);
	assert_string_equal(w.deleted, "");
	w.read = 0;
	assert_int_equal(after(&w, 5), UINT64_MAX);
	assert_string_equal(w.deleted, "a=1 ");
	add(&w, "b", 2);
	w.read = 2;
	after(&w, 30);
	garbage_free(w.q);
	assert_string_equal(w.deleted, "a=1 ");
}

static void test_failures(void **state)
{
	struct world w;
	setup(&w, false);
	add(&w, "a", 1);
	w.code = -EACCES;
	assert_int_equal(after(&w, 30), 5);
	w.code = 0;
	assert_int_equal(after(&w, 5), UINT64_MAX);
	assert_string_equal(w.deleted, "a=1 ");
	/* At the end it is tried once more, and nothing is tried twice. */
	add(&w, "b", 2);
	w.code = -EIO;
	assert_int_equal(after(&w, 30), 5);
	w.code = 0;
	garbage_free(w.q);
	assert_string_equal(w.deleted, "a=1 b=2 ");
	setup(&w, false);
	add(&w, "b", 2);
	w.code = -EIO;
	assert_int_equal(after(&w, 30), 5);
	garbage_free(w.q);
	assert_string_equal(w.deleted, "");
}

static void test_other_names(void **state)
{
	struct world w;
	setup(&w, false);
	add(&w, "a", 1);
	add(&w, "b", 2);
	garbage_rescue(w.q, STORAGE(1));
	assert_int_equal(after(&w, 30), UINT64_MAX);
	assert_string_equal(w.deleted, "b=2 ");
	/* What was rescued can be removed again. */
	add(&w, "c", 1);
	after(&w, 30);
	assert_string_equal(w.deleted, "b=2 c=1 ");
	garbage_free(w.q);
}

/* Storage that another process deletes, or whose names may change, is examined once a minute. */
static void test_busy(void **state)
{
	struct world w;
	setup(&w, false);
	add(&w, "a", 1);
	w.code = -EBUSY;
	assert_int_equal(after(&w, 30), 60);
	assert_int_equal(after(&w, 60), 60);
	w.code = -EIO;
	assert_int_equal(after(&w, 60), 5);
	w.code = 0;
	assert_int_equal(after(&w, 5), UINT64_MAX);
	assert_string_equal(w.deleted, "a=1 ");
	garbage_free(w.q);
}

/* A rename that may be half done is finished as soon as possible, and its note stays until then. */
static void test_renames(void **state)
{
	struct world w;
	const struct garbage_note note = {
		.state = GC_RENAMED, .storage = storage_nth(7), .path = "r", .document = ""};
	setup(&w, false);
	garbage_settle_rename(w.q, "a", STORAGE(5), false, 3);
	assert_string_equal(w.notes, "-3 ");
	w.notes[0] = '\0';
	garbage_settle_rename(w.q, "b", STORAGE(6), true, 4);
	garbage_rescue(w.q, STORAGE(6)); /* it has a name, and is not garbage */
	w.code = -EIO;
	assert_int_equal(after(&w, 0), 5);
	assert_string_equal(w.notes, "");
	w.code = 0;
	assert_int_equal(after(&w, 5), UINT64_MAX);
	assert_string_equal(w.deleted, "");
	assert_string_equal(w.finished, "6 ");
	assert_string_equal(w.notes, "-4 ");
	/* Those of an earlier process. */
	garbage_inherit(w.q, &note, 9);
	after(&w, 0);
	assert_string_equal(w.finished, "6 7 ");
	/* Those of other processes, which may be running: later, and not at the end. */
	garbage_add_names(w.q, "c", STORAGE(8));
	assert_int_equal(after(&w, 0), 30);
	w.code = -EBUSY;
	assert_int_equal(after(&w, 30), 60);
	w.code = 0;
	after(&w, 60);
	assert_string_equal(w.finished, "6 7 8? ");
	garbage_free(w.q);
}

/* What is noted before and after each change. */
static void test_notes(void **state)
{
	struct world w;
	setup(&w, false);
	garbage_settle(w.q, expect(&w, "a", 1, STORAGE(9)), true);
	garbage_settle(w.q, expect(&w, "b", 2, &none), false);
	garbage_settle(w.q, expect(&w, "same", 1, STORAGE(1)), true);
	garbage_settle(w.q, expect(&w, "none", 0, &none), true);
	add(&w, "c", 3);
	assert_string_equal(w.notes, "0:expected:a=1>9 0:removed:a=1>0 1:expected:b=2>0 -1 "
				     "2:removed:c=3>0 ");
	w.notes[0] = '\0';
	w.code = -EIO;
	after(&w, 30);
	assert_string_equal(w.notes, "");
	w.code = 0;
	after(&w, 5);
	assert_string_equal(w.deleted, "a=1 c=3 ");
	assert_string_equal(w.notes, "-0 -2 ");
	/* What has another name is forgotten at once. */
	w.notes[0] = '\0';
	add(&w, "d", 4);
	add(&w, "e", 4);
	garbage_rescue(w.q, STORAGE(4));
	assert_string_equal(w.notes, "3:removed:d=4>0 4:removed:e=4>0 -3 -4 ");
	/* What cannot be deleted at the end stays noted. */
	w.notes[0] = '\0';
	add(&w, "g", 6);
	w.code = -EIO;
	garbage_free(w.q);
	assert_string_equal(w.notes, "5:removed:g=6>0 ");
	assert_string_equal(w.deleted, "a=1 c=3 ");
}

/* An entry that is added before the change. */
static void test_early(void **state)
{
	struct world w;
	setup(&w, false);
	garbage_add_early(w.q, "a", document(1), STORAGE(9));
	garbage_add_early(w.q, "b", document(2), &none);
	garbage_add_early(w.q, "c", NULL, &none);
	garbage_confirm(w.q, STORAGE(9));
	garbage_confirm(w.q, STORAGE(8));
	assert_string_equal(w.notes, "0:expected:a=1>9 1:expected:b=2>0 0:removed:a=1>0 ");
	w.notes[0] = '\0';
	w.verdict = GARBAGE_STAYS;
	assert_int_equal(after(&w, 30), 570);
	assert_string_equal(w.deleted, "a=1 ");
	/* What is not confirmed is examined when it has ended in any case, */
	assert_int_equal(after(&w, 570), UINT64_MAX);
	assert_string_equal(w.deleted, "a=1 ");
	/* or at the end. */
	w.verdict = GARBAGE_REMOVED;
	garbage_add_early(w.q, "d", document(4), &none);
	assert_int_equal(after(&w, 599), 1);
	garbage_free(w.q);
	assert_string_equal(w.deleted, "a=1 d=4 ");
}

/* Without notes it works, too. */
static void test_no_notes(void **state)
{
	struct world w;
	setup(&w, false);
	w.note_code = -ENOSPC;
	garbage_settle(w.q, expect(&w, "a", 1, &none), true);
	garbage_settle(w.q, expect(&w, "b", 2, &none), false);
	/* The next process would not know of it, so it is deleted without the delay. */
	garbage_free(w.q);
	assert_string_equal(w.deleted, "a=1 ");
	assert_string_equal(w.notes, "");
}

static void test_inherited(void **state)
{
	static const struct {
		enum gc_type state;
		int verdict;
		const char *deleted;
		uint64_t next;
	} rows[] = {
		{GC_REMOVED, GARBAGE_STAYS, "a=1 ", UINT64_MAX},
		{GC_EXPECTED, GARBAGE_REMOVED, "a=1 ", UINT64_MAX},
		{GC_EXPECTED, GARBAGE_STAYS, "", UINT64_MAX},
		{GC_EXPECTED, GARBAGE_UNCLEAR, "", UINT64_MAX},
		{GC_EXPECTED, -EIO, "", 5},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world w;
		setup(&w, false);
		const struct garbage_note entry = {.state = rows[i].state,
						   .path = "a",
						   .storage = storage_nth(1),
						   .next = storage_nth(2),
						   .document = ""};
		garbage_inherit(w.q, &entry, 0);
		w.verdict = rows[i].verdict;
		assert_int_equal(after(&w, 29), 1);
		assert_int_equal(after(&w, 1), rows[i].next);
		assert_string_equal(w.deleted, rows[i].deleted);
		garbage_free(w.q);
		assert_true(rows[i].verdict < 0 || strstr(w.notes, "-0 "));
	}
}

/* The delay goes on from the time of the change, whatever became of the clock. */
static void test_inherited_time(void **state)
{
	static const struct {
		int64_t since;
		uint64_t left;
	} rows[] = {{0, 30}, {5000, 30}, {4980, 10}, {4971, 1}, {4970, 0}, {1, 0}, {9000, 30}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world w;
		setup(&w, false);
		const struct garbage_note entry = {.state = GC_REMOVED,
						   .since_ns = rows[i].since * (int64_t)SECOND,
						   .path = "a",
						   .storage = storage_nth(1),
						   .document = ""};
		garbage_inherit(w.q, &entry, 0);
		assert_int_equal(after(&w, 0), rows[i].left ? rows[i].left : UINT64_MAX);
		garbage_free(w.q);
		assert_string_equal(w.deleted, rows[i].left ? "" : "a=1 ");
	}
}

static int see(void *ctx, const struct garbage_removed *r)
{
	struct world *w = ctx;
	const size_t n = strlen(w->finished);
	assert_non_null(strstr(r->document, "ann"));
	snprintf(w->finished + n, sizeof(w->finished) - n, "%s=%u:%u:%u ", r->path,
		 (unsigned int)storage_number(r->storage),
		 (unsigned int)(r->since_ns / (int64_t)SECOND),
		 (unsigned int)(r->left_ns / SECOND));
	return 0;
}

/* Removed domains are listed until they are deleted, and one that is brought back is not. */
static void test_removed(void **state)
{
	struct world w;
	struct garbage_removed r;
	setup(&w, false);
	garbage_settle(w.q, expect(&w, "a", 1, &none), true);
	after(&w, 10);
	garbage_settle(w.q, expect(&w, "a", 2, STORAGE(9)), true); /* replaced */
	garbage_add_early(w.q, "b", document(3), STORAGE(8));	   /* perhaps not yet */
	add(&w, "c", 4);					   /* of a failed commit */
	garbage_each_removed(w.q, see, &w);
	assert_string_equal(w.finished, "a=1:5000:20 a=2:5010:30 ");
	assert_null(garbage_take_removed(w.q, "b", &r));
	assert_null(garbage_take_removed(w.q, "c", &r));
	/* The last one that had the name. */
	struct garbage_entry *e = garbage_take_removed(w.q, "a", &r);
	assert_int_equal(storage_number(r.storage), 2);
	w.verdict = GARBAGE_STAYS;
	after(&w, 30);
	assert_string_equal(w.deleted, "a=1 c=4 "); /* what is taken stays */
	garbage_restore(w.q, e, false);
	assert_non_null(e = garbage_take_removed(w.q, "a", &r));
	w.notes[0] = '\0';
	garbage_restore(w.q, e, true);
	assert_string_equal(w.notes, "-1 ");
	assert_null(garbage_take_removed(w.q, "a", &r));
	assert_int_equal(after(&w, 30), 540);
	assert_string_equal(w.deleted, "a=1 c=4 ");
	garbage_free(w.q);
}

/* Objects of a domain that is still there. */
static void test_objects(void **state)
{
	struct world w;
	setup(&w, false);
	garbage_add_objects(w.q, "a", STORAGE(1), GC_NONE);
	garbage_add_objects(w.q, "a", STORAGE(1), 7);
	garbage_rescue(w.q, STORAGE(1)); /* the domain has another name */
	w.read = 1;
	assert_int_equal(after(&w, 30), 5);
	w.read = 0;
	assert_int_equal(after(&w, 5), UINT64_MAX);
	assert_string_equal(w.deleted, "objects 7 ");
	assert_string_equal(w.notes, "-7 ");
	garbage_free(w.q);
}

/* Adding and deleting take the same time, however many there are. */
static void test_many(void **state)
{
	enum { MANY = 200000 };
	struct world w;
	setup(&w, false);
	w.note_code = -ENOSPC;
	for (uint32_t i = 1; i <= MANY; i++) {
		add(&w, "a", i);
		w.now++;
		assert_int_equal(garbage_collect(w.q, w.now), 130 * SECOND);
	}
	w.read = MANY;
	assert_int_equal(after(&w, 31), 5);
	w.read = 0;
	assert_int_equal(after(&w, 5), UINT64_MAX);
	garbage_free(w.q);
}

/* The thread deletes at the end what the journal does not have. */
static void test_thread(void **state)
{
	struct world w;
	setup(&w, true);
	w.note_code = -ENOSPC;
	add(&w, "a", 1);
	garbage_free(w.q);
	assert_string_equal(w.deleted, "a=1 ");
	setup(&w, true);
	garbage_free(w.q);
	assert_string_equal(w.deleted, "");
}

int main(void)
{
	schema = *schema_all()[0];
	numbers = *schema.storage;
	numbers.of_root = of_root;
	schema.storage = &numbers;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inherited_time), cmocka_unit_test(test_removed),
		cmocka_unit_test(test_delay),	       cmocka_unit_test(test_readers),
		cmocka_unit_test(test_failures),       cmocka_unit_test(test_other_names),
		cmocka_unit_test(test_busy),	       cmocka_unit_test(test_renames),
		cmocka_unit_test(test_notes),	       cmocka_unit_test(test_no_notes),
		cmocka_unit_test(test_early),	       cmocka_unit_test(test_many),
		cmocka_unit_test(test_inherited),      cmocka_unit_test(test_objects),
		cmocka_unit_test(test_thread),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
