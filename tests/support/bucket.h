/* SPDX-License-Identifier: Apache-2.0 */
/* A bucket in a temporary directory, and an engine over it: zero workers, every request counted. */
#ifndef TESTS_SUPPORT_BUCKET_H
#define TESTS_SUPPORT_BUCKET_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hsmount/engine.h>

struct test_bucket {
	char dir[64];
	char journal[72]; /* of an engine that can write */
	struct engine *engine;
};

static inline void bucket_put(struct test_bucket *b, const char *key, const char *text)
{
	char path[1024];
	snprintf(path, sizeof(path), "%s/%s", b->dir, key);
	for (char *p = path + strlen(b->dir) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(path, 0755);
		*p = '/';
	}
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static inline void bucket_remove(struct test_bucket *b, const char *key)
{
	char path[1024];
	snprintf(path, sizeof(path), "%s/%s", b->dir, key);
	assert_int_equal(unlink(path), 0);
}

/* Stores the root group of domain number n, with nattrs attributes, fewer than ten. */
static inline void bucket_put_root(struct test_bucket *b, unsigned int n, unsigned int nattrs)
{
	char key[128], text[4096];
	int len = snprintf(text, sizeof(text),
			   "{\"id\": \"g-%08x-00000000-8888-88%02x88-888888\", \"root\": "
			   "\"g-%08x-00000000-8888-88%02x88-888888\", \"created\": 1, "
			   "\"lastModified\": %u, \"links\": {}, \"attributes\": {",
			   n, 0x88 ^ n, n, 0x88 ^ n, nattrs + 1);
	for (unsigned int i = 0; i < nattrs; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len,
				"%s\"a%u\": {\"type\": {\"class\": \"H5T_INTEGER\", \"base\": "
				"\"H5T_STD_I32LE\"}, \"shape\": {\"class\": \"H5S_SCALAR\"}, "
				"\"value\": %u, \"created\": 1}",
				i ? ", " : "", i, i);
	snprintf(text + len, sizeof(text) - (size_t)len, "}}");
	snprintf(key, sizeof(key), "db/%08x-00000000/.group.json", n);
	bucket_put(b, key, text);
}

#define ACL_ALL                                                                                    \
	"{\"create\": true, \"read\": true, \"update\": true, \"delete\": true, "                  \
	"\"readACL\": true, \"updateACL\": true}"
#define ACL_READ                                                                                   \
	"{\"create\": false, \"read\": true, \"update\": false, \"delete\": false, "               \
	"\"readACL\": false, \"updateACL\": false}"
#define ACL_NONE                                                                                   \
	"{\"create\": false, \"read\": false, \"update\": false, \"delete\": false, "              \
	"\"readACL\": false, \"updateACL\": false}"

/* Stores domain number n (0 < n < 0x100) at a path, with an empty root group. The second half of a
 * root's id is the first half with eight added to each digit. acls: inside the braces. */
static inline void bucket_domain_acls(struct test_bucket *b, unsigned int n, const char *path,
				      const char *acls)
{
	char key[512], text[4096];
	snprintf(key, sizeof(key), "%s/.domain.json", path);
	snprintf(text, sizeof(text),
		 "{\"root\": \"g-%08x-00000000-8888-88%02x88-888888\", \"owner\": \"ann\", "
		 "\"acls\": {%s}, \"created\": 1700000000.5, \"lastModified\": 1700000001}",
		 n, 0x88 ^ n, acls);
	bucket_put(b, key, text);
	bucket_put_root(b, n, 0);
}

static inline void bucket_domain(struct test_bucket *b, unsigned int n, const char *path)
{
	bucket_domain_acls(b, n, path, "\"ann\": " ACL_ALL);
}

/* Text that bucket_datasets() inserts into documents of domain 1. */
struct bucket_more {
	const char *links;	/* of the root group, each with a comma in front */
	const char *attributes; /* of the root group */
	const char *filters;	/* of the datasets */
};

/* Domain 1 with n datasets of 8 integers in two chunks, which are not stored: the first name is
 * /data, the others are /data with a number up to the given width. */
static inline void bucket_datasets(struct test_bucket *b, const char *path, unsigned int n,
				   int width, const struct bucket_more *more)
{
	const size_t cap = 4096 + (size_t)n * 256;
	char key[128], json[1024], *text = malloc(cap);
	size_t len;
	assert_non_null(text);
	bucket_domain(b, 1, path);
	len = (size_t)snprintf(
		text, cap,
		"{\"id\": \"g-00000001-00000000-8888-888988-888888\", \"root\": "
		"\"g-00000001-00000000-8888-888988-888888\", \"created\": 1, \"lastModified\": 1, "
		"\"attributes\": {%s}, \"links\": {",
		more->attributes ? more->attributes : "");
	for (unsigned int i = 0; i < n; i++) {
		char name[128] = "data";
		if (i)
			snprintf(name, sizeof(name), "data%0*u", width, i);
		len += (size_t)snprintf(text + len, cap - len,
					"%s\"%s\": {\"class\": \"H5L_TYPE_HARD\", \"created\": %u, "
					"\"id\": \"d-00000001-00000000-1111-222222-%06x\"}",
					i ? ", " : "", name, i + 1, i + 1);
		snprintf(key, sizeof(key), "db/00000001-00000000/d/1111-222222-%06x/.dataset.json",
			 i + 1);
		snprintf(json, sizeof(json),
			 "{\"id\": \"d-00000001-00000000-1111-222222-%06x\", \"root\": "
			 "\"g-00000001-00000000-8888-888988-888888\", \"created\": 1, "
			 "\"lastModified\": 1, \"type\": {\"class\": \"H5T_INTEGER\", \"base\": "
			 "\"H5T_STD_I32LE\"}, \"shape\": {\"class\": \"H5S_SIMPLE\", \"dims\": "
			 "[8]}, \"attributes\": {}, \"layout\": {\"class\": \"H5D_CHUNKED\", "
			 "\"dims\": [4]}, \"creationProperties\": {\"layout\": {\"class\": "
			 "\"H5D_CHUNKED\", \"dims\": [4]}, \"filters\": [%s]}}",
			 i + 1, more->filters ? more->filters : "");
		bucket_put(b, key, json);
	}
	snprintf(text + len, cap - len, "%s}}", more->links ? more->links : "");
	bucket_put(b, "db/00000001-00000000/.group.json", text);
	free(text);
}

/* Chunk 0 or 1 of the first dataset. */
static inline void bucket_chunk(struct test_bucket *b, unsigned int number, const char *bytes)
{
	char key[128];
	snprintf(key, sizeof(key), "db/00000001-00000000/d/1111-222222-000001/%u", number);
	bucket_put(b, key, bytes);
}

static inline void bucket_folder(struct test_bucket *b, const char *path)
{
	char key[512];
	snprintf(key, sizeof(key), "%s/.domain.json", path);
	bucket_put(b, key,
		   "{\"owner\": \"ann\", \"acls\": {\"ann\": " ACL_ALL ", \"default\": " ACL_READ
		   "}, \"created\": 1, \"lastModified\": 2}");
}

static inline int bucket_setup(void **state)
{
	struct test_bucket *b = calloc(1, sizeof(*b));
	strcpy(b->dir, "/tmp/engine-test-XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	snprintf(b->journal, sizeof(b->journal), "%s.journal", b->dir);
	*state = b;
	return 0;
}

static inline int bucket_rm(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static inline int bucket_teardown(void **state)
{
	struct test_bucket *b = *state;
	engine_close(b->engine);
	nftw(b->dir, bucket_rm, 16, FTW_DEPTH | FTW_PHYS);
	nftw(b->journal, bucket_rm, 16, FTW_DEPTH | FTW_PHYS);
	free(b);
	return 0;
}

static inline struct engine *bucket_open_as(struct test_bucket *b, struct engine_options opt)
{
	struct err err = ERR_INIT;
	opt.bucket = b->dir;
	opt.debug_count = true;
	opt.allow_empty = true; /* some tests need plain objects only */
	if (engine_open(&opt, &b->engine, &err))
		fail_msg("%s", err.msg);
	return b->engine;
}

/* Opens an engine over the bucket. Call it after the bucket was filled. */
static inline struct engine *bucket_open(struct test_bucket *b, double ttl, unsigned int workers)
{
	struct engine_options opt;
	engine_options_init(&opt);
	opt.workers = workers;
	opt.metadata_ttl = ttl;
	return bucket_open_as(b, opt);
}

/* The same, but results of opens and listings are valid for that time, too. */
static inline struct engine *bucket_open_cached(struct test_bucket *b, double ttl)
{
	struct engine_options opt;
	engine_options_init(&opt);
	opt.workers = 0;
	opt.metadata_ttl = opt.open_ttl = ttl;
	return bucket_open_as(b, opt);
}

static inline struct engine_options bucket_rw(const struct test_bucket *b)
{
	struct engine_options opt;
	engine_options_init(&opt);
	opt.workers = 0;
	opt.write = true;
	opt.user = "ann";
	opt.journal_dir = b->journal;
	return opt;
}

/* Opens an engine that can write. fault: as in engine_options. */
static inline struct engine *bucket_open_rw(struct test_bucket *b, double ttl, const char *fault)
{
	struct engine_options opt = bucket_rw(b);
	opt.metadata_ttl = ttl;
	opt.debug_fault = fault;
	return bucket_open_as(b, opt);
}

struct bucket_counts {
	uint64_t gets, heads, lists;
};
static inline struct bucket_counts bucket_counts(struct test_bucket *b)
{
	struct engine_counts c;
	engine_get_counts(b->engine, &c);
	return (struct bucket_counts){.gets = c.gets, .heads = c.heads, .lists = c.lists};
}

static inline uint64_t bucket_requests(struct test_bucket *b)
{
	const struct bucket_counts c = bucket_counts(b);
	return c.gets + c.heads + c.lists;
}

/* The names of a directory with "/" behind directories, separated by blanks. */
struct bucket_listing {
	char text[4096];
	int code;
};
static inline int bucket_list_one(void *arg, const char *name, enum engine_kind kind)
{
	struct bucket_listing *l = arg;
	size_t n = strlen(l->text);
	snprintf(l->text + n, sizeof(l->text) - n, "%s%s%s", n ? " " : "", name,
		 kind == ENGINE_DIR	? "/"
		 : kind == ENGINE_PLAIN ? "="
					: "");
	return 0;
}
static inline struct bucket_listing bucket_list(struct test_bucket *b, const char *path)
{
	struct bucket_listing l = {.text = ""};
	l.code = engine_list(b->engine, path, bucket_list_one, &l, NULL);
	return l;
}

#endif
