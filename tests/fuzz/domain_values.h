/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random values for the documents of a domain, valid and invalid ones. All json_t are the caller's
 * references.
 */
#ifndef FUZZ_DOMAIN_VALUES_H
#define FUZZ_DOMAIN_VALUES_H

#include <jansson.h>

#include "domain_input.h"

struct chance {
	uint64_t state;
};

/* splitmix64 (Steele, Lea, Flood 2014) */
static inline uint64_t draw(struct chance *c)
{
	uint64_t z = (c->state += 0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* A number from 0 to n - 1. n > 0. */
static inline size_t below(struct chance *c, size_t n)
{
	return draw(c) % n;
}

static inline bool one_in(struct chance *c, size_t n)
{
	return below(c, n) == 0;
}

#define ANY(c, words) ((words)[below(c, sizeof(words) / sizeof((words)[0]))])

/* Whether a key names a document. */
bool is_document(const char *key);
/* The parsed body; NULL: it is not JSON. */
json_t *load_document(const struct input_object *o);
/* The index of a random object whose key contains the text; in->n: there is none. document: whether
 * the key has to name a document. */
size_t pick(struct chance *c, const struct input *in, bool document, const char *text);

json_t *some_scalar(struct chance *c, const struct input *in);
json_t *some_dims(struct chance *c, size_t rank);
json_t *some_type(struct chance *c, const struct input *in, unsigned int depth);
json_t *some_shape(struct chance *c, size_t rank);
json_t *some_layout(struct chance *c, size_t rank);
json_t *some_filters(struct chance *c);
/* A scalar, or nested lists of at most `depth` levels. */
json_t *some_value(struct chance *c, const struct input *in, unsigned int depth);
json_t *some_attribute(struct chance *c, const struct input *in);
json_t *some_link(struct chance *c, const struct input *in);

#endif
