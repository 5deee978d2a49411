/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one domain (domain_input.h) from another: a few changes to the values of its documents, to
 * whole parts of them (types, shapes, layouts, filters, fill values, attributes, links), to the
 * bytes and keys of its chunks, and to the set of its objects. The same build makes the same output
 * from the same input and seed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include <schema/schema.h>
#include <store/store.h>

#include "domain_input.h"
#include "domain_values.h"
#include "domain_words.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

enum { SLOTS_MAX = 2048, CHANGES_MAX = 4, TYPE_DEPTH = 3, LINKS_MAX = 80 };

/* ---- documents as trees ---- */

/* The place of a value in a document: a member of an object or an element of a list. */
struct slot {
	json_t *parent;
	const char *name; /* NULL: an element */
	size_t index;
};

struct slots {
	struct slot v[SLOTS_MAX];
	size_t n;
};

static json_t *slot_value(const struct slot *s)
{
	return s->name ? json_object_get(s->parent, s->name) : json_array_get(s->parent, s->index);
}

/* value: transferred. */
static void slot_set(const struct slot *s, json_t *value)
{
	if (s->name)
		json_object_set_new(s->parent, s->name, value);
	else
		json_array_set_new(s->parent, s->index, value);
}

static void slot_delete(const struct slot *s)
{
	if (s->name)
		json_object_del(s->parent, s->name);
	else
		json_array_remove(s->parent, s->index);
}

static void collect(json_t *value, struct slots *slots)
{
	const char *name;
	json_t *child;
	size_t i;
	json_object_foreach(value, name, child)
	{
		if (slots->n < SLOTS_MAX)
			slots->v[slots->n++] = (struct slot){.parent = value, .name = name};
		collect(child, slots);
	}
	json_array_foreach(value, i, child)
	{
		if (slots->n < SLOTS_MAX)
			slots->v[slots->n++] = (struct slot){.parent = value, .index = i};
		collect(child, slots);
	}
}

static void save(struct input *in, size_t i, const json_t *doc)
{
	char *text = json_dumps(doc, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
	if (text)
		input_put(in, in->v[i].key, text, strlen(text));
	free(text);
}

/* ---- changes of a document ---- */

/* The value of the member with this name in another document, or NULL. */
static json_t *graft(struct chance *c, const struct input *in, const char *name)
{
	struct slots *slots = calloc(1, sizeof(*slots));
	const size_t from = pick(c, in, true, "");
	json_t *doc = from < in->n && slots ? load_document(&in->v[from]) : NULL, *found = NULL;
	size_t seen = 0;
	if (doc)
		collect(doc, slots);
	for (size_t i = 0; slots && i < slots->n; i++) {
		const struct slot *s = &slots->v[i];
		if (name && (!s->name || strcmp(s->name, name) != 0))
			continue;
		if (!one_in(c, ++seen))
			continue;
		json_decref(found);
		found = json_deep_copy(slot_value(s));
	}
	free(slots);
	json_decref(doc);
	return found;
}

static void bend_integer(struct chance *c, const struct slot *s)
{
	const uint64_t v = (uint64_t)json_integer_value(slot_value(s));
	const uint64_t bent[] = {v + 1, v - 1, v * 2, 0 - v, v + 7, v << 16};
	slot_set(s, json_integer((json_int_t)ANY(c, bent)));
}

static void bend_text(struct chance *c, const struct slot *s)
{
	const char *v = json_string_value(slot_value(s));
	const size_t n = json_string_length(slot_value(s));
	char copy[512];
	if (n == 0 || n >= sizeof(copy)) {
		slot_set(s, json_string(ANY(c, texts)));
		return;
	}
	memcpy(copy, v, n);
	if (one_in(c, 2))
		copy[below(c, n)] = (char)(' ' + below(c, 95));
	slot_set(s, json_stringn_nocheck(copy, one_in(c, 3) ? below(c, n) : n));
}

static void wrap(struct chance *c, const struct slot *s)
{
	json_t *value = json_deep_copy(slot_value(s));
	switch (below(c, 3)) {
	case 0:
		value = json_pack("[o]", value);
		break;
	case 1:
		value = json_pack("{s:s, s:s, s:o}", "class", "H5T_VLEN", "size", "H5T_VARIABLE",
				  "base", value);
		break;
	default:
		value = json_pack("{s:s, s:o, s:o}", "class", "H5T_ARRAY", "dims",
				  some_dims(c, 1 + below(c, 2)), "base", value);
	}
	slot_set(s, value);
}

static void repeat(struct chance *c, const struct slot *s)
{
	json_t *copy = json_deep_copy(slot_value(s));
	if (s->name)
		json_object_set_new(s->parent, one_in(c, 2) ? ANY(c, texts) : ANY(c, members),
				    copy);
	else
		json_array_insert_new(s->parent, s->index, copy);
}

static void change_slot(struct chance *c, const struct input *in, const struct slot *s)
{
	const json_t *value = slot_value(s);
	json_t *other;
	switch (below(c, 8)) {
	case 0:
		slot_delete(s);
		return;
	case 1:
		slot_set(s, some_scalar(c, in));
		return;
	case 2:
	case 3:
		other = graft(c, in, one_in(c, 8) ? NULL : s->name);
		if (other)
			slot_set(s, other);
		return;
	case 4:
		repeat(c, s);
		return;
	case 5:
		wrap(c, s);
		return;
	default:
		if (json_is_integer(value))
			bend_integer(c, s);
		else if (json_is_string(value))
			bend_text(c, s);
		else
			slot_set(s, some_value(c, in, 2));
	}
}

static void change_values(struct chance *c, const struct input *in, json_t *doc)
{
	struct slots *slots = calloc(1, sizeof(*slots));
	if (slots)
		collect(doc, slots);
	if (slots && slots->n > 0)
		change_slot(c, in, &slots->v[below(c, slots->n)]);
	free(slots);
}

/* ---- changes of what a document describes ---- */

static void set_member(json_t *doc, const char *group, const char *name, json_t *value)
{
	if (!json_is_object(json_object_get(doc, group)))
		json_object_set_new(doc, group, json_object());
	json_object_set_new(json_object_get(doc, group), name, value);
}

static void set_shape(struct chance *c, json_t *doc)
{
	const size_t rank = one_in(c, 20) ? 33 : below(c, 5);
	json_object_set_new(doc, "shape", some_shape(c, rank));
	json_object_set_new(doc, "layout", some_layout(c, rank));
}

static void set_initializer(struct chance *c, json_t *doc)
{
	char start[40], step[40];
	snprintf(start, sizeof(start), "--start=%d", (int)below(c, 100) - 50);
	snprintf(step, sizeof(step), "--step=%g", ANY(c, reals));
	set_member(doc, "creationProperties", "initializer",
		   one_in(c, 4) ? json_pack("[s]", "other")
				: json_pack("[s, s, s]", "arange", start, step));
}

static void change_dataset(struct chance *c, const struct input *in, json_t *doc)
{
	static const char props[] = "creationProperties";
	switch (below(c, 7)) {
	case 0:
		json_object_set_new(doc, "type", some_type(c, in, TYPE_DEPTH));
		break;
	case 1:
		set_shape(c, doc);
		break;
	case 2:
		set_member(doc, props, "layout", some_layout(c, below(c, 4)));
		break;
	case 3:
		set_member(doc, props, "filters", some_filters(c));
		break;
	case 4:
		set_member(doc, props, "fillValue", some_value(c, in, 2));
		break;
	case 5:
		set_initializer(c, doc);
		break;
	default:
		set_member(doc, props, one_in(c, 2) ? "allocTime" : "fillTime",
			   json_string(ANY(c, words)));
	}
}

static void add_attributes(struct chance *c, const struct input *in, json_t *doc)
{
	for (size_t i = below(c, 12) + 1; i > 0; i--) {
		char name[24];
		snprintf(name, sizeof(name), "a%u", (unsigned int)below(c, 40));
		set_member(doc, "attributes", one_in(c, 6) ? ANY(c, texts) : name,
			   some_attribute(c, in));
	}
}

static void add_links(struct chance *c, const struct input *in, json_t *doc)
{
	for (size_t i = below(c, one_in(c, 4) ? LINKS_MAX : 4) + 1; i > 0; i--) {
		char name[24];
		snprintf(name, sizeof(name), "l%u", (unsigned int)below(c, 200));
		set_member(doc, "links", one_in(c, 6) ? ANY(c, texts) : name, some_link(c, in));
	}
}

static void change_document(struct chance *c, struct input *in)
{
	static const char *const kinds[] = {"", ".group.json", ".dataset.json", ".dataset.json"};
	const char *kind = ANY(c, kinds);
	const size_t i = pick(c, in, true, kind);
	json_t *doc = i < in->n ? load_document(&in->v[i]) : NULL;
	if (!json_is_object(doc) || one_in(c, 2)) {
		change_values(c, in, doc);
	} else if (one_in(c, 3)) {
		add_attributes(c, in, doc);
		if (one_in(c, 3))
			set_member(doc, "creationProperties", "attributeCreationOrder",
				   json_string("H5P_CRT_ORDER_TRACKED"));
	} else if (strstr(in->v[i].key, ".group.json")) {
		add_links(c, in, doc);
	} else if (strstr(in->v[i].key, ".dataset.json")) {
		change_dataset(c, in, doc);
	} else {
		json_object_set_new(doc, "type", some_type(c, in, TYPE_DEPTH));
	}
	if (doc)
		save(in, i, doc);
	json_decref(doc);
}

/* ---- changes of chunks and objects ---- */

static void change_bytes(struct chance *c, struct bytes *b)
{
	uint8_t more[64];
	uint32_t count;
	switch (b->len > 0 ? below(c, 4) : 3) {
	case 0:
		b->len = below(c, b->len);
		return;
	case 1:
		b->data[below(c, b->len)] ^= (uint8_t)(1 << below(c, 8));
		return;
	case 2:
		count = (uint32_t)ANY(c, integers);
		if (b->len >= sizeof(count))
			memcpy(b->data + below(c, b->len - sizeof(count) + 1), &count,
			       sizeof(count));
		return;
	default:
		for (size_t i = 0; i < sizeof(more); i++)
			more[i] = one_in(c, 2) ? 0 : (uint8_t)draw(c);
		if (bytes_append(b, more, below(c, sizeof(more)) + 1))
			return;
	}
}

/* A zlib stream, changed after compression. */
static void change_inside(struct chance *c, struct bytes *b)
{
	uint8_t plain[1 << 12], packed[1 << 13];
	uLongf n = sizeof(plain), m = sizeof(packed);
	auto_bytes struct bytes copy = {0};
	if (uncompress(plain, &n, b->data, b->len) != Z_OK)
		n = min_u64(b->len, sizeof(plain));
	if (n && bytes_append(&copy, plain, n))
		return;
	change_bytes(c, &copy);
	if (compress(packed, &m, copy.data, copy.len) != Z_OK)
		return;
	b->len = 0;
	bytes_append(b, packed, m);
}

static void change_chunk(struct chance *c, struct input *in)
{
	const size_t i = pick(c, in, false, "/d/"), from = pick(c, in, false, "/d/");
	auto_bytes struct bytes body = {0};
	if (i == in->n)
		return;
	const struct bytes *source = &in->v[one_in(c, 3) ? from : i].body;
	if (source->len && bytes_append(&body, source->data, source->len))
		return;
	if (one_in(c, 3) && body.len > 0)
		change_inside(c, &body);
	else if (!one_in(c, 6))
		change_bytes(c, &body);
	input_put(in, in->v[i].key, body.data, body.len);
}

/* A chunk of a random dataset, at a random place in up to four dimensions. */
static void add_chunk(struct chance *c, struct input *in)
{
	const size_t i = pick(c, in, true, ".dataset.json"), from = below(c, in->n);
	char key[STORE_KEY_MAX + 64];
	if (i == in->n)
		return;
	const char *end = strstr(in->v[i].key, ".dataset.json");
	int n = snprintf(key, sizeof(key), "%.*s", (int)(end - in->v[i].key), in->v[i].key);
	if (one_in(c, 10))
		n += snprintf(key + n, sizeof(key) - (size_t)n, "p%u/", (unsigned int)below(c, 4));
	for (size_t d = 0, rank = below(c, 4) + 1; d < rank; d++)
		n += snprintf(key + n, sizeof(key) - (size_t)n, "%s%u", d ? "_" : "",
			      (unsigned int)below(c, 5));
	auto_bytes struct bytes body = {0};
	if (in->v[from].body.len == 0 ||
	    bytes_append(&body, in->v[from].body.data, in->v[from].body.len) == 0) {
		if (is_document(in->v[from].key))
			change_bytes(c, &body);
		input_put(in, key, body.data, body.len);
	}
}

/* Moves an object to another key: a document then has the wrong id, or a chunk is added. */
static void copy_object(struct chance *c, struct input *in)
{
	const size_t i = below(c, in->n);
	char key[STORE_KEY_MAX + 1];
	size_t n = strlen(in->v[i].key);
	auto_bytes struct bytes body = {0};
	if (n == 0 || n > STORE_KEY_MAX)
		return;
	memcpy(key, in->v[i].key, n + 1);
	const size_t at = below(c, n);
	if (strchr("0123456789abcdef", key[at]))
		key[at] = "0123456789abcdef"[below(c, 16)];
	if (in->v[i].body.len == 0 ||
	    bytes_append(&body, in->v[i].body.data, in->v[i].body.len) == 0)
		input_put(in, key, body.data, body.len);
	if (one_in(c, 3) && in->n > 1)
		input_remove(in, i);
}

static void cut_object(struct chance *c, struct input *in)
{
	struct input_object *o = &in->v[below(c, in->n)];
	if (o->body.len > 0)
		o->body.len = one_in(c, 3) ? 0 : below(c, o->body.len);
}

static void change(struct chance *c, struct input *in)
{
	switch (below(c, 12)) {
	case 0:
	case 1:
		change_chunk(c, in);
		break;
	case 2:
		add_chunk(c, in);
		break;
	case 3:
		copy_object(c, in);
		break;
	case 4:
		if (one_in(c, 2))
			cut_object(c, in);
		else if (in->n > 1)
			input_remove(in, below(c, in->n));
		break;
	default:
		change_document(c, in);
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	struct input *in = calloc(1, sizeof(*in));
	auto_bytes struct bytes text = {0};
	struct chance c = {.state = seed};
	size_t n = 0;
	if (in && input_parse(in, data, size) && in->n > 0) {
		for (size_t i = below(&c, CHANGES_MAX) + 1; i > 0; i--)
			change(&c, in);
		if (input_write(in, &text) && text.len <= max_size) {
			memcpy(data, text.data, text.len);
			n = text.len;
		}
	}
	if (in)
		input_release(in);
	free(in);
	return n ? n : size;
}
