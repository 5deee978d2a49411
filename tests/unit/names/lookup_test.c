/* SPDX-License-Identifier: Apache-2.0 */
/* Names, kinds, modes, and the requests that finding them takes. */
#include "bucket.h"

#include "engine/engine_internal.h"
#include "names/rules.h"

#include <errno.h>

static void assert_kind(struct test_bucket *b, const char *path, enum engine_kind kind)
{
	struct engine_stat st;
	struct err err = ERR_INIT;
	if (engine_lookup(b->engine, path, &st, &err))
		fail_msg("%s: %s", path, err.msg);
	if (st.kind != kind)
		fail_msg("%s: kind %d", path, st.kind);
}

static void assert_absent(struct test_bucket *b, const char *path)
{
	struct engine_stat st;
	if (engine_lookup(b->engine, path, &st, NULL) != -ENOENT)
		fail_msg("%s is there", path);
}

static void a_folder_shows_what_is_in_it(void **state)
{
	struct test_bucket *b = *state;
	bucket_folder(b, "home");
	bucket_folder(b, "home/empty");
	bucket_domain(b, 1, "home/x.h5");
	bucket_domain(b, 2, "home/data.nc");
	bucket_domain(b, 3, "home/sub/deep.h5");
	bucket_put(b, "home/notes.txt", "plain");
	bucket_put(b, "top", "plain");
	bucket_open(b, 1, 0);
	assert_string_equal(bucket_list(b, "").text, "home/ top=");
	assert_string_equal(bucket_list(b, "home").text, "data.nc empty/ notes.txt= sub/ x.h5");
	assert_string_equal(bucket_list(b, "home/empty").text, "");
	assert_string_equal(bucket_list(b, "home/sub").text, "deep.h5");
	assert_int_equal(bucket_list(b, "home/x.h5").code, -ENOTDIR);
	assert_int_equal(bucket_list(b, "nowhere").code, -ENOENT);
}

static void storage_and_documents_are_hidden(void **state)
{
	static const char *const hidden[] = {"db", "db/00000001-00000000", ".domain.json",
					     "home/.domain.json", "home/x.h5/.domain.json"};
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "home/x.h5");
	bucket_put(b, ".domain.json", "{\"owner\": \"ann\", \"acls\": {}}");
	bucket_open(b, 1, 0);
	assert_string_equal(bucket_list(b, "").text, "home/");
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		assert_absent(b, hidden[i]);
}

static void names_that_no_bucket_has_are_absent(void **state)
{
	static const char *const names[] = {"..",	   "../x",	 "home/../home/x.h5",
					    "/home",	   "home//x.h5", "home/x.h5/y",
					    "home/absent", "x\n"};
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "home/x.h5");
	bucket_open(b, 1, 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_absent(b, names[i]);
}

static void a_domain_without_extension_gets_one(void **state)
{
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "run");
	bucket_domain(b, 2, "run/part.h5");
	bucket_domain(b, 3, "alone");
	bucket_domain(b, 4, ".hidden");
	bucket_domain(b, 5, "end.");
	bucket_open(b, 0, 0);
	assert_string_equal(bucket_list(b, "").text, ".hidden.h5 alone.h5 end. run/ run.h5");
	assert_kind(b, "run.h5", ENGINE_DOMAIN);
	assert_kind(b, "run", ENGINE_DIR);
	assert_kind(b, "alone.h5", ENGINE_DOMAIN);
	assert_kind(b, ".hidden.h5", ENGINE_DOMAIN);
	assert_absent(b, "run.h5.h5");
	assert_absent(b, "end..h5");
}

static void assert_root(struct test_bucket *b, const char *path, unsigned int n)
{
	char root[64], wanted[16];
	const ssize_t len =
		engine_getxattr(b->engine, path, "user.hsds.root", root, sizeof(root) - 1, NULL);
	if (len <= 0)
		fail_msg("%s has no root", path);
	root[len] = '\0';
	snprintf(wanted, sizeof(wanted), "g-%08x", n);
	assert_memory_equal(root, wanted, strlen(wanted));
}

/* A domain without extension is found under its own name, too, unless something else has it. The
 * name in the cache never hides what gets the name later. */
static void a_domain_without_extension_is_found(void **state)
{
	struct test_bucket *b = *state;
	struct engine_stat st;
	struct engine_file *f;
	bucket_domain(b, 1, "run");
	bucket_domain(b, 2, ".hidden");
	bucket_domain(b, 3, "twice");
	bucket_domain(b, 4, "twice.h5");
	bucket_put(b, "broken/.domain.json", "[]");
	bucket_folder(b, "folder");
	bucket_open(b, 0, 0);
	assert_root(b, "run", 1);
	assert_root(b, "run.h5", 1);
	assert_root(b, ".hidden", 2);
	assert_root(b, "twice", 3);
	assert_root(b, "twice.h5", 4);
	assert_kind(b, "folder", ENGINE_DIR);
	assert_kind(b, "broken", ENGINE_DOMAIN);
	assert_int_equal(engine_file_open(b->engine, "broken", &f, NULL), -EIO);
	assert_string_equal(bucket_list(b, "").text,
			    ".hidden.h5 broken.h5 folder/ run.h5 twice.h5");
	assert_int_equal(bucket_list(b, "run").code, -ENOTDIR);
	assert_int_equal(engine_file_open(b->engine, "run", &f, NULL), 0);
	engine_file_close(f);
	/* A key below the domain makes it a directory, too. */
	bucket_put(b, "run/part", "plain");
	assert_int_equal(engine_file_open(b->engine, "run", &f, NULL), -EISDIR);
	assert_kind(b, "run", ENGINE_DIR);
	assert_root(b, "run.h5", 1);
	assert_string_equal(bucket_list(b, "run").text, "part=");
	bucket_remove(b, "run/part");
	assert_root(b, "run", 1);
	bucket_remove(b, "run/.domain.json");
	assert_int_equal(engine_lookup(b->engine, "run", &st, NULL), -ENOENT);
	assert_int_equal(engine_lookup(b->engine, "run.h5", &st, NULL), -ENOENT);
}

/* Lists the root. log: the lines that the engine writes meanwhile. */
static struct bucket_listing list_and_log(struct test_bucket *b, char *log, size_t size)
{
	FILE *to = tmpfile();
	const int saved = dup(STDERR_FILENO);
	assert_true(to && saved >= 0);
	dup2(fileno(to), STDERR_FILENO);
	const struct bucket_listing l = bucket_list(b, "");
	dup2(saved, STDERR_FILENO);
	close(saved);
	const ssize_t n = pread(fileno(to), log, size - 1, 0);
	fclose(to);
	assert_true(n >= 0);
	log[n] = '\0';
	return l;
}

static void a_domain_without_extension_is_left_out_if_its_name_is_taken(void **state)
{
	struct test_bucket *b = *state;
	struct engine_options opt;
	struct log *log = log_new("test", LOG_LEVEL_WARNING);
	char text[2048], longest[NAMES_MAX + 1];
	memset(longest, 'n', NAMES_MAX);
	longest[NAMES_MAX] = '\0';
	bucket_domain(b, 6, longest);
	bucket_domain(b, 1, "run");
	bucket_domain(b, 2, "run.h5");
	bucket_domain(b, 3, "x");
	bucket_put(b, "x.h5", "a plain object");
	bucket_domain(b, 4, "sub");
	bucket_put(b, "sub.h5/plain", "in a directory");
	bucket_domain(b, 5, "free");
	engine_options_init(&opt);
	opt.workers = 0;
	opt.metadata_ttl = 0;
	opt.log = log;
	bucket_open_as(b, opt);
	assert_string_equal(list_and_log(b, text, sizeof(text)).text,
			    "free.h5 run.h5 sub.h5/ x.h5=");
	assert_non_null(strstr(text, "domain /run is left out"));
	assert_non_null(strstr(text, "domain /x is left out"));
	assert_non_null(strstr(text, "domain /sub is left out of the directory: the name sub.h5"));
	assert_non_null(
		strstr(text, "1 keys cannot be file names and are left out; the first is nnn"));
	assert_null(strstr(text, "free"));
	assert_root(b, "run.h5", 2);
	assert_kind(b, "x.h5", ENGINE_PLAIN);
	assert_kind(b, "sub.h5", ENGINE_DIR);
	assert_absent(b, "run.h5.h5");
	assert_absent(b, "x.h5.h5");
	/* When the name becomes free, the domain is shown. */
	bucket_remove(b, "x.h5");
	assert_string_equal(list_and_log(b, text, sizeof(text)).text,
			    "free.h5 run.h5 sub.h5/ x.h5");
	assert_null(strstr(text, "/x"));
	assert_root(b, "x.h5", 3);
	engine_close(b->engine);
	b->engine = NULL;
	log_free(log);
}

static void a_file_wins_over_what_is_below_it(void **state)
{
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "a.h5");
	bucket_domain(b, 2, "a.h5/below.h5");
	bucket_open(b, 0, 0);
	assert_string_equal(bucket_list(b, "").text, "a.h5");
	assert_kind(b, "a.h5", ENGINE_DOMAIN);
}

static void a_broken_document_hides_no_other(void **state)
{
	struct test_bucket *b = *state;
	struct engine_file *f;
	struct err err = ERR_INIT;
	bucket_put(b, "bad.h5/.domain.json", "{\"root\": ");
	bucket_put(b, "bare/.domain.json", "[]");
	bucket_put(b, "folder.d/.domain.json", "\"?\"");
	bucket_domain(b, 1, "folder.d/x.h5");
	bucket_domain(b, 2, "good.h5");
	bucket_open(b, 1, 0);
	assert_string_equal(bucket_list(b, "").text, "bad.h5 bare.h5 folder.d/ good.h5");
	assert_kind(b, "bad.h5", ENGINE_DOMAIN);
	assert_kind(b, "bare.h5", ENGINE_DOMAIN);
	assert_kind(b, "folder.d", ENGINE_DIR);
	assert_string_equal(bucket_list(b, "folder.d").text, "x.h5");
	assert_int_equal(engine_file_open(b->engine, "bad.h5", &f, &err), -EIO);
	assert_non_null(strstr(err.msg, "bad.h5/.domain.json"));
}

static void leftovers_of_deleted_domains_are_not_shown(void **state)
{
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "gone.h5");
	bucket_domain(b, 2, "here.h5");
	bucket_open(b, 0, 0);
	bucket_remove(b, "gone.h5/.domain.json");
	assert_string_equal(bucket_list(b, "").text, "here.h5");
	assert_absent(b, "gone.h5");
}

static void modes_follow_the_acls(void **state)
{
	static const struct {
		const char *acls;
		unsigned int mode;
	} rows[] = {
		{"", 0444},
		{"\"ann\": " ACL_ALL, 0400},
		{"\"ann\": " ACL_ALL ", \"default\": " ACL_READ, 0444},
		{"\"ann\": " ACL_ALL ", \"default\": " ACL_NONE, 0400},
		{"\"ann\": " ACL_NONE ", \"default\": " ACL_READ, 0044},
		{"\"bob\": " ACL_ALL, 0},
		{"\"bob\": " ACL_ALL ", \"default\": " ACL_READ, 0444},
	};
	struct test_bucket *b = *state;
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[32];
		snprintf(path, sizeof(path), "%u.h5", i);
		bucket_domain_acls(b, i + 1, path, rows[i].acls);
	}
	bucket_folder(b, "open");
	bucket_put(b, "plain", "");
	bucket_put(b, "prefix/plain", "");
	bucket_open(b, 1, 0);
	struct engine_stat st;
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[32];
		snprintf(path, sizeof(path), "%u.h5", i);
		assert_int_equal(engine_lookup(b->engine, path, &st, NULL), 0);
		if (st.mode != rows[i].mode)
			fail_msg("%s: mode %o instead of %o", rows[i].acls, st.mode, rows[i].mode);
	}
	assert_int_equal(engine_lookup(b->engine, "open", &st, NULL), 0);
	assert_int_equal(st.mode, 0555);
	assert_int_equal(engine_lookup(b->engine, "prefix", &st, NULL), 0);
	assert_int_equal(st.mode, 0555);
	assert_int_equal(engine_lookup(b->engine, "plain", &st, NULL), 0);
	assert_int_equal(st.mode, 0444);
}

static void valid_names_cost_no_request(void **state)
{
	struct test_bucket *b = *state;
	struct engine_stat st;
	for (unsigned int i = 1; i <= 20; i++) {
		char path[32];
		snprintf(path, sizeof(path), "d/%02u.h5", i);
		bucket_domain(b, i, path);
	}
	bucket_open(b, 1000, 0);
	bucket_list(b, "d");
	struct bucket_counts first = bucket_counts(b);
	/* None for the root; a round for "d"; each domain's document. */
	assert_int_equal(first.gets, 2 + 20);
	assert_int_equal(first.lists, 2);
	bucket_list(b, "d");
	struct bucket_counts again = bucket_counts(b);
	assert_int_equal(again.gets, first.gets);
	assert_int_equal(again.lists, first.lists + 1);
	for (unsigned int i = 1; i <= 20; i++) {
		char path[32];
		snprintf(path, sizeof(path), "d/%02u.h5", i);
		assert_int_equal(engine_lookup(b->engine, path, &st, NULL), 0);
		assert_int_equal(st.version, 0);
		assert_false(st.size_exact);
		assert_true(st.size > 0);
	}
	assert_int_equal(bucket_counts(b).gets, again.gets);
	for (unsigned int i = 1; i <= 20; i++) {
		char path[32];
		snprintf(path, sizeof(path), "d/%02u.h5", i);
		assert_int_equal(engine_getattr(b->engine, path, &st, NULL), 0);
	}
	/* For each size, a listing and the root group. */
	assert_int_equal(bucket_counts(b).gets, again.gets + 20);
	assert_int_equal(bucket_counts(b).heads, first.heads);
	assert_int_equal(bucket_counts(b).lists, again.lists + 20);
}

static void nothing_is_valid_without_a_ttl(void **state)
{
	struct test_bucket *b = *state;
	struct engine_stat st;
	bucket_domain(b, 1, "x.h5");
	bucket_open(b, 0, 0);
	assert_int_equal(engine_lookup(b->engine, "x.h5", &st, NULL), 0);
	bucket_remove(b, "x.h5/.domain.json");
	assert_int_equal(engine_lookup(b->engine, "x.h5", &st, NULL), -ENOENT);
}

struct clock {
	uint64_t ns;
};

static uint64_t clock_ns(const struct env *env)
{
	return ((const struct clock *)env->ctx)->ns;
}

/* `ls -l` of a directory, at a pace of four entries in a second. */
static void a_program_that_walks_a_directory_makes_no_more_requests(void **state)
{
	enum { DOMAINS = 100 };
	const uint64_t pause = 250000000;
	static struct clock clock = {.ns = 1000000000}; /* the teardown uses it, too */
	struct test_bucket *b = *state;
	struct engine_stat st;
	char path[32];
	for (unsigned int i = 1; i <= DOMAINS; i++) {
		snprintf(path, sizeof(path), "d/%03u.h5", i);
		bucket_domain(b, i, path);
	}
	bucket_open(b, 1, 0);
	b->engine->bucket.env.now = clock_ns;
	b->engine->bucket.env.ctx = &clock;
	bucket_list(b, "d");
	const struct bucket_counts listed = bucket_counts(b);
	for (unsigned int i = 1; i <= DOMAINS; i++) {
		clock.ns += pause;
		snprintf(path, sizeof(path), "d/%03u.h5", i);
		assert_int_equal(engine_lookup(b->engine, path, &st, NULL), 0);
		assert_int_equal(engine_getattr(b->engine, path, &st, NULL), 0);
	}
	const struct bucket_counts walked = bucket_counts(b);
	/* For each size, a listing and the root group. */
	assert_int_equal(walked.lists, listed.lists + DOMAINS);
	assert_int_equal(walked.gets, listed.gets + DOMAINS);
	/* The first name is valid for a second after it was looked up. */
	assert_int_equal(engine_lookup(b->engine, "d/001.h5", &st, NULL), 0);
	assert_int_equal(bucket_counts(b).gets, walked.gets + 1);
	/* The next listing is of all levels, and shows that no document has changed. After a second
	 * of rest a look-up asks again. */
	clock.ns += 4 * pause;
	bucket_list(b, "d");
	const struct bucket_counts again = bucket_counts(b);
	assert_int_equal(again.gets, walked.gets + 1);
	assert_int_equal(again.lists, walked.lists + 2);
	clock.ns += 4 * pause;
	assert_int_equal(engine_lookup(b->engine, "d/002.h5", &st, NULL), 0);
	assert_int_equal(bucket_counts(b).gets, again.gets + 1);
}

/* `hsimage check` reports storage without a name only if it has seen all names. */
static void a_listing_that_leaves_something_out_is_not_whole(void **state)
{
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "all/run.h5");
	bucket_domain(b, 2, "taken/run");
	bucket_domain(b, 3, "taken/run.h5");
	bucket_open(b, 1, 0);
	assert_string_equal(bucket_list(b, "all").text, "run.h5");
	assert_true(names_list_is_whole(b->engine->bucket.names));
	assert_string_equal(bucket_list(b, "taken").text, "run.h5");
	assert_false(names_list_is_whole(b->engine->bucket.names));
}

/* A listing of all levels must save at least 16 requests for documents. */
static void few_known_documents_are_requested_one_by_one(void **state)
{
	enum { DOMAINS = 20, ENOUGH = 16 };
	static const char *const dirs[] = {"few", "many"};
	struct test_bucket *b = *state;
	char path[64];
	for (unsigned int i = 1; i <= 2 * DOMAINS; i++) {
		snprintf(path, sizeof(path), "%s/%02u.h5", dirs[i % 2], (i + 1) / 2);
		bucket_domain(b, i, path);
	}
	/* One folder beside 16 domains does not matter. */
	bucket_folder(b, "many/folder");
	bucket_open(b, 0, 0);
	for (unsigned int many = 0; many < 2; many++) {
		bucket_list(b, dirs[many]);
		/* As many others come as go. */
		for (unsigned int i = 1; i <= DOMAINS - ENOUGH + !many; i++) {
			char old[160], new[160];
			snprintf(old, sizeof(old), "%s/%s/%02u.h5", b->dir, dirs[many], i);
			snprintf(new, sizeof(new), "%s/%s/%02u.h5", b->dir, dirs[many], 50 + i);
			assert_int_equal(rename(old, new), 0);
		}
		const struct bucket_counts listed = bucket_counts(b);
		bucket_list(b, dirs[many]);
		const struct bucket_counts again = bucket_counts(b);
		assert_int_equal(again.lists - listed.lists, 1 + many);
		assert_int_equal(again.gets - listed.gets, many ? DOMAINS - ENOUGH : DOMAINS);
	}
}

/* A listing does not prolong the validity of what it takes from the cache. */
static void frequent_listings_show_changes(void **state)
{
	static struct clock clock = {.ns = 1000000000}; /* the teardown uses it, too */
	struct test_bucket *b = *state;
	bucket_domain(b, 1, "x.h5");
	bucket_open(b, 1, 0);
	b->engine->bucket.env.now = clock_ns;
	b->engine->bucket.env.ctx = &clock;
	for (int i = 0; i < 10; i++) {
		const uint64_t before = bucket_counts(b).gets;
		bucket_list(b, "");
		/* Each second listing finds a document that is older than a second. */
		if (i)
			assert_int_equal(bucket_counts(b).gets - before, i % 2 ? 0 : 1);
		clock.ns += 600000000;
	}
}

/* More than one round of documents. */
static void a_directory_of_many_entries(void **state)
{
	enum { ENTRIES = 600 };
	struct test_bucket *b = *state;
	char path[32];
	for (int i = 0; i < ENTRIES; i++) {
		snprintf(path, sizeof(path), "%03d", i);
		bucket_folder(b, path);
	}
	bucket_open(b, 0, 0);
	const struct bucket_listing l = bucket_list(b, "");
	assert_int_equal(l.code, 0);
	for (int i = 0; i < ENTRIES; i++) {
		snprintf(path, sizeof(path), "%03d/", i);
		assert_memory_equal(l.text + 5 * i, path, 4);
	}
}

/* An open sends a request also for a name that a listing has shown. */
static void an_open_asks_while_its_directory_is_walked(void **state)
{
	static struct clock clock = {.ns = 1000000000}; /* the teardown uses it, too */
	struct test_bucket *b = *state;
	struct engine_stat st;
	struct engine_file *f;
	bucket_domain(b, 1, "run");
	bucket_domain(b, 2, "x.h5");
	bucket_open(b, 1, 0);
	b->engine->bucket.env.now = clock_ns;
	b->engine->bucket.env.ctx = &clock;
	assert_string_equal(bucket_list(b, "").text, "run.h5 x.h5");
	bucket_remove(b, "run/.domain.json");
	bucket_put(b, "run.h5", "a plain object");
	clock.ns += 900000000;
	assert_int_equal(engine_lookup(b->engine, "x.h5", &st, NULL), 0);
	clock.ns += 900000000;
	assert_int_equal(engine_lookup(b->engine, "run.h5", &st, NULL), 0);
	assert_int_equal(st.kind, ENGINE_DOMAIN);
	assert_int_equal(engine_file_open(b->engine, "run.h5", &f, NULL), 0);
	engine_file_stat(f, &st);
	assert_int_equal(st.kind, ENGINE_PLAIN);
	engine_file_close(f);
}

/* One round, with a request for each kind of entry that the name may be. */
static void a_name_costs_the_same_whatever_it_is(void **state)
{
	static const struct {
		const char *path;
		unsigned int gets;
		int code;
	} rows[] = {
		{"x.h5", 2, 0},	       {"run.h5", 2, 0},     {"folder", 1, 0},
		{"prefix", 1, 0},      {"prefix/obj", 1, 0}, {"no", 1, -ENOENT},
		{"no.h5", 2, -ENOENT}, {"run", 1, 0},	     {".no.h5.Q3ZrN", 1, -ENOENT},
	};
	struct test_bucket *b = *state;
	struct engine_stat st;
	bucket_domain(b, 1, "x.h5");
	bucket_domain(b, 2, "run");
	bucket_folder(b, "folder");
	bucket_put(b, "prefix/obj", "bytes");
	bucket_open(b, 1000, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct bucket_counts before = bucket_counts(b);
		assert_int_equal(engine_lookup(b->engine, rows[i].path, &st, NULL), rows[i].code);
		const struct bucket_counts after = bucket_counts(b);
		/* The documents, and the first byte of an object of this name. */
		assert_int_equal(after.gets - before.gets, rows[i].gets + 1);
		assert_int_equal(after.heads - before.heads, 0);
		assert_int_equal(after.lists - before.lists, 1);
	}
}

/* If its document decided last time, only the document is requested, and its body is not sent. */
static void a_known_name_takes_one_get(void **state)
{
	static const char *const paths[] = {"x.h5", "folder", "folder/y.nc"};
	struct test_bucket *b = *state;
	struct engine_stat st;
	bucket_domain(b, 1, "x.h5");
	bucket_folder(b, "folder");
	bucket_domain(b, 2, "folder/y.nc");
	bucket_open(b, 0, 0);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		assert_int_equal(engine_lookup(b->engine, paths[i], &st, NULL), 0);
		const struct bucket_counts before = bucket_counts(b);
		struct engine_counts c;
		engine_get_counts(b->engine, &c);
		const uint64_t bytes = c.bytes_in;
		assert_int_equal(engine_lookup(b->engine, paths[i], &st, NULL), 0);
		const struct bucket_counts after = bucket_counts(b);
		engine_get_counts(b->engine, &c);
		assert_int_equal(after.gets - before.gets, 1);
		assert_int_equal(after.heads, before.heads);
		assert_int_equal(after.lists, before.lists);
		assert_int_equal(c.bytes_in, bytes);
	}
	/* The path becomes another kind. */
	bucket_folder(b, "x.h5");
	assert_int_equal(engine_lookup(b->engine, "x.h5", &st, NULL), 0);
	assert_int_equal(st.kind, ENGINE_DIR);
	bucket_remove(b, "x.h5/.domain.json");
	assert_int_equal(engine_lookup(b->engine, "x.h5", &st, NULL), -ENOENT);
	bucket_remove(b, "folder/.domain.json");
	assert_int_equal(engine_lookup(b->engine, "folder", &st, NULL), 0);
	assert_int_equal(st.kind, ENGINE_DIR);
}

/* A path that was a directory is listed without a look-up. If the listing is empty, it is looked
 * up. */
static void a_known_directory_is_listed_at_once(void **state)
{
	struct test_bucket *b = *state;
	bucket_put(b, "d/plain", "");
	bucket_open(b, 0, 0);
	assert_string_equal(bucket_list(b, "d").text, "plain=");
	const uint64_t before = bucket_requests(b);
	assert_string_equal(bucket_list(b, "d").text, "plain=");
	assert_int_equal(bucket_requests(b), before + 1);
	bucket_remove(b, "d/plain");
	assert_int_equal(bucket_list(b, "d").code, -ENOENT);
	bucket_folder(b, "d");
	assert_int_equal(bucket_list(b, "d").code, 0);
	assert_int_equal(bucket_list(b, "d").code, 0);
	bucket_domain(b, 1, "x.h5");
	assert_int_equal(bucket_list(b, "x.h5").code, -ENOTDIR);
}

/* A mount asks for the prefixes of the root in advance, unless there are many. */
static void the_root_is_preloaded(void **state)
{
	static const unsigned int counts[] = {1, 63, 64, 65};
	struct test_bucket *b = *state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct engine_stat st;
		for (unsigned int n = 0; n < counts[i]; n++) {
			char key[16];
			snprintf(key, sizeof(key), "p%02u/x", n);
			bucket_put(b, key, "");
		}
		bucket_open(b, 1000, 0);
		names_preload(b->engine->bucket.names);
		const uint64_t before = bucket_requests(b);
		assert_int_equal(engine_lookup(b->engine, "p00", &st, NULL), 0);
		assert_int_equal(bucket_requests(b) == before, counts[i] <= 64);
		engine_close(b->engine);
		b->engine = NULL;
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bucket_setup, bucket_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_folder_shows_what_is_in_it),
		TEST(storage_and_documents_are_hidden),
		TEST(names_that_no_bucket_has_are_absent),
		TEST(a_domain_without_extension_gets_one),
		TEST(a_domain_without_extension_is_found),
		TEST(a_domain_without_extension_is_left_out_if_its_name_is_taken),
		TEST(a_file_wins_over_what_is_below_it),
		TEST(a_broken_document_hides_no_other),
		TEST(leftovers_of_deleted_domains_are_not_shown),
		TEST(modes_follow_the_acls),
		TEST(valid_names_cost_no_request),
		TEST(nothing_is_valid_without_a_ttl),
		TEST(a_program_that_walks_a_directory_makes_no_more_requests),
		TEST(a_listing_that_leaves_something_out_is_not_whole),
		TEST(few_known_documents_are_requested_one_by_one),
		TEST(frequent_listings_show_changes),
		TEST(a_directory_of_many_entries),
		TEST(an_open_asks_while_its_directory_is_walked),
		TEST(a_name_costs_the_same_whatever_it_is),
		TEST(a_known_name_takes_one_get),
		TEST(a_known_directory_is_listed_at_once),
		TEST(the_root_is_preloaded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
