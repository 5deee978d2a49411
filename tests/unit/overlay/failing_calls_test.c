/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each call of a draft and of its journal, on a disk that fails at the n-th call of libc, for n =
 * 1, 2, … until nothing fails. The error is returned, the bytes are the old or the new ones, and
 * the next process can open the draft.
 */
#include "disk_calls.h"

#include <glob.h>

#include <overlay/draft_plan.h>
#include <journal/gc_log.h>

#include "overlay_fixture.h"

enum { SIZE = 150000, BYTES = 200000, LATER = 80000 };

struct rig {
	struct overlay_fixture f;
	struct draft *d;
	struct draft_snapshot *snapshot;
	uint64_t body; /* offset of a body */
	struct gc_log *log;
	char id[JOURNAL_ID];
};

static const char body[PLAN_INLINE_MAX + 1] = "a body that is too large for the plan";
static struct gc_object objects[] = {{"d-1", "etag"}, {"g-2", ""}};
static const struct gc_event list = {.type = GC_OBJECTS,
				     .path = "home/u/a",
				     .storage = "g-0",
				     .next = "",
				     .count = 2,
				     .objects = objects};

static void must(int rc)
{
	assert_int_equal(rc, 0);
}

static int write_bytes(struct draft *d, uint8_t byte, uint64_t offset, size_t n)
{
	static uint8_t bytes[BYTES];
	memset(bytes, byte, n);
	return draft_write(d, offset, bytes, n, NULL);
}

/* ---- the calls ---- */

static int call_write(struct rig *r)
{
	return write_bytes(r->d, 'w', 1000, 140000);
}

static int call_write_again(struct rig *r)
{
	return write_bytes(r->d, 'w', 1000, 10);
}

static int call_grow(struct rig *r)
{
	return draft_resize(r->d, SIZE + 10, NULL);
}

static int call_shrink(struct rig *r)
{
	return draft_resize(r->d, 70000, NULL);
}

static int call_allocate(struct rig *r)
{
	return draft_allocate(r->d, 0, SIZE, 20000, NULL);
}

static int call_zero(struct rig *r)
{
	return draft_allocate(r->d, FALLOC_FL_ZERO_RANGE, 100, 70000, NULL);
}

static int call_punch(struct rig *r)
{
	return draft_allocate(r->d, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 100, 70000, NULL);
}

static int call_sync(struct rig *r)
{
	return draft_sync(r->d, NULL);
}

static int call_mark(struct rig *r)
{
	return draft_mark(r->d, 3, NULL);
}

static int call_describe(struct rig *r)
{
	return draft_describe(r->d, "home/u/b", "/home/u/b.h5", "", NULL);
}

static int call_seal(struct rig *r)
{
	return draft_seal(r->d, &r->snapshot, NULL);
}

/* Nothing was read. */
static int call_read(struct rig *r)
{
	static uint8_t bytes[BYTES];
	size_t got = 77;
	const int rc = draft_read(r->d, 0, bytes, BYTES, &got, NULL);
	assert_int_equal(got, rc ? 0 : SIZE);
	return rc;
}

static int call_read_snapshot(struct rig *r)
{
	static uint8_t bytes[BYTES];
	return source_read(draft_snapshot_source(r->snapshot), 0, bytes, SIZE, NULL);
}

/* A part that begins and ends within frames, whose checksum is read from the spool. */
static int call_prepare_part(struct rig *r)
{
	struct source_part part;
	return source_prepare(draft_snapshot_source(r->snapshot), 1000, SIZE - 2000, &part, NULL);
}

static int call_add_body(struct rig *r)
{
	struct plan_operation op = {.action = PLAN_PUT};
	return draft_set_body(r->d, &op, body, sizeof(body), NULL);
}

static int call_read_body(struct rig *r)
{
	static char bytes[sizeof(body)];
	return draft_read_body(r->d, r->body, bytes, sizeof(body), NULL);
}

static int call_put_plan(struct rig *r)
{
	struct plan_operation op = {.action = PLAN_PUT,
				    .body = PLAN_FILE,
				    .key = "key",
				    .version = "",
				    .offset = r->body,
				    .length = sizeof(body)};
	plan_digest(body, sizeof(body), op.sha256);
	return draft_put_plan(r->d, &op, 1, NULL, NULL);
}

static int call_note_done(struct rig *r)
{
	return draft_note_operation(r->d, 0, PLAN_DONE, NULL);
}

static int call_get_plan(struct rig *r)
{
	struct plan plan;
	const int rc = draft_get_plan(r->d, &plan, NULL);
	if (!rc) {
		assert_int_equal(plan.count, 1);
		plan_release(&plan);
	}
	return rc;
}

static int call_remove_plan(struct rig *r)
{
	return draft_remove_plan(r->d, NULL);
}

static int call_log_removed(struct rig *r)
{
	uint32_t number = GC_NONE;
	const int rc = gc_log_put(r->log, &number, &list, NULL);
	assert_int_equal(number != GC_NONE, rc == 0);
	return rc;
}

/* As the next process. */
static int call_open(struct rig *r)
{
	const int rc = draft_open(r->f.j, r->id, NULL, &r->d, NULL);
	if (rc)
		r->d = NULL;
	return rc;
}

static int call_create(struct rig *r)
{
	const int rc = draft_create(r->f.j, &about_new, NULL, &r->d, NULL);
	if (rc)
		r->d = NULL;
	return rc;
}

/* ---- what comes before ---- */

static void make(struct rig *r)
{
	r->d = make_draft(&r->f, &about_new);
	memcpy(r->id, draft_id(r->d), JOURNAL_ID);
	must(write_bytes(r->d, 'a', 0, SIZE));
}

static void make_nothing(struct rig *r)
{
}

/* Changes of a draft that is durable sync it in between. */
static void make_synced(struct rig *r)
{
	make(r);
	must(draft_sync(r->d, NULL));
}

static void make_left(struct rig *r)
{
	make(r);
	draft_close(r->d);
	r->d = NULL;
}

static void make_sealed(struct rig *r)
{
	make(r);
	must(draft_seal(r->d, &r->snapshot, NULL));
	must(draft_add_body(r->d, body, sizeof(body), &r->body, NULL));
}

/* Two generations, which the next snapshot joins. */
static void make_two(struct rig *r)
{
	make(r);
	must(draft_seal(r->d, &r->snapshot, NULL));
	must(write_bytes(r->d, 'b', 5000, LATER));
	draft_snapshot_close(r->snapshot);
	r->snapshot = NULL;
}

static void make_planned(struct rig *r)
{
	make_sealed(r);
	must(call_put_plan(r));
}

static void make_log(struct rig *r)
{
	make(r);
	must(gc_log_new(r->f.j, &r->log, NULL));
}

/* ---- failures that are no error ---- */

/* What a call may do without. name: the file begins with it. */
struct ignored {
	const char *call, *name;
};

/* clang-format off */
#define NONE {NULL, NULL}
/* If generations cannot be joined, they remain as they are. */
#define JOINS(call, name) {call, name}
/* clang-format on */

static const struct row {
	const char *name;
	void (*before)(struct rig *r);
	int (*call)(struct rig *r);
	struct ignored ignored[8];
} rows[] = {
	{"create", make_nothing, call_create, {NONE}},
	{"write", make, call_write, {NONE}},
	{"write again", make, call_write_again, {NONE}},
	{"write the next generation", make_sealed, call_write, {NONE}},
	{"grow", make, call_grow, {NONE}},
	{"shrink", make, call_shrink, {NONE}},
	{"shrink what is durable", make_synced, call_shrink, {NONE}},
	{"allocate", make, call_allocate, {NONE}},
	{"zero", make, call_zero, {NONE}},
	{"punch", make, call_punch, {NONE}},
	{"sync", make, call_sync, {NONE}},
	{"mark", make, call_mark, {NONE}},
	{"describe", make, call_describe, {NONE}},
	{"describe what is durable", make_synced, call_describe, {NONE}},
	{"seal", make, call_seal, {NONE}},
	{"seal two generations",
	 make_two,
	 call_seal,
	 {JOINS("pread", "spool."), JOINS("pread", "sums."), JOINS("pwrite", "spool."),
	  JOINS("pwrite", "sums."), JOINS("pwrite", "map"), JOINS("unlinkat", ""), NONE}},
	{"read", make, call_read, {NONE}},
	{"read two generations", make_two, call_read, {NONE}},
	{"read what was left", make_left, call_open, {NONE}},
	{"read a snapshot", make_sealed, call_read_snapshot, {NONE}},
	{"prepare a part", make_sealed, call_prepare_part, {NONE}},
	{"add a body", make, call_add_body, {NONE}},
	{"read a body", make_sealed, call_read_body, {NONE}},
	/* Records of an older plan have its number. */
	{"put a plan", make_sealed, call_put_plan, {{"unlinkat", "done"}, NONE}},
	{"note what is done", make_planned, call_note_done, {NONE}},
	{"get a plan", make_planned, call_get_plan, {NONE}},
	/* Without a plan, the other files mean nothing. */
	{"remove a plan",
	 make_planned,
	 call_remove_plan,
	 {{"unlinkat", "done"}, {"unlinkat", "bodies"}, {"fsync", ""}, NONE}},
	{"log removed objects", make_log, call_log_removed, {NONE}},
};

static bool is_ignored(const struct row *row)
{
	for (const struct ignored *i = row->ignored; i->call; i++)
		if (strcmp(disk.failed, i->call) == 0 &&
		    strncmp(disk_base_name(disk.failed_path), i->name, strlen(i->name)) == 0)
			return true;
	return false;
}

/* ---- the journal afterwards ---- */

static int count_item(void *ctx, const struct journal_item *item)
{
	assert_int_equal(item->state, JOURNAL_LEFT);
	memcpy(ctx, item->id, JOURNAL_ID);
	return 0;
}

/* Whether there is what a draft leaves that could not be made. */
static bool has_half_a_draft(const struct rig *r)
{
	char pattern[128];
	glob_t found;
	snprintf(pattern, sizeof(pattern), "%s/2/*/*.new", r->f.path);
	const int rc = glob(pattern, 0, NULL, &found);
	assert_true(rc == 0 || rc == GLOB_NOMATCH);
	globfree(&found);
	return rc == 0;
}

static struct content {
	uint8_t bytes[BYTES];
	size_t n;
} row_before, row_after; /* a call that succeeds */

static void read_content(struct draft *d, struct content *c)
{
	memset(c, 0, sizeof(*c));
	if (d)
		must(draft_read(d, 0, c->bytes, BYTES, &c->n, NULL));
}

/* Each byte is the old or the new one. After a success, all are new. */
static void check_content(const struct row *row, unsigned int n, struct draft *d, bool succeeded)
{
	static struct content now;
	const struct content *before = succeeded ? &row_after : &row_before, *after = &row_after;
	read_content(d, &now);
	if (now.n != before->n && now.n != after->n)
		fail_msg("%s, call %u: the size is %zu", row->name, n, now.n);
	for (size_t i = 0; i < now.n; i++)
		if (now.bytes[i] != before->bytes[i] && now.bytes[i] != after->bytes[i])
			fail_msg("%s, call %u: byte %zu is %u", row->name, n, i, now.bytes[i]);
}

/* The process ends, and the next one opens the draft. */
static void check_journal(const struct row *row, unsigned int n, struct rig *r, bool succeeded)
{
	char id[JOURNAL_ID] = "";
	struct draft *d;
	struct err err = ERR_INIT;
	draft_snapshot_close(r->snapshot);
	r->snapshot = NULL;
	gc_log_free(r->log);
	r->log = NULL;
	assert_false(has_half_a_draft(r));
	draft_close(r->d);
	r->d = NULL;
	journal_close(r->f.j);
	fixture_open(&r->f, 1 << 30);
	must(journal_list(r->f.j, count_item, id, NULL));
	assert_int_equal(id[0] != '\0', r->id[0] != '\0');
	if (!id[0])
		return;
	if (draft_open(r->f.j, id, NULL, &d, &err))
		fail_msg("%s, call %u: %s", row->name, n, err.msg);
	check_content(row, n, d, succeeded);
	must(draft_drop(d, NULL));
}

/* n 0: nothing fails. Returns false if the call n was not reached. */
static bool fail_at(struct rig *r, const struct row *row, unsigned int n, int code)
{
	r->id[0] = '\0';
	row->before(r);
	if (!n)
		read_content(r->d, &row_before);
	disk.reads = true;
	disk_fail(n ? FAILS_ONCE : WORKS, n, code);
	const int rc = row->call(r);
	const bool reached = n && disk.calls >= n;
	disk.how = WORKS;
	if (!n)
		read_content(r->d, &row_after);
	if (rc != (reached ? -code : 0) && !(rc == 0 && is_ignored(row)))
		fail_msg("%s: %s of %s fails: %d", row->name, reached ? disk.failed : "nothing",
			 disk.failed_path, rc);
	if (rc == 0 && row->call == call_create)
		memcpy(r->id, draft_id(r->d), JOURNAL_ID);
	check_journal(row, n, r, rc == 0);
	return reached;
}

static void each_call_returns_the_error(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rig r = {.id = ""};
		unsigned int n = 1;
		fixture_begin(&r.f, 1 << 30);
		fail_at(&r, &rows[i], 0, 0);
		while (fail_at(&r, &rows[i], n, n % 2 ? EIO : ENOSPC))
			n++;
		fixture_end(&r.f);
		if (n == 1)
			fail_msg("%s: it calls nothing", rows[i].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call_returns_the_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
