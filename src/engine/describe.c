/* SPDX-License-Identifier: Apache-2.0 */
/* HDF5 objects in words: see describe.h. Any thread. */
#include "describe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <base/printable.h>

#include "text.h"

static int describe_array(struct bytes *out, const struct dtype *t)
{
	int rc = text_add(out, "array[");
	for (uint32_t i = 0; !rc && i < t->array.rank; i++)
		rc = text_add(out, "%s%u", i ? "," : "", t->array.dims[i]);
	if (!rc)
		rc = text_add(out, "] of ");
	return rc ? rc : describe_type(out, t->array.base);
}

static int describe_compound(struct bytes *out, const struct dtype *t)
{
	enum { SHOWN = 16 };
	int rc = text_add(out, "compound{");
	for (uint32_t i = 0; !rc && i < t->compound.n && i < SHOWN; i++) {
		rc = text_add(out, "%s%s: ", i ? ", " : "", t->compound.members[i].name);
		if (!rc)
			rc = describe_type(out, t->compound.members[i].type);
	}
	if (!rc && t->compound.n > SHOWN)
		rc = text_add(out, ", … %u more", t->compound.n - SHOWN);
	return rc ? rc : text_add(out, "}");
}

/* The depth of a type is limited by its constructors. */
int describe_type(struct bytes *out, const struct dtype *t)
{
	unsigned int bits = t->size * 8;
	int rc;
	switch (t->cls) {
	case DTYPE_INTEGER:
		return text_add(out, "%sint%u%s", t->integer.is_signed ? "" : "u", bits,
				t->integer.big_endian ? " (big-endian)" : "");
	case DTYPE_FLOAT:
		return text_add(out, "float%u%s", bits,
				t->floating.big_endian ? " (big-endian)" : "");
	case DTYPE_TIME:
		return text_add(out, "time%u", bits);
	case DTYPE_STRING:
		return text_add(out, "string[%u]", t->size);
	case DTYPE_BITFIELD:
		return text_add(out, "bitfield%u", bits);
	case DTYPE_OPAQUE:
		return text_add(out, "opaque[%u]", t->size);
	case DTYPE_COMPOUND:
		return describe_compound(out, t);
	case DTYPE_REFERENCE:
		return text_add(out, t->reference.kind == DTYPE_REF_OBJECT ? "object reference"
									   : "region reference");
	case DTYPE_ENUM:
		rc = text_add(out, "enum(%u names) of ", t->enumeration.n);
		return rc ? rc : describe_type(out, t->enumeration.base);
	case DTYPE_VLEN:
		if (t->vlen.is_string)
			return text_add(out, "variable-length string");
		rc = text_add(out, "variable-length ");
		return rc ? rc : describe_type(out, t->vlen.base);
	case DTYPE_ARRAY:
		return describe_array(out, t);
	}
	return text_add(out, "unknown");
}

int describe_space(struct bytes *out, const struct dspace *s)
{
	if (s->cls == DSPACE_NULL)
		return text_add(out, "null");
	if (s->cls == DSPACE_SCALAR)
		return text_add(out, "scalar");
	int rc = text_add(out, "[");
	for (uint32_t i = 0; !rc && i < s->rank; i++) {
		rc = text_add(out, "%s%" PRIu64, i ? "," : "", s->dims[i]);
		if (rc || s->max[i] == s->dims[i])
			continue;
		rc = s->max[i] == DSPACE_UNLIMITED ? text_add(out, "/inf")
						   : text_add(out, "/%" PRIu64, s->max[i]);
	}
	return rc ? rc : text_add(out, "]");
}

int describe_chunk(struct bytes *out, const struct grid *g)
{
	int rc = text_add(out, "[");
	for (uint32_t i = 0; !rc && i < g->rank; i++)
		rc = text_add(out, "%s%u", i ? "," : "", g->chunk[i]);
	return rc ? rc : text_add(out, "]");
}

static const char *filter_name(const struct filter *f)
{
	static const struct {
		uint32_t id;
		const char *name;
	} names[] = {
		{FILTER_DEFLATE, "deflate"},
		{FILTER_SHUFFLE, "shuffle"},
		{FILTER_FLETCHER32, "fletcher32"},
		{FILTER_SZIP, "szip"},
		{FILTER_NBIT, "nbit"},
		{FILTER_SCALEOFFSET, "scaleoffset"},
		{FILTER_LZF, "lzf"},
		{FILTER_BLOSC, "blosc"},
		{FILTER_LZ4, "lz4"},
		{FILTER_BITSHUFFLE, "bitshuffle"},
		{FILTER_ZSTD, "zstd"},
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].id == f->id)
			return names[i].name;
	return f->name ? f->name : "unnamed";
}

int describe_filters(struct bytes *out, const struct pipeline *p)
{
	int rc = p->n ? 0 : text_add(out, "none");
	for (uint32_t i = 0; !rc && i < p->n; i++) {
		const struct filter *f = &p->f[i];
		rc = text_add(out, "%s%s", i ? ", " : "", filter_name(f));
		if (!rc && f->id == FILTER_DEFLATE && f->nparams)
			rc = text_add(out, "(%u)", f->params[0]);
	}
	return rc;
}

/* ---- paths ---- */

struct step {
	uint32_t parent; /* OBJECT_NONE: not reached, or the root group */
	const char *name;
};

struct object_paths {
	uint32_t n, root;
	struct step steps[]; /* by object number */
};

struct object_paths *object_paths_new(const struct tree *t)
{
	uint32_t n = tree_numbers(t);
	struct object_paths *p = calloc(1, sizeof(*p) + (size_t)n * sizeof(p->steps[0]));
	if (!p)
		return NULL;
	p->n = n;
	p->root = tree_nth(t, 0);
	for (uint32_t i = 0; i < n; i++)
		p->steps[i].parent = OBJECT_NONE;
	/* Groups come in breadth-first order, so a parent's path is known before its children's. */
	for (uint32_t i = 0; i < tree_count(t); i++) {
		uint32_t number = tree_nth(t, i);
		const struct object *o = &tree_object(t, number)->o;
		if (o->kind != OBJECT_GROUP)
			continue;
		for (uint32_t k = 0; k < o->group.nlinks; k++) {
			const struct link *l = &o->group.links[k];
			if (l->cls != LINK_HARD || l->target >= n || l->target == p->root ||
			    p->steps[l->target].parent != OBJECT_NONE)
				continue;
			p->steps[l->target] = (struct step){.parent = number, .name = l->name};
		}
	}
	return p;
}

void object_paths_free(struct object_paths *p)
{
	free(p);
}

static int add_name(struct bytes *out, const char *name)
{
	const size_t cap = 4 * strlen(name) + 1;
	int rc = text_add(out, "/");
	if (!rc)
		rc = bytes_reserve(out, cap);
	if (!rc)
		out->len += printable((char *)out->data + out->len, cap, name);
	return rc;
}

int describe_path(struct bytes *out, const struct object_paths *p, uint32_t number)
{
	enum { SHOWN = 1024 }; /* components */
	const char *names[SHOWN];
	uint32_t n = 0, at = number;
	if (number == p->root)
		return text_add(out, "/");
	for (; at < p->n && p->steps[at].name && n < SHOWN; at = p->steps[at].parent)
		names[n++] = p->steps[at].name;
	if (n == 0)
		return text_add(out, "(object %u)", number);
	int rc = at == p->root ? 0 : text_add(out, "/…");
	while (!rc && n > 0)
		rc = add_name(out, names[--n]);
	return rc;
}
