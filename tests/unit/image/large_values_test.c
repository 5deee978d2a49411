/* SPDX-License-Identifier: Apache-2.0 */
/* Large attributes: their bytes, their memory and their holes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <unistd.h>

#include <h5/btree2.h>
#include <h5/fheap.h>

#include "rendered.h"

#define F16	"{'class':'H5T_FLOAT','base':'H5T_IEEE_F16BE'}"
#define I8	"{'class':'H5T_INTEGER','base':'H5T_STD_I8LE'}"
#define REF	"{'class':'H5T_REFERENCE','base':'H5T_STD_REF_OBJ'}"
#define VSTR	"{'class':'H5T_STRING','length':'H5T_VARIABLE'}"
#define DIMS(d) "{'class':'H5S_SIMPLE','dims':" d "}"
#define ATTR(type, dims, value)                                                                    \
	"'a':{'type':" type ",'shape':" DIMS(dims) ",'value':" value ",'created':1}"

static int render(struct rendered *r, const char *attributes, struct err *err)
{
	char json[2048];
	snprintf(json, sizeof(json),
		 "{" SMALL_HEAD(SMALL_ROOT) ",'links':{'sub':" SMALL_HARD(
			 SMALL_GROUP, "1") "},'attributes':{%s}}",
		 attributes);
	assert_int_equal(small_put(r->store, SMALL_PREFIX "/.group.json", json), 0);
	return rendered_make(r, NULL, err);
}

static uint64_t charged(struct rendered *r)
{
	struct budget_stats st;
	budget_get_stats(r->env.budget, &st);
	return st.used[BUDGET_TREES] + st.used[BUDGET_PLANS];
}

/* The heap id of the only attribute of the root group. */
struct found {
	uint8_t id[8];
	unsigned int n;
};

static int note_id(void *ctx, const uint8_t *record, uint16_t size, struct err *err)
{
	struct found *f = ctx;
	memcpy(f->id, record, sizeof(f->id));
	f->n++;
	return 0;
}

/* Reads the attribute through its heap. */
static struct h5_attr read_attr(struct rendered *r, struct bytes *body)
{
	const struct h5_msg *msg = rendered_message(r, rendered_root(r), H5_MSG_ATTRIBUTE_INFO, 0);
	struct h5_fheap_reader *heap;
	struct found f = {.n = 0};
	struct h5_ainfo info;
	struct h5_attr attr;
	assert_non_null(msg);
	struct cursor c = cursor_of(msg->body, msg->len);
	assert_int_equal(h5_ainfo_decode(&r->file, &c, &info, NULL), 0);
	assert_true(info.heap != H5_UNDEF);
	assert_int_equal(h5_bt2_walk(&r->file, info.names, H5_BT2_ATTR_NAME, note_id, &f, NULL), 0);
	assert_int_equal(f.n, 1);
	assert_int_equal(h5_fheap_open(&r->file, info.heap, &heap, NULL), 0);
	assert_int_equal(h5_fheap_get(heap, f.id, sizeof(f.id), 1 << 20, body, NULL), 0);
	h5_fheap_close(heap);
	struct cursor b = cursor_of(body->data, body->len);
	assert_int_equal(h5_attr_decode(&r->file, &b, r->arena, NULL, &attr, NULL), 0);
	return attr;
}

static void large_attributes_are_complete(void **state)
{
	static const struct {
		const char *attributes;
		size_t size; /* of an element */
		uint64_t n;
		uint64_t first; /* elements before the nulls */
		const char *null;
	} cases[] = {
		{ATTR(I8, "[5000]", "null"), 1, 5000, 0, "\0"},
		{ATTR(I8, "[5000]", "[null]"), 1, 5000, 0, "\0"},
		{ATTR(I8, "[100000]", "null"), 1, 100000, 0, "\0"},
		{ATTR(F16, "[1,30000]", "[null]"), 2, 30000, 0, "\x7e\0"},
		{ATTR(F16, "[3,10000]", "[null,null,null]"), 2, 30000, 0, "\x7e\0"},
		{ATTR(REF, "[2,3000]", "[null,null]"), 8, 6000, 0, "\0\0\0\0\0\0\0"},
		{ATTR(VSTR, "[3000]", "null"), 16, 3000, 0, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"},
	};
	struct rendered *r = *state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes body = {0};
		assert_int_equal(render(r, cases[i].attributes, NULL), 0);
		struct h5_attr attr = read_attr(r, &body);
		assert_int_equal(attr.data_len, cases[i].size * cases[i].n);
		for (uint64_t k = cases[i].first; k < cases[i].n; k++)
			assert_memory_equal(attr.data + k * cases[i].size, cases[i].null,
					    cases[i].size);
		bytes_release(&body);
	}
}

/* Elements with values, then unset ones. Their slots are in file form. */
static void values_before_unset_elements(void **state)
{
	struct rendered *r = *state;
	struct bytes body = {0}, item = {0};
	char json[1024];
	/* One row of nulls and one reference, and a row that is null. */
	snprintf(json, sizeof(json),
		 "'a':{'type':{'class':'H5T_ARRAY','dims':[2],'base':" REF
		 "},'shape':" DIMS("[2,2000]") ",'value':[[");
	assert_int_equal(bytes_append(&body, json, strlen(json)), 0);
	for (unsigned int i = 0; i < 2000; i++) {
		const char *text = i == 1999 ? "['groups/" SMALL_GROUP "',null]" : "null,";
		assert_int_equal(bytes_append(&body, text, strlen(text)), 0);
	}
	assert_int_equal(bytes_append(&body, "],null],'created':1}", 21), 0);
	char *document = malloc(body.len + 1024);
	snprintf(document, body.len + 1024,
		 "{" SMALL_HEAD(SMALL_ROOT) ",'links':{'sub':" SMALL_HARD(
			 SMALL_GROUP, "1") "},'attributes':{%s}}",
		 (const char *)body.data);
	assert_int_equal(small_put(r->store, SMALL_PREFIX "/.group.json", document), 0);
	free(document);
	bytes_release(&body);
	assert_int_equal(rendered_make(r, NULL, NULL), 0);

	struct h5_attr attr = read_attr(r, &body);
	struct h5_link link;
	assert_true(rendered_link(r, rendered_root(r), "sub", &link));
	assert_int_equal(attr.data_len, 64000);
	for (uint64_t k = 0; k < 8000; k++) {
		struct cursor c = cursor_of(attr.data + 8 * k, 8);
		assert_int_equal(cur_u64(&c), k == 3998 ? link.addr : 0);
	}
	bytes_release(&body);
	bytes_release(&item);
}

static void reads_may_begin_anywhere(void **state)
{
	struct rendered *r = *state;
	uint8_t *all, piece[100];
	assert_int_equal(render(r, ATTR(F16, "[1,5000]", "[null]"), NULL), 0);
	const uint64_t size = image_size(r->img);
	all = malloc(size);
	assert_int_equal(image_read(r->img, NULL, all, size, 0, NULL, NULL), size);
	for (uint64_t at = 0; at + sizeof(piece) < size; at += 37) {
		assert_int_equal(image_read(r->img, NULL, piece, sizeof(piece), at, NULL, NULL),
				 sizeof(piece));
		assert_memory_equal(piece, all + at, sizeof(piece));
	}
	free(all);
}

static void unset_values_take_no_memory(void **state)
{
	static const char *const cases[] = {
		ATTR(I8, "[268435455]", "null"),
		ATTR(I8, "[1,268435455]", "[null]"),
		ATTR(F16, "[1,134217728]", "[null]"),
		ATTR(VSTR, "[16777216]", "null"),
	};
	struct rendered *r = *state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(render(r, cases[i], NULL), 0);
		assert_true(image_size(r->img) > 268435455);
		assert_int_equal(charged(r), image_memory(r->img) + domain_memory(r->domain));
		assert_in_range(charged(r), 1, 100 << 10);
	}
}

static void unset_values_are_holes(void **state)
{
	struct rendered *r = *state;
	assert_int_equal(render(r, ATTR(I8, "[1000000]", "null"), NULL), 0);
	const int64_t hole = image_seek(r->img, 0, SEEK_HOLE);
	assert_in_range(hole, 1, 10000);
	const int64_t data = image_seek(r->img, (uint64_t)hole, SEEK_DATA);
	assert_in_range(data - hole, 1000000, 1000000 + 4096);
	assert_int_equal(image_seek(r->img, (uint64_t)hole + 500000, SEEK_HOLE), hole + 500000);
	assert_in_range(image_allocated(r->img), 1, 100000);
	/* Null elements of floats are NaN, so they are not a hole. */
	assert_int_equal(render(r, ATTR(F16, "[1,1000000]", "[null]"), NULL), 0);
	assert_true(image_seek(r->img, 0, SEEK_HOLE) > 2000000);
	assert_true(image_allocated(r->img) > 2000000);
}

/* A fill value of null strings has no heap objects. */
static void fill_value_of_null_strings(void **state)
{
	struct rendered *r = *state;
	rendered_put(r, SMALL_KEY_STRINGS,
		     "{" SMALL_HEAD(SMALL_STRINGS) ",'type':{'class':'H5T_ARRAY','dims':[2],'base':"
						   "%s},'shape':%s,'attributes':{},"
						   "'creationProperties':{'fillValue':[null,null]},"
						   "'layout':{'class':'H5D_CHUNKED','dims':[1]}}",
		     VSTR, DIMS("[2]"));
	assert_int_equal(rendered_make(r, NULL, NULL), 0);
	const uint64_t size = image_size(r->img);
	uint8_t *all = malloc(size);
	assert_int_equal(image_read(r->img, NULL, all, size, 0, NULL, NULL), size);
	free(all);
}

#define ITEM(n) "{'class':'H5T_VLEN','base':{'class':'H5T_ARRAY','dims':[" n "],'base':" I8 "}}"

/* rendered.h leaves 32 MiB to metadata. */
static void more_than_the_budget_is_refused(void **state)
{
	struct rendered *r = *state;
	struct err err = ERR_INIT;
	/* The tree is too large; then the image is too large in addition to the tree. */
	assert_int_equal(render(r, ATTR(ITEM("40000000"), "[1]", "[[null]]"), &err), -ENOMEM);
	assert_memory_equal(err.msg, "domain /d.h5: at least 400", 26);
	assert_non_null(strstr(err.msg, " bytes of metadata: out of memory: metadata takes "));
	assert_non_null(strstr(err.msg, "limit=1048576"));
	assert_int_equal(charged(r), 0);
	assert_int_equal(render(r, ATTR(ITEM("20000000"), "[1]", "[[null]]"), &err), -ENOMEM);
	assert_memory_equal(err.msg, "image of 200", 12);
	assert_non_null(strstr(err.msg, "limit=1048576"));
	assert_int_equal(charged(r), domain_memory(r->domain));
	assert_int_equal(render(r, ATTR(ITEM("1000000"), "[1]", "[[null]]"), &err), 0);
	assert_in_range(charged(r), 2000000, 2100000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rendered_setup, rendered_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(large_attributes_are_complete), TEST(values_before_unset_elements),
		TEST(reads_may_begin_anywhere),	     TEST(unset_values_take_no_memory),
		TEST(unset_values_are_holes),	     TEST(more_than_the_budget_is_refused),
		TEST(fill_value_of_null_strings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
