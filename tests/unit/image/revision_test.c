/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IMAGE_REVISION increases whenever a plan gives different addresses for the same tree. The table
 * holds digests of the files of a few fixed trees for one revision. Together these files have every
 * region of an image. A digest covers all bytes of a file, and so every address in it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>

#include <base/checksum.h>

#include "image/image_plan.h"
#include "rendered.h"

static const int pinned_revision = 3;

static void as_it_is(struct rendered *r)
{
}

/* Dense storage of links and attributes, and attribute values in a global heap. */
static void dense(struct rendered *r)
{
	struct bytes links = {0}, attrs = {0};
	char text[256];
	for (unsigned int i = 0; i < 100; i++) {
		snprintf(text, sizeof(text),
			 "%s'l%u':{'class':'H5L_TYPE_SOFT','h5path':'/to%u','created':%u}",
			 i ? "," : "", i, i, i + 1);
		assert_int_equal(bytes_append(&links, text, strlen(text)), 0);
		snprintf(text, sizeof(text),
			 "%s'a%u':{'type':{'class':'H5T_STRING','charSet':'H5T_CSET_ASCII',"
			 "'strPad':'H5T_STR_NULLTERM','length':'H5T_VARIABLE'},'shape':{'class':"
			 "'H5S_SCALAR'},'value':'%.*s','created':%u}",
			 i ? "," : "", i, (int)(i % 9), "textural", i + 1);
		assert_int_equal(bytes_append(&attrs, text, strlen(text)), 0);
	}
	assert_int_equal(bytes_append(&links, "", 1) | bytes_append(&attrs, "", 1), 0);
	rendered_put(r, SMALL_PREFIX "/.group.json",
		     "{" SMALL_HEAD(SMALL_ROOT) ",'links':{%s},'attributes':{%s}}",
		     (const char *)links.data, (const char *)attrs.data);
	bytes_release(&links);
	bytes_release(&attrs);
}

/* More attributes than libhdf5 keeps in a header, in the header. */
static void many_attributes(struct rendered *r)
{
	struct bytes attrs = {0};
	char text[256];
	for (unsigned int i = 0; i < 64; i++) {
		snprintf(text, sizeof(text),
			 "%s'a%u':{'type':%s,'shape':{'class':'H5S_SCALAR'},'value':%u,'created':%"
			 "u}",
			 i ? "," : "", i, SMALL_I32, i, i + 1);
		assert_int_equal(bytes_append(&attrs, text, strlen(text)), 0);
	}
	assert_int_equal(bytes_append(&attrs, "", 1), 0);
	rendered_put(r, SMALL_PREFIX "/.group.json",
		     "{" SMALL_HEAD(SMALL_ROOT) ",'links':{},'attributes':{%s}}",
		     (const char *)attrs.data);
	bytes_release(&attrs);
}

static void user_block(struct rendered *r)
{
	rendered_put(r, SMALL_PREFIX "/.group.json",
		     "{" SMALL_HEAD(SMALL_ROOT) ",'links':{'n':{'class':'H5L_TYPE_HARD','id':'%s',"
						"'created':1}},'attributes':{},'hsmount':"
						"{'userBlock':{'size':1024,'value':'TUFUTEFC'}}}",
		     SMALL_INTS);
}

static const char text_type[] =
	"{'class':'H5T_STRING','charSet':'H5T_CSET_UTF8','strPad':'H5T_STR_NULLTERM',"
	"'length':'H5T_VARIABLE'}";

/* Large attributes: one without a value, one with nulls, one with items in a global heap. */
static void large_attributes(struct rendered *r)
{
	struct bytes words = {0};
	for (unsigned int i = 0; i < 400; i++)
		assert_int_equal(bytes_append(&words, i ? ",'word'" : "'word'", i ? 7 : 6), 0);
	assert_int_equal(bytes_append(&words, "", 1), 0);
	rendered_put(
		r, SMALL_PREFIX "/.group.json",
		"{" SMALL_HEAD(
			SMALL_ROOT) ",'links':{},'attributes':{"
				    "'unset':{'type':%s,'shape':%s,'created':1},"
				    "'nulls':{'type':%s,'shape':%s,'value':[null],'created':2},"
				    "'words':{'type':%s,'shape':%s,'value':[%s],'created':3}}}",
		SMALL_I32, "{'class':'H5S_SIMPLE','dims':[3000]}",
		"{'class':'H5T_FLOAT','base':'H5T_IEEE_F64LE'}",
		"{'class':'H5S_SIMPLE','dims':[1,1111]}", text_type,
		"{'class':'H5S_SIMPLE','dims':[400]}", (const char *)words.data);
	bytes_release(&words);
}

static const char filters[] = "'filters':[{'class':'H5Z_FILTER_SHUFFLE','id':2,'name':'shuffle'},"
			      "{'class':'H5Z_FILTER_DEFLATE','id':1,'level':4,'name':'gzip'}],";

struct shape {
	unsigned int elements, chunk;
};

static void put_dataset(struct rendered *r, const char *id, const char *type, struct shape s,
			const char *properties, const char *recorded)
{
	char key[128];
	snprintf(key, sizeof(key), SMALL_PREFIX "/d/%s/.dataset.json", id + 20);
	rendered_put(r, key,
		     "{'id':'%s','root':'%s','created':1700000000.5,'lastModified':1700000001.5,"
		     "'type':%s,'shape':{'class':'H5S_SIMPLE','dims':[%u]},'attributes':{},"
		     "'creationProperties':{%s'layout':{'class':'%s'}},"
		     "'layout':{'class':'H5D_CHUNKED','dims':[%u]}}",
		     id, SMALL_ROOT, type, s.elements, properties, recorded, s.chunk);
}

/* Chunks with heaps, stored and not stored, and chunks with filters. */
static void chunked(struct rendered *r)
{
	put_dataset(r, SMALL_STRINGS, text_type, (struct shape){7, 2}, "'fillValue':'x',",
		    "H5D_CHUNKED");
	put_dataset(r, SMALL_INTS, SMALL_I32, (struct shape){10, 4}, filters, "H5D_CHUNKED");
}

/* A gap before the raw data, slots that begin on pages, and holes. */
static void large(struct rendered *r)
{
	static const char *const keys[] = {"000001/1", "000002/0", "000002/2"};
	static const uint8_t chunk[4 * 17000] = {1, 2, 3};
	put_dataset(r, SMALL_INTS, SMALL_I32, (struct shape){4200000, 17000}, "", "H5D_CONTIGUOUS");
	put_dataset(r, SMALL_STRINGS, SMALL_I32, (struct shape){60000, 17000}, "'fillValue':7,",
		    "H5D_CHUNKED");
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		char key[64];
		snprintf(key, sizeof(key), SMALL_PREFIX "/d/0002-000000-%s", keys[i]);
		assert_int_equal(call_put(r->store, key, chunk, sizeof(chunk), NULL, NULL, NULL),
				 0);
	}
}

static unsigned int size(unsigned int i)
{
	return 1 + i * 37 % 300 + (i % 40 == 0 ? 4096 : 0);
}

static void several(struct rendered *r)
{
	rendered_put_datasets(r, 20, size);
}

static void many(struct rendered *r)
{
	rendered_put_datasets(r, IMAGE_OWN_PAGES + 1, size);
}

static const struct {
	const char *name;
	void (*make)(struct rendered *r);
	uint64_t size;
	uint32_t digest;
} trees[] = {
	{"as_it_is", as_it_is, 20488, 0x4e45b3d2},
	{"user_block", user_block, 8216, 0xfd6f0a56},
	{"many_attributes", many_attributes, 4104, 0xf04bc3f3},
	{"dense", dense, 20488, 0x0c0063cd},
	{"large_attributes", large_attributes, 40968, 0x16bf7005},
	{"chunked", chunked, 40968, 0xb9290b3f},
	{"large", large, 19046408, 0x7d928052},
	{"several", several, 86128, 0xbbb6e5d0},
	{"many", many, 2341280, 0xaec1c8c6},
};

static uint32_t digest(struct rendered *r)
{
	static uint8_t bytes[1 << 16];
	uint32_t sum = 0;
	for (uint64_t at = 0; at < image_size(r->img);) {
		const ssize_t n = image_read(r->img, NULL, bytes, sizeof(bytes), at, NULL, NULL);
		assert_true(n > 0);
		sum = checksum_lookup3(bytes, (size_t)n, sum);
		at += (uint64_t)n;
	}
	return sum;
}

static void addresses_belong_to_a_revision(void **state)
{
	bool same = true;
	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++) {
		struct rendered *r;
		assert_int_equal(rendered_setup((void **)&r), 0);
		trees[i].make(r);
		assert_int_equal(rendered_make(r, NULL, NULL), 0);
		const uint64_t n = image_size(r->img);
		const uint32_t sum = digest(r);
		if (n != trees[i].size || sum != trees[i].digest) {
			print_error("{\"%s\", %s, %" PRIu64 ", 0x%08x},\n", trees[i].name,
				    trees[i].name, n, sum);
			same = false;
		}
		rendered_teardown((void **)&r);
	}
	if (!same && IMAGE_REVISION == pinned_revision)
		fail_msg(
			"files of the trees above have changed, and IMAGE_REVISION is still %d. If "
			"any address has changed, increase IMAGE_REVISION (image/image.h) and set "
			"pinned_revision to it; then put the lines above into the table",
			IMAGE_REVISION);
	if (!same || IMAGE_REVISION != pinned_revision)
		fail_msg("IMAGE_REVISION is %d: set pinned_revision to it, and put the lines above "
			 "into the table",
			 IMAGE_REVISION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_belong_to_a_revision),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
