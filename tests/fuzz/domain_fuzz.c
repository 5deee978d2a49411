/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens and reads a whole domain (domain_input.h), through the layers schema, domain, cache and
 * image, with a fake clock and no threads. Either the open fails with a message, or:
 *
 *   - a second bucket with the same objects, written in another order, shows the same file;
 *   - reading in pieces gives the same bytes and errors as reading at once; errors have messages;
 *   - a hole reads as zeros, and SEEK_DATA and SEEK_HOLE agree with each other;
 *   - the file's object headers and the messages in them can be decoded, link by link;
 *   - another open of the unchanged domain returns the earlier snapshot;
 *   - an open after a change shows the same file as an open without an earlier snapshot;
 *   - an image that was opened before shows the same bytes as before, or errors;
 *   - loads stay within the budget, all charges are returned, and memory stays within RSS_MAX.
 *
 * If the input has an object "large", keys are added until the domain is too large to be listed
 * whole: then the versions of its documents are known, and those of its chunks are not.
 *
 * libFuzzer calls LLVMFuzzerCustomMutator() (domain_mutate.c) to make new inputs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cache/cache.h>
#include <data/describe.h>
#include <domain/domain.h>
#include <image/image.h>
#include <schema/schema.h>
#include <store/store.h>
#include <bucket/schemas.h>

#include "domain_headers.h"
#include "domain_input.h"
#include "mem_store.h"
#include "require.h"
#include "schema/hsds/hsds1.h"
#include "schema/hsds/hsds2.h"
#include "store_calls.h"

enum {
	BLOCK = 512,		/* errors are compared by block */
	WHOLE_MAX = 256 << 10,	/* a file of this size is read whole */
	WINDOW = 4 << 10,	/* of a larger file, windows of this size are read */
	WINDOWS = 24,		/* at most this many */
	CHUNK_HEAVY = 64 << 10, /* few chunks with this many bytes or more are read */
	CACHE_BYTES = 4 << 20,
	METADATA_BYTES = 512 << 20, /* several snapshots of the largest domain */
};
/* Kilobytes, as getrusage(2) counts: several times what one chunk of the largest kind takes. */
#define RSS_MAX (UINT64_C(2) << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- a bucket and its domain ---- */

struct world {
	struct env env;
	uint64_t now;
	struct store *store;
	struct cache *cache;
	char path[STORE_KEY_MAX + 1]; /* of the domain */
	bool large;
};

static uint64_t fake_now(const struct env *env)
{
	return *(uint64_t *)env->ctx;
}

static void fake_sleep(const struct env *env, uint64_t ns)
{
	*(uint64_t *)env->ctx += ns;
}

static void fake_random(const struct env *env, void *bytes, size_t n)
{
	memset(bytes, 0x5a, n);
}

/* The first domain in the input; "" if it has none. */
static void set_path(struct world *w, const struct input *in)
{
	size_t n;
	for (size_t i = 0; i < in->n; i++)
		if (hsds2_is_domain_key(in->v[i].key, &n)) {
			snprintf(w->path, sizeof(w->path), "%.*s", (int)n, in->v[i].key);
			return;
		}
}

static bool is_below_root(const char *key)
{
	return strncmp(key, "db/", 3) == 0 && strchr(key + 3, '/');
}

/* More keys than a listing of the first storage prefix may have. */
static void make_large(struct world *w, const struct input *in)
{
	char key[STORE_KEY_MAX + 32];
	size_t i = 0;
	while (i < in->n && !is_below_root(in->v[i].key))
		i++;
	if (i == in->n)
		return;
	const int prefix = (int)(strchr(in->v[i].key + 3, '/') - in->v[i].key);
	for (unsigned int k = 0; k <= DOMAIN_LISTING; k++) {
		snprintf(key, sizeof(key), "%.*s/other/%u", prefix, in->v[i].key, k);
		require(!store_key_ok(key) ||
			call_put(w->store, key, "", 0, NULL, NULL, NULL) == 0);
	}
}

/* backwards: the last object is written first. */
static void world_init(struct world *w, const struct input *in, bool backwards)
{
	*w = (struct world){.now = 1000000000};
	w->env = (struct env){.pool = pool_new(0),
			      .now = fake_now,
			      .sleep = fake_sleep,
			      .random = fake_random,
			      .ctx = &w->now};
	w->env.budget = budget_new(&(struct budget_limits){
		.bytes = CACHE_BYTES, .metadata_min = METADATA_BYTES, .option = "limit"});
	require(w->env.pool && w->env.budget);
	w->store = store_mem_new(&w->env, NULL);
	w->cache = cache_new(&w->env, 4, NULL);
	require(w->store && w->cache);
	for (size_t i = 0; i < in->n; i++) {
		const struct input_object *o = &in->v[backwards ? in->n - 1 - i : i];
		require(call_put(w->store, o->key, o->body.data, o->body.len, NULL, NULL, NULL) ==
			0);
		w->large = w->large || strcmp(o->key, "large") == 0;
	}
	if (w->large)
		make_large(w, in);
	set_path(w, in);
}

static void world_release(struct world *w)
{
	struct cache_stats stats;
	cache_get_stats(w->cache, &stats);
	require(stats.bytes <= stats.budget && stats.charged == 0 && stats.in_flight == 0);
	cache_free(w->cache);
	budget_free(w->env.budget);
	store_free(w->store);
	pool_free(w->env.pool);
}

static void check_error(int rc, const struct err *err)
{
	require(rc < 0 && rc == err->code && err->msg[0] != '\0');
}

struct snapshot {
	struct domain *domain;
	struct image *image; /* NULL: it could not be opened */
};

/* If the open fails, the result has no image and a reason. previous: may be NULL. */
static struct snapshot take_snapshot(struct world *w, struct domain *previous, struct err *err)
{
	static const struct image_options options = {.domain_dir = "a/b"};
	const struct domain_hint hint = {.previous = previous};
	struct snapshot s = {0};
	*err = (struct err)ERR_INIT;
	int rc = domain_open(
		&(struct domain_bucket){.env = &w->env, .store = w->store, .schemas = schema_all()},
		w->path, &hint, &s.domain, err);
	require((rc == 0) == (s.domain != NULL));
	if (!rc) {
		const struct chunk_source chunks = domain_chunk_source(s.domain);
		rc = image_new(&w->env, w->cache, domain_tree(s.domain), &chunks, &options,
			       &s.image, err);
	}
	if (rc)
		check_error(rc, err);
	require((rc == 0) == (s.image != NULL));
	return s;
}

static void snapshot_release(struct snapshot *s)
{
	image_unref(s->image);
	domain_unref(s->domain);
}

/* ---- reading ---- */

struct window {
	uint64_t start;
	size_t n;
};

/* The result of reading one range: the bytes, and the error code of each block. */
struct rendered {
	uint64_t start;
	size_t n;
	uint8_t *bytes; /* zeros where there is an error */
	int *codes;	/* one for each BLOCK bytes or part of it */
};

/* Reads up to the end of the block, in pieces that have the given lengths in turn. After an error,
 * the remaining bytes of the block count as not read. */
static void read_block(struct image *img, struct image_stream *s, struct rendered *r, size_t at,
		       size_t end, const size_t *pieces, size_t npieces)
{
	for (size_t i = 0; at < end; i++) {
		const size_t n = min_u64(pieces[i % npieces], end - at);
		struct err err = ERR_INIT;
		const ssize_t got = image_read(img, s, r->bytes + at, n, r->start + at, NULL, &err);
		require(got != 0 && got <= (ssize_t)n);
		if (got < 0) {
			check_error((int)got, &err);
			memset(r->bytes + at, 0, end - at);
			r->codes[at / BLOCK] = (int)got;
			return;
		}
		at += (size_t)got;
	}
}

/* Reads the range with one call. If the call ends early, reads the block at its end separately,
 * then continues after that block. */
static void read_range(struct image *img, struct image_stream *s, struct rendered *r)
{
	static const size_t whole[] = {BLOCK};
	size_t at = 0;
	while (at < r->n) {
		struct err err = ERR_INIT;
		const ssize_t got =
			image_read(img, s, r->bytes + at, r->n - at, r->start + at, NULL, &err);
		require(got != 0 && got <= (ssize_t)(r->n - at));
		at += got > 0 ? (size_t)got : 0;
		const size_t end = min_u64((at / BLOCK + 1) * BLOCK, r->n);
		if (at == r->n)
			break;
		read_block(img, s, r, at, end, whole, 1);
		at = end;
	}
}

static void read_in_pieces(struct image *img, struct image_stream *s, struct rendered *r)
{
	static const size_t pieces[] = {1, 7, 64, 440};
	for (size_t at = 0; at < r->n; at += BLOCK)
		read_block(img, s, r, at, min_u64(at + BLOCK, r->n), pieces,
			   sizeof(pieces) / sizeof(pieces[0]));
}

/* unset: value of a byte that is not written. */
static void rendered_init(struct rendered *r, const struct window *w, int unset)
{
	*r = (struct rendered){.start = w->start, .n = w->n};
	r->bytes = malloc(w->n);
	r->codes = calloc(w->n / BLOCK + 1, sizeof(*r->codes));
	require(r->bytes && r->codes);
	memset(r->bytes, unset, w->n);
}

static void rendered_release(struct rendered *r)
{
	free(r->bytes);
	free(r->codes);
}

static void check_same_range(const struct rendered *a, const struct rendered *b)
{
	require(memcmp(a->bytes, b->bytes, a->n) == 0);
	require(memcmp(a->codes, b->codes, (a->n / BLOCK + 1) * sizeof(*a->codes)) == 0);
}

/* ---- the ranges that are read ---- */

struct windows {
	struct window v[WINDOWS];
	size_t n;
};

/* Adds a window that begins with the block of offset `at`. */
static void add_window(struct windows *ws, uint64_t size, uint64_t at, size_t n)
{
	const uint64_t start = at / BLOCK * BLOCK;
	if (at < size && ws->n < WINDOWS)
		ws->v[ws->n++] = (struct window){start, min_u64(n, size - start)};
}

static uint64_t largest_chunk(const struct tree *t)
{
	uint64_t max = 0;
	for (uint32_t i = 0; i < tree_count(t); i++) {
		const struct object *o = &tree_object(t, tree_nth(t, i))->o;
		if (o->kind == OBJECT_DATASET && o->dataset.grid.nchunks)
			max = max_u64(max, o->dataset.grid.chunk_elems * o->dataset.type->size);
	}
	return max;
}

/* Chooses the whole of a small file. Of a large file it chooses the beginning, both sides of the
 * first holes, some places between them and the end, but few large chunks. */
static void choose_windows(const struct snapshot *s, struct windows *ws)
{
	struct image *img = s->image;
	const uint64_t size = image_size(img), chunk = largest_chunk(domain_tree(s->domain));
	const bool heavy = chunk > CHUNK_HEAVY;
	*ws = (struct windows){0};
	if (size <= WHOLE_MAX && !heavy) {
		add_window(ws, size, 0, WHOLE_MAX);
		return;
	}
	add_window(ws, size, 0, heavy ? WINDOW : WHOLE_MAX / 4);
	add_window(ws, size, size - 1, WINDOW);
	const size_t edges = heavy ? 2 : WINDOWS / 2;
	for (uint64_t at = 0; at < size && ws->n < edges;) {
		const uint64_t hole = (uint64_t)image_seek(img, at, SEEK_HOLE);
		if (hole >= size)
			break;
		const uint64_t data = (uint64_t)image_seek(img, hole, SEEK_DATA);
		add_window(ws, size, hole, WINDOW);
		add_window(ws, size, data, WINDOW);
		at = max_u64(data, at + 1);
	}
	for (uint64_t i = 1; i < (heavy ? 2 : 9); i++)
		add_window(ws, size, size / 10 * i, heavy ? BLOCK : WINDOW);
}

/* ---- properties of one image ---- */

/* A hole reads as zeros. An error may occur only in a block that is not entirely a hole. */
static void check_hole(const struct rendered *r, size_t at, size_t end)
{
	for (size_t i = at; i < end; i++) {
		require(r->bytes[i] == 0);
		require(r->codes[i / BLOCK] == 0 || i / BLOCK == at / BLOCK ||
			i / BLOCK == end / BLOCK);
	}
}

/* The bucket is asked for holes that the open has not shown. */
static void check_seek(struct image *img, const struct rendered *r)
{
	const uint64_t size = image_size(img);
	for (size_t at = 0; at < r->n; at += 1 + at / 7) {
		const uint64_t from = r->start + at;
		const uint64_t data = (uint64_t)image_find(img, from, SEEK_DATA);
		const uint64_t hole = (uint64_t)image_find(img, from, SEEK_HOLE);
		require(data >= from && data <= size && hole >= from && hole <= size);
		require((data == from) != (hole == from));
		if (hole < size)
			require((uint64_t)image_find(img, hole, SEEK_DATA) > hole);
		if (data < size)
			require((uint64_t)image_find(img, data, SEEK_HOLE) > data);
		check_hole(r, at, min_u64(data - r->start, r->n));
	}
}

/* Walks all objects as `hsimage info` does. */
static void check_words(const struct tree *t)
{
	struct object_paths *paths = object_paths_new(t);
	auto_str struct str text = {0};
	require(paths);
	for (uint32_t i = 0; i < tree_count(t); i++) {
		const struct object *o = &tree_object(t, tree_nth(t, i))->o;
		struct pipeline filters;
		describe_path(&text, paths, tree_nth(t, i));
		if (o->kind == OBJECT_DATATYPE)
			describe_type(&text, o->datatype);
		if (o->kind != OBJECT_DATASET)
			continue;
		dataset_pipeline(&o->dataset, &filters);
		describe_type(&text, o->dataset.type);
		describe_space(&text, &o->dataset.space);
		describe_filters(&text, &filters);
		if (o->dataset.space.cls == DSPACE_SIMPLE)
			describe_chunk(&text, &o->dataset.grid);
	}
	require(str_ok(&text));
	object_paths_free(paths);
	for (uint32_t i = 0; tree_problem(t, i); i++)
		require(tree_problem(t, i)[0] != '\0');
}

static void check_alone(struct world *w, const struct snapshot *of, const struct windows *ws)
{
	struct image *img = of->image;
	struct image_stream *s = image_stream_new(img);
	check_words(domain_tree(of->domain));
	check_headers(img);
	require(image_allocated(img) <= image_size(img));
	require(image_seek(img, image_size(img), SEEK_DATA) == -ENXIO);
	for (size_t i = 0; i < ws->n; i++) {
		struct rendered whole, pieces;
		rendered_init(&whole, &ws->v[i], 0xa5);
		rendered_init(&pieces, &ws->v[i], 0x5a);
		read_range(img, s, &whole);
		w->now += 2000000000; /* cached failures become stale */
		read_in_pieces(img, NULL, &pieces);
		check_same_range(&whole, &pieces);
		check_seek(img, &whole);
		rendered_release(&whole);
		rendered_release(&pieces);
	}
	image_stream_free(s);
}

/* ---- properties of two images ---- */

static void check_same(struct image *a, struct image *b, const struct windows *ws)
{
	require(image_size(a) == image_size(b));
	require(image_allocated(a) == image_allocated(b));
	for (size_t i = 0; i < ws->n; i++) {
		struct rendered of_a, of_b;
		rendered_init(&of_a, &ws->v[i], 0xa5);
		rendered_init(&of_b, &ws->v[i], 0x5a);
		read_range(a, NULL, &of_a);
		read_range(b, NULL, &of_b);
		check_same_range(&of_a, &of_b);
		rendered_release(&of_a);
		rendered_release(&of_b);
	}
}

static void check_same_opening(const struct snapshot *a, const struct err *why_a,
			       const struct snapshot *b, const struct err *why_b)
{
	struct windows ws;
	require((a->image != NULL) == (b->image != NULL));
	if (!a->image) {
		require(why_a->code == why_b->code && strcmp(why_a->msg, why_b->msg) == 0);
		return;
	}
	choose_windows(a, &ws);
	check_same(a->image, b->image, &ws);
}

/* Opens the domain with and without the earlier snapshot. */
static void check_again(struct world *w, struct domain *previous)
{
	struct err why_again, why_fresh;
	struct snapshot again = take_snapshot(w, previous, &why_again);
	struct snapshot fresh = take_snapshot(w, NULL, &why_fresh);
	check_same_opening(&again, &why_again, &fresh, &why_fresh);
	snapshot_release(&again);
	snapshot_release(&fresh);
}

/* The image has the same bytes as `first`, or errors. */
static void check_held(struct image *first, struct image *held, const struct windows *ws)
{
	for (size_t i = 0; i < ws->n; i++) {
		struct rendered then, now;
		rendered_init(&then, &ws->v[i], 0xa5);
		rendered_init(&now, &ws->v[i], 0x5a);
		read_range(first, NULL, &then);
		read_range(held, NULL, &now);
		for (size_t at = 0; at < now.n; at++)
			require(now.bytes[at] == then.bytes[at] || now.codes[at / BLOCK]);
		rendered_release(&then);
		rendered_release(&now);
	}
}

/* A random object; in a large domain, a random document. The versions of chunks of schema v1 are
 * not known. */
static const struct input_object *victim(const struct world *w, const struct input *in, size_t from)
{
	for (size_t i = 0; i < in->n; i++) {
		const struct input_object *o = &in->v[(from + i) % in->n];
		const size_t n = strlen(o->key);
		if (hsds1_is_object(o->key) && o->key[strlen("01234-")] == 'c')
			continue;
		if (!w->large || (n > 5 && strcmp(o->key + n - 5, ".json") == 0))
			return o;
	}
	return &in->v[0];
}

static void write_other(struct world *w, const struct input_object *o)
{
	auto_bytes struct bytes body = {0};
	if (o->body.len > 0) {
		require(bytes_append(&body, o->body.data, o->body.len) == 0);
		body.data[body.len - 1] ^= 1;
	}
	require(call_put(w->store, o->key, body.data, body.len, NULL, NULL, NULL) == 0);
}

/* Opens the domain again four times: unchanged, after one object was written again, after another
 * one got other bytes, and after a third one was deleted. first: the image of the same domain in
 * another bucket. */
static void check_revalidation(struct world *w, const struct input *in, struct image *first,
			       const struct windows *ws)
{
	struct err err;
	struct snapshot held = take_snapshot(w, NULL, &err);
	struct domain *d = held.domain, *same = NULL;
	const struct domain_hint hint = {.previous = d};
	size_t sum = 0;
	require(domain_open(&(struct domain_bucket){.env = &w->env,
						    .store = w->store,
						    .schemas = schema_all()},
			    w->path, &hint, &same, NULL) == 0);
	require(same == d);
	domain_unref(same);
	for (size_t i = 0; i < in->n; i++)
		sum += in->v[i].body.len;
	const struct input_object *again = victim(w, in, sum);
	require(call_put(w->store, again->key, again->body.data, again->body.len, NULL, NULL,
			 NULL) == 0);
	check_again(w, d);
	write_other(w, victim(w, in, sum / 3 + 1));
	check_again(w, d);
	require(call_delete(w->store, victim(w, in, sum / 7 + 2)->key, NULL, NULL) == 0);
	check_again(w, d);
	check_held(first, held.image, ws);
	snapshot_release(&held);
}

static void check_domain(const struct input *in)
{
	struct world one, two;
	struct err why_one, why_two;
	struct windows ws;
	world_init(&one, in, false);
	world_init(&two, in, true);
	struct snapshot first = take_snapshot(&one, NULL, &why_one);
	struct snapshot second = take_snapshot(&two, NULL, &why_two);
	check_same_opening(&first, &why_one, &second, &why_two);
	if (first.image) {
		choose_windows(&first, &ws);
		check_alone(&one, &first, &ws);
		check_revalidation(&two, in, first.image, &ws);
	}
	snapshot_release(&first);
	snapshot_release(&second);
	world_release(&one);
	world_release(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input *in = calloc(1, sizeof(*in));
	struct rusage usage;
	if (in && input_parse(in, data, size) && in->n > 0)
		check_domain(in);
	if (in)
		input_release(in);
	free(in);
	require(getrusage(RUSAGE_SELF, &usage) == 0 && (uint64_t)usage.ru_maxrss < RSS_MAX);
	return 0;
}
