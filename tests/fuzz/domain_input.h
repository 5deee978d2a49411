/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole domain as one fuzz input: a text with one object of the bucket per line, its key, a
 * space, and its body up to the end of the line. A body that begins with "hex:" is given in
 * hexadecimal digits. Empty lines and lines that begin with "#" are comments.
 */
#ifndef FUZZ_DOMAIN_INPUT_H
#define FUZZ_DOMAIN_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/mem.h>

enum {
	INPUT_OBJECTS_MAX = 256,
	INPUT_BODY_MAX = 64 << 10, /* bytes of one body */
	INPUT_MAX = 512 << 10,	   /* bytes of the text */
};

struct input_object {
	char *key; /* heap */
	struct bytes body;
};

/* An all-zero struct is empty. */
struct input {
	struct input_object v[INPUT_OBJECTS_MAX];
	size_t n;
};

/* Parses a text. False: a key is not valid in a store, a limit is exceeded, or out of memory. The
 * caller releases the result in both cases. */
bool input_parse(struct input *in, const uint8_t *text, size_t n);
/* Replaces the body of the key, or adds an object. False: a limit is exceeded. */
bool input_put(struct input *in, const char *key, const void *body, size_t n);
void input_remove(struct input *in, size_t i);
/* Appends the text of the input. False: out of memory. */
bool input_write(const struct input *in, struct bytes *text);
void input_release(struct input *in);

#endif
