/* SPDX-License-Identifier: Apache-2.0 */
/* The loader: which requests it makes, in how many rounds, and what it makes of the answers. */
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

static struct entry *put(struct bucket *b, const char *key, const char *text)
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

static struct entry *entry_of(struct bucket *b, const char *key)
{
	for (size_t i = 0; i < b->n; i++)
		if (strcmp(b->e[i].key, key) == 0)
			return &b->e[i];
	return NULL;
}

static void delete (struct bucket *b, const char *key)
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

static void page_item(const void *items, size_t i, struct schema_item *out)
{
	const struct page *page = items;
	assert_true(i < page->n);
	*out = page->items[i];
}

static void list(const struct bucket *b, const struct schema_request *req, struct page *page)
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

static void run(struct bucket *b, const struct schema_request *req, struct page *page,
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

static int on_listed(void *ctx, const struct schema_listed *listed)
{
	struct load *l = ctx;
	l->nlisted += listed != NULL;
	l->nrefused += !listed;
	if (listed)
		l->listed = *listed;
	return l->listed_rc;
}

/* Runs a round of n requests. */
static int run_round(struct load *l, struct bucket *b, uint32_t n)
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

static void load(struct load *l, struct bucket *b)
{
	const char *name = l->root ? l->root : ".zgroup";
	const struct schema_mark mark = {.schema = &zarr2_ops};
	bool is_first = true, goes_on = true;
	l->err = (struct err)ERR_INIT;
	l->tree = tree_new((size_t)1 << 30);
	l->document = schema_mark_document(&mark, name, "1", 100);
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
	assert_int_equal(zarr_loader_new(&how, &l->loader, &l->err), 0);
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

static void unload(struct load *l)
{
	zarr_loader_free(l->loader);
	tree_free(l->tree);
	schema_document_unref(l->document);
	str_release(&l->log);
}

/* Loads, and compares the requests. */
static void check_load(struct load *l, struct bucket *b, const char *log)
{
	load(l, b);
	assert_string_equal(str_text(&l->log), log);
}

/* Compares the tree, or the error. */
static void check_tree(const struct load *l, const char *text)
{
	struct store s = {.tree = l->tree};
	if (l->rc)
		str_addf(&s.text, "%d: %s\n", l->rc, l->err.msg);
	else
		store_print(&s);
	assert_string_equal(str_text(&s.text), text);
	str_release(&s.text);
}

static void check(struct bucket *b, const char *log, const char *text)
{
	struct load l = {0};
	check_load(&l, b, log);
	check_tree(&l, text);
	unload(&l);
}

/* A group with an array and a group with an array, and their chunks. */
static void put_group(struct bucket *b)
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

/* ---- first loads ---- */

static void a_listing_shows_which_documents_exist(void **state)
{
	struct bucket b;
	put_group(&b);
	put(&b, "x/g/.zmetadata", "{}");
	entry_of(&b, "x/a/1")->mtime_ns = 300;
	entry_of(&b, "x/g/.zgroup")->mtime_ns = 200;
	struct load l = {0};
	check_load(&l, &b, GROUP_LISTED);
	check_tree(&l, GROUP_TREE);
	assert_false(l.loader->same);
	assert_false(l.loader->is_torn);
	assert_int_equal(l.nlisted, 1);
	assert_int_equal(l.nrefused, 0);
	assert_true(l.loader->space->listed_whole);
	assert_int_equal(l.loader->space->modified_ns, 300);
	assert_int_equal(l.listed.modified_ns, 300);
	assert_int_equal(l.listed.documents,
			 2 * strlen(GROUP2) + 2 * strlen(ARRAY2) + strlen("{\"t\":\"1\"}") + 2);
	unload(&l);
}

static void without_a_listing_groups_are_listed_level_by_level(void **state)
{
	static const int codes[] = {0, -E2BIG, -ELOOP, -EACCES, -ENOLINK};
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct bucket b;
		put_group(&b);
		put(&b, "x/h/k/.zarray", ARRAY2);
		entry_of(&b, "x/g/.zgroup")->mtime_ns = 200;
		b.list_code = codes[i];
		struct load l = {.limit = 3};
		check_load(&l, &b,
			   "GET x/.zgroup, LIST x/\n"
			   "GET x/.zarray, GET x/.zattrs\n"
			   "LIST x/\n"
			   "GET x/a/.zgroup, GET x/a/.zarray, GET x/a/.zattrs, GET x/g/.zgroup, "
			   "GET x/g/.zarray, GET x/g/.zattrs, GET x/h/.zgroup, GET x/h/.zarray, "
			   "GET x/h/.zattrs\n"
			   "LIST x/g/, LIST x/h/\n"
			   "GET x/g/b/.zgroup, GET x/g/b/.zarray, GET x/g/b/.zattrs, "
			   "GET x/h/k/.zgroup, GET x/h/k/.zarray, GET x/h/k/.zattrs\n");
		check_tree(&l, GROUP_TREE "group /h\nh/k (4) chunk(2) int32\n");
		assert_int_equal(l.nlisted, 0);
		assert_int_equal(l.nrefused, 1);
		assert_false(l.loader->space->listed_whole);
		assert_false(l.loader->is_torn);
		assert_int_equal(l.loader->space->modified_ns, 200);
		unload(&l);
	}
}

static void stores_of_v3_have_one_document_for_each_node(void **state)
{
	struct bucket b = {0};
	put(&b, "x/zarr.json", GROUP3);
	put(&b, "x/a/zarr.json", ARRAY3);
	put(&b, "x/a/c/0", "chunk");
	put(&b, "x/g/b/zarr.json", ARRAY3);
	static const char tree[] = "group /\n"
				   "_Anonymous_Dim_4 (4) dimension\n"
				   "a (4) chunk(2) int16 fill 0 keys c/\n"
				   "group /g\n"
				   "g/b (4) chunk(2) int16 fill 0 keys c/\n";
	struct load whole = {.root = "zarr.json"}, walk = {.root = "zarr.json", .limit = 1};
	check_load(&whole, &b,
		   "GET x/zarr.json, LIST x/\nGET x/a/zarr.json, GET x/g/b/zarr.json\n");
	check_tree(&whole, tree);
	check_load(&walk, &b,
		   "GET x/zarr.json, LIST x/\n"
		   "LIST x/\n"
		   "GET x/a/zarr.json, GET x/g/zarr.json\n"
		   "LIST x/g/\n"
		   "GET x/g/b/zarr.json\n");
	check_tree(&walk, tree);
	unload(&whole);
	unload(&walk);
}

#define VIEW(members) "{\"zarr_consolidated_format\":1,\"metadata\":{" members "}}"

static void consolidated_metadata_save_requests(void **state)
{
	struct bucket b;
	put_group(&b);
	put(&b, "x/.zmetadata",
	    VIEW("\".zgroup\":" GROUP2 ",\".zattrs\":{\"t\":\"1\"},\"a/.zarray\":" ARRAY2
		 ",\"g/.zgroup\":" GROUP2 ",\"gone/.zarray\":" ARRAY2));
	struct load whole = {.root = ".zmetadata"}, walk = {.root = ".zmetadata", .limit = 3};
	/* The listing shows what the view lacks, and what has gone since. */
	check_load(&whole, &b, "GET x/.zmetadata, LIST x/\nGET x/g/b/.zarray\n");
	check_tree(&whole, GROUP_TREE);
	assert_false(whole.loader->is_torn);
	check_load(&walk, &b, "GET x/.zmetadata, LIST x/\n");
	check_tree(&walk, "group /\n"
			  "  @t \"1\"\n"
			  "_Anonymous_Dim_4 (4) dimension\n"
			  "a (4) chunk(2) int32\n"
			  "group /g\n"
			  "gone (4) chunk(2) int32\n");
	unload(&whole);
	unload(&walk);
}

static void an_array_has_no_groups_to_list(void **state)
{
	struct bucket b = {0};
	put(&b, "x/.zarray", ARRAY2);
	put(&b, "x/0", "chunk");
	put(&b, "x/1", "chunk");
	struct load l = {.root = ".zarray", .limit = 1};
	check_load(&l, &b, "GET x/.zarray, LIST x/\nGET x/.zgroup, GET x/.zattrs\n");
	check_tree(&l, "group /\n_Anonymous_Dim_4 (4) dimension\ndata (4) chunk(2) int32\n");
	unload(&l);
}

static void the_bucket_may_be_the_store(void **state)
{
	struct bucket b = {0};
	put(&b, ".zgroup", GROUP2);
	put(&b, "a/.zarray", ARRAY2);
	struct load whole = {.store = ""}, walk = {.store = "", .limit = 1};
	static const char tree[] =
		"group /\n_Anonymous_Dim_4 (4) dimension\na (4) chunk(2) int32\n";
	check_load(&whole, &b, "GET .zgroup, LIST \nGET a/.zarray\n");
	check_tree(&whole, tree);
	check_load(&walk, &b,
		   "GET .zgroup, LIST \n"
		   "GET .zarray, GET .zattrs\n"
		   "LIST \n"
		   "GET a/.zgroup, GET a/.zarray, GET a/.zattrs\n");
	check_tree(&walk, tree);
	unload(&whole);
	unload(&walk);
}

static void a_group_may_have_many_children(void **state)
{
	struct bucket b = {0};
	put(&b, "x/.zgroup", GROUP2);
	for (int i = 0; i < 70; i++) {
		char key[32];
		snprintf(key, sizeof(key), "x/g%02d/.zgroup", i);
		put(&b, key, GROUP2);
	}
	struct load l = {0};
	load(&l, &b);
	assert_int_equal(l.rc, 0);
	assert_int_equal(tree_object(l.tree, 0)->o.group.nlinks, 70);
	unload(&l);
}

static void only_a_store_that_can_be_listed_is_loaded_if_the_caller_says_so(void **state)
{
	struct bucket b;
	put_group(&b);
	struct load l = {.whole_only = true}, too_long = {.whole_only = true, .limit = 3};
	check_load(&l, &b,
		   "LIST x/\n"
		   "GET x/.zgroup\n"
		   "GET x/.zattrs, GET x/a/.zarray, GET x/g/.zgroup, GET x/g/b/.zarray\n");
	check_tree(&l, GROUP_TREE);
	check_load(&too_long, &b, "LIST x/\n");
	check_tree(&too_long, "-7: not all keys of the store can be listed\n");
	unload(&l);
	unload(&too_long);
}

static void the_caller_may_end_the_load_after_the_listing(void **state)
{
	struct bucket b;
	put_group(&b);
	struct load whole = {.listed_rc = -ECANCELED}, none = {.listed_rc = -ECANCELED, .limit = 1};
	check_load(&whole, &b, "GET x/.zgroup, LIST x/\n");
	assert_int_equal(whole.rc, -ECANCELED);
	check_load(&none, &b, "GET x/.zgroup, LIST x/\n");
	assert_int_equal(none.rc, -ECANCELED);
	unload(&whole);
	unload(&none);
}

/* ---- failures ---- */

static void a_failed_request_ends_the_load(void **state)
{
	struct bucket b;
	put_group(&b);
	entry_of(&b, "x/a/.zarray")->code = -EACCES;
	check(&b, GROUP_LISTED, "-13: a/.zarray: the bucket refuses\n");
	put_group(&b);
	entry_of(&b, "x/.zgroup")->code = -EIO;
	check(&b, "GET x/.zgroup, LIST x/\n", "-5: .zgroup: the bucket refuses\n");
	put_group(&b);
	b.list_code = -EIO;
	check(&b, "GET x/.zgroup, LIST x/\n", "-5: listing x/: the bucket refuses\n");
	put_group(&b);
	b.list_code = -E2BIG;
	b.group_code = -EIO;
	check(&b, "GET x/.zgroup, LIST x/\nGET x/.zarray, GET x/.zattrs\nLIST x/\n",
	      "-5: listing the groups of x: the bucket refuses\n");
}

static void a_document_that_is_too_large_costs_one_node(void **state)
{
	struct bucket b;
	put_group(&b);
	entry_of(&b, "x/a/.zarray")->code = -EFBIG;
	check(&b, GROUP_LISTED,
	      "group /\n"
	      "  @t \"1\"\n"
	      "_Anonymous_Dim_4 (4) dimension\n"
	      "group /g\n"
	      "g/b (4) chunk(2) int32\n"
	      "note: a/.zarray: left out: the bucket refuses\n");
}

static void a_store_that_is_gone_does_not_exist(void **state)
{
	struct bucket b;
	put_group(&b);
	delete (&b, "x/.zgroup");
	check(&b, "GET x/.zgroup, LIST x/\n", "-2: .zgroup does not exist any more\n");
}

/* The store has changed between the listing and the documents. */
static void a_load_of_two_moments_is_torn(void **state)
{
	struct bucket b;
	put_group(&b);
	entry_of(&b, "x/a/.zarray")->hides = true;
	struct load gone = {0};
	check_load(&gone, &b, GROUP_LISTED);
	assert_int_equal(gone.rc, 0);
	assert_true(gone.loader->is_torn);

	put_group(&b);
	entry_of(&b, "x/a/.zarray")->etag = "2";
	struct load newer = {0};
	check_load(&newer, &b, GROUP_LISTED);
	assert_true(newer.loader->is_torn);

	/* A version that is not known proves nothing. */
	entry_of(&b, "x/a/.zarray")->etag = "";
	entry_of(&b, "x/g/.zgroup")->listed = "";
	struct load unknown = {0};
	check_load(&unknown, &b, GROUP_LISTED);
	assert_false(unknown.loader->is_torn);

	/* Some services write versions differently in listings. */
	entry_of(&b, "x/a/.zarray")->etag = "2";
	struct load again = {.previous = &newer, .reload = true};
	check_load(&again, &b,
		   "LIST x/\n"
		   "GET x/.zgroup\n"
		   "GET x/.zattrs, GET x/a/.zarray, GET x/g/.zgroup, GET x/g/b/.zarray\n");
	assert_int_equal(again.rc, 0);
	assert_false(again.loader->is_torn);

	entry_of(&b, "x/a/.zarray")->etag = "3";
	struct load third = {.previous = &newer, .reload = true};
	load(&third, &b);
	assert_true(third.loader->is_torn);
	unload(&gone);
	unload(&newer);
	unload(&unknown);
	unload(&again);
	unload(&third);
}

static void a_key_that_is_too_long_needs_no_request(void **state)
{
	static char store[SCHEMA_KEY_MAX + 1];
	struct bucket b = {0};
	struct load l = {.store = store};
	memset(store, 's', SCHEMA_KEY_MAX - 3);
	load(&l, &b);
	assert_string_equal(str_text(&l.log) + strlen("no request, LIST ") + SCHEMA_KEY_MAX - 3,
			    "/\n");
	assert_int_equal(l.rc, -EIO);
	assert_int_equal(tree_problems(l.tree), 1);
	unload(&l);
	memset(store, 's', SCHEMA_KEY_MAX);
	l = (struct load){.store = store};
	check_load(&l, &b, "no request, no request\nno request, no request\nno request\n");
	unload(&l);
}

/* ---- later loads ---- */

static void check_again(const struct load *first, struct bucket *b, const char *log, bool same)
{
	struct load l = {.previous = first};
	check_load(&l, b, log);
	assert_int_equal(l.rc, 0);
	assert_int_equal(l.loader->same, same);
	unload(&l);
}

#define COMPARED                                                                                   \
	"LIST x/\n"                                                                                \
	"GET x/.zgroup\n"                                                                          \
	"GET x/.zattrs, GET x/a/.zarray, GET x/g/.zgroup, GET x/g/b/.zarray\n"

static void a_listing_is_compared(void **state)
{
	struct bucket b;
	struct load first = {0};
	put_group(&b);
	load(&first, &b);
	check_again(&first, &b, "LIST x/\n", true);
	entry_of(&b, "x/a/0")->listed = "2";
	check_again(&first, &b, COMPARED, false);
	put_group(&b);
	entry_of(&b, "x/a/0")->size++;
	check_again(&first, &b, COMPARED, false);
	put_group(&b);
	entry_of(&b, "x/a/0")->mtime_ns++;
	check_again(&first, &b, COMPARED, false);
	put_group(&b);
	delete (&b, "x/a/1");
	check_again(&first, &b, COMPARED, false);
	put_group(&b);
	b.list_code = -EACCES;
	struct load refused = {.previous = &first};
	load(&refused, &b);
	check_tree(&refused, GROUP_TREE);
	assert_false(refused.loader->same);
	assert_memory_equal(str_text(&refused.log), "LIST x/\nGET x/.zgroup, LIST x/\n", 31);
	unload(&refused);
	unload(&first);
}

static void an_unchanged_store_is_loaded_if_the_caller_says_so(void **state)
{
	struct bucket b;
	put_group(&b);
	struct load first = {0}, again = {.previous = &first, .reload = true};
	load(&first, &b);
	check_load(&again, &b, COMPARED);
	check_tree(&again, GROUP_TREE);
	assert_false(again.loader->same);
	assert_true(again.loader->space->listed_whole);
	unload(&again);
	unload(&first);
}

#define HEADS                                                                                      \
	"HEAD x/.zgroup, HEAD x/.zarray, HEAD x/.zattrs, HEAD x/a/.zgroup, HEAD x/a/.zarray, "     \
	"HEAD x/a/.zattrs, HEAD x/g/.zgroup, HEAD x/g/.zarray, HEAD x/g/.zattrs, "                 \
	"HEAD x/g/b/.zgroup, HEAD x/g/b/.zarray, HEAD x/g/b/.zattrs, LIST x/, LIST x/g/\n"
#define WALKED                                                                                     \
	"GET x/.zgroup, LIST x/\n"                                                                 \
	"GET x/.zarray, GET x/.zattrs\n"                                                           \
	"LIST x/\n"

static void check_heads(const struct load *first, struct bucket *b, bool same)
{
	struct load l = {.previous = first, .limit = 3};
	load(&l, b);
	assert_int_equal(l.rc, 0);
	assert_memory_equal(str_text(&l.log), HEADS, strlen(HEADS));
	if (!same)
		assert_memory_equal(str_text(&l.log) + strlen(HEADS), WALKED, strlen(WALKED));
	assert_int_equal(l.loader->same, same);
	unload(&l);
}

/* What was read, and what did not exist, is asked for. */
static void documents_are_compared_one_by_one(void **state)
{
	struct bucket b;
	struct load first = {.limit = 3};
	put_group(&b);
	load(&first, &b);
	check_heads(&first, &b, true);
	entry_of(&b, "x/a/.zarray")->etag = "2";
	check_heads(&first, &b, false);
	put_group(&b);
	delete (&b, "x/.zattrs");
	check_heads(&first, &b, false);
	put_group(&b);
	put(&b, "x/g/b/.zattrs", "{}");
	check_heads(&first, &b, false);
	put_group(&b);
	put(&b, "x/g/new/.zarray", ARRAY2);
	check_heads(&first, &b, false);
	put_group(&b);
	struct load reload = {.previous = &first, .reload = true, .limit = 3};
	load(&reload, &b);
	assert_false(reload.loader->same);
	check_tree(&reload, GROUP_TREE);
	unload(&reload);
	unload(&first);
}

static void a_version_that_is_not_known_may_have_changed(void **state)
{
	struct bucket b;
	struct load first = {.limit = 3};
	put_group(&b);
	entry_of(&b, "x/g/b/.zarray")->etag = "";
	load(&first, &b);
	check_heads(&first, &b, false);
	unload(&first);
}

static void a_comparison_may_fail(void **state)
{
	struct bucket b;
	struct load first = {.limit = 3};
	put_group(&b);
	load(&first, &b);
	entry_of(&b, "x/a/.zarray")->code = -EACCES;
	struct load l = {.previous = &first, .limit = 3};
	check_load(&l, &b, HEADS);
	check_tree(&l, "-13: a/.zarray: the bucket refuses\n");
	unload(&l);
	put_group(&b);
	b.group_code = -EIO;
	l = (struct load){.previous = &first, .limit = 3};
	check_load(&l, &b, HEADS);
	check_tree(&l, "-5: listing the groups of x: the bucket refuses\n");
	unload(&l);
	unload(&first);
}

/* The version of the one document, which the caller has, shows whether the store has changed. */
static void consolidated_metadata_need_no_comparison(void **state)
{
	struct bucket b;
	put_group(&b);
	put(&b, "x/.zmetadata", VIEW("\".zgroup\":" GROUP2 ",\"a/.zarray\":" ARRAY2));
	struct load first = {.root = ".zmetadata", .limit = 3};
	struct load same = {.root = ".zmetadata", .limit = 3, .previous = &first};
	struct load other = {.root = ".zmetadata", .limit = 3, .previous = &first, .reload = true};
	load(&first, &b);
	check_load(&same, &b, "");
	assert_true(same.loader->same);
	check_load(&other, &b, "GET x/.zmetadata, LIST x/\n");
	assert_false(other.loader->same);
	check_tree(&other, "group /\n_Anonymous_Dim_4 (4) dimension\na (4) chunk(2) int32\n");
	unload(&first);
	unload(&same);
	unload(&other);
}

/* ---- what a listing shows of arrays ---- */

#define MATRIX "{\"shape\":[4,4],\"chunks\":[2,2],\"dtype\":\"|u1\"}"

static void keys_show_the_separator_of_an_array(void **state)
{
	struct bucket b = {0};
	put(&b, "x/.zgroup", GROUP2);
	put(&b, "x/a/.zarray", MATRIX);
	put(&b, "x/ab/.zarray", MATRIX);
	put(&b, "x/ab/0/1", "chunk");
	put(&b, "x/b/.zarray", MATRIX);
	put(&b, "x/b/10/0", "chunk");
	put(&b, "x/c/.zarray", MATRIX);
	put(&b, "x/c/0.1", "chunk");
	put(&b, "x/d/.zarray", MATRIX);
	put(&b, "x/d/0/0", "chunk");
	put(&b, "x/d/00", "no chunk");
	struct load l = {0}, root = {.root = ".zarray"};
	load(&l, &b);
	check_tree(&l, "group /\n"
		       "_Anonymous_Dim_4 (4) dimension\n"
		       "a (4,4) chunk(2,2) uint8\n"
		       "ab (4,4) chunk(2,2) uint8 keys /\n"
		       "b (4,4) chunk(2,2) uint8 keys /\n"
		       "c (4,4) chunk(2,2) uint8\n"
		       "d (4,4) chunk(2,2) uint8 keys /\n");
	unload(&l);
	b = (struct bucket){0};
	put(&b, "x/.zarray", MATRIX);
	put(&b, "x/1/0", "chunk");
	load(&root, &b);
	check_tree(&root, "group /\n_Anonymous_Dim_4 (4) dimension\n"
			  "data (4,4) chunk(2,2) uint8 keys /\n");
	unload(&root);
}

static void an_array_whose_chunks_are_beside_it_is_left_out(void **state)
{
	struct bucket b = {0};
	put(&b, "x/.zgroup", GROUP2);
	put(&b, "x/a/.zarray", ARRAY2);
	put(&b, "x/a/.nczarray", "{}");
	put(&b, "x/b/.zarray", ARRAY2);
	check(&b, "GET x/.zgroup, LIST x/\nGET x/b/.zarray\n",
	      "group /\n"
	      "_Anonymous_Dim_4 (4) dimension\n"
	      "b (4) chunk(2) int32\n"
	      "note: a/.zarray: its chunks are beside it, as netCDF-C has stored them in 2021\n");
}

static void objects_know_their_documents(void **state)
{
	struct bucket b;
	struct load l = {0};
	char key[SCHEMA_KEY_MAX + 1];
	const char *etag;
	put_group(&b);
	entry_of(&b, "x/a/.zarray")->etag = "7";
	load(&l, &b);
	const struct schema_space *s = l.loader->space;
	for (uint32_t i = 0; i < tree_numbers(l.tree); i++) {
		const char *id = tree_object(l.tree, i)->o.id;
		const int n = zarr2_ops.object_key(s, i, key, sizeof(key), &etag);
		if (strcmp(id, "a") == 0) {
			assert_int_equal(n, strlen("x/a/.zarray"));
			assert_string_equal(key, "x/a/.zarray");
			assert_string_equal(etag, "7");
		}
		if (strcmp(id, "_Anonymous_Dim_4") == 0) {
			assert_int_equal(n, 0);
			assert_null(etag);
		}
		assert_int_equal(tree_object(l.tree, i)->o.modified_ns, 100);
	}
	assert_int_equal(zarr2_ops.object_key(s, 0, key, 5, &etag), -ENAMETOOLONG);
	unload(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_listing_shows_which_documents_exist),
		cmocka_unit_test(without_a_listing_groups_are_listed_level_by_level),
		cmocka_unit_test(stores_of_v3_have_one_document_for_each_node),
		cmocka_unit_test(consolidated_metadata_save_requests),
		cmocka_unit_test(an_array_has_no_groups_to_list),
		cmocka_unit_test(the_bucket_may_be_the_store),
		cmocka_unit_test(a_group_may_have_many_children),
		cmocka_unit_test(only_a_store_that_can_be_listed_is_loaded_if_the_caller_says_so),
		cmocka_unit_test(the_caller_may_end_the_load_after_the_listing),
		cmocka_unit_test(a_failed_request_ends_the_load),
		cmocka_unit_test(a_document_that_is_too_large_costs_one_node),
		cmocka_unit_test(a_store_that_is_gone_does_not_exist),
		cmocka_unit_test(a_load_of_two_moments_is_torn),
		cmocka_unit_test(a_key_that_is_too_long_needs_no_request),
		cmocka_unit_test(a_listing_is_compared),
		cmocka_unit_test(an_unchanged_store_is_loaded_if_the_caller_says_so),
		cmocka_unit_test(documents_are_compared_one_by_one),
		cmocka_unit_test(a_version_that_is_not_known_may_have_changed),
		cmocka_unit_test(a_comparison_may_fail),
		cmocka_unit_test(consolidated_metadata_need_no_comparison),
		cmocka_unit_test(keys_show_the_separator_of_an_array),
		cmocka_unit_test(an_array_whose_chunks_are_beside_it_is_left_out),
		cmocka_unit_test(objects_know_their_documents),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
