/* SPDX-License-Identifier: Apache-2.0 */
/* Dense storage: which objects have it, and whether both indexes have every link and attribute. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include <base/checksum.h>
#include <h5/btree2.h>
#include <h5/fheap.h>

#include "image/image_plan.h"
#include "rendered.h"

enum { LINK_ID = 7, ATTR_ID = 8 };

/* Appends to a JSON document. */
static void append(struct bytes *text, const char *fmt, ...)
{
	char line[512];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	assert_in_range(n, 1, sizeof(line) - 1);
	assert_int_equal(bytes_append(text, line, (size_t)n), 0);
}

static void put(struct rendered *r, const char *key, struct bytes *text)
{
	assert_int_equal(bytes_append(text, "", 1), 0);
	assert_int_equal(small_put(r->store, key, (const char *)text->data), 0);
	bytes_release(text);
}

static void make_links(struct rendered *r, unsigned int n)
{
	struct bytes text = {0};
	append(&text, "{%s,'attributes':{},'links':{", SMALL_HEAD(SMALL_ROOT));
	for (unsigned int i = 0; i < n; i++)
		append(&text, "%s'link%u':{'class':'H5L_TYPE_SOFT','h5path':'/to%u','created':%u}",
		       i ? "," : "", i, i, i + 1);
	append(&text, "}}");
	put(r, SMALL_PREFIX "/.group.json", &text);
	assert_int_equal(rendered_make(r, NULL, NULL), 0);
}

/* Renders a group with n small attributes and, if len > 0, one with a string of len bytes. */
static void make_attrs(struct rendered *r, unsigned int n, unsigned int len, bool ordered)
{
	struct bytes text = {0};
	append(&text, "{%s,'links':{}", SMALL_HEAD(SMALL_ROOT));
	if (ordered)
		append(&text, ",'creationProperties':{'attributeCreationOrder':'%s'}",
		       "H5P_CRT_ORDER_INDEXED");
	append(&text, ",'attributes':{");
	for (unsigned int i = 0; i < n; i++)
		append(&text,
		       "%s'a%u':{'type':%s,'shape':{'class':'H5S_SCALAR'},'value':%u,'created':%u}",
		       i ? "," : "", i, SMALL_I32, i, i + 1);
	if (len > 0) {
		append(&text,
		       "%s'big':{'type':{'class':'H5T_STRING','charSet':'H5T_CSET_ASCII',"
		       "'strPad':'H5T_STR_NULLPAD','length':%u},'shape':{'class':'H5S_SCALAR'},"
		       "'created':%u,'value':'",
		       n ? "," : "", len, n + 1);
		for (unsigned int i = 0; i < len; i++)
			append(&text, "%c", 'a' + i % 26);
		append(&text, "'}");
	}
	append(&text, "}}");
	put(r, SMALL_PREFIX "/.group.json", &text);
	assert_int_equal(rendered_make(r, NULL, NULL), 0);
}

static struct h5_linfo root_linfo(struct rendered *r)
{
	const struct h5_msg *msg = rendered_message(r, rendered_root(r), H5_MSG_LINK_INFO, 0);
	struct h5_linfo info;
	assert_non_null(msg);
	struct cursor c = cursor_of(msg->body, msg->len);
	assert_int_equal(h5_linfo_decode(&r->file, &c, &info, NULL), 0);
	return info;
}

static struct h5_ainfo root_ainfo(struct rendered *r)
{
	const struct h5_msg *msg = rendered_message(r, rendered_root(r), H5_MSG_ATTRIBUTE_INFO, 0);
	struct h5_ainfo info;
	assert_non_null(msg);
	struct cursor c = cursor_of(msg->body, msg->len);
	assert_int_equal(h5_ainfo_decode(&r->file, &c, &info, NULL), 0);
	return info;
}

struct walk {
	struct rendered *r;
	struct h5_fheap_reader *heap;
	unsigned int n;
	uint32_t last_hash;
	uint64_t bytes; /* of all values */
};

static struct h5_link link_of(struct walk *w, const uint8_t *id)
{
	struct bytes body = {0};
	struct h5_link link;
	assert_int_equal(h5_fheap_get(w->heap, id, LINK_ID, 65536, &body, NULL), 0);
	struct cursor c = cursor_of(body.data, body.len);
	assert_int_equal(h5_link_decode(&w->r->file, &c, w->r->arena, &link, NULL), 0);
	bytes_release(&body);
	return link;
}

static int by_name(void *ctx, const uint8_t *record, uint16_t size, struct err *err)
{
	struct walk *w = ctx;
	struct cursor c = cursor_of(record, size);
	uint32_t hash = cur_u32(&c);
	struct h5_link link = link_of(w, cur_bytes(&c, LINK_ID));
	assert_int_equal(hash, checksum_lookup3(link.name, link.name_len, 0));
	assert_true(hash >= w->last_hash);
	w->last_hash = hash;
	w->n++;
	return 0;
}

static int by_order(void *ctx, const uint8_t *record, uint16_t size, struct err *err)
{
	struct walk *w = ctx;
	struct cursor c = cursor_of(record, size);
	uint64_t corder = cur_u64(&c);
	struct h5_link link = link_of(w, cur_bytes(&c, LINK_ID));
	char name[32];
	assert_int_equal(corder, w->n);
	snprintf(name, sizeof(name), "link%u", w->n);
	assert_int_equal(link.name_len, strlen(name));
	assert_memory_equal(link.name, name, link.name_len);
	w->n++;
	return 0;
}

static void sixty_four_links_are_compact(void **state)
{
	struct rendered *r = *state;
	make_links(r, 64);
	assert_int_equal(root_linfo(r).heap, H5_UNDEF);
	assert_non_null(rendered_message(r, rendered_root(r), H5_MSG_LINK, 63));
}

static void more_links_are_in_both_indexes(void **state)
{
	static const unsigned int counts[] = {65, 500, 3000};
	struct rendered *r = *state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		make_links(r, counts[i]);
		struct h5_linfo info = root_linfo(r);
		struct walk w = {.r = r};
		assert_null(rendered_message(r, rendered_root(r), H5_MSG_LINK, 0));
		assert_int_equal(info.max_corder, counts[i]);
		assert_int_equal(h5_fheap_open(&r->file, info.heap, &w.heap, NULL), 0);
		assert_int_equal(
			h5_bt2_walk(&r->file, info.names, H5_BT2_LINK_NAME, by_name, &w, NULL), 0);
		assert_int_equal(w.n, counts[i]);
		w.n = 0;
		assert_int_equal(
			h5_bt2_walk(&r->file, info.corders, H5_BT2_LINK_CORDER, by_order, &w, NULL),
			0);
		assert_int_equal(w.n, counts[i]);
		h5_fheap_close(w.heap);
	}
}

static int count_attr(void *ctx, const uint8_t *record, uint16_t size, struct err *err)
{
	struct walk *w = ctx;
	struct bytes body = {0};
	struct h5_attr attr;
	assert_int_equal(h5_fheap_get(w->heap, record, ATTR_ID, 1 << 20, &body, NULL), 0);
	struct cursor c = cursor_of(body.data, body.len);
	assert_int_equal(h5_attr_decode(&w->r->file, &c, w->r->arena, NULL, &attr, NULL), 0);
	w->bytes += attr.data_len;
	for (uint64_t i = 0; strcmp(attr.name, "big") == 0 && i < attr.data_len; i++)
		assert_int_equal(attr.data[i], 'a' + i % 26);
	w->n++;
	bytes_release(&body);
	return 0;
}

static void attributes_are_dense_when_many_or_large(void **state)
{
	static const struct {
		unsigned int small, len;
		bool ordered, dense;
	} cases[] = {
		{8, 0, false, false},	   {9, 0, false, false},    {64, 0, true, false},
		{65, 0, false, true},	   {65, 0, true, true},	    {0, 60000, false, false},
		{7, 60000, true, false},   {0, 70000, false, true}, {3, 70000, true, true},
		{63, 4000, true, false},   {8, 4000, false, false}, {8, 4097, false, true},
		{600, 300000, true, true},
	};
	struct rendered *r = *state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned int n = cases[i].small + (cases[i].len > 0);
		struct walk w = {.r = r};
		make_attrs(r, cases[i].small, cases[i].len, cases[i].ordered);
		struct h5_ainfo info = root_ainfo(r);
		assert_int_equal(info.heap != H5_UNDEF, cases[i].dense);
		assert_int_equal(info.tracked, cases[i].ordered);
		if (cases[i].ordered)
			assert_int_equal(info.max_corder, n);
		if (!cases[i].dense) {
			assert_non_null(
				rendered_message(r, rendered_root(r), H5_MSG_ATTRIBUTE, n - 1));
			continue;
		}
		assert_int_equal(h5_fheap_open(&r->file, info.heap, &w.heap, NULL), 0);
		assert_int_equal(
			h5_bt2_walk(&r->file, info.names, H5_BT2_ATTR_NAME, count_attr, &w, NULL),
			0);
		assert_int_equal(w.n, n);
		assert_int_equal(w.bytes, 4 * cases[i].small + cases[i].len);
		if (cases[i].ordered)
			assert_int_equal(h5_bt2_walk(&r->file, info.corders, H5_BT2_ATTR_CORDER,
						     count_attr, &w, NULL),
					 0);
		assert_int_equal(w.n, cases[i].ordered ? 2 * n : n);
		h5_fheap_close(w.heap);
	}
}

/* Messages of up to 4,096 bytes are in the heap, larger ones have regions of their own. */
static void messages_of_about_4096_bytes(void **state)
{
	enum { SMALL = 65, HEAD = 25 }; /* HEAD: bytes of the message before the value */
	struct rendered *r = *state;
	for (unsigned int len = 4096 - HEAD - 2; len <= 4096 - HEAD + 2; len++) {
		struct walk w = {.r = r};
		make_attrs(r, SMALL, len, false);
		assert_int_equal(r->img->nvalues, HEAD + len > 4096);
		struct h5_ainfo info = root_ainfo(r);
		assert_int_equal(h5_fheap_open(&r->file, info.heap, &w.heap, NULL), 0);
		assert_int_equal(
			h5_bt2_walk(&r->file, info.names, H5_BT2_ATTR_NAME, count_attr, &w, NULL),
			0);
		assert_int_equal(w.bytes, 4 * SMALL + len);
		h5_fheap_close(w.heap);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sixty_four_links_are_compact, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(more_links_are_in_both_indexes, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(attributes_are_dense_when_many_or_large,
						rendered_setup, rendered_teardown),
		cmocka_unit_test_setup_teardown(messages_of_about_4096_bytes, rendered_setup,
						rendered_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
