/* SPDX-License-Identifier: Apache-2.0 */
/* See data/describe.h. Any thread. */
#include <data/describe.h>

#include <inttypes.h>
#include <stdlib.h>

static void describe_compound(struct str *out, const struct dtype *t)
{
	enum { SHOWN = 16 };
	str_add(out, "compound{");
	for (uint32_t i = 0; i < t->compound.n && i < SHOWN; i++) {
		str_add(out, i ? ", " : "");
		str_add_printable(out, t->compound.members[i].name);
		str_add(out, ": ");
		describe_type(out, t->compound.members[i].type);
	}
	if (t->compound.n > SHOWN)
		str_addf(out, ", … %u more", t->compound.n - SHOWN);
	str_add(out, "}");
}

/* Recursion is limited, because the constructors of types limit their depth. */
void describe_type(struct str *out, const struct dtype *t)
{
	const unsigned int bits = t->size * 8;
	switch (t->cls) {
	case DTYPE_INTEGER:
		str_addf(out, "%sint%u%s", t->integer.is_signed ? "" : "u", bits,
			 t->integer.big_endian ? " (big-endian)" : "");
		return;
	case DTYPE_FLOAT:
		str_addf(out, "float%u%s", bits, t->floating.big_endian ? " (big-endian)" : "");
		return;
	case DTYPE_TIME:
		str_addf(out, "time%u", bits);
		return;
	case DTYPE_STRING:
		str_addf(out, "string[%u]", t->size);
		return;
	case DTYPE_BITFIELD:
		str_addf(out, "bitfield%u", bits);
		return;
	case DTYPE_OPAQUE:
		str_addf(out, "opaque[%u]", t->size);
		return;
	case DTYPE_COMPOUND:
		describe_compound(out, t);
		return;
	case DTYPE_REFERENCE:
		str_addf(out, "%s reference",
			 t->reference.kind == DTYPE_REF_OBJECT ? "object" : "region");
		return;
	case DTYPE_ENUM:
		str_addf(out, "enum(%u names) of ", t->enumeration.n);
		describe_type(out, t->enumeration.base);
		return;
	case DTYPE_VLEN:
		str_add(out, "variable-length ");
		if (t->vlen.is_string)
			str_add(out, "string");
		else
			describe_type(out, t->vlen.base);
		return;
	case DTYPE_ARRAY:
		str_add(out, "array[");
		for (uint32_t i = 0; i < t->array.rank; i++)
			str_addf(out, "%s%u", i ? "," : "", t->array.dims[i]);
		str_add(out, "] of ");
		describe_type(out, t->array.base);
		return;
	}
	str_add(out, "unknown");
}

void describe_space(struct str *out, const struct dspace *s)
{
	if (s->cls != DSPACE_SIMPLE) {
		str_add(out, s->cls == DSPACE_NULL ? "null" : "scalar");
		return;
	}
	str_add(out, "[");
	for (uint32_t i = 0; i < s->rank; i++) {
		str_addf(out, "%s%" PRIu64, i ? "," : "", s->dims[i]);
		if (s->max[i] == DSPACE_UNLIMITED)
			str_add(out, "/inf");
		else if (s->max[i] != s->dims[i])
			str_addf(out, "/%" PRIu64, s->max[i]);
	}
	str_add(out, "]");
}

void describe_chunk(struct str *out, const struct grid *g)
{
	str_add(out, "[");
	for (uint32_t i = 0; i < g->rank; i++)
		str_addf(out, "%s%u", i ? "," : "", g->chunk[i]);
	str_add(out, "]");
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
		{FILTER_ZFP, "zfp"},
		{FILTER_ZSTD, "zstd"},
		{FILTER_VBZ, "vbz"},
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].id == f->id)
			return names[i].name;
	return f->name ? f->name : "unnamed";
}

void describe_filters(struct str *out, const struct pipeline *p)
{
	if (p->n == 0)
		str_add(out, "none");
	for (uint32_t i = 0; i < p->n; i++) {
		const struct filter *f = &p->f[i];
		str_addf(out, "%s%s", i ? ", " : "", filter_name(f));
		if (f->id == FILTER_DEFLATE && f->nparams)
			str_addf(out, "(%u)", f->params[0]);
	}
}

void describe_size(struct str *out, uint64_t bytes)
{
	static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
	double n = (double)bytes / 1000;
	size_t i = 0;
	if (bytes < 1000) {
		str_addf(out, "%" PRIu64 " bytes", bytes);
		return;
	}
	for (; n >= 999.95; n /= 1000)
		i++;
	str_addf(out, "%.1f %s", n, units[i]);
}

/* ---- paths ---- */

struct step {
	uint32_t parent; /* OBJECT_NONE: no link to it was found, or it is the root group */
	const char *name;
};

struct object_paths {
	uint32_t n, root;
	struct step steps[]; /* by object number */
};

struct object_paths *object_paths_none(uint32_t numbers)
{
	struct object_paths *p = calloc(1, sizeof(*p) + (size_t)numbers * sizeof(p->steps[0]));
	if (!p)
		return NULL;
	p->n = numbers;
	for (uint32_t i = 0; i < numbers; i++)
		p->steps[i].parent = OBJECT_NONE;
	return p;
}

void object_paths_add(struct object_paths *p, uint32_t number, uint32_t parent, const char *name)
{
	if (number < p->n && number != p->root && p->steps[number].parent == OBJECT_NONE)
		p->steps[number] = (struct step){.parent = parent, .name = name};
}

struct object_paths *object_paths_new(const struct tree *t)
{
	struct object_paths *p = object_paths_none(tree_numbers(t));
	if (!p)
		return NULL;
	p->root = tree_nth(t, 0);
	/* Groups come in breadth-first order, so a parent is entered before its children. */
	for (uint32_t i = 0; i < tree_count(t); i++) {
		uint32_t number = tree_nth(t, i);
		const struct object *o = &tree_object(t, number)->o;
		if (o->kind != OBJECT_GROUP)
			continue;
		for (uint32_t k = 0; k < o->group.nlinks; k++) {
			const struct link *l = &o->group.links[k];
			if (l->cls == LINK_HARD)
				object_paths_add(p, l->target, number, l->name);
		}
	}
	return p;
}

void object_paths_free(struct object_paths *p)
{
	free(p);
}

void describe_path(struct str *out, const struct object_paths *p, uint32_t number)
{
	enum { SHOWN = 1024 }; /* components */
	const char *names[SHOWN];
	uint32_t n = 0, at = number;
	if (number == p->root) {
		str_add(out, "/");
		return;
	}
	for (; at < p->n && p->steps[at].name && n < SHOWN; at = p->steps[at].parent)
		names[n++] = p->steps[at].name;
	if (n == 0) {
		str_addf(out, "(object %u)", number);
		return;
	}
	if (at != p->root)
		str_add(out, "/…");
	while (n > 0) {
		str_add(out, "/");
		str_add_printable(out, names[--n]);
	}
}
