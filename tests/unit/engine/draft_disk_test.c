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
	drafts_recover(w->e, drafts_journal(w->e->drafts), NULL, &left);
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

/* ---- the tests ---- */

/* False: the call n was not reached. */
static bool fail_at(const char *name, bool is_domain, bool syncs, enum how how, unsigned int n)
{
	struct world w;
	table_begin(&w, false, 0);
	disk.reads = true;
	disk_fail(how, n, EIO);
	const struct told t = run(&w, name, syncs);
	const bool reached = disk.calls >= n;
	disk.how = WORKS;
	const bool stored = bucket_has(&w, name, is_domain);
	if (!t.open && !t.write && !t.close && !stored)
		fail_msg("%s: %s of %s fails, the program is told of success, and the bucket does "
			 "not have the file",
			 name, disk.failed, disk.failed_path);
	if (!reached && (t.open || t.write || t.close || t.sync))
		fail_msg("%s: %d %d %d without a failure", name, t.open, t.write, t.close);
	mount_again(&w);
	if (!t.open && !t.write && !bucket_has(&w, name, is_domain) && !journal_has(&w))
		fail_msg("%s: %s of %s fails, and what was written is nowhere", name, disk.failed,
			 disk.failed_path);
	table_end(&w);
	return reached;
}

static void fail_everywhere(const char *name, bool is_domain)
{
	const enum how hows[] = {FAILS_ONCE, FAILS_FOR_GOOD};
	for (unsigned int i = 0; i < 2; i++) {
		unsigned int n = 1;
		while (fail_at(name, is_domain, i, hows[i], n))
			n += EVERY;
		assert_true(n > 8);
	}
	bytes_release(&text);
}

static void a_plain_file(void **state)
{
	make_text();
	fail_everywhere("a.txt", false);
}

static void an_hdf5_file(void **state)
{
	text = data_file(ONE);
	fail_everywhere("a.h5", true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_file),
		cmocka_unit_test(an_hdf5_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
