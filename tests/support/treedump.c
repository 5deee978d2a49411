/* SPDX-License-Identifier: Apache-2.0 */
/*
 * treedump [--data] [--claims] FILE: prints what h5file/ reads from an HDF5 file, for tests that
 * compare it with another reader. One JSON document for each object in the order of their numbers,
 * each on a line of its own, and one for the file at the end. Exit status: 0; 1 if the file cannot
 * be opened, with {"error": ...} as the last line.
 *
 * An object:
 *   number, path, kind ("group", "dataset", "datatype"), broken, created, modified (ns), comment
 *   attrs        [{name, type, committed (path or null), space, shape, max, value}]
 *   links        [{name, class, target (path), target_number, path, file}]
 *   type, space, shape, max, layout, raw, chunk, filters [{id, name, params}], fill {defined,
 *   alloc_time, fill_time, hex, value}, chunks (number that is stored), masks {mask: chunks},
 *   stored_bytes, crc32 (of the elements in row-major order, of a plain type), data, data_error
 *
 * Texts are bytes: each byte of 0x80 or more is one character \u00xx. A value is a flat list of its
 * elements in row-major order. An element is
 *   an integer                  number          (also of enums, bitfields and times)
 *   a float                     text: C99 hexadecimal, "nan", "inf", "-inf"
 *   a string of fixed length    text without its padding
 *   a string of variable length text, or null if it was never written
 *   opaque                      text: hexadecimal
 *   a compound, array or vlen   list
 *   an object reference         text: the path of the object, or null
 *   a region reference          [path, hexadecimal selection], or null
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/cursor.h>
#include <base/hex.h>
#include <base/source_file.h>
#include <base/source_paged.h>
#include <h5file/h5file.h>

enum { PAGES = 256, MAX_DATA = 1 << 25, MAX_ELEMS = 1 << 20 };

static struct h5file *file;
static bool with_data;

/* ---- texts and numbers ---- */

static void text_n(const void *bytes, size_t n)
{
	const uint8_t *b = bytes;
	putchar('"');
	for (size_t i = 0; i < n; i++) {
		if (b[i] < 0x20 || b[i] >= 0x7f || b[i] == '"' || b[i] == '\\')
			printf("\\u%04x", b[i]);
		else
			putchar(b[i]);
	}
	putchar('"');
}

static void text(const char *s)
{
	if (s)
		text_n(s, strlen(s));
	else
		fputs("null", stdout);
}

static void hex_text(const uint8_t *bytes, size_t n)
{
	putchar('"');
	for (size_t i = 0; i < n; i++)
		printf("%02x", bytes[i]);
	putchar('"');
}

static const char *path_of(uint64_t ref)
{
	return ref ? tree_object(h5file_tree(file), (uint32_t)(ref - 1))->o.id : NULL;
}

/* The bytes of a number, least significant first. */
static void little_endian(const uint8_t *at, uint32_t size, bool big_endian, uint8_t *out)
{
	for (uint32_t i = 0; i < size; i++)
		out[i] = at[big_endian ? size - 1 - i : i];
}

/* n bits from a bit on. */
static long double bits(const uint8_t *le, uint32_t from, uint32_t n)
{
	long double v = 0;
	for (uint32_t i = n; i-- > 0;)
		v = 2 * v + (le[(from + i) / 8] >> (from + i) % 8 & 1);
	return v;
}

static uint64_t bits_u64(const uint8_t *le, uint32_t from, uint32_t n)
{
	uint64_t v = 0;
	for (uint32_t i = n; i-- > 0;)
		v = v << 1 | (le[(from + i) / 8] >> (from + i) % 8 & 1);
	return v;
}

static void integer(const struct dtype *t, const uint8_t *at)
{
	uint8_t le[64] = {0};
	const uint32_t n = t->integer.precision;
	if (n > 64 || t->size > sizeof(le)) {
		hex_text(at, t->size);
		return;
	}
	little_endian(at, t->size, t->integer.big_endian, le);
	const uint64_t v = bits_u64(le, t->integer.bit_offset, n);
	if (t->cls == DTYPE_INTEGER && t->integer.is_signed && n < 64 && v >> (n - 1))
		printf("-%" PRIu64, (UINT64_C(1) << n) - v);
	else if (t->cls == DTYPE_INTEGER && t->integer.is_signed)
		printf("%" PRId64, (int64_t)v);
	else
		printf("%" PRIu64, v);
}

static void floating(const struct dtype *t, const uint8_t *at)
{
	uint8_t le[64] = {0};
	if (t->size > sizeof(le)) {
		hex_text(at, t->size);
		return;
	}
	little_endian(at, t->size, t->floating.big_endian, le);
	const uint64_t exp = bits_u64(le, t->floating.exp_loc, t->floating.exp_size);
	const uint64_t all = (UINT64_C(1) << t->floating.exp_size) - 1;
	const bool minus = bits_u64(le, t->floating.sign_loc, 1);
	const bool implied = t->floating.norm == DTYPE_NORM_IMPLIED;
	long double m = bits(le, t->floating.mant_loc, t->floating.mant_size);
	long double scale = ldexpl(1, -(int)t->floating.mant_size);
	const bool is_nan = implied ? m != 0 : ldexpl(m * scale, 1) != 1;
	if (exp == all && is_nan) {
		fputs("\"nan\"", stdout);
	} else if (exp == all) {
		fputs(minus ? "\"-inf\"" : "\"inf\"", stdout);
	} else {
		int power = (int)((int64_t)exp - t->floating.exp_bias);
		m *= scale;
		if (implied && exp)
			m += 1;
		else if (implied)
			power++;
		else
			m *= 2;
		printf("\"%s%a\"", minus ? "-" : "", (double)ldexpl(m, power));
	}
}

static void string(const struct dtype *t, const uint8_t *at)
{
	size_t n = t->size;
	if (t->string.pad == DTYPE_PAD_NULLTERM)
		n = strnlen((const char *)at, n);
	while (n && t->string.pad != DTYPE_PAD_NULLTERM &&
	       at[n - 1] == (t->string.pad == DTYPE_PAD_SPACEPAD ? ' ' : 0))
		n--;
	text_n(at, n);
}

/* ---- elements ---- */

static void element(const struct dtype *t, const uint8_t *at, const struct elems *e);

static void elements(const struct dtype *t, const uint8_t *at, uint64_t n, const struct elems *e)
{
	putchar('[');
	for (uint64_t i = 0; i < n; i++) {
		if (i)
			putchar(',');
		element(t, at + i * t->size, e);
	}
	putchar(']');
}

static void compound(const struct dtype *t, const uint8_t *at, const struct elems *e)
{
	putchar('[');
	for (uint32_t i = 0; i < t->compound.n; i++) {
		if (i)
			putchar(',');
		element(t->compound.members[i].type, at + t->compound.members[i].offset, e);
	}
	putchar(']');
}

static void vlen(const struct dtype *t, const uint8_t *at, const struct elems *e)
{
	const struct elems_vlen v = elems_get_vlen(at);
	if (!t->vlen.is_string)
		elements(t->vlen.base, e->heap.data + v.offset, v.count, e);
	else if (v.is_set)
		text_n(e->heap.data + v.offset, v.count);
	else
		fputs("null", stdout);
}

static void reference(const struct dtype *t, const uint8_t *at, const struct elems *e)
{
	struct cursor c = cursor_of(at, t->size);
	const uint64_t v = cur_u64(&c);
	if (t->reference.kind == DTYPE_REF_OBJECT) {
		text(path_of(v));
	} else if (v) {
		const uint8_t *selection = e->heap.data + v - 1;
		struct cursor object = cursor_of(selection, 8);
		putchar('[');
		text(path_of(cur_u64(&object)));
		putchar(',');
		hex_text(selection + 8, cur_u32(&c) - 8);
		putchar(']');
	} else {
		fputs("null", stdout);
	}
}

static void element(const struct dtype *t, const uint8_t *at, const struct elems *e)
{
	switch (t->cls) {
	case DTYPE_INTEGER:
	case DTYPE_BITFIELD:
	case DTYPE_TIME:
		integer(t, at);
		break;
	case DTYPE_FLOAT:
		floating(t, at);
		break;
	case DTYPE_STRING:
		string(t, at);
		break;
	case DTYPE_OPAQUE:
		hex_text(at, t->size);
		break;
	case DTYPE_COMPOUND:
		compound(t, at, e);
		break;
	case DTYPE_REFERENCE:
		reference(t, at, e);
		break;
	case DTYPE_ENUM:
		integer(t->enumeration.base, at);
		break;
	case DTYPE_VLEN:
		vlen(t, at, e);
		break;
	case DTYPE_ARRAY:
		elements(t->array.base, at, t->array.nelems, e);
		break;
	}
}

/* ---- types and spaces ---- */

static void type(const struct dtype *t);

static void number_members(const struct dtype *t)
{
	printf(",\"order\":\"%s\",\"signed\":%s,\"offset\":%u,\"precision\":%u",
	       t->integer.big_endian ? "BE" : "LE", t->integer.is_signed ? "true" : "false",
	       t->integer.bit_offset, t->integer.precision);
}

static void float_members(const struct dtype *t)
{
	printf(",\"order\":\"%s\",\"offset\":%u,\"precision\":%u,\"sign\":%u,\"exp\":[%u,%u],"
	       "\"mant\":[%u,%u],\"bias\":%" PRIu32 ",\"norm\":%d",
	       t->floating.big_endian ? "BE" : "LE", t->floating.bit_offset, t->floating.precision,
	       t->floating.sign_loc, t->floating.exp_loc, t->floating.exp_size,
	       t->floating.mant_loc, t->floating.mant_size, t->floating.exp_bias, t->floating.norm);
}

static void compound_members(const struct dtype *t)
{
	fputs(",\"members\":[", stdout);
	for (uint32_t i = 0; i < t->compound.n; i++) {
		fputs(i ? ",{\"name\":" : "{\"name\":", stdout);
		text(t->compound.members[i].name);
		printf(",\"offset\":%" PRIu32 ",\"type\":", t->compound.members[i].offset);
		type(t->compound.members[i].type);
		putchar('}');
	}
	putchar(']');
}

static void enum_members(const struct dtype *t)
{
	const struct dtype *base = t->enumeration.base;
	fputs(",\"base\":", stdout);
	type(base);
	fputs(",\"members\":[", stdout);
	for (uint32_t i = 0; i < t->enumeration.n; i++) {
		fputs(i ? ",[" : "[", stdout);
		text(t->enumeration.names[i]);
		putchar(',');
		integer(base, t->enumeration.values + (size_t)i * base->size);
		putchar(']');
	}
	putchar(']');
}

static void array_members(const struct dtype *t)
{
	fputs(",\"dims\":[", stdout);
	for (uint32_t i = 0; i < t->array.rank; i++)
		printf(i ? ",%" PRIu32 : "%" PRIu32, t->array.dims[i]);
	fputs("],\"base\":", stdout);
	type(t->array.base);
}

static void vlen_members(const struct dtype *t)
{
	if (t->vlen.is_string)
		printf(",\"string\":true,\"pad\":%d,\"cset\":%d", t->vlen.pad, t->vlen.cset);
	fputs(",\"base\":", stdout);
	type(t->vlen.base);
}

static void type(const struct dtype *t)
{
	static const char *const names[] = {"integer",	"float",  "time",     "string",
					    "bitfield", "opaque", "compound", "reference",
					    "enum",	"vlen",	  "array"};
	printf("{\"class\":\"%s\",\"size\":%" PRIu32, names[t->cls], t->size);
	if (t->cls == DTYPE_INTEGER || t->cls == DTYPE_BITFIELD || t->cls == DTYPE_TIME)
		number_members(t);
	else if (t->cls == DTYPE_FLOAT)
		float_members(t);
	else if (t->cls == DTYPE_STRING)
		printf(",\"pad\":%d,\"cset\":%d", t->string.pad, t->string.cset);
	else if (t->cls == DTYPE_REFERENCE)
		printf(",\"kind\":\"%s\"", t->reference.kind ? "region" : "object");
	else if (t->cls == DTYPE_COMPOUND)
		compound_members(t);
	else if (t->cls == DTYPE_ENUM)
		enum_members(t);
	else if (t->cls == DTYPE_ARRAY)
		array_members(t);
	else if (t->cls == DTYPE_VLEN)
		vlen_members(t);
	if (t->cls == DTYPE_OPAQUE) {
		fputs(",\"tag\":", stdout);
		text(t->opaque.tag);
	}
	putchar('}');
}

static void dimensions(const char *name, uint32_t rank, const uint64_t *dims)
{
	printf(",\"%s\":[", name);
	for (uint32_t i = 0; i < rank; i++) {
		if (i)
			putchar(',');
		if (dims[i] == DSPACE_UNLIMITED)
			fputs("null", stdout);
		else
			printf("%" PRIu64, dims[i]);
	}
	putchar(']');
}

static void space(const struct dspace *s)
{
	static const char *const names[] = {"scalar", "simple", "null"};
	printf(",\"space\":\"%s\"", names[s->cls]);
	dimensions("shape", s->rank, s->dims);
	dimensions("max", s->rank, s->max);
}

/* Elements of a value, whose end may be zeros that take no memory. */
static void value(const struct dtype *t, const struct elems *e, uint64_t n)
{
	const size_t size = (size_t)(n * t->size);
	uint8_t *all = malloc(size + 1);
	if (!all || n > MAX_ELEMS) {
		fputs("null", stdout);
	} else {
		elems_read(e, 0, all, size);
		elements(t, all, n, e);
	}
	free(all);
}

/* ---- data ---- */

/* Where the elements of a dataset are. */
struct data {
	uint32_t number;
	const struct dataset *ds;
	const struct h5file_dataset *info;
	struct elems *chunks; /* one for each stored chunk */
	size_t n, cap;
	const uint8_t **at;	 /* each element in row-major order; NULL: not stored */
	const struct elems **of; /* the chunk that it is in */
	uint64_t stored, masked;
	bool decode;
};

/* Notes where the elements of a decoded chunk are. */
static void scatter(struct data *d, uint64_t number, const struct elems *e)
{
	const struct grid *g = &d->info->grid;
	uint64_t coords[DSPACE_MAX_RANK];
	grid_coords(g, number, coords);
	for (uint64_t i = 0; i < g->chunk_elems; i++) {
		uint64_t rest = i, to = 0, stride = 1;
		bool inside = true;
		for (uint32_t k = g->rank; k-- > 0;) {
			const uint64_t x = coords[k] * g->chunk[k] + rest % g->chunk[k];
			rest /= g->chunk[k];
			inside = inside && x < g->dims[k];
			to += x * stride;
			stride *= g->dims[k];
		}
		if (!inside)
			continue;
		d->at[to] = e->fixed.data + i * d->ds->type->size;
		d->of[to] = e;
	}
}

static int add_chunk(void *ctx, const struct h5file_chunk *chunk, struct err *err)
{
	struct data *d = ctx;
	struct bytes stored = {0};
	d->stored++;
	d->masked += chunk->filter_mask != 0;
	if (!d->decode)
		return 0;
	if (d->n == d->cap)
		return err_set(err, -EIO, "more chunks than the grid has");
	int rc = h5file_chunk_read(file, chunk, &stored, err);
	if (!rc)
		rc = h5file_chunk_decode(file, d->number, chunk, &stored, &d->chunks[d->n], err);
	if (!rc)
		scatter(d, chunk->number, &d->chunks[d->n++]);
	bytes_release(&stored);
	return rc;
}

static uint32_t crc32_add(uint32_t crc, const uint8_t *bytes, size_t n)
{
	static const uint32_t table[] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
					 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
					 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
					 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
	crc = ~crc;
	for (size_t i = 0; i < n; i++) {
		crc = table[(crc ^ bytes[i]) & 15] ^ crc >> 4;
		crc = table[(crc ^ bytes[i] >> 4) & 15] ^ crc >> 4;
	}
	return ~crc;
}

static void print_data(const struct data *d)
{
	const struct dtype *t = d->ds->type;
	uint8_t *fill = calloc(1, t->size);
	uint32_t crc = 0;
	if (fill && d->ds->fill_defined)
		elems_read(&d->ds->fill, 0, fill, t->size);
	for (uint64_t i = 0; fill && i < d->ds->space.nelems; i++)
		crc = crc32_add(crc, d->at[i] ? d->at[i] : fill, t->size);
	if (dtype_is_plain(t))
		printf(",\"crc32\":%" PRIu32, crc);
	if (with_data && fill) {
		fputs(",\"data\":[", stdout);
		for (uint64_t i = 0; i < d->ds->space.nelems; i++) {
			if (i)
				putchar(',');
			element(t, d->at[i] ? d->at[i] : fill, d->at[i] ? d->of[i] : &d->ds->fill);
		}
		putchar(']');
	}
	free(fill);
}

static void data(uint32_t number, const struct dataset *ds, const struct h5file_dataset *info)
{
	struct err err = ERR_INIT;
	struct data d = {.number = number, .ds = ds, .info = info};
	const uint64_t n = ds->space.nelems;
	d.decode = n <= MAX_ELEMS && n * ds->type->size <= MAX_DATA &&
		   info->grid.nchunks <= MAX_ELEMS && info->grid.chunk_elems <= MAX_ELEMS;
	if (d.decode) {
		d.cap = (size_t)info->grid.nchunks;
		d.chunks = calloc(d.cap + 1, sizeof(*d.chunks));
		d.at = calloc(n + 1, sizeof(*d.at));
		d.of = calloc(n + 1, sizeof(*d.of));
		if (!d.chunks || !d.at || !d.of)
			abort();
	}
	int rc = h5file_chunks(file, number, 0, UINT64_MAX, add_chunk, &d, &err);
	printf(",\"chunks\":%" PRIu64 ",\"masked\":%" PRIu64, d.stored, d.masked);
	if (rc) {
		fputs(",\"data_error\":", stdout);
		text(err.msg);
	} else if (d.decode) {
		print_data(&d);
	}
	for (size_t i = 0; i < d.n; i++)
		elems_release(&d.chunks[i]);
	free(d.chunks);
	free(d.at);
	free(d.of);
}

/* ---- objects ---- */

static void committed(uint32_t number)
{
	fputs(",\"committed\":", stdout);
	text(number == OBJECT_NONE ? NULL : tree_object(h5file_tree(file), number)->o.id);
}

static void attributes(const struct object *o)
{
	fputs(",\"attrs\":[", stdout);
	for (uint32_t i = 0; i < o->nattrs; i++) {
		const struct attribute *a = &o->attrs[i];
		fputs(i ? ",{\"name\":" : "{\"name\":", stdout);
		text(a->name);
		fputs(",\"type\":", stdout);
		type(a->type);
		committed(a->committed);
		space(&a->space);
		fputs(",\"value\":", stdout);
		value(a->type, &a->value, a->space.nelems);
		putchar('}');
	}
	putchar(']');
}

static void links(const struct object *o)
{
	fputs(",\"links\":[", stdout);
	for (uint32_t i = 0; i < o->group.nlinks; i++) {
		const struct link *l = &o->group.links[i];
		static const char *const classes[] = {"hard", "soft"};
		fputs(i ? ",{\"name\":" : "{\"name\":", stdout);
		text(l->name);
		printf(",\"class\":\"%s\"", l->cls <= LINK_SOFT	      ? classes[l->cls]
					    : l->cls == LINK_EXTERNAL ? "external"
								      : "user");
		if (l->cls == LINK_HARD) {
			printf(",\"target_number\":%" PRIu32 ",\"target\":", l->target);
			text(tree_object(h5file_tree(file), l->target)->o.id);
		}
		if (l->path) {
			fputs(",\"path\":", stdout);
			text(l->path);
		}
		if (l->domain) {
			fputs(",\"file\":", stdout);
			text(l->domain);
		}
		putchar('}');
	}
	putchar(']');
}

static void filters(const struct dataset *ds)
{
	fputs(",\"filters\":[", stdout);
	for (uint32_t i = 0; i < ds->nfilters; i++) {
		const struct filter *f = &ds->filters[i];
		printf("%s{\"id\":%" PRIu32 ",\"name\":", i ? "," : "", f->id);
		text(f->name);
		fputs(",\"params\":[", stdout);
		for (uint32_t k = 0; k < f->nparams; k++)
			printf(k ? ",%" PRIu32 : "%" PRIu32, f->params[k]);
		fputs("]}", stdout);
	}
	putchar(']');
}

static void fill(const struct dataset *ds)
{
	printf(",\"fill\":{\"defined\":%s,\"alloc_time\":%d,\"fill_time\":%d",
	       ds->fill_defined ? "true" : "false", ds->alloc_time, ds->fill_time);
	if (ds->fill_defined) {
		fputs(",\"hex\":", stdout);
		hex_text(ds->fill.fixed.data, ds->fill.fixed.len);
		fputs(",\"value\":", stdout);
		value(ds->type, &ds->fill, 1);
	}
	putchar('}');
}

static void dataset(uint32_t number, const struct dataset *ds)
{
	static const char *const layouts[] = {"compact", "contiguous", "chunked"};
	static const char *const raws[] = {"stored", "external", "virtual", "structured"};
	const struct h5file_dataset *info = h5file_dataset(file, number);
	uint64_t chunk[DSPACE_MAX_RANK];
	for (uint32_t i = 0; i < ds->grid.rank; i++)
		chunk[i] = ds->grid.chunk[i];
	fputs(",\"type\":", stdout);
	type(ds->type);
	committed(ds->committed);
	space(&ds->space);
	printf(",\"layout\":\"%s\",\"raw\":\"%s\",\"stored_bytes\":%" PRIu64 ",\"whole_edges\":%s",
	       layouts[info->layout], raws[ds->raw], info->stored_bytes,
	       info->whole_edges ? "true" : "false");
	dimensions("chunk", ds->grid.rank, chunk);
	filters(ds);
	fill(ds);
	data(number, ds, info);
}

static void object(uint32_t number)
{
	static const char *const kinds[] = {"group", "dataset", "datatype"};
	const struct tree_object *node = tree_object(h5file_tree(file), number);
	const struct object *o = &node->o;
	printf("{\"number\":%" PRIu32 ",\"path\":", number);
	text(o->id);
	if (node->broken) {
		fputs(",\"broken\":true}\n", stdout);
		return;
	}
	printf(",\"kind\":\"%s\",\"refcount\":%" PRIu32 ",\"created\":%" PRId64
	       ",\"modified\":%" PRId64 ",\"attrs_ordered\":%s,\"comment\":",
	       kinds[o->kind], node->refcount, o->created_ns, o->modified_ns,
	       o->attrs_ordered ? "true" : "false");
	text(o->comment);
	attributes(o);
	if (o->kind == OBJECT_GROUP) {
		links(o);
	} else if (o->kind == OBJECT_DATASET) {
		dataset(number, &o->dataset);
	} else {
		fputs(",\"type\":", stdout);
		type(o->datatype);
	}
	fputs("}\n", stdout);
}

static void print_file(const struct source *s)
{
	static const char *const severities[] = {"damaged", "unsupported", "warning", "open",
						 "note"};
	const struct h5file_problem *p;
	printf("{\"reads\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"problems\":[", s->reads, s->bytes);
	for (uint64_t i = 0; (p = h5file_problem(file, i)); i++) {
		printf("%s{\"severity\":\"%s\",\"path\":", i ? "," : "", severities[p->severity]);
		text(p->path);
		fputs(",\"text\":", stdout);
		text(p->text);
		putchar('}');
	}
	fputs("]}\n", stdout);
}

static int dump(const char *path, const struct h5file_options *opt, struct err *err)
{
	struct source_file *local = NULL;
	int rc = source_file_open(path, &local, err);
	if (rc)
		return rc;
	struct source *s = source_file_source(local);
	struct source_paged *pages = source_paged_new(s->size, PAGES, source_paged_fetch_source, s);
	s = pages ? source_paged_source(pages) : NULL;
	rc = pages ? h5file_open(s, opt, &file, err) : -ENOMEM;
	if (!rc) {
		for (uint32_t i = 0; i < tree_numbers(h5file_tree(file)); i++)
			object(i);
		print_file(s);
		h5file_close(file);
	}
	source_paged_free(pages);
	source_file_close(local);
	return rc;
}

int main(int argc, char **argv)
{
	struct h5file_options opt = {0};
	struct err err = ERR_INIT;
	int i = 1;
	for (; i < argc - 1; i++) {
		with_data = with_data || strcmp(argv[i], "--data") == 0;
		opt.claim_chunks = opt.claim_chunks || strcmp(argv[i], "--claims") == 0;
	}
	if (i != argc - 1) {
		fputs("usage: treedump [--data] [--claims] FILE\n", stderr);
		return 2;
	}
	int rc = dump(argv[i], &opt, &err);
	if (!rc)
		return 0;
	fputs("{\"error\":", stdout);
	text(err.msg);
	puts("}");
	return 1;
}
