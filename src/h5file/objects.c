/* SPDX-License-Identifier: Apache-2.0 */
/* Object numbers, paths, uses of committed datatypes, memory. See objects.h. */
#include "objects.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <errno.h>

/* A use of a committed datatype. The number of the datatype is found when all objects are known. */
struct share {
	uint32_t number, attr;
	uint64_t addr;
};

enum { NAME_SHOWN = 255 /* bytes of a name in a shortened path */ };

const char *objects_path(struct h5file *f, const char *parent, const char *name)
{
	static const char between[] = "/.../";
	size_t p = strlen(parent), n = strlen(name);
	const bool is_root = strcmp(parent, "/") == 0;
	char buf[2 * OBJECTS_PATH_MAX];
	if (p + n < OBJECTS_PATH_MAX) {
		snprintf(buf, sizeof(buf), "%s/%s", is_root ? "" : parent, name);
	} else {
		const char *cut = strstr(parent, between);
		p = cut ? (size_t)(cut - parent) : min_u64(p, OBJECTS_PATH_MAX / 2);
		snprintf(buf, sizeof(buf), "%.*s%s%.*s", (int)p, parent, between, NAME_SHOWN, name);
	}
	return arena_strndup(tree_arena(f->tree), buf, strlen(buf));
}

int objects_number(struct h5file *f, uint64_t addr, const char *parent, const char *name,
		   uint32_t *number, struct err *err)
{
	*number = h5_addrs_get(&f->numbers, addr);
	if (*number != UINT32_MAX)
		return 0;
	const char *path = name ? objects_path(f, parent, name)
				: arena_strndup(tree_arena(f->tree), parent, strlen(parent));
	if (!path)
		return err_no_memory(err);
	int rc = tree_add(f->tree, number, err);
	const struct object_header header = {.addr = addr};
	if (!rc && (h5_addrs_add(&f->numbers, addr, *number) < 0 ||
		    bytes_append(&f->headers, &header, sizeof(header))))
		rc = err_no_memory(err);
	if (!rc)
		tree_edit(f->tree, *number)->id = path;
	return rc;
}

static struct object_header *header_of(const struct h5file *f, uint32_t number)
{
	struct object_header *all = (void *)f->headers.data;
	return &all[number];
}

uint64_t h5file_address(const struct h5file *f, uint32_t number)
{
	return header_of(f, number)->addr;
}

void objects_set_header(struct h5file *f, uint32_t number, uint8_t version, uint32_t birth)
{
	struct object_header *h = header_of(f, number);
	h->version = version;
	h->birth = birth;
}

bool h5file_header(const struct h5file *f, uint32_t number, struct h5file_header *out)
{
	if (number >= f->headers.len / sizeof(struct object_header))
		return false;
	const struct object_header *h = header_of(f, number);
	*out = (struct h5file_header){
		.addr = h->addr, .version = h->version, .birth_ns = h->birth * INT64_C(1000000000)};
	return h->version > 0;
}

uint32_t h5file_at(const struct h5file *f, uint64_t addr)
{
	return h5_addrs_get(&f->numbers, addr);
}

int objects_share(struct h5file *f, uint32_t number, uint32_t attr, uint64_t addr, struct err *err)
{
	const struct share s = {.number = number, .attr = attr, .addr = addr};
	return bytes_append(&f->shares, &s, sizeof(s)) ? err_no_memory(err) : 0;
}

int objects_add_unlinked(struct h5file *f, uint32_t *added, struct err *err)
{
	const uint32_t before = tree_numbers(f->tree);
	const struct share *all = (const void *)f->shares.data;
	int rc = 0;
	for (size_t i = 0; !rc && i < f->shares.len / sizeof(*all); i++) {
		char path[64];
		uint32_t number;
		snprintf(path, sizeof(path), "(committed datatype at %" PRIu64 ")", all[i].addr);
		rc = objects_number(f, all[i].addr, path, NULL, &number, err);
	}
	*added = tree_numbers(f->tree) - before;
	return rc;
}

void objects_set_committed(struct h5file *f)
{
	const struct share *all = (const void *)f->shares.data;
	for (size_t i = 0; i < f->shares.len / sizeof(*all); i++) {
		const struct tree_object *user = tree_object(f->tree, all[i].number);
		struct object *o = tree_edit(f->tree, all[i].number);
		const uint32_t type = h5_addrs_get(&f->numbers, all[i].addr);
		if (user->broken)
			continue;
		if (all[i].attr != OBJECT_NONE)
			o->attrs[all[i].attr].committed = type;
		else
			o->dataset.committed = type;
	}
}

int objects_charge(struct h5file *f, struct err *err)
{
	if (f->value_bytes > f->max_tree)
		return err_set(err, -ENOMEM,
			       "out of memory: attributes and fill values of %" PRIu64 " bytes",
			       f->value_bytes);
	f->values_charged = f->value_bytes;
	return budget_set(&f->charge,
			  tree_memory(f->tree) + arena_used(f->arena) + f->value_bytes +
				  f->headers.cap +
				  f->numbers.capacity * sizeof(*f->numbers.entries),
			  err);
}
