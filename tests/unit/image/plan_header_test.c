/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes of object headers, read from the bytes of the file alone: messages fill a header exactly,
 * and every header is as large as libhdf5 makes its smallest one (H5O_MIN_SIZE), so that a writer
 * can put a continuation message into it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "image/image_plan.h"
#include "small_tree.h"

/* Spec IV.A.1.b: "OHDR", version, flags, four times; then the size of the messages. */
enum { FLAGS_AT = 5, SIZE_AT = 6 + 16, CHECKSUM = 4, MIN_SIZE = 22, NIL = 0 };

struct header {
	size_t prefix, size; /* of the messages, with their prefixes */
	size_t messages, nil;
};

static struct header parse(const uint8_t *at)
{
	const uint8_t flags = at[FLAGS_AT];
	const size_t width = (size_t)1 << (flags & 3), head = flags & 4 ? 6 : 4;
	struct header h = {.prefix = SIZE_AT + width};
	assert_memory_equal(at, "OHDR\2", 5);
	for (size_t i = width; i-- > 0;)
		h.size = h.size << 8 | at[SIZE_AT + i];
	for (size_t i = 0; i < h.size; h.messages++) {
		const uint8_t *message = at + h.prefix + i;
		const size_t len = message[1] | (size_t)message[2] << 8;
		h.nil += message[0] == NIL;
		assert_true(i + head <= h.size); /* no gap */
		for (size_t k = 0; k < len && message[0] == NIL; k++)
			assert_int_equal(message[head + k], 0);
		i += head + len;
		assert_true(i <= h.size);
	}
	return h;
}

static struct header header_of(struct small_tree *t, uint32_t number)
{
	return parse(t->img->meta + t->img->header_addr[number]);
}

static void every_header_has_room_for_a_continuation(void **state)
{
	struct small_tree *t = *state;
	const struct dtype *types[] = {
		dtype_integer(t->a, 4, true, false, NULL),
		dtype_string(t->a, 3, DTYPE_PAD_NULLPAD, DTYPE_CSET_ASCII, NULL),
		dtype_opaque(t->a, 5, "12345678", NULL),
		dtype_ieee(t->a, 8, false, NULL),
	};
	/* Without attribute order the type is the only message: 12, 8, 16 and 20 bytes. */
	static const size_t sizes[] = {22, 22, 24, 24}, nil[] = {1, 1, 1, 0};
	enum { TYPES = sizeof(types) / sizeof(types[0]) };
	for (uint32_t i = 0; i < 2 * TYPES; i++) {
		struct object *o = small_add(t, OBJECT_DATATYPE);
		o->datatype = types[i / 2];
		o->attrs_ordered = i % 2;
	}
	assert_int_equal(small_render(t, NULL), 0);
	for (uint32_t i = 0; i < 2 * TYPES; i++) {
		const struct header h = header_of(t, i + 1);
		const bool ordered = i % 2;
		assert_true(h.size >= MIN_SIZE);
		assert_int_equal(h.nil, ordered ? 0 : nil[i / 2]);
		assert_true(ordered || h.size == sizes[i / 2]);
		assert_int_equal(t->img->header_addr[i + 1] % 8, 0);
	}
}

static size_t message_of(const uint8_t *at, uint8_t type, const uint8_t **body)
{
	const struct header h = parse(at);
	const size_t head = at[FLAGS_AT] & 4 ? 6 : 4;
	for (size_t i = 0; i < h.size;) {
		const uint8_t *message = at + h.prefix + i;
		const size_t len = message[1] | (size_t)message[2] << 8;
		*body = message + head;
		if (message[0] == type)
			return len;
		i += head + len;
	}
	return 0;
}

/* Spec IV.A.2.n. */
static void a_comment_is_a_message(void **state)
{
	enum { COMMENT = 0x0d, LONGEST = 65000 };
	struct small_tree *t = *state;
	char *longest = arena_alloc(t->a, LONGEST + 1);
	memset(longest, 'c', LONGEST);
	longest[LONGEST] = '\0';
	const char *const comments[] = {NULL, "caf\xe9", longest};
	for (uint32_t i = 0; i < 3; i++) {
		struct object *o = small_add(t, OBJECT_DATATYPE);
		o->datatype = dtype_ieee(t->a, 8, false, NULL);
		o->attrs_ordered = i == 1;
		o->comment = comments[i];
	}
	tree_edit(t->tree, 0)->comment = "root";
	assert_int_equal(small_render(t, NULL), 0);
	for (uint32_t i = 0; i < 4; i++) {
		const char *comment = tree_object(t->tree, i)->o.comment;
		const uint8_t *body;
		const size_t len =
			message_of(t->img->meta + t->img->header_addr[i], COMMENT, &body);
		assert_int_equal(len, comment ? strlen(comment) + 1 : 0);
		if (comment)
			assert_memory_equal(body, comment, len);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, small_setup, small_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_header_has_room_for_a_continuation),
		TEST(a_comment_is_a_message),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
