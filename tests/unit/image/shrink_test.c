/* SPDX-License-Identifier: Apache-2.0 */
/* Images of files that are only read: without the attributes of the tree, and with compressed
 * metadata, all bytes are the same, and the memory is charged as it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rendered.h"

#define I8	"{'class':'H5T_INTEGER','base':'H5T_STD_I8LE'}"
#define VSTR	"{'class':'H5T_STRING','length':'H5T_VARIABLE'}"
#define DIMS(d) "{'class':'H5S_SIMPLE','dims':[" d "]}"
#define ATTR(name, type, dims, value)                                                              \
	"'" name "':{'type':" type ",'shape':" DIMS(dims) ",'value':" value ",'created':1}"

/* Values that are rendered when they are read: in the form of the tree, and in file form. */
#define LARGE ATTR("plain", I8, "100000", "null") "," ATTR("texts", VSTR, "3000", "null")
#define SMALL ATTR("range", I8, "3", "[1,2,3]") "," ATTR("names", VSTR, "2", "['ab','c']")

enum { FEW = 2, MANY = 2000 /* datasets */ };

static unsigned int sixteen(unsigned int i)
{
	return 16;
}

static void make(struct rendered *r, unsigned int n, const char *attributes)
{
	rendered_put_datasets(r, n, sixteen);
	rendered_put(
		r, SMALL_PREFIX "/d/0004-000000-000001/.dataset.json",
		"{" SMALL_HEAD(SMALL_ID(
			"d",
			"0004-000000-000001")) ",'type':'H5T_STD_U8LE',"
					       "'shape':" DIMS(
						       "16") ",'attributes':{%s},'layout':{'class':"
							     "'H5D_CHUNKED','dims':[16]}}",
		attributes);
	assert_int_equal(rendered_make(r, NULL, NULL), 0);
}

static uint8_t *read_all(struct rendered *r, size_t piece)
{
	const size_t n = image_size(r->img);
	uint8_t *bytes = malloc(n);
	assert_non_null(bytes);
	for (size_t at = 0; at < n; at += piece)
		assert_int_equal(rendered_read_at(r, at, bytes + at, min_u64(piece, n - at), NULL),
				 0);
	return bytes;
}

static uint64_t charged(struct rendered *r)
{
	struct budget_stats st;
	budget_get_stats(r->env.budget, &st);
	return st.used[BUDGET_TREES] + st.used[BUDGET_PLANS];
}

static void shrink(struct rendered *r)
{
	domain_drop_attributes(r->domain, image_take_values, r->img);
	image_shrink(r->img);
}

static void the_bytes_are_the_same(void **state)
{
	static const struct {
		unsigned int datasets;
		const char *attributes;
	} cases[] = {
		{FEW, SMALL},
		{FEW, LARGE},
		{MANY, SMALL},
		{MANY, LARGE "," SMALL},
	};
	struct rendered *r = *state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		make(r, cases[i].datasets, cases[i].attributes);
		const size_t n = image_size(r->img);
		uint8_t *before = read_all(r, n);
		shrink(r);
		assert_int_equal(tree_object(domain_tree(r->domain), 1)->o.nattrs, 0);
		static const size_t pieces[] = {4096, 100000, 131072};
		for (size_t k = 0; k < sizeof(pieces) / sizeof(pieces[0]); k++) {
			uint8_t *after = read_all(r, min_u64(pieces[k], n));
			assert_memory_equal(before, after, n);
			free(after);
		}
		free(before);
	}
}

static void memory_is_charged_as_it_is(void **state)
{
	struct rendered *r = *state;
	make(r, MANY, LARGE "," SMALL);
	const uint64_t tree = domain_memory(r->domain), image = image_memory(r->img);
	assert_int_equal(charged(r), tree + image);
	shrink(r);
	/* The texts were converted for the file, so the tree no longer has those 48,000 bytes. */
	assert_in_range(domain_memory(r->domain), tree / 2, tree - 48);
	/* Without compression, the image saves 80 bytes for each object. */
	assert_in_range(image - image_memory(r->img), MANY * 150, image);
	assert_int_equal(charged(r), domain_memory(r->domain) + image_memory(r->img));
}

static void an_image_has_references(void **state)
{
	struct rendered *r = *state;
	make(r, FEW, SMALL);
	struct image *again = image_ref(r->img);
	uint8_t byte;
	assert_ptr_equal(again, r->img);
	image_unref(r->img);
	assert_int_equal(image_read(again, NULL, &byte, 1, 0, NULL, NULL), 1);
	assert_int_equal(byte, 0x89);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rendered_setup, rendered_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_bytes_are_the_same),
		TEST(memory_is_charged_as_it_is),
		TEST(an_image_has_references),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
