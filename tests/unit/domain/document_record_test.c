/* SPDX-License-Identifier: Apache-2.0 */
/* The documents of a domain of many objects in the disk cache: later opens request no document, and
 * what is on disk is never believed without a version. */
#include "many.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <diskcache/diskcache.h>
#include <diskcache/record.h>

/* OTHERS: the objects of the small domain. */
enum { N = 1500, OTHERS = 5, CHUNKS = 9000 };
#define ROOT_RECORD "documents\n" SMALL_ROOT

struct cached {
	char dir[64];
	struct gate *gate; /* counts the requests that reach the bucket */
	struct store *disk;
};

/* Uses the directory as another process would do it, above what is there. */
static void mount(struct cached *c, struct fixture *f)
{
	struct err err = ERR_INIT;
	const struct store_diskcache_options opt = {
		.dir = c->dir, .scope = "s", .max_bytes = 1 << 30, .max_object = 64 << 20};
	c->gate = gate_new(f->store);
	c->disk = store_diskcache_new(&c->gate->base, &opt, &err);
	if (!c->disk)
		fail_msg("%s", err.msg);
	f->store = c->disk;
}

static void begin(struct cached *c, struct fixture *f)
{
	snprintf(c->dir, sizeof(c->dir), "%s/documents-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(c->dir));
	mount(c, f);
}

/* Calls fn for each entry of the directory. */
static void each_file(const struct cached *c, void (*fn)(const char *path))
{
	DIR *dir = opendir(c->dir);
	const struct dirent *e;
	char path[512];
	assert_non_null(dir);
	while ((e = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", c->dir, e->d_name);
		if (e->d_name[0] != '.' && fn)
			fn(path);
	}
	closedir(dir);
}

static void remove_file(const char *path)
{
	unlink(path);
}

static void end(struct cached *c)
{
	each_file(c, remove_file);
	rmdir(c->dir);
}

/* Opens the domain with the disk cache; *cost: the requests that reach the bucket. */
static struct domain *open_cached(struct cached *c, struct fixture *f, struct cost *cost)
{
	struct domain *d = NULL;
	struct err err = ERR_INIT;
	const struct domain_bucket bucket = {
		.env = &f->env, .store = c->disk, .disk = c->disk, .schemas = schema_all()};
	gate_count(c->gate);
	if (domain_open(&bucket, "d.h5", NULL, &d, &err))
		fail_msg("%s", err.msg);
	*cost = (struct cost){.gets = c->gate->ops[STORE_GET],
			      .heads = c->gate->ops[STORE_HEAD],
			      .lists = c->gate->ops[STORE_LIST]};
	return d;
}

static void expect(struct cached *c, struct fixture *f, unsigned int objects, struct cost *cost)
{
	struct domain *d = open_cached(c, f, cost);
	assert_int_equal(tree_count(domain_tree(d)), objects + 1);
	domain_unref(d);
}

static const struct object *group(const struct domain *d, unsigned int i)
{
	char id[32], whole[64];
	spread_id(i, id);
	snprintf(whole, sizeof(whole), "g-11111111-22222222-%s", id);
	return find(d, whole);
}

static void a_second_mount_requests_no_document(void **state)
{
	struct fixture *f = *state;
	struct cached c;
	struct cost cost;
	begin(&c, f);
	put_spread(f, N);
	expect(&c, f, N, &cost);
	assert_int_equal(cost.gets, 2 + N + OTHERS);
	mount(&c, f);
	expect(&c, f, N, &cost);
	assert_int_equal(cost.gets, 1);	   /* the document of the domain */
	assert_in_range(cost.lists, 2, 3); /* its pages, at once */
	/* A changed document is requested, once. */
	put_spread_group(f, 7, 99);
	mount(&c, f);
	for (int i = 0; i < 2; i++) {
		struct domain *d = open_cached(&c, f, &cost);
		assert_int_equal(cost.gets, i == 0 ? 2 : 1);
		assert_int_equal(group(d, 7)->modified_ns / 1000000000, 99);
		assert_int_equal(group(d, 8)->modified_ns / 1000000000, 1);
		domain_unref(d);
	}
	/* So is a new one. */
	put_spread_group(f, N, 1);
	put_spread_root(f, N + 1);
	mount(&c, f);
	expect(&c, f, N + 1, &cost);
	assert_int_equal(cost.gets, 3);
	expect(&c, f, N + 1, &cost);
	assert_int_equal(cost.gets, 1);
	end(&c);
}

/* Where a listing shows no versions, the bucket confirms them: no document is sent. */
static void many_chunks_need_a_request_for_each_document(void **state)
{
	struct fixture *f = *state;
	struct store *count = f->store;
	struct store_counts before, after;
	struct cached c;
	struct cost cost;
	char key[128], id[32];
	begin(&c, f);
	put_spread(f, N);
	for (unsigned int i = 0; i < CHUNKS; i++) {
		spread_id(i % N, id);
		snprintf(key, sizeof(key), SMALL_PREFIX "/g/%s/%u", id, i);
		assert_int_equal(call_put(count, key, "x", 1, NULL, NULL, NULL), 0);
	}
	expect(&c, f, N, &cost);
	mount(&c, f);
	store_count_read(count, &before);
	expect(&c, f, N, &cost);
	store_count_read(count, &after);
	assert_in_range(cost.gets, N / 2, 2 + N + OTHERS);
	assert_true(after.bytes_in - before.bytes_in < 1024);
	end(&c);
}

static void flip(const char *path)
{
	struct stat st;
	uint8_t byte;
	const int fd = open(path, O_RDWR);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	if (st.st_size > 200) {
		assert_int_equal(pread(fd, &byte, 1, st.st_size / 2), 1);
		byte ^= 1;
		assert_int_equal(pwrite(fd, &byte, 1, st.st_size / 2), 1);
	}
	close(fd);
}

static void a_damaged_record_is_read_again(void **state)
{
	struct fixture *f = *state;
	struct cached c;
	struct cost cost;
	begin(&c, f);
	put_spread(f, N);
	expect(&c, f, N, &cost);
	each_file(&c, flip);
	mount(&c, f);
	expect(&c, f, N, &cost);
	assert_int_equal(cost.gets, 2 + N + OTHERS);
	expect(&c, f, N, &cost);
	assert_int_equal(cost.gets, 1);
	end(&c);
}

static void remember(struct cached *c, const char *const (*items)[2], size_t n)
{
	auto_bytes struct bytes record = {0};
	for (size_t i = 0; i < n; i++) {
		const struct record_item item = {items[i][0], items[i][1], "{}", 2};
		assert_int_equal(record_add(&record, &item), 0);
	}
	assert_true(
		store_diskcache_remember(c->disk, ROOT_RECORD, "1", 0, record.data, record.len));
}

/* Whatever a record says, the domain is shown as it is in the bucket. */
static void an_index_that_lies_does_no_harm(void **state)
{
	static const char *const foreign[][2] = {{"db/33333333-44444444/g/", "page"},
						 {"x", "page"}};
	static const char *const unordered[][2] = {{SMALL_PREFIX "/g/8", "page"},
						   {SMALL_PREFIX "/g/4", "page"}};
	static const char *const odd[][2] = {{SMALL_PREFIX "/", "page"},
					     {SMALL_PREFIX "/g/4/", "page"},
					     {SMALL_PREFIX "/g/4000", "page"},
					     {SMALL_PREFIX "/zz", "page"}};
	static const char *const parts[][2] = {{"a", "part"}, {SMALL_PREFIX "/g/4", "part"}};
	struct fixture *f = *state;
	struct cached c;
	struct cost cost;
	begin(&c, f);
	put_spread(f, N);
	for (int i = 0; i < 4; i++) {
		remember(&c,
			 i == 0	  ? foreign
			 : i == 1 ? unordered
			 : i == 2 ? odd
				  : parts,
			 i == 2 ? 4 : 2);
		expect(&c, f, N, &cost);
		expect(&c, f, N, &cost);
		assert_int_equal(cost.gets, 1);
	}
	end(&c);
}

/* The pages of a domain that has become small are not used: it is listed whole. */
static void a_domain_may_shrink(void **state)
{
	struct fixture *f = *state;
	struct cached c;
	struct cost cost;
	char key[128], id[32];
	begin(&c, f);
	put_spread(f, N);
	expect(&c, f, N, &cost);
	for (unsigned int i = 300; i < N; i++) {
		spread_id(i, id);
		snprintf(key, sizeof(key), SMALL_PREFIX "/g/%s/.group.json", id);
		assert_int_equal(call_delete(f->store, key, NULL, NULL), 0);
	}
	put_spread_root(f, 300);
	mount(&c, f);
	struct domain *d = open_cached(&c, f, &cost);
	assert_true(domain_sees_chunks(d));
	assert_int_equal(tree_count(domain_tree(d)), 301);
	/* The documents of the domain and the root group, and of a domain that is listed whole. */
	assert_true(cost.gets <= 2);
	domain_unref(d);
	end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_second_mount_requests_no_document, setup,
						teardown),
		cmocka_unit_test_setup_teardown(many_chunks_need_a_request_for_each_document, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_damaged_record_is_read_again, setup, teardown),
		cmocka_unit_test_setup_teardown(an_index_that_lies_does_no_harm, setup, teardown),
		cmocka_unit_test_setup_teardown(a_domain_may_shrink, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
