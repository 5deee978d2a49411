/* SPDX-License-Identifier: Apache-2.0 */
/* The storage of removed domains is deleted after a crash of the process that has removed them. */
#include "bucket.h"

#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <sys/wait.h>

#include "engine/engine_internal.h"
#include <bucket/schemas.h>

static bool has_storage(struct test_bucket *b, unsigned int n)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/db/%08x-00000000/.group.json", b->dir, n);
	return access(path, F_OK) == 0;
}

static struct schema_document *document_of(struct test_bucket *b, const char *path)
{
	auto_names_node struct names_node *n = NULL;
	assert_int_equal(names_resolve(b->engine->bucket.names, path, &n, NULL), 0);
	return schema_document_ref(n->doc.document);
}

/* Runs fn in a process that is killed after it. */
static void killed(struct test_bucket *b, void (*fn)(struct test_bucket *b))
{
	int status;
	const pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		bucket_open_rw(b, 1, NULL);
		fn(b);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* The next mount, from its start to its end. */
static void mount_again(struct test_bucket *b)
{
	struct engine_options opt = bucket_rw(b);
	opt.gc_delay = 0;
	bucket_open_as(b, opt);
	engine_start(b->engine);
	engine_close(b->engine);
	b->engine = NULL;
}

static void remove_some(struct test_bucket *b)
{
	assert_int_equal(engine_unlink(b->engine, "a.h5", NULL), 0);
	assert_int_equal(engine_rename(b->engine, "b.h5", "c.h5", 0, NULL), 0);
}

static void storage_is_deleted_by_the_next_mount(void **state)
{
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "a.h5");
	bucket_domain(b, 2, "b.h5");
	bucket_domain(b, 3, "c.h5");
	bucket_domain(b, 4, "d.h5");
	killed(b, remove_some);
	for (unsigned int n = 1; n <= 4; n++)
		assert_true(has_storage(b, n));
	mount_again(b);
	assert_false(has_storage(b, 1));
	assert_true(has_storage(b, 2));
	assert_false(has_storage(b, 3));
	assert_true(has_storage(b, 4));
}

static void open_and_die(struct test_bucket *b)
{
	engine_start(b->engine);
}

/* A mount that takes the notes over, and is killed, too. */
static void notes_survive_again(void **state)
{
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "a.h5");
	bucket_domain(b, 2, "b.h5");
	killed(b, remove_some);
	killed(b, open_and_die);
	killed(b, open_and_die);
	assert_true(has_storage(b, 1));
	mount_again(b);
	assert_false(has_storage(b, 1));
	assert_true(has_storage(b, 2));
}

static void name_elsewhere(struct test_bucket *b)
{
	assert_int_equal(engine_unlink(b->engine, "a.h5", NULL), 0);
	assert_int_equal(engine_rename(b->engine, "twin.h5", "home/twin.h5", 0, NULL), 0);
}

/* The storage has another name in another folder. */
static void storage_with_another_name_stays(void **state)
{
	struct test_bucket *b = *state;
	bucket_folder(b, "home");
	bucket_domain(b, 1, "a.h5");
	bucket_domain(b, 1, "twin.h5");
	killed(b, name_elsewhere);
	mount_again(b);
	assert_true(has_storage(b, 1));
}

static void remove_one(struct test_bucket *b)
{
	assert_int_equal(engine_unlink(b->engine, "a.h5", NULL), 0);
}

/* Each number may be that of a storage. */
static void the_storage_of_number_0_is_deleted(void **state)
{
	struct test_bucket *b = *state;
	bucket_domain(b, 0, "a.h5");
	killed(b, remove_one);
	assert_true(has_storage(b, 0));
	mount_again(b);
	assert_false(has_storage(b, 0));
}

static struct {
	const char *path;
	const struct schema_document *lost, *next;
} expected;

static void only_expect(struct test_bucket *b)
{
	struct storage next;
	schema_storage_of(expected.next, &next);
	assert_non_null(
		garbage_expect(b->engine->bucket.garbage, expected.path, expected.lost, &next));
}

/* The process ended between the note and the change, or just after the change. */
static void changes_that_may_have_happened(void **state)
{
	static const struct {
		const char *path;
		unsigned int storage, next;
		bool deleted;
	} rows[] = {
		{"a.h5", 1, 0, false},	  /* it was not removed */
		{"a.h5", 1, 2, false},	  /* it was not replaced */
		{"b.h5", 3, 2, true},	  /* it was replaced */
		{"gone.h5", 3, 0, false}, /* another program may have renamed it */
		{"b.h5", 3, 1, false},	  /* the same */
	};
	struct test_bucket *b = *state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct schema_document *documents[4] = {NULL};
		bucket_domain(b, 1, "a.h5");
		bucket_domain(b, 2, "b.h5");
		bucket_domain(b, 3, "elsewhere/c.h5");
		bucket_open(b, 0, 0);
		documents[1] = document_of(b, "a.h5");
		documents[2] = document_of(b, "b.h5");
		documents[3] = document_of(b, "elsewhere/c.h5");
		engine_close(b->engine);
		bucket_remove(b, "elsewhere/c.h5/.domain.json");
		expected.path = rows[i].path;
		expected.lost = documents[rows[i].storage];
		expected.next = documents[rows[i].next];
		killed(b, only_expect);
		mount_again(b);
		assert_true(has_storage(b, 1));
		assert_true(has_storage(b, 2));
		assert_int_equal(has_storage(b, 3), !rows[i].deleted);
		/* The note is gone. */
		mount_again(b);
		assert_int_equal(has_storage(b, 3), !rows[i].deleted);
		for (int k = 0; k < 4; k++)
			schema_document_unref(documents[k]);
	}
}

/* A mount whose log is `text`. */
static void mount_logged(struct test_bucket *b, char *text, size_t size)
{
	struct engine_options opt = bucket_rw(b);
	struct log *log = log_new("test", LOG_LEVEL_WARNING);
	FILE *to = tmpfile();
	const int saved = dup(STDERR_FILENO);
	assert_true(to && saved >= 0);
	opt.log = log;
	dup2(fileno(to), STDERR_FILENO);
	bucket_open_as(b, opt);
	engine_start(b->engine);
	engine_close(b->engine);
	b->engine = NULL;
	dup2(saved, STDERR_FILENO);
	close(saved);
	const ssize_t n = pread(fileno(to), text, size - 1, 0);
	fclose(to);
	log_free(log);
	assert_true(n >= 0);
	text[n] = '\0';
}

/* Nobody deletes the storage of which they told. The log says so, once. */
static void damaged_notes_are_reported(void **state)
{
	struct test_bucket *b = *state;
	char text[1024];
	glob_t found;
	bucket_domain(b, 1, "a.h5");
	killed(b, remove_one);
	snprintf(text, sizeof(text), "%s/2/*/*.events", b->journal);
	assert_int_equal(glob(text, 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	FILE *f = fopen(found.gl_pathv[0], "r+");
	assert_non_null(f);
	fputs("damage", f);
	fclose(f);
	globfree(&found);
	mount_logged(b, text, sizeof(text));
	assert_non_null(strstr(text, " 1 damaged files (1 set aside), "));
	assert_true(has_storage(b, 1));
	mount_logged(b, text, sizeof(text));
	assert_string_equal(text, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bucket_setup, bucket_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(storage_is_deleted_by_the_next_mount), TEST(notes_survive_again),
		TEST(the_storage_of_number_0_is_deleted),   TEST(storage_with_another_name_stays),
		TEST(changes_that_may_have_happened),	    TEST(damaged_notes_are_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
