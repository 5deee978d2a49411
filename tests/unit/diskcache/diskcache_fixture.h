/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fixture of the disk cache's tests. Each side stands for one mount: a disk cache over a store
 * that counts requests. All sides share the bucket directory and the cache directory.
 */
#ifndef TEST_STORE_DISKCACHE_FIXTURE_H
#define TEST_STORE_DISKCACHE_FIXTURE_H

#include "store_fixture.h"

#include <dirent.h>
#include <limits.h>

#include <diskcache/diskcache.h>

#define UNUSED __attribute__((unused))

static const struct store_diskcache_options UNUSED roomy = {
	.scope = "bucket", .max_bytes = 1 << 30, .max_object = 1 << 20};

struct side {
	struct store *count, *top;
};

/* Creates the test's directory. */
static inline void make_place(struct fixture *f)
{
	strcpy(f->dir, "/tmp/store_test.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
}

static inline const char *cache_path(const struct fixture *f)
{
	static _Thread_local char path[96];
	snprintf(path, sizeof(path), "%s/cache", f->dir);
	return path;
}

/* Owns inner. */
static inline struct store *cached(struct fixture *f, struct store *inner,
				   struct store_diskcache_options opt)
{
	struct err err = ERR_INIT;
	opt.dir = cache_path(f);
	struct store *s = store_diskcache_new(inner, &opt, &err);
	if (!s)
		fail_msg("%s", err.msg);
	return s;
}

static inline struct side side_new(struct fixture *f, struct store_diskcache_options opt)
{
	struct side side;
	char path[96];
	snprintf(path, sizeof(path), "%s/bucket", f->dir);
	side.count = store_count_new(store_dir_new(&f->env, path, NULL), NULL);
	side.top = cached(f, side.count, opt);
	return side;
}

static inline void side_free(struct side *side)
{
	store_free(side->top);
}

static inline void get_one(struct store *s, struct call_get req, struct call_result *res)
{
	assert_int_equal(call_get_many(s, &req, 1, res), 0);
}

static inline uint64_t gets_of(const struct side *side)
{
	struct store_counts n;
	store_count_read(side->count, &n);
	return n.calls[STORE_GET];
}

static inline void version_of(struct store *s, const char *key, char etag[STORE_ETAG_MAX])
{
	struct store_meta meta;
	assert_int_equal(call_head(s, key, &meta, NULL), 0);
	strcpy(etag, meta.etag);
}

/* Gets a whole object and compares it, and the number of gets that reached the bucket. */
#define assert_got(side, k, etag, want, asked)                                                     \
	do {                                                                                       \
		struct call_result res_;                                                           \
		const uint64_t before_ = gets_of(side);                                            \
		get_one((side)->top,                                                               \
			(struct call_get){.key = (k), .length = UINT64_MAX, .known_etag = (etag)}, \
			&res_);                                                                    \
		assert_int_equal(res_.code, 0);                                                    \
		assert_int_equal(res_.body.len, strlen(want));                                     \
		assert_int_equal(res_.meta.size, res_.body.len);                                   \
		if (res_.body.len)                                                                 \
			assert_memory_equal(res_.body.data, want, res_.body.len);                  \
		bytes_release(&res_.body);                                                         \
		assert_int_equal(gets_of(side) - before_, asked);                                  \
	} while (0)

#define assert_stats(side, ...)                                                                    \
	do {                                                                                       \
		struct store_diskcache_stats got_;                                                 \
		const struct store_diskcache_stats want_ = {__VA_ARGS__};                          \
		store_diskcache_read((side)->top, &got_);                                          \
		assert_int_equal(got_.hits, want_.hits);                                           \
		assert_int_equal(got_.hit_bytes, want_.hit_bytes);                                 \
		assert_int_equal(got_.revalidated, want_.revalidated);                             \
		assert_int_equal(got_.misses, want_.misses);                                       \
		assert_int_equal(got_.stored, want_.stored);                                       \
		assert_int_equal(got_.skipped, want_.skipped);                                     \
		assert_int_equal(got_.dropped, want_.dropped);                                     \
		assert_int_equal(got_.evicted, want_.evicted);                                     \
		assert_int_equal(got_.errors, want_.errors);                                       \
		assert_int_equal(got_.bytes, want_.bytes);                                         \
	} while (0)

/* Calls fn for each entry's path. Returns the number of entries. */
static inline unsigned int each_entry(const struct fixture *f, void (*fn)(void *, const char *),
				      void *arg)
{
	unsigned int n = 0;
	DIR *dir = opendir(cache_path(f));
	for (const struct dirent *e; dir && (e = readdir(dir));) {
		char path[PATH_MAX];
		if (strlen(e->d_name) != 64)
			continue;
		n++;
		snprintf(path, sizeof(path), "%s/%s", cache_path(f), e->d_name);
		if (fn)
			fn(arg, path);
	}
	if (dir)
		closedir(dir);
	return n;
}

static inline unsigned int entries(const struct fixture *f)
{
	return each_entry(f, NULL, NULL);
}

static inline void take_path(void *arg, const char *path)
{
	strcpy(arg, path);
}

static inline void only_entry(const struct fixture *f, char path[PATH_MAX])
{
	assert_int_equal(each_entry(f, take_path, path), 1);
}

static inline void read_whole(const char *path, struct bytes *out)
{
	char buf[4096];
	size_t n;
	FILE *in = fopen(path, "rb");
	assert_non_null(in);
	while ((n = fread(buf, 1, sizeof(buf), in)) > 0)
		assert_int_equal(bytes_append(out, buf, n), 0);
	fclose(in);
}

static inline void write_whole(const char *path, const void *bytes, size_t n)
{
	FILE *out = fopen(path, "wb");
	assert_non_null(out);
	if (n)
		assert_int_equal(fwrite(bytes, 1, n, out), n);
	fclose(out);
}

#endif
