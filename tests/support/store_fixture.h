/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the tests of stores: an environment in which sleeping takes no time and is counted, a
 * temporary bucket directory, and shorthands for PUT and GET.
 */
#ifndef TEST_STORE_FIXTURE_H
#define TEST_STORE_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <base/env.h>
#include <store/store.h>

#include "store_calls.h"

struct fixture {
	struct env env;
	struct store *s;
	char dir[64];			     /* "" unless the store is a directory */
	atomic_uint_fast64_t slept_ns;	     /* total */
	void (*on_sleep)(struct fixture *f); /* may be NULL */
	void *ctx;			     /* of on_sleep */
	/* Differences of a server across a network that the contract allows. */
	bool version_is_content; /* the ETag is a digest: equal bytes are the same version */
	bool put_knows_no_time;
	bool no_move;
	bool no_move_if_absent; /* a move can only replace */
	bool utf8_keys;		/* keys that are not UTF-8 fail with -EIO */
};

static inline void fake_sleep(const struct env *env, uint64_t ns)
{
	struct fixture *f = env->ctx;
	atomic_fetch_add(&f->slept_ns, ns);
	if (f->on_sleep)
		f->on_sleep(f);
}

static inline void fixture_env(struct fixture *f, unsigned int workers)
{
	f->env = env_real(NULL, pool_new(workers));
	f->env.sleep = fake_sleep;
	f->env.ctx = f;
}

static inline struct fixture *fixture_new(unsigned int workers)
{
	struct fixture *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	fixture_env(f, workers);
	return f;
}

/* Makes f->dir/bucket and a store over it. So a test can put files outside of the bucket. */
static inline void fixture_dir(struct fixture *f)
{
	struct err err = ERR_INIT;
	char path[96];
	strcpy(f->dir, "/tmp/store_test.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(path, sizeof(path), "%s/bucket", f->dir);
	assert_int_equal(mkdir(path, 0777), 0);
	f->s = store_dir_new(&f->env, path, &err);
	assert_non_null(f->s);
}

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)ftw;
	if (type == FTW_DNR)
		chmod(path, 0700);
	return remove(path);
}

static inline void fixture_free(struct fixture *f)
{
	store_free(f->s);
	pool_free(f->env.pool);
	if (f->dir[0])
		nftw(f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(f);
}

/* The path of a key in the bucket directory. Valid until the next call in this thread. */
static inline const char *path_of(const struct fixture *f, const char *key)
{
	static _Thread_local char path[2048];
	snprintf(path, sizeof(path), "%s/bucket/%s", f->dir, key);
	return path;
}

/* A directory whose file system has no extended attributes has no notes and no marks. */
static inline bool fixture_has_notes(const struct fixture *f)
{
	char path[96];
	snprintf(path, sizeof(path), "%s/bucket", f->dir);
	return !f->dir[0] || setxattr(path, "user.hsmount.test", "", 0, 0) == 0 ||
	       errno != EOPNOTSUPP;
}

static inline void write_file(const char *path, const char *text)
{
	FILE *out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static inline void put_text(struct store *s, const char *key, const char *text)
{
	struct err err = ERR_INIT;
	if (call_put(s, key, text, strlen(text), NULL, NULL, &err))
		fail_msg("put %s: %s", key, err.msg);
}

/* Returns the code of a GET. On success the body, which has fewer than n bytes, is in text. */
static inline int get_text(struct store *s, const char *key, char *text, size_t n)
{
	struct call_result res;
	int rc = call_get(s, key, 0, UINT64_MAX, 0, NULL, &res, NULL);
	if (rc == 0) {
		assert_true(res.body.len < n);
		if (res.body.len)
			memcpy(text, res.body.data, res.body.len);
		text[res.body.len] = '\0';
	}
	bytes_release(&res.body);
	return rc;
}

#define assert_object(s, key, want)                                                                \
	do {                                                                                       \
		char text_[256];                                                                   \
		assert_int_equal(get_text(s, key, text_, sizeof(text_)), 0);                       \
		assert_string_equal(text_, want);                                                  \
	} while (0)

#define assert_code(s, key, code)                                                                  \
	do {                                                                                       \
		char text_[256];                                                                   \
		assert_int_equal(get_text(s, key, text_, sizeof(text_)), code);                    \
	} while (0)

/* Joins a listing as "a b/ c". */
static inline void join_page(const struct store_page *page, char *text, size_t n)
{
	size_t pos = 0;
	text[0] = '\0';
	for (size_t i = 0; i < page->n; i++) {
		pos += (size_t)snprintf(text + pos, n - pos, "%s%s", i ? " " : "",
					page->items[i].key);
		assert_true(pos < n);
	}
}

static inline void assert_listing(struct store *s, const char *prefix, bool delimit,
				  const char *want)
{
	struct err err = ERR_INIT;
	auto_page struct store_page page = {0};
	char text[4096];
	if (call_list_all(s, prefix, delimit, 1000, &page, &err))
		fail_msg("list '%s': %s", prefix, err.msg);
	join_page(&page, text, sizeof(text));
	assert_string_equal(text, want);
}

#endif
