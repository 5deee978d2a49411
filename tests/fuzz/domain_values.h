/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New values for the documents of a domain, drawn by chance from what such documents hold and from
 * what they may not hold. All json_t are the caller's references.
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

/* 0 … n - 1; n > 0. */
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
/* The document; NULL when it is none. */
json_t *load_document(const struct input_object *o);
/* The place of some object whose key does (or does not) name a document and holds the text; in->n
 * when there is none. */
size_t pick(struct chance *c, const struct input *in, bool document, const char *text);

json_t *some_scalar(struct chance *c, const struct input *in);
json_t *some_dims(struct chance *c, size_t rank);
json_t *some_type(struct chance *c, const struct input *in, unsigned int depth);
json_t *some_shape(struct chance *c, size_t rank);
json_t *some_layout(struct chance *c, size_t rank);
json_t *some_filters(struct chance *c);
/* For any type: a scalar or lists of depth levels at most. */
json_t *some_value(struct chance *c, const struct input *in, unsigned int depth);
json_t *some_attribute(struct chance *c, const struct input *in);
json_t *some_link(struct chance *c, const struct input *in);

#endif
