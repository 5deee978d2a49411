/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups: symbol tables (h5/symtab.h), compact links (messages of the object header) and dense
 * links (a fractal heap with a version 2 B-tree of names). The links are in the order of their
 * creation if the group tracks it, and otherwise in that of their names. Then the hard links number
 * their targets.
 */
#include "group.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <base/checksum.h>
#include <base/utf8.h>
#include <h5/symtab.h>

#include "members.h"
#include "objects.h"

struct found {
	struct link link;
	uint64_t addr; /* of a hard link's target */
	bool has_corder;
	int64_t corder;
};

struct reader {
	struct members m;
	bool tracked;	    /* creation order */
	struct bytes found; /* of struct found */
	const char *only;   /* the name of the only link that is read, or NULL */
	uint32_t hash;	    /* of this name */
};

/* Bytes of a dataset's object header as libhdf5 makes it: a prefix of 16, and 256 of messages. */
enum { HEADER_GUESS = 272 };

/* Adds a link. Leaves out one that no path can name, and a target that cannot be an object. */
static int add(struct reader *r, struct found *x, struct err *err)
{
	struct err why = ERR_INIT;
	const size_t n = strlen(x->link.name);
	if (r->only && strcmp(r->only, x->link.name) != 0)
		return 0;
	if (!n || strchr(x->link.name, '/'))
		err_set(&why, -EIO, "link \"%s\": the name is empty or contains \"/\"",
			x->link.name);
	else if (x->link.cls == LINK_HARD && (!x->addr || x->addr >= h5_file_size(&r->m.f->file)))
		err_set(&why, -EIO,
			"link \"%s\": the object header at %" PRIu64 " is outside of the file",
			x->link.name, x->addr);
	if (why.code && r->only)
		return err_set(err, why.code, "%s", why.msg);
	if (why.code) {
		h5file_report(r->m.f, r->m.h->number, &why);
		return 0;
	}
	x->link.utf8 = utf8_valid(x->link.name, n);
	x->link.target = OBJECT_NONE;
	return bytes_append(&r->found, x, sizeof(*x)) ? err_no_memory(err) : 0;
}

static int add_symbol(void *ctx, const struct h5_symbol *s, struct err *err)
{
	struct reader *r = ctx;
	struct arena *a = tree_arena(r->m.f->tree);
	struct found x = {.addr = s->header};
	x.link.name = arena_strndup(a, s->name, strlen(s->name));
	if (s->header == H5_UNDEF) {
		x.link.cls = LINK_SOFT;
		x.link.path = arena_strndup(a, s->path, strlen(s->path));
	}
	if (!x.link.name || (x.link.cls == LINK_SOFT && !x.link.path))
		return err_no_memory(err);
	return add(r, &x, err);
}

static int add_message(void *ctx, const struct h5_msg *msg, struct cursor *body, struct err *err)
{
	struct reader *r = ctx;
	struct h5_link l;
	int rc = h5_link_decode(&r->m.f->file, body, tree_arena(r->m.f->tree), &l, err);
	if (rc)
		return members_leave_out(&r->m, rc, err);
	struct found x = {.addr = l.addr, .has_corder = l.has_corder, .corder = l.corder};
	x.link.name = l.name;
	x.link.cls = l.cls;
	x.link.path = l.path;
	x.link.domain = l.file;
	return add(r, &x, err);
}

static int add_dense(void *ctx, const uint8_t *record, uint16_t record_size, struct err *err)
{
	enum { HASH = 4, FILTERED_MAX = 1 << 20 };
	struct reader *r = ctx;
	auto_bytes struct bytes object = {0};
	/* Behind filters, a link may be longer than the file. */
	const uint64_t max = max_u64(h5_file_size(&r->m.f->file), FILTERED_MAX);
	if (record_size <= HASH)
		return err_set(err, -EIO, "a B-tree record has %u bytes", record_size);
	int rc = h5_fheap_get(r->m.heap, record + HASH, record_size - HASH, (size_t)max, &object,
			      err);
	if (rc)
		return members_leave_out(&r->m, rc, err);
	struct cursor body = cursor_of(object.data, object.len);
	return add_message(r, NULL, &body, err);
}

/* Names are indexed by their hash. */
static int compare_hash(void *ctx, const uint8_t *record, uint16_t record_size)
{
	const struct reader *r = ctx;
	struct cursor c = cursor_of(record, record_size);
	const uint32_t hash = cur_u32(&c);
	if (!cur_ok(&c))
		return 0; /* add_dense() refuses it */
	return hash < r->hash ? -1 : hash > r->hash;
}

static int read_dense(struct reader *r, const struct h5_linfo *info, struct err *err)
{
	const size_t before = r->found.len;
	bool is_read = false;
	int rc = members_dense(&r->m, info->heap, info->names, H5_BT2_LINK_NAME,
			       r->only ? compare_hash : NULL, add_dense, r, err);
	const uint64_t links = (r->found.len - before) / sizeof(struct found);
	if (!rc)
		rc = members_count_corders(&r->m, info->corders, H5_BT2_LINK_CORDER, &is_read, err);
	if (!rc && is_read && r->m.indexed != links)
		rc = err_set(err, -EIO,
			     "the index of creation order has %" PRIu64
			     " links instead of %" PRIu64,
			     r->m.indexed, links);
	return rc;
}

static int read_link_info(struct reader *r, struct err *err)
{
	struct h5_linfo info;
	struct cursor body;
	int rc = header_find(r->m.f, r->m.h, H5_MSG_LINK_INFO, &body, err);
	if (rc <= 0)
		return rc;
	rc = h5_linfo_decode(&r->m.f->file, &body, &info, err);
	if (rc)
		return rc;
	r->tracked = info.tracked;
	return info.heap == H5_UNDEF ? 0 : read_dense(r, &info, err);
}

static int read_symbols(struct reader *r, struct err *err)
{
	struct h5_symtab table;
	struct cursor body;
	int rc = header_find(r->m.f, r->m.h, H5_MSG_SYMBOL_TABLE, &body, err);
	if (rc <= 0)
		return rc;
	rc = h5_symtab_decode(&r->m.f->file, &body, &table, err);
	return rc ? rc : h5_symtab_find(&r->m.f->file, &table, r->only, add_symbol, r, err);
}

static int by_name(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	return strcmp(x->link.name, y->link.name);
}

static int by_corder(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	if (x->corder != y->corder)
		return x->corder < y->corder ? -1 : 1;
	return by_name(a, b);
}

/* Sorts the links. Of links with the same name only one stays. Returns their number. */
static size_t sort(struct reader *r)
{
	struct found *all = (void *)r->found.data;
	size_t n = r->found.len / sizeof(*all), kept = 0;
	if (n)
		qsort(all, n, sizeof(*all), by_name);
	for (size_t i = 0; i < n; i++) {
		struct err why = ERR_INIT;
		r->tracked = r->tracked && all[i].has_corder;
		if (kept && by_name(&all[kept - 1], &all[i]) == 0) {
			err_set(&why, -EIO, "link \"%s\" is in the group twice", all[i].link.name);
			h5file_report(r->m.f, r->m.h->number, &why);
			continue;
		}
		all[kept++] = all[i];
	}
	if (kept && r->tracked)
		qsort(all, kept, sizeof(*all), by_corder);
	return kept;
}

/* Numbers the targets and moves the links to the tree. */
static int finish(struct reader *r, struct err *err)
{
	struct h5file *f = r->m.f;
	const size_t n = sort(r);
	const struct found *all = (const void *)r->found.data;
	struct link *links = arena_array(tree_arena(f->tree), n, sizeof(*links));
	if (!links && n)
		return err_no_memory(err);
	for (size_t i = 0; i < n; i++) {
		links[i] = all[i].link;
		if (links[i].cls != LINK_HARD)
			continue;
		const uint32_t before = tree_numbers(f->tree);
		int rc = objects_number(f, all[i].addr, r->m.h->path, links[i].name,
					&links[i].target, err);
		if (rc)
			return rc;
		if (links[i].target == before)
			h5_file_advise(&f->file, all[i].addr, HEADER_GUESS);
	}
	struct object *o = tree_edit(f->tree, r->m.h->number);
	o->kind = OBJECT_GROUP;
	o->group.links = links;
	o->group.nlinks = (uint32_t)n;
	o->group.links_ordered = r->tracked;
	return 0;
}

/* Reads the links, or the one that is searched. */
static int read_links(struct reader *r, struct err *err)
{
	int rc = members_report(&r->m, "the group is not complete", read_link_info(r, err), err);
	if (!rc)
		rc = members_report(&r->m, "the group is not complete", read_symbols(r, err), err);
	return rc ? rc : members_compact(&r->m, H5_MSG_LINK, add_message, r, err);
}

int group_find(struct h5file *f, const struct header *h, const char *name, bool *found,
	       struct group_link *out, struct err *err)
{
	struct reader r = {.m = {.f = f, .h = h, .one = "a link", .is_search = true}, .only = name};
	r.hash = checksum_lookup3(name, strlen(name), 0);
	int rc = read_links(&r, err);
	const struct found *first = (const void *)r.found.data;
	*found = !rc && r.found.len;
	if (*found)
		*out = (struct group_link){.link = first->link, .addr = first->addr};
	bytes_release(&r.found);
	return rc;
}

int group_read(struct h5file *f, const struct header *h, struct err *err)
{
	struct reader r = {.m = {.f = f, .h = h, .one = "a link"}};
	int rc = read_links(&r, err);
	if (!rc)
		rc = finish(&r, err);
	bytes_release(&r.found);
	return rc;
}
