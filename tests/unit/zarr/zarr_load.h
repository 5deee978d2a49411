/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bucket in memory for the tests of the loader, and a caller that runs it. The caller logs a line
 * for each round, such as "GET x/.zgroup, LIST x/".
 */
#ifndef ZARR_LOAD_H
#define ZARR_LOAD_H

#include "zarr_store.h"

#include "schema/zarr/zarr_space.h"

#define GROUP2 "{\"zarr_format\":2}"
#define ARRAY2 "{\"shape\":[4],\"chunks\":[2],\"dtype\":\"<i4\"}"
#define GROUP3 "{\"zarr_format\":3,\"node_type\":\"group\"}"
#define ARRAY3                                                                                     \
	"{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4],\"data_type\":\"int16\","        \
	"\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[2]}},"           \
	"\"chunk_key_encoding\":\"default\",\"fill_value\":0,\"codecs\":[\"bytes\"]}"

/* ---- a bucket ---- */

enum { KEYS_MAX = 160, ROUND_MAX = 160 };

struct entry {
	char key[128];
	const char *text;
	const char *etag, *listed; /* listed: the version in listings */
	uint64_t size;
	int64_t mtime_ns;
	int code;   /* of requests for this key */
	bool hides; /* it is listed, but a request finds nothing */
};

struct bucket {
	struct entry e[KEYS_MAX]; /* in the order of keys */
	size_t n;
	int list_code;	/* of listings of everything */
	int group_code; /* of listings of groups */
};

static inline struct entry *put(struct bucket *b, const char *key, const char *text)
{
	size_t i = b->n++;
	assert_true(b->n <= KEYS_MAX);
	for (; i > 0 && strcmp(b->e[i - 1].key, key) > 0; i--)
		b->e[i] = b->e[i - 1];
	b->e[i] = (struct entry){
		.text = text, .etag = "1", .listed = "1", .size = strlen(text), .mtime_ns = 100};
	snprintf(b->e[i].key, sizeof(b->e[i].key), "%s", key);
	return &b->e[i];
}

static inline struct entry *entry_of(struct bucket *b, const char *key)
{
	for (size_t i = 0; i < b->n; i++)
		if (strcmp(b->e[i].key, key) == 0)
			return &b->e[i];
	return NULL;
}

static inline void delete (struct bucket *b, const char *key)
{
	struct entry *e = entry_of(b, key);
	assert_non_null(e);
	b->n--;
	memmove(e, e + 1, (size_t)(b->e + b->n - e) * sizeof(*e));
}

/* The answer to a listing, in the memory of the caller. */
struct page {
	struct schema_item items[KEYS_MAX];
	char prefixes[KEYS_MAX][128];
	size_t n;
};

static inline void page_item(const void *items, size_t i, struct schema_item *out)
{
	const struct page *page = items;
	assert_true(i < page->n);
	*out = page->items[i];
}

static inline void list(const struct bucket *b, const struct schema_request *req, struct page *page)
{
	const size_t n = strlen(req->key);
	page->n = 0;
	for (size_t i = 0; i < b->n; i++) {
		const struct entry *e = &b->e[i];
		const char *slash = strchr(e->key + n, '/');
		if (strncmp(e->key, req->key, n) != 0)
			continue;
		if (!req->delimit || !slash) {
			page->items[page->n++] = (struct schema_item){.key = e->key,
								      .etag = e->listed,
								      .size = e->size,
								      .mtime_ns = e->mtime_ns};
			continue;
		}
		char *prefix = page->prefixes[page->n];
		snprintf(prefix, sizeof(page->prefixes[0]), "%.*s/", (int)(slash - e->key), e->key);
		if (page->n == 0 || strcmp(page->items[page->n - 1].key, prefix) != 0)
			page->items[page->n++] =
				(struct schema_item){.key = prefix, .etag = "", .is_prefix = true};
	}
}

static inline void run(struct bucket *b, const struct schema_request *req, struct page *page,
		       struct err *err, struct schema_answer *out)
{
	const struct entry *e = req->op == SCHEMA_LIST ? NULL : entry_of(b, req->key);
	*out = (struct schema_answer){.etag = "", .err = err};
	if (req->op == SCHEMA_LIST) {
		list(b, req, page);
		out->code = req->delimit ? b->group_code : b->list_code;
		if (!out->code && page->n > req->limit)
			out->code = -E2BIG;
		out->nitems = page->n;
		out->items = page;
		out->item = page_item;
	} else if (!e || e->hides) {
		out->absent = true;
	} else {
		out->code = e->code;
		out->etag = e->etag;
		out->mtime_ns = e->mtime_ns;
		out->body = req->op == SCHEMA_GET ? e->text : NULL;
		out->len = req->op == SCHEMA_GET ? strlen(e->text) : 0;
	}
	if (out->code) {
		err_set(err, out->code, "the bucket refuses");
		out->nitems = 0;
	}
}

/* ---- a load ---- */

struct load {
	/* Set by the test: */
	const char *store, *root; /* "x" and ".zgroup" if NULL */
	const struct load *previous;
	bool reload, whole_only;
	uint32_t limit; /* of a listing; 100 if 0 */
	size_t memory;	/* of the tree; 1 GiB if 0 */
	int listed_rc;
	/* The result: */
	struct schema_document *document;
	struct tree *tree;
	struct schema_loader *loader;
	struct str log; /* a line for each round */
	int rc;
	struct err err;
	int nlisted, nrefused; /* calls of listed() */
	struct schema_listed listed;
};

static inline int on_listed(void *ctx, const struct schema_listed *listed)
{
	struct load *l = ctx;
	l->nlisted += listed != NULL;
	l->nrefused += !listed;
	if (listed)
		l->listed = *listed;
	return l->listed_rc;
}

/* Runs a round of n requests. */
static inline int run_round(struct load *l, struct bucket *b, uint32_t n)
{
	static const char *const ops[] = {
		[SCHEMA_GET] = "GET", [SCHEMA_HEAD] = "HEAD", [SCHEMA_LIST] = "LIST"};
	static struct schema_request reqs[ROUND_MAX];
	static char keys[ROUND_MAX][SCHEMA_KEY_MAX + 1];
	static struct page page;
	bool needed[ROUND_MAX];
	int rc = 0;
	assert_true(n <= ROUND_MAX);
	for (uint32_t i = 0; i < n; i++) {
		reqs[i] = (struct schema_request){.key = keys[i], .room = sizeof(keys[i])};
		needed[i] = zarr_request(l->loader, i, &reqs[i]);
		str_addf(&l->log, "%s%s %s", i ? ", " : "", needed[i] ? ops[reqs[i].op] : "no",
			 needed[i] ? keys[i] : "request");
	}
	str_add(&l->log, "\n");
	l->loader->load.reload = l->reload; /* known by now */
	for (uint32_t i = 0; !rc && i < n; i++) {
		struct schema_answer answer;
		struct err why = ERR_INIT;
		run(b, &reqs[i], &page, &why, &answer);
		rc = zarr_answer(l->loader, i, needed[i] ? &answer : NULL, &l->err);
	}
	return rc == SCHEMA_ENOUGH ? 0 : rc;
}

static inline void load(struct load *l, struct bucket *b)
{
	const char *name = l->root ? l->root : ".zgroup";
	const struct schema_mark mark = {.schema = &zarr2_ops};
	bool is_first = true, goes_on = true;
	l->err = (struct err)ERR_INIT;
	l->tree = tree_new(l->memory ? l->memory : (size_t)1 << 30);
	l->document = schema_mark_document(&mark, name, "1", 100, 0);
	assert_true(l->tree && l->document);
	const struct schema_load how = {
		.document = l->document,
		.path = l->store ? l->store : "x",
		.tree = l->tree,
		.previous = l->previous ? l->previous->loader->space : NULL,
		.list_limit = l->limit ? l->limit : 100,
		.whole_only = l->whole_only,
		.listed = on_listed,
		.ctx = l,
	};
	l->rc = zarr_loader_new(&how, &l->loader, &l->err);
	while (!l->rc && goes_on) {
		uint32_t n;
		l->rc = zarr_round(l->loader, &n, &l->err);
		goes_on = n || is_first;
		is_first = false;
		if (!l->rc && n)
			l->rc = run_round(l, b, n);
		l->loader->load.reload = l->reload;
	}
}

static inline void unload(struct load *l)
{
	zarr_loader_free(l->loader);
	tree_free(l->tree);
	schema_document_unref(l->document);
	str_release(&l->log);
}

/* Loads, and compares the requests. */
static inline void check_load(struct load *l, struct bucket *b, const char *log)
{
	load(l, b);
	assert_string_equal(str_text(&l->log), log);
}

/* Compares the tree, or the error. */
static inline void check_tree(const struct load *l, const char *text)
{
	struct store s = {.tree = l->tree};
	if (l->rc)
		str_addf(&s.text, "%d: %s\n", l->rc, l->err.msg);
	else
		store_print(&s);
	assert_string_equal(str_text(&s.text), text);
	str_release(&s.text);
}

static inline void check(struct bucket *b, const char *log, const char *text)
{
	struct load l = {0};
	check_load(&l, b, log);
	check_tree(&l, text);
	unload(&l);
}

/* A group with an array and a group with an array, and their chunks. */
static inline void put_group(struct bucket *b)
{
	*b = (struct bucket){0};
	put(b, "x/.zgroup", GROUP2);
	put(b, "x/.zattrs", "{\"t\":\"1\"}");
	put(b, "x/a/.zarray", ARRAY2);
	put(b, "x/a/0", "chunk");
	put(b, "x/a/1", "chunk");
	put(b, "x/g/.zgroup", GROUP2);
	put(b, "x/g/b/.zarray", ARRAY2);
	put(b, "x/g/b/0", "chunk");
}

#define GROUP_TREE                                                                                 \
	"group /\n"                                                                                \
	"  @t \"1\"\n"                                                                             \
	"_Anonymous_Dim_4 (4) dimension\n"                                                         \
	"a (4) chunk(2) int32\n"                                                                   \
	"group /g\n"                                                                               \
	"g/b (4) chunk(2) int32\n"

#define GROUP_LISTED                                                                               \
	"GET x/.zgroup, LIST x/\n"                                                                 \
	"GET x/.zattrs, GET x/a/.zarray, GET x/g/.zgroup, GET x/g/b/.zarray\n"

#define VIEW(members) "{\"zarr_consolidated_format\":1,\"metadata\":{" members "}}"

#endif
