/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h5dump reads the image of a tree that the test builds without a schema or a store. The source of
 * its chunks delivers them from a worker thread.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cache/cache.h>
#include <data/chunk_source.h>
#include <data/tree.h>
#include <image/image.h>
#include <prefetch/kernel.h>

#include "shape_arena.h"

enum { ROOT, DATA, GROUP, TYPE, BROKEN, TEXT, ORPHAN, OBJECTS };
enum { SIDE = 6, CHUNK_SIDE = 4, CHUNK_ELEMS = CHUNK_SIDE * CHUNK_SIDE, TEXTS = 3 };

static const char *const texts[TEXTS] = {"one", "two", "three"};

struct hand {
	struct env env;
	struct cache *cache;
	struct tree *tree;
	struct arena *a; /* of the tree */
	struct chunk_list lists[OBJECTS];
	struct image *img;
	atomic_uint gets;
	atomic_bool no_cancel; /* there was a request that cannot be cancelled */
};

/* ---- chunks ---- */

struct job {
	uint32_t dataset;
	uint64_t number;
	chunk_done done;
	void *arg;
};

static int put_int(struct bytes *out, int32_t v)
{
	const uint8_t le[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16),
			       (uint8_t)(v >> 24)};
	return bytes_append(out, le, sizeof(le));
}

/* Element i of chunk c is 100 c + i. */
static int make_data(struct elems *e, uint64_t number)
{
	int rc = 0;
	for (int32_t i = 0; !rc && i < CHUNK_ELEMS; i++)
		rc = put_int(&e->fixed, 100 * (int32_t)number + i);
	return rc;
}

static int make_text(struct elems *e)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < TEXTS; i++) {
		uint8_t slot[DTYPE_VLEN_SIZE];
		uint64_t offset;
		rc = elems_heap_add(e, texts[i], strlen(texts[i]), &offset);
		elems_put_vlen(slot, (uint32_t)strlen(texts[i]), offset);
		if (!rc)
			rc = bytes_append(&e->fixed, slot, sizeof(slot));
	}
	return rc;
}

static void deliver(void *arg)
{
	struct job *j = arg;
	struct chunk_result chunk = {0};
	chunk.code = j->dataset == DATA ? make_data(&chunk.data.elems, j->number)
					: make_text(&chunk.data.elems);
	j->done(j->arg, &chunk);
	free(j);
}

static void get_chunk(void *ctx, const struct chunk_request *request, chunk_done done, void *arg)
{
	struct hand *h = ctx;
	struct job *j = malloc(sizeof(*j));
	atomic_fetch_add(&h->gets, 1);
	if (!request->cancelled)
		atomic_store(&h->no_cancel, true);
	*j = (struct job){
		.dataset = request->dataset, .number = request->number, .done = done, .arg = arg};
	pool_submit(h->env.pool, deliver, j);
}

static const struct chunk_list *list_chunks(void *ctx, uint32_t dataset)
{
	struct hand *h = ctx;
	return &h->lists[dataset];
}

/* ---- the tree ---- */

static struct object *add(struct hand *h, uint32_t expected, enum object_kind kind)
{
	uint32_t number;
	assert_int_equal(tree_add(h->tree, &number, NULL), 0);
	assert_int_equal(number, expected);
	struct object *o = tree_edit(h->tree, number);
	*o = (struct object){.kind = kind, .id = "by hand"};
	return o;
}

static void set_attrs(struct hand *h, struct object *o, uint32_t n)
{
	o->nattrs = n;
	o->attrs = arena_array(h->a, n, sizeof(*o->attrs));
}

static struct attribute *scalar_attr(struct object *o, uint32_t i, const char *name,
				     const struct dtype *type)
{
	struct attribute *attr = &o->attrs[i];
	*attr = (struct attribute){.name = name, .type = type, .committed = OBJECT_NONE};
	dspace_scalar(&attr->space);
	return attr;
}

static void add_root(struct hand *h)
{
	const struct link links[] = {
		{.name = "data", .cls = LINK_HARD, .target = DATA},
		{.name = "group", .cls = LINK_HARD, .target = GROUP},
		{.name = "broken", .cls = LINK_HARD, .target = BROKEN},
		{.name = "soft", .cls = LINK_SOFT, .path = "/group/again"},
		{.name = "out", .cls = LINK_EXTERNAL, .domain = "/b/other.h5", .path = "/x"},
		{.name = "type", .cls = LINK_HARD, .target = TYPE},
		{.name = "text", .cls = LINK_HARD, .target = TEXT},
	};
	struct object *o = add(h, ROOT, OBJECT_GROUP);
	uint8_t slot[DTYPE_VLEN_SIZE];
	uint64_t offset;
	o->group.nlinks = sizeof(links) / sizeof(links[0]);
	o->group.links = arena_alloc(h->a, sizeof(links));
	memcpy(o->group.links, links, sizeof(links));
	for (uint32_t i = 0; i < o->group.nlinks; i++)
		o->group.links[i].utf8 = true;
	set_attrs(h, o, 2);
	struct attribute *attr =
		scalar_attr(o, 0, "answer", dtype_integer(h->a, 4, true, false, NULL));
	assert_int_equal(put_int(&attr->value.fixed, 42), 0);
	attr = scalar_attr(o, 1, "title",
			   dtype_vlen_string(h->a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL));
	assert_int_equal(elems_heap_add(&attr->value, "by hand", 7, &offset), 0);
	elems_put_vlen(slot, 7, offset);
	assert_int_equal(bytes_append(&attr->value.fixed, slot, sizeof(slot)), 0);
}

/* Four chunks. The second one is not stored. */
static void add_data(struct hand *h)
{
	static const uint64_t numbers[] = {0, 2, 3};
	const uint64_t dims[] = {SIDE, SIDE}, chunk[] = {CHUNK_SIDE, CHUNK_SIDE};
	struct object *o = add(h, DATA, OBJECT_DATASET);
	struct dataset *ds = &o->dataset;
	ds->type = dtype_integer(h->a, 4, true, false, NULL);
	ds->committed = OBJECT_NONE;
	ds->requested = LAYOUT_CHUNKED;
	assert_int_equal(dspace_simple(shape_arena(), &ds->space, 2, dims, NULL, NULL), 0);
	assert_int_equal(grid_init(shape_arena(), &ds->grid, 2, dims, chunk, NULL), 0);
	ds->fill_defined = true;
	ds->alloc_time = ALLOC_TIME_INCR;
	ds->fill_time = FILL_TIME_IFSET;
	assert_int_equal(put_int(&ds->fill.fixed, -1), 0);
	set_attrs(h, o, 1);
	struct attribute *attr = scalar_attr(o, 0, "shared", dtype_ieee(h->a, 8, false, NULL));
	attr->committed = TYPE;
	assert_int_equal(bytes_append(&attr->value.fixed, "\0\0\0\0\0\0\xf8\x3f", 8), 0);
	h->lists[DATA] = (struct chunk_list){.listed = true, .n = 3, .numbers = numbers};
}

static void add_group(struct hand *h)
{
	struct object *o = add(h, GROUP, OBJECT_GROUP);
	o->group.nlinks = 2;
	o->group.links = arena_array(h->a, 2, sizeof(struct link));
	o->group.links[0] = (struct link){.name = "again", .utf8 = true, .target = DATA};
	o->group.links[1] = (struct link){.name = "up", .utf8 = true, .target = ROOT};
	set_attrs(h, o, 1);
	struct attribute *attr =
		scalar_attr(o, 0, "reference", dtype_reference(h->a, DTYPE_REF_OBJECT, NULL));
	assert_int_equal(bytes_append(&attr->value.fixed, "\2\0\0\0\0\0\0\0", 8), 0); /* DATA */
}

static void add_text(struct hand *h)
{
	static const uint64_t number = 0;
	static uint64_t decoded;
	const uint64_t dims[] = {TEXTS};
	struct dataset *ds = &add(h, TEXT, OBJECT_DATASET)->dataset;
	ds->type = dtype_vlen_string(h->a, DTYPE_PAD_NULLTERM, DTYPE_CSET_UTF8, NULL);
	ds->committed = OBJECT_NONE;
	ds->requested = LAYOUT_CONTIGUOUS;
	ds->alloc_time = ALLOC_TIME_LATE;
	assert_int_equal(dspace_simple(shape_arena(), &ds->space, 1, dims, NULL, NULL), 0);
	assert_int_equal(grid_init(shape_arena(), &ds->grid, 1, dims, dims, NULL), 0);
	decoded = 0;
	for (size_t i = 0; i < TEXTS; i++)
		decoded += 4 + strlen(texts[i]);
	h->lists[TEXT] = (struct chunk_list){
		.listed = true, .n = 1, .numbers = &number, .decoded = &decoded};
}

static int setup(void **state)
{
	struct hand *h = calloc(1, sizeof(*h));
	*state = h;
	h->env = env_real(NULL, pool_new(2));
	h->env.budget = budget_new(&(struct budget_limits){.bytes = 1 << 20});
	h->cache = cache_new(&h->env, 8, NULL);
	h->tree = tree_new(1 << 20);
	h->a = tree_arena(h->tree);
	add_root(h);
	add_data(h);
	add_group(h);
	add(h, TYPE, OBJECT_DATATYPE)->datatype = dtype_ieee(h->a, 8, false, NULL);
	add(h, BROKEN, OBJECT_GROUP);
	tree_break(h->tree, BROKEN, "g-broken");
	add_text(h);
	add(h, ORPHAN, OBJECT_GROUP);
	return tree_finish(h->tree, NULL);
}

static int teardown(void **state)
{
	struct hand *h = *state;
	image_unref(h->img);
	tree_free(h->tree);
	cache_free(h->cache);
	budget_free(h->env.budget);
	pool_free(h->env.pool);
	free(h);
	return 0;
}

/* ---- as a file ---- */

static void render_as(struct hand *h, unsigned int flags)
{
	const struct chunk_source chunks = {.list = list_chunks, .get = get_chunk, .ctx = h};
	const struct image_options opt = {.domain_dir = "a", .flags = flags};
	struct err err = ERR_INIT;
	if (image_new(&h->env, h->cache, h->tree, &chunks, &opt, &h->img, &err))
		fail_msg("%s", err.msg);
}

static void render(struct hand *h)
{
	render_as(h, 0);
}

static void write_file(struct hand *h, char *path)
{
	const size_t size = (size_t)image_size(h->img);
	auto_free uint8_t *all = malloc(size);
	struct err err = ERR_INIT;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	if (image_read(h->img, NULL, all, size, 0, NULL, &err) != (ssize_t)size)
		fail_msg("%s", err.msg);
	assert_int_equal(write(fd, all, size), size);
	close(fd);
}

/* The output of h5dump without its first line, which has the name of the file, and without the
 * address of the target of a reference. */
static struct bytes dump(const char *path)
{
	char command[256], piece[4096];
	struct bytes out = {0};
	size_t n;
	snprintf(command, sizeof(command), "h5dump '%s' 2>&1 | sed 's/DATASET [0-9]* /DATASET /'",
		 path);
	FILE *f = popen(command, "r");
	assert_non_null(f);
	assert_non_null(fgets(piece, sizeof(piece), f));
	while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
		assert_int_equal(bytes_append(&out, piece, n), 0);
	assert_int_equal(bytes_append_zero(&out, 1), 0);
	assert_int_equal(pclose(f), 0);
	return out;
}

/* tests/unit/image/by_hand.txt: the tree as h5dump should print it. */
static struct bytes read_expected(void)
{
	char path[4096], piece[4096];
	struct bytes out = {0};
	size_t n;
	snprintf(path, sizeof(path), "%s/tests/unit/image/by_hand.txt", getenv("HSMOUNT_SOURCE"));
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
		assert_int_equal(bytes_append(&out, piece, n), 0);
	assert_int_equal(bytes_append_zero(&out, 1), 0);
	fclose(f);
	return out;
}

static void h5dump_reads_it(void **state)
{
	struct hand *h = *state;
	char path[] = "/tmp/hsmount-by-hand-XXXXXX";
	assert_int_equal(tree_problems(h->tree), 1);
	render(h);
	write_file(h, path);
	auto_bytes struct bytes out = dump(path), expected = read_expected();
	unlink(path);
	assert_string_equal((const char *)out.data, (const char *)expected.data);
	assert_int_equal(atomic_load(&h->gets), 4);
	assert_false(atomic_load(&h->no_cancel));
}

/* If the list of chunks is empty, no chunk is requested, and all elements are the fill value. */
static void without_chunks(void **state)
{
	struct hand *h = *state;
	char path[] = "/tmp/hsmount-by-hand-XXXXXX";
	h->lists[DATA].n = 0;
	render(h);
	write_file(h, path);
	auto_bytes struct bytes out = dump(path);
	unlink(path);
	assert_non_null(strstr((const char *)out.data, "(0,0): -1, -1, -1, -1, -1, -1,"));
	assert_null(strstr((const char *)out.data, "(0,0): 0"));
	assert_int_equal(atomic_load(&h->gets), 1); /* the text */
}

/* Neighbouring chunks in a file come with one request, so the kernel may read many ahead. */
static void joined_chunks_are_read_ahead(void **state)
{
	static const struct reference reference = {.layout = REFERENCE_CHUNKED};
	struct hand *h = *state;
	render_as(h, IMAGE_DISTANT);
	assert_int_equal(image_read_ahead(h->img), KERNEL_READ_AHEAD_MIN);
	image_unref(h->img);
	tree_edit(h->tree, DATA)->dataset.reference = &reference;
	render_as(h, IMAGE_DISTANT);
	assert_int_equal(image_read_ahead(h->img), KERNEL_READ_AHEAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(h5dump_reads_it, setup, teardown),
		cmocka_unit_test_setup_teardown(without_chunks, setup, teardown),
		cmocka_unit_test_setup_teardown(joined_chunks_are_read_ahead, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
