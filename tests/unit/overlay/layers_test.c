/* SPDX-License-Identifier: Apache-2.0 */
/* Where the bytes of a file with several generations come from. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "overlay/layers.h"

/* The runs of the file, as text: "generation:end", "beneath:end", "zero:end". */
static const char *describe(const struct layers *l, char text[256])
{
	text[0] = '\0';
	for (uint64_t at = 0; at < l->size;) {
		const struct run run = layers_find(l, at, l->size);
		const struct layer *layer = l->top;
		char word[64];
		while (run.kind == RUN_SPOOL && !frames_cover(&layer->written, at, at + 1))
			layer = layer->below;
		if (run.kind == RUN_SPOOL)
			snprintf(word, sizeof(word), "%u:%u ", layer->generation,
				 (unsigned int)run.end);
		else
			snprintf(word, sizeof(word), "%s:%u ",
				 run.kind == RUN_ZERO ? "zero" : "beneath", (unsigned int)run.end);
		strcat(text, word);
		at = run.end;
	}
	return text;
}

static void do_change(struct layers *l, enum layers_change change, uint64_t start, uint64_t end)
{
	uint64_t added = 0;
	if (change == LAYERS_WRITE)
		assert_int_equal(layers_change(l, LAYERS_STORE, start, end, &added), 0);
	assert_int_equal(layers_change(l, change, start, end, &added), 0);
}

static void newer_generations_hide_older_ones(void **state)
{
	struct frames_memory memory = {.allowed = 1 << 20};
	struct layers l;
	char text[256];
	assert_int_equal(layers_init(&l, &memory, 100), 0);
	assert_string_equal(describe(&l, text), "beneath:100 ");
	do_change(&l, LAYERS_WRITE, 10, 50);
	do_change(&l, LAYERS_WRITE, 150, 200);
	assert_string_equal(describe(&l, text), "beneath:10 0:50 beneath:100 zero:150 0:200 ");
	assert_int_equal(layers_begin(&l, 1, NULL), 0);
	do_change(&l, LAYERS_WRITE, 20, 30);
	do_change(&l, LAYERS_ZERO, 60, 70);
	assert_string_equal(
		describe(&l, text),
		"beneath:10 0:20 1:30 0:50 beneath:60 1:70 beneath:100 zero:150 0:200 ");
	/* The limit of the newest generation hides what is below. */
	do_change(&l, LAYERS_RESIZE, 0, 40);
	do_change(&l, LAYERS_RESIZE, 0, 300);
	assert_string_equal(describe(&l, text), "beneath:10 0:20 1:30 0:40 zero:300 ");
	do_change(&l, LAYERS_WRITE, 160, 170);
	do_change(&l, LAYERS_ZERO, 165, 300);
	do_change(&l, LAYERS_MERGE, 0, 0);
	assert_string_equal(describe(&l, text),
			    "beneath:10 0:20 1:30 0:40 zero:160 1:165 zero:300 ");
	layers_pop(&l);
	assert_string_equal(describe(&l, text), "beneath:10 0:40 zero:160 0:165 zero:300 ");
	assert_int_equal(l.n, 1);
	layers_release(&l);
	assert_int_equal(memory.used, 0);
}

static void room_is_counted_in_blocks(void **state)
{
	struct frames_memory memory = {.allowed = 1 << 20};
	struct layers l;
	uint64_t added = 0;
	assert_int_equal(layers_init(&l, &memory, 0), 0);
	assert_int_equal(layers_change(&l, LAYERS_STORE, 4095, 4097, &added), 0);
	assert_int_equal(added, 8192);
	assert_int_equal(layers_change(&l, LAYERS_STORE, 0, 8193, &added), 0);
	assert_int_equal(added, 12288);
	assert_int_equal(layers_change(&l, LAYERS_WRITE, 0, 12000, NULL), 0);
	assert_int_equal(layers_change(&l, LAYERS_ZERO, 1, 12000, NULL), 0);
	assert_int_equal(layers_stored(&l), 8192); /* the blocks at both ends remain */
	assert_int_equal(layers_begin(&l, 7, NULL), 0);
	assert_int_equal(layers_change(&l, LAYERS_STORE, 0, 8192, &added), 0);
	assert_int_equal(layers_stored(&l), 16384);
	assert_int_equal(layers_merge_need(&l), 4096);
	layers_release(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newer_generations_hide_older_ones),
		cmocka_unit_test(room_is_counted_in_blocks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
