/* SPDX-License-Identifier: Apache-2.0 */
/* Drafts that become domains, and those that cannot. */
#include "draft_fixture.h"

#include <pthread.h>

#include "draft_files.h"

static const char folder[] =
	"{\"owner\": \"olaf\", \"acls\": {}, \"created\": 1.0, \"lastModified\": 1.0}";

static void a_small_domain_costs_its_objects_and_a_document(void **state)
{
	for (int known = 0; known < 2; known++) {
		struct world w;
		world_begin(&w, false, 0);
		if (known)
			world_put(&w, "home/.domain.json", folder, strlen(folder));
		world_put(&w, "home/b.txt", "", 0);
		names_node_unref(world_find(&w, "home"));
		world_draft(&w, "home/x.h5");
		world_write_file(&w, ONE);
		world_open_gate(&w);
		world_must_commit(&w, COMMIT_DOMAIN);
		assert_int_equal(w.gate->ops[STORE_PUT], 4); /* chunk, dataset, group, domain */
		assert_int_equal(w.gate->n, 4);
		assert_string_equal(w.result.kept, "");
		assert_int_equal(world_objects(&w, "home/x.h5"), 2);
		world_check_version(&w, "home/x.h5");
		/* Replaced by the same draft. */
		world_write_file(&w, OTHER);
		world_open_gate(&w);
		names_node_unref(world_find(&w, "home/x.h5"));
		const unsigned int looked = w.gate->n;
		world_must_commit(&w, COMMIT_DOMAIN);
		assert_int_equal(w.gate->ops[STORE_PUT], 6);
		/* Two requests more: what other names the old domain has, and whether another
		 * program has changed it in place. */
		assert_int_equal(w.gate->n, looked + 8);
		assert_int_equal(w.gate->ops[STORE_LIST], 1);
		assert_int_equal(world_objects(&w, "home/x.h5"), 2);
		world_collect(&w);
		assert_int_equal(world_keys(&w, "db/"), 5);
		world_end(&w);
	}
}

static void a_folder_gets_a_document_where_the_one_above_has_one(void **state)
{
	struct world w;
	world_begin(&w, false, 0);
	world_put(&w, "home/.domain.json", folder, strlen(folder));
	world_draft(&w, "home/a/b/x.h5");
	world_write_file(&w, ONE);
	world_must_commit(&w, COMMIT_DOMAIN);
	assert_int_equal(world_objects(&w, "home/a/b/x.h5"), 2);
	assert_int_equal(world_keys(&w, "home/a/.domain.json"), 1);
	assert_int_equal(world_keys(&w, "home/a/b/.domain.json"), 1);
	world_end(&w);
}

static void the_owner_of_a_replaced_domain_is_kept(void **state)
{
	static const char document[] =
		"{\"root\": \"g-11111111-22222222-9999-9999aa-aaaaaa\", \"owner\": \"olaf\", "
		"\"acls\": {\"eve\": {\"read\": true}}, \"created\": 1.0, \"lastModified\": 1.0}";
	struct world w;
	world_begin(&w, false, 0);
	world_put(&w, "x.h5/.domain.json", document, strlen(document));
	world_put(&w, "db/11111111-22222222/.group.json", "{}", 2);
	world_draft(&w, "x.h5");
	world_write_file(&w, ONE);
	world_open_gate(&w);
	world_must_commit(&w, COMMIT_DOMAIN);
	assert_int_equal(w.gate->n, 5);
	auto_names_node struct names_node *n = world_find(&w, "x.h5");
	assert_string_equal(n->doc.document->info.owner, "olaf");
	assert_int_equal(n->doc.document->info.nacls, 1);
	assert_string_equal(n->doc.document->info.acls[0].user, "eve");
	assert_int_equal(world_keys(&w, "db/11111111"), 1); /* readers may still have it open */
	world_collect(&w);
	assert_int_equal(world_keys(&w, "db/11111111"), 0);
	world_end(&w);
}

/* ---- what is no domain ---- */

static void assert_kept(struct world *w, const char *text)
{
	char note[STORE_NOTE_MAX + 1];
	if (world_commit(w, true))
		fail_msg("%s", w->err.msg);
	assert_int_equal(w->result.kind, COMMIT_OBJECT);
	assert_string_equal(w->result.kept, text);
	assert_int_equal(call_note(w->gate->base.inner, "x.h5", note, NULL), 0);
	assert_string_equal(note, text);
	world_check_version(w, "x.h5");
}

static const char not_closed[] =
	"the program that wrote it has not closed it; if it is complete, use "
	"`hsimage import`";

static void an_unclosed_file_waits_for_its_last_writer(void **state)
{
	struct world w;
	world_begin_file(&w, "x.h5", ONE);
	assert_int_equal(draft_write(w.draft, 20, "\1", 1, NULL), 0);
	world_open_gate(&w);
	assert_int_equal(world_commit(&w, false), 0);
	assert_int_equal(w.result.kind, COMMIT_WAITS);
	assert_string_equal(w.result.kept, not_closed);
	assert_int_equal(w.gate->n, 0);
	assert_kept(&w, not_closed);
	assert_int_equal(world_keys(&w, ""), 1);
	world_collect(&w);
	world_end(&w);
}

/* A program has copied a file that has bytes behind its end. */
static void bytes_behind_the_end_are_left_out(void **state)
{
	struct world w;
	size_t n;
	uint8_t *bytes = file_bytes(ONE, &n);
	for (int written = 0; written < 2; written++) {
		world_begin_file(&w, "x.h5", ONE);
		assert_int_equal(draft_write(w.draft, n, "\n", 1, NULL), 0);
		/* A library that writes a file does not write its bytes in their order. */
		if (written)
			assert_int_equal(draft_write(w.draft, 0, bytes, 1, NULL), 0);
		assert_int_equal(world_commit(&w, false), 0);
		assert_int_equal(w.result.kind, COMMIT_WAITS);
		if (written) {
			assert_kept(&w, "the program that wrote it has not closed it: it has 3509 "
					"bytes, but its superblock says 3508; if it is complete, "
					"use `hsimage import`");
		} else {
			if (world_commit(&w, true))
				fail_msg("%s", w.err.msg);
			assert_int_equal(w.result.kind, COMMIT_DOMAIN);
			assert_string_equal(w.result.kept, "");
			assert_int_equal(world_chunks(&w, "x.h5"), 1);
		}
		world_end(&w);
	}
	free(bytes);
}

/* An old library that is killed leaves structures behind the end that it has recorded. */
static void structures_behind_the_end_keep_the_file(void **state)
{
	struct world w;
	size_t n;
	uint8_t *bytes = file_bytes(ONE, &n);
	bytes[41] = 0x08; /* of the recorded end: 2228 */
	world_begin(&w, false, 0);
	world_draft(&w, "x.h5");
	world_write(&w, bytes, n);
	assert_kept(&w, "the program that wrote it has not closed it: it has 3508 bytes, but its "
			"superblock says 2228; if it is complete, use `hsimage import`");
	world_end(&w);
	free(bytes);
}

static void a_file_without_its_end_waits(void **state)
{
	struct world w;
	world_begin_file(&w, "x.h5", ONE);
	assert_int_equal(draft_resize(w.draft, 3000, NULL), 0);
	assert_int_equal(world_commit(&w, false), 0);
	assert_int_equal(w.result.kind, COMMIT_WAITS);
	assert_kept(&w, "its end is missing: it has 3000 of 3508 bytes");
	world_end(&w);
}

static void a_damaged_file_waits(void **state)
{
	struct world w;
	world_begin_file(&w, "x.h5", ONE);
	assert_int_equal(draft_write(w.draft, 800, "damagedamage", 12, NULL), 0);
	world_open_gate(&w);
	assert_int_equal(world_commit(&w, false), 0);
	assert_int_equal(w.result.kind, COMMIT_WAITS);
	assert_int_equal(w.gate->n, 0);
	struct draft_stat stat;
	draft_get_stat(w.draft, &stat);
	assert_int_equal(stat.mark, 0); /* nothing has begun */
	world_commit(&w, true);
	assert_int_equal(w.result.kind, COMMIT_OBJECT);
	assert_int_equal(strncmp(w.result.kept, "it is damaged: /x: ", 19), 0);
	world_end(&w);
}

/* The damage is found while the chunks are put. What was put is removed later. */
static void damaged_data_are_found_on_the_way(void **state)
{
	struct world w;
	size_t n;
	world_begin(&w, false, 0);
	world_draft(&w, "x.h5");
	uint8_t *bytes = file_bytes(OTHER, &n);
	/* The last element, 299. */
	for (size_t i = n - 4; i > 0; i--)
		if (memcmp(bytes + i, "\x2b\1\0", 4) == 0) {
			bytes[i]++;
			break;
		}
	world_write(&w, bytes, n);
	assert_int_equal(world_commit(&w, false), 0);
	assert_int_equal(w.result.kind, COMMIT_WAITS);
	assert_kept(&w, "it is damaged: dataset /y: chunk (2): fletcher32: the checksum is "
			"b7e87661, that of the data is b9e87761");
	world_check_object(&w, "x.h5", bytes, n);
	free(bytes);
	world_collect(&w);
	assert_int_equal(world_keys(&w, ""), 1);
	world_end(&w);
}

/* Complete, so it does not wait. */
static void what_a_domain_cannot_hold_is_an_object(void **state)
{
	struct world w;
	world_begin_file(&w, "x.h5", REFUSED);
	world_open_gate(&w);
	assert_int_equal(world_commit(&w, false), 0);
	assert_int_equal(w.gate->n, 1);
	assert_int_equal(w.result.kind, COMMIT_OBJECT);
	assert_string_equal(w.result.kept,
			    "a domain cannot hold it: /group/virtual: a virtual dataset");
	world_end(&w);
}

static void a_domain_that_a_listing_would_not_show_is_an_object(void **state)
{
	struct world w;
	world_begin(&w, false, 0);
	world_put(&w, "run.h5", "object", 6);
	world_draft(&w, "run");
	world_write_file(&w, ONE);
	world_must_commit(&w, COMMIT_OBJECT);
	assert_string_equal(w.result.kept,
			    "as a domain it would be listed as run.h5, which exists");
	world_draft(&w, "other");
	world_write_file(&w, ONE);
	world_must_commit(&w, COMMIT_DOMAIN);
	assert_int_equal(world_objects(&w, "other"), 2);
	world_write_file(&w, OTHER);
	world_must_commit(&w, COMMIT_DOMAIN);
	world_end(&w);
}

static void a_domain_whose_listed_name_is_too_long_is_an_object(void **state)
{
	char name[254];
	struct world w;
	world_begin(&w, false, 0);
	memset(name, 'n', 253);
	name[253] = '\0';
	world_draft(&w, name);
	world_write_file(&w, ONE);
	world_must_commit(&w, COMMIT_OBJECT);
	assert_string_equal(w.result.kept,
			    "as a domain it would be listed with .h5, and this name is too long");
	world_draft(&w, name + 1);
	world_write_file(&w, ONE);
	world_must_commit(&w, COMMIT_DOMAIN);
	world_end(&w);
}

/* ---- errors ---- */

/* Also while the name is looked up under which the domain would be listed. */
static void a_look_up_that_fails_makes_no_object(void **state)
{
	for (unsigned int at = 1; at <= 9; at++) {
		struct world w;
		world_begin_file(&w, "run", ONE);
		gate_fail(w.gate, at, -EIO);
		const int rc = world_commit(&w, true);
		assert_true(rc == 0 || rc == -EIO);
		if (rc == 0)
			assert_int_equal(w.result.kind, COMMIT_DOMAIN);
		world_open_gate(&w);
		if (rc)
			world_must_commit(&w, COMMIT_DOMAIN);
		world_end(&w);
	}
}

struct failing {
	uint8_t *bytes;
	size_t n;
	uint64_t from; /* reads behind this offset fail */
};

static int read_failing(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	const struct failing *f = ctx;
	if (offset + n > f->from)
		return err_set(err, -EIO, "the spool's disk failed in the test");
	memcpy(buf, f->bytes + offset, n);
	return 0;
}

static void an_error_of_the_disk_stores_nothing(void **state)
{
	static const uint64_t from[] = {0, 8, 100, 3000};
	for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
		struct world w;
		struct failing f = {.from = from[i]};
		world_begin(&w, false, 0);
		f.bytes = file_bytes(OTHER, &f.n);
		const struct draft_beneath beneath = {.read = read_failing, .ctx = &f};
		const struct draft_about about = {.kind = DRAFT_CHANGE,
						  .path = "x.h5",
						  .name = "x.h5",
						  .version = "",
						  .beneath = f.n,
						  .created_ns = 1};
		assert_int_equal(draft_create(w.f.j, &about, &beneath, &w.draft, NULL), 0);
		assert_int_equal(world_commit(&w, true), -EIO);
		assert_non_null(strstr(w.err.msg, "the spool's disk failed in the test"));
		assert_int_equal(world_keys(&w, "x.h5"), 0);
		f.from = UINT64_MAX;
		world_must_commit(&w, COMMIT_DOMAIN);
		world_collect(&w);
		assert_int_equal(world_keys(&w, ""), 6);
		free(f.bytes);
		world_end(&w);
	}
}

static void an_error_of_the_bucket_makes_no_object(void **state)
{
	static const int codes[] = {-EIO, -EACCES, -ENOSPC, -EOPNOTSUPP, -ENOMEM};
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		for (unsigned int at = 1; at <= 4; at++) {
			struct world w;
			world_begin_file(&w, "x.h5", ONE);
			gate_fail(w.gate, at, codes[i]);
			assert_int_equal(world_commit(&w, true), codes[i]);
			assert_int_equal(world_keys(&w, "x.h5"), 0);
			world_end(&w);
		}
}

static void a_disk_that_fails_to_sync_publishes_nothing(void **state)
{
	struct world w;
	world_begin_file(&w, "x.h5", ONE);
	w.gate->sync = -EIO;
	assert_int_equal(world_commit(&w, true), -EIO);
	assert_int_equal(world_keys(&w, "x.h5"), 0);
	w.gate->sync = 0;
	world_must_commit(&w, COMMIT_DOMAIN);
	world_collect(&w);
	assert_int_equal(world_keys(&w, ""), 4);
	world_end(&w);
}

static void a_cancelled_commit_can_be_repeated(void **state)
{
	struct world w;
	struct draft_snapshot *s;
	atomic_bool cancelled = true;
	world_begin_file(&w, "x.h5", ONE);
	assert_int_equal(draft_seal(w.draft, &s, NULL), 0);
	struct commit c = {.bucket = &w.e->bucket,
			   .draft = w.draft,
			   .snapshot = s,
			   .number = 1,
			   .cancelled = &cancelled};
	assert_int_equal(draft_commit(&c, &w.result, &w.err), -ECANCELED);
	assert_int_equal(world_keys(&w, ""), 0);
	cancelled = false;
	assert_int_equal(draft_commit(&c, &w.result, &w.err), 0);
	assert_int_equal(w.result.kind, COMMIT_DOMAIN);
	draft_snapshot_close(s);
	world_end(&w);
}

/* ---- draft that is dropped ---- */

static void the_storage_of_a_dropped_draft_is_garbage(void **state)
{
	for (unsigned int at = 1; at <= 4; at++) {
		struct world w;
		world_begin_file(&w, "x.h5", ONE);
		gate_fail(w.gate, at, -EIO);
		w.gate->after = true;
		assert_int_equal(world_commit(&w, true), -EIO);
		draft_commit_forget(&w.e->bucket, w.draft, &w.left);
		assert_int_equal(draft_drop(w.draft, NULL), 0);
		w.draft = NULL;
		world_open_gate(&w);
		world_collect(&w);
		/* The document of the domain was put after all. */
		assert_int_equal(world_keys(&w, ""), at == 4 ? 4 : 0);
		world_end(&w);
	}
}

/* ---- threads ---- */

enum { THREADS = 16 };

struct thread {
	pthread_t thread;
	struct world *w;
	struct draft *draft;
	int rc;
	struct commit_result result;
};

static void *commit_one(void *arg)
{
	struct thread *t = arg;
	struct draft_snapshot *s;
	t->rc = draft_seal(t->draft, &s, NULL);
	if (t->rc)
		return NULL;
	const struct commit c = {.bucket = &t->w->e->bucket,
				 .draft = t->draft,
				 .snapshot = s,
				 .number = 1,
				 .is_last = true};
	t->rc = draft_commit(&c, &t->result, NULL);
	draft_snapshot_close(s);
	return NULL;
}

static void many_commits_run_at_a_time(void **state)
{
	struct world w;
	struct thread t[THREADS];
	char name[32];
	size_t n;
	world_begin(&w, false, 4);
	uint8_t *bytes = file_bytes(OTHER, &n);
	for (unsigned int i = 0; i < THREADS; i++) {
		snprintf(name, sizeof(name), "home/%u.h5", i);
		world_draft(&w, name);
		/* Every fourth one is no domain. */
		world_write(&w, bytes + (i % 4 == 3), n - 1 + (i % 4 != 3));
		t[i] = (struct thread){.w = &w, .draft = w.draft};
		w.draft = NULL;
	}
	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i].thread, NULL, commit_one, &t[i]), 0);
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(t[i].thread, NULL);
		assert_int_equal(t[i].rc, 0);
		assert_int_equal(t[i].result.kind, i % 4 == 3 ? COMMIT_OBJECT : COMMIT_DOMAIN);
		assert_int_equal(draft_drop(t[i].draft, NULL), 0);
	}
	free(bytes);
	assert_int_equal(world_keys(&w, ""), THREADS / 4 + THREADS * 3 / 4 * 6);
	world_end(&w);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_small_domain_costs_its_objects_and_a_document),
		TEST(a_folder_gets_a_document_where_the_one_above_has_one),
		TEST(the_owner_of_a_replaced_domain_is_kept),
		TEST(an_unclosed_file_waits_for_its_last_writer),
		TEST(a_file_without_its_end_waits),
		TEST(bytes_behind_the_end_are_left_out),
		TEST(structures_behind_the_end_keep_the_file),
		TEST(a_damaged_file_waits),
		TEST(damaged_data_are_found_on_the_way),
		TEST(what_a_domain_cannot_hold_is_an_object),
		TEST(a_domain_that_a_listing_would_not_show_is_an_object),
		TEST(a_domain_whose_listed_name_is_too_long_is_an_object),
		TEST(a_look_up_that_fails_makes_no_object),
		TEST(an_error_of_the_disk_stores_nothing),
		TEST(an_error_of_the_bucket_makes_no_object),
		TEST(a_disk_that_fails_to_sync_publishes_nothing),
		TEST(a_cancelled_commit_can_be_repeated),
		TEST(the_storage_of_a_dropped_draft_is_garbage),
		TEST(many_commits_run_at_a_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
