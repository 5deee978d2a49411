/* SPDX-License-Identifier: Apache-2.0 */
/* Values with slots in file form: slots of chunks and of attributes point to their heap objects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "gheap_item.h"
#include "rendered.h"

/* The string to which a slot in file form points. Checks its length. The empty string is an empty
 * heap object. */
static char *item_of(struct rendered *r, const uint8_t *slot, uint32_t count)
{
	struct cursor c = cursor_of(slot, DTYPE_VLEN_SIZE);
	struct bytes item = {0};
	assert_int_equal(cur_u32(&c), count);
	uint64_t addr = cur_u64(&c);
	uint32_t index = cur_u32(&c);
	assert_int_equal(gheap_item(&r->file, addr, index, 4096, &item, NULL), 0);
	assert_int_equal(item.len, count);
	assert_int_equal(bytes_append(&item, "", 1), 0);
	return (char *)item.data;
}

static void chunks_point_into_their_window(void **state)
{
	struct rendered *r = *state;
	struct h5_link sub, strings;
	struct h5_layout layout;
	uint8_t slots[2 * DTYPE_VLEN_SIZE];
	assert_int_equal(rendered_make(r, NULL, NULL), 0);
	assert_true(rendered_link(r, rendered_root(r), "sub", &sub));
	assert_true(rendered_link(r, sub.addr, "strings", &strings));
	const struct h5_msg *msg = rendered_message(r, strings.addr, H5_MSG_LAYOUT, 0);
	struct cursor c = cursor_of(msg->body, msg->len);
	assert_int_equal(h5_layout_decode(&r->file, &c, &layout, NULL), 0);
	assert_int_equal(layout.cls, LAYOUT_CONTIGUOUS);
	assert_int_equal(h5_file_read(&r->file, layout.addr, slots, sizeof(slots), NULL), 0);
	auto_free char *first = item_of(r, slots, 2);
	auto_free char *second = item_of(r, slots + DTYPE_VLEN_SIZE, 0);
	assert_string_equal(first, "ab");
	assert_string_equal(second, "");
}

static void attributes_share_collections(void **state)
{
	struct rendered *r = *state;
	struct h5_attr attr;
	small_put(r->store, SMALL_PREFIX "/.group.json",
		  "{" SMALL_HEAD(SMALL_ROOT) ",'links':{},'attributes':{'s':{'type':{'class':"
					     "'H5T_STRING','charSet':'H5T_CSET_UTF8','strPad':'H5T_"
					     "STR_NULLTERM',"
					     "'length':'H5T_VARIABLE'},'shape':{'class':'H5S_"
					     "SIMPLE','dims':[3]},"
					     "'value':['one','','three'],'created':1}}}");
	assert_int_equal(rendered_make(r, NULL, NULL), 0);
	const struct h5_msg *msg = rendered_message(r, rendered_root(r), H5_MSG_ATTRIBUTE, 0);
	assert_non_null(msg);
	struct cursor c = cursor_of(msg->body, msg->len);
	assert_int_equal(h5_attr_decode(&r->file, &c, r->arena, NULL, &attr, NULL), 0);
	assert_int_equal(attr.data_len, 3 * DTYPE_VLEN_SIZE);
	auto_free char *one = item_of(r, attr.data, 3);
	auto_free char *none = item_of(r, attr.data + DTYPE_VLEN_SIZE, 0);
	auto_free char *three = item_of(r, attr.data + 2 * DTYPE_VLEN_SIZE, 5);
	assert_string_equal(one, "one");
	assert_string_equal(none, "");
	assert_string_equal(three, "three");
	assert_memory_equal(attr.data + 4, attr.data + 2 * DTYPE_VLEN_SIZE + 4, 8);
}

/* Renders a root group with an attribute of five elements. */
static struct h5_attr render_attr(struct rendered *r, const char *type, const char *value)
{
	struct h5_attr attr;
	char json[2048];
	snprintf(json, sizeof(json),
		 "{" SMALL_HEAD(SMALL_ROOT) ",'links':{},'attributes':{'a':{'type':%s,'shape':"
					    "{'class':'H5S_SIMPLE','dims':[5]},'value':%s,"
					    "'created':1}}}",
		 type, value);
	assert_int_equal(small_put(r->store, SMALL_PREFIX "/.group.json", json), 0);
	assert_int_equal(rendered_make(r, NULL, NULL), 0);
	const struct h5_msg *msg = rendered_message(r, rendered_root(r), H5_MSG_ATTRIBUTE, 0);
	assert_non_null(msg);
	struct cursor c = cursor_of(msg->body, msg->len);
	assert_int_equal(h5_attr_decode(&r->file, &c, r->arena, NULL, &attr, NULL), 0);
	assert_int_equal(attr.data_len, 5 * DTYPE_VLEN_SIZE);
	return attr;
}

static void empty_strings_share_no_object(void **state)
{
	static const char type[] =
		"{'class':'H5T_STRING','charSet':'H5T_CSET_UTF8','strPad':'H5T_STR_NULLTERM',"
		"'length':'H5T_VARIABLE'}";
	static const uint8_t null[DTYPE_VLEN_SIZE];
	struct h5_attr attr = render_attr(*state, type, "['','',null,'','']");
	const uint8_t *data = attr.data;
	for (size_t i = 0; i < 5; i++) {
		const uint8_t *slot = data + i * DTYPE_VLEN_SIZE;
		if (i == 2) {
			assert_memory_equal(slot, null, sizeof(null));
			continue;
		}
		auto_free char *item = item_of(*state, slot, 0);
		assert_string_equal(item, "");
		for (size_t k = 0; k < i; k++)
			assert_memory_not_equal(slot, data + k * DTYPE_VLEN_SIZE, DTYPE_VLEN_SIZE);
	}
	attr = render_attr(*state, type, "null");
	for (size_t i = 0; i < 5; i++)
		assert_memory_equal(attr.data + i * DTYPE_VLEN_SIZE, null, sizeof(null));
}

static void empty_sequences_are_null(void **state)
{
	static const uint8_t null[DTYPE_VLEN_SIZE];
	struct h5_attr attr = render_attr(*state, "{'class':'H5T_VLEN','base':" SMALL_I32 "}",
					  "[[],[1],null,[],[]]");
	for (size_t i = 0; i < 5; i++)
		if (i != 1)
			assert_memory_equal(attr.data + i * DTYPE_VLEN_SIZE, null, sizeof(null));
}

static void references_to_what_is_not_in_the_file_are_null(void **state)
{
	static const char *const values[] = {"'groups/" SMALL_ORPHAN "'",
					     "'groups/" SMALL_MISSING "'", "''", "null",
					     "'nonsense'"};
	struct rendered *r = *state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		char json[1024];
		struct h5_attr attr;
		snprintf(json, sizeof(json),
			 "{" SMALL_HEAD(SMALL_ROOT) ",'links':{},'attributes':{'r':{'type':"
						    "{'class':'H5T_REFERENCE','base':'H5T_STD_REF_"
						    "OBJ'},'shape':{'class':"
						    "'H5S_SCALAR'},'value':%s,'created':1}}}",
			 values[i]);
		assert_int_equal(small_put(r->store, SMALL_PREFIX "/.group.json", json), 0);
		assert_int_equal(rendered_make(r, NULL, NULL), 0);
		const struct h5_msg *msg =
			rendered_message(r, rendered_root(r), H5_MSG_ATTRIBUTE, 0);
		assert_non_null(msg);
		struct cursor c = cursor_of(msg->body, msg->len);
		assert_int_equal(h5_attr_decode(&r->file, &c, r->arena, NULL, &attr, NULL), 0);
		c = cursor_of(attr.data, attr.data_len);
		assert_int_equal(cur_u64(&c), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(chunks_point_into_their_window, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(attributes_share_collections, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(empty_strings_share_no_object, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(empty_sequences_are_null, rendered_setup,
						rendered_teardown),
		cmocka_unit_test_setup_teardown(references_to_what_is_not_in_the_file_are_null,
						rendered_setup, rendered_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
