/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that write files while the disk of the journal fails at the n-th call of libc, for n =
 * 1, 2, … until nothing fails. What a program was told is true: if close() has succeeded, the
 * bucket has the file, and if a write has succeeded, the bucket or the journal has the bytes.
 */
#include "disk_calls.h"

#include "draft_files.h"
#include "drafts_fixture.h"

/* The sanitizers are slow: with them, only some of the calls fail. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { EVERY = 5 };
#else
enum { EVERY = 1 };
#endif

enum { TEXT_SIZE = 100000 };

/* What the program was told. */
struct told {
	int open, write, sync, close;
};

static struct bytes text; /* what it writes */

static void make_text(void)
{
	uint8_t *bytes = malloc(TEXT_SIZE);
	assert_non_null(bytes);
	memset(bytes, 't', TEXT_SIZE);
	text = (struct bytes){.data = bytes, .len = TEXT_SIZE};
}

/* Its writes end with the first one that fails. */
static int write_all(struct engine_file *f)
{
	const size_t half = text.len / 2;
	ssize_t n = engine_pwrite(f, text.data, half, 0, NULL);
	if (n == (ssize_t)half)
		n = engine_pwrite(f, text.data + half, text.len - half, half, NULL);
	return n < 0 ? (int)n : 0;
}

static struct told run(struct world *w, const char *name, bool syncs)
{
	struct told t = {0};
	struct engine_file *f = NULL;
	t.open = engine_open_write(w->e, name, NEW, &f, NULL);
	if (t.open)
		return t;
	t.write = write_all(f);
	if (syncs)
		t.sync = engine_sync(f, NULL);
	t.close = engine_flush(f, NULL);
	engine_file_close(f);
	return t;
}

/* ---- afterwards ---- */

/* The mount ends, and the next one finishes what it can. */
static void mount_again(struct world *w)
{
	atomic_uint_fast64_t left = 0;
	drafts_free(w->e->drafts);
	w->e->drafts = NULL;
	table_new(w, 0);
	drafts_recover(&w->e->bucket, w->e->drafts, drafts_journal(w->e->drafts), NULL, &left);
}

struct search {
	struct journal *j;
	bool found;
};

static int compare_draft(void *ctx, const struct journal_item *item)
{
	struct search *s = ctx;
	struct draft *d;
	size_t got;
	assert_int_equal(item->state, JOURNAL_LEFT);
	auto_free uint8_t *bytes = malloc(text.len + 1);
	assert_int_equal(draft_open(s->j, item->id, NULL, &d, NULL), 0);
	assert_int_equal(draft_read(d, 0, bytes, text.len + 1, &got, NULL), 0);
	s->found |= got == text.len && memcmp(bytes, text.data, text.len) == 0;
	draft_close(d);
	return 0;
}

static bool journal_has(struct world *w)
{
	struct search s = {.j = drafts_journal(w->e->drafts)};
	assert_int_equal(journal_list(s.j, compare_draft, &s, NULL), 0);
	return s.found;
}

static bool bucket_has(struct world *w, const char *name, bool is_domain)
{
	struct call_result res;
	if (is_domain)
		return world_objects(w, name) == 2;
	if (!in_bucket(w, name))
		return false;
	assert_int_equal(call_get(w->gate->base.inner, name, 0, STORE_TO_END, 0, NULL, &res, NULL),
			 0);
	const bool same =
		res.body.len == text.len && memcmp(res.body.data, text.data, text.len) == 0;
	bytes_release(&res.body);
	return same;
}

/* ---- failures ---- */

enum fault { DISK_ONCE, DISK_FOR_GOOD, REQUEST_ONCE, REQUESTS_FOR_GOOD, FAULTS };

static void begin_fault(struct world *w, enum fault fault, unsigned int n)
{
	gate_open(w->gate);
	disk.calls = 0;
	disk.reads = true;
	if (fault == DISK_ONCE || fault == DISK_FOR_GOOD) {
		disk_fail(fault == DISK_ONCE ? FAILS_ONCE : FAILS_FOR_GOOD, n, EIO);
	} else {
		gate_fail(w->gate, n, -EIO);
		w->gate->later = fault == REQUESTS_FOR_GOOD;
	}
}

/* Whether the call n was reached. */
static bool end_fault(struct world *w, unsigned int n)
{
	const bool reached = disk.calls >= n || (w->gate->at && w->gate->n >= n);
	disk.how = WORKS;
	gate_open(w->gate);
	return reached;
}

/* ---- the tests ---- */

/* What the name has before: NULL, a file, or "text". */
struct disk_case {
	const char *name, *old;
	bool is_domain; /* what is written becomes one */
};

static void put_old(struct world *w, const struct disk_case *c)
{
	if (!c->old)
		return;
	const bool is_text = strcmp(c->old, "text") == 0;
	struct bytes old = is_text ? (struct bytes){.data = NULL} : data_file(c->old);
	struct engine_file *f = open_write(w, c->name, NEW);
	if (is_text)
		put_text(f, 0, "text");
	else
		assert_int_equal(engine_pwrite(f, old.data, old.len, 0, NULL), old.len);
	close_ok(f);
	bytes_release(&old);
}

static void check_told(struct world *w, const struct disk_case *c, const struct told *t,
		       bool reached)
{
	const bool succeeded = !t->open && !t->write && !t->close;
	if (succeeded && !bucket_has(w, c->name, c->is_domain))
		fail_msg("%s: close() succeeds, and the bucket does not have the file", c->name);
	/* A domain that was replaced is gone. */
	if (succeeded && !c->is_domain)
		assert_int_equal(world_objects(w, c->name), 0);
	if (!reached && (!succeeded || t->sync))
		fail_msg("%s: %d %d %d %d without a failure", c->name, t->open, t->write, t->sync,
			 t->close);
}

/* False: the call n was not reached. */
static bool fail_at(const struct disk_case *c, enum fault fault, unsigned int n)
{
	struct world w;
	table_begin(&w, false, 0);
	put_old(&w, c);
	begin_fault(&w, fault, n);
	const struct told t = run(&w, c->name, fault == DISK_FOR_GOOD);
	const bool reached = end_fault(&w, n);
	check_told(&w, c, &t, reached);
	mount_again(&w);
	if (!t.open && !t.write && !bucket_has(&w, c->name, c->is_domain) && !journal_has(&w))
		fail_msg("%s, failure %d at %u: what was written is nowhere", c->name, fault, n);
	table_end(&w);
	return reached;
}

static void fail_everywhere(const struct disk_case *c)
{
	/* What the bucket has before makes a difference for requests only. */
	for (enum fault fault = c->old ? REQUEST_ONCE : DISK_ONCE; fault < FAULTS; fault++) {
		unsigned int n = 1;
		while (fail_at(c, fault, n))
			n += EVERY;
		assert_true(n > 1);
	}
	bytes_release(&text);
}

static void a_plain_file(void **state)
{
	static const struct disk_case cases[] = {{"a.txt", NULL, false}, {"a.h5", OTHER, false}};
	for (unsigned int i = 0; i < 2; i++) {
		make_text();
		fail_everywhere(&cases[i]);
	}
}

static void an_hdf5_file(void **state)
{
	static const struct disk_case cases[] = {{"a.h5", NULL, true}, {"a.h5", "text", true}};
	for (unsigned int i = 0; i < 2; i++) {
		text = data_file(ONE);
		fail_everywhere(&cases[i]);
	}
}

/* The first write fails because the journal cannot make the draft. The file lacks that part. A
 * journal on a network file system may fail with ESTALE, too. */
static void a_write_without_a_draft(void **state)
{
	static const struct disk_case old = {"a.txt", "text", false};
	const int errors[] = {EIO, ESTALE};
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		struct world w;
		table_begin(&w, false, 0);
		put_old(&w, &old);
		struct engine_file *f = open_write(&w, old.name, 0);
		disk_fail(FAILS_FOR_GOOD, 1, errors[i]);
		assert_int_equal(engine_pwrite(f, "new", 3, 0, NULL), -errors[i]);
		disk.how = WORKS;
		put_text(f, 3, "s");
		assert_int_equal(engine_flush(f, NULL), 0);
		engine_file_close(f);
		world_check_object(&w, old.name, "text", 4);
		table_end(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_file),
		cmocka_unit_test(an_hdf5_file),
		cmocka_unit_test(a_write_without_a_draft),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
