/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extended attributes: what the service knows of a domain or folder and POSIX has no place for.
 * One table of names; those that need a domain's objects open it (or use its live image). The
 * root also shows what the engine has done so far, when it was asked to count. Any thread.
 */
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "describe.h"
#include "text.h"

enum { VALUE_MAX = 65536 /* XATTR_SIZE_MAX: the kernel takes no more */ };

struct xattr {
	const char *name;
	/* Only one of the two. text: 0, -ENODATA when this node has none. */
	int (*of_node)(const struct node *n, struct bytes *out);
	int (*of_model)(struct model *m, struct bytes *out);
};

/* ---- from the document ---- */

static int domain_path(const struct node *n, struct bytes *out)
{
	return text_add(out, "/%s", n->path);
}

static int root_id(const struct node *n, struct bytes *out)
{
	char id[SCHEMA_ID_MAX];
	if (n->doc.kind != DOC_ROOT)
		return -ENODATA;
	schema_id_format(&n->doc.root, id);
	return text_add(out, "%s", id);
}

static int owner(const struct node *n, struct bytes *out)
{
	return n->doc.owner && n->doc.owner[0] ? text_add(out, "%s", n->doc.owner) : -ENODATA;
}

static int acls(const struct node *n, struct bytes *out)
{
	return n->doc.acls ? text_add(out, "%s", n->doc.acls) : -ENODATA;
}

static int created(const struct node *n, struct bytes *out)
{
	return n->doc.created_ns ? text_time(out, n->doc.created_ns) : -ENODATA;
}

static int last_modified(const struct node *n, struct bytes *out)
{
	return n->doc.modified_ns ? text_time(out, n->doc.modified_ns) : -ENODATA;
}

/* ---- from the objects ---- */

/* "groups=1 datasets=2 datatypes=0 chunks=12 listed=2": known chunks, of so many datasets whose
 * chunks are all known. */
static int chunks(struct model *m, struct bytes *out)
{
	uint32_t kinds[3] = {0}, listed = 0;
	uint64_t known = 0;
	for (uint32_t i = 0; i < model_count(m); i++) {
		uint32_t number = model_nth(m, i);
		const struct object *o = &model_object(m, number)->o;
		kinds[o->kind]++;
		const struct model_chunks *c =
			o->kind == OBJECT_DATASET ? model_chunks(m, number) : NULL;
		if (c && c->listed) {
			listed++;
			known += c->n;
		}
	}
	return text_add(out, "groups=%u datasets=%u datatypes=%u chunks=%" PRIu64 " listed=%u",
			kinds[OBJECT_GROUP], kinds[OBJECT_DATASET], kinds[OBJECT_DATATYPE], known,
			listed);
}

/* One line for each dataset that has filters in the bucket: "path: filters". */
static int filters(struct model *m, struct bytes *out)
{
	struct object_paths *paths = object_paths_new(m);
	int rc = paths ? 0 : -ENOMEM;
	for (uint32_t i = 0; !rc && i < model_count(m) && out->len < VALUE_MAX; i++) {
		uint32_t number = model_nth(m, i);
		const struct object *o = &model_object(m, number)->o;
		if (o->kind != OBJECT_DATASET || o->dataset.nfilters == 0)
			continue;
		rc = describe_path(out, paths, number);
		if (!rc)
			rc = text_add(out, ": ");
		struct pipeline filters;
		dataset_pipeline(&o->dataset, &filters);
		if (!rc)
			rc = describe_filters(out, &filters);
		if (!rc)
			rc = text_add(out, "\n");
	}
	object_paths_free(paths);
	/* Too much for the kernel: as many lines as fit. */
	while (out->len > VALUE_MAX || (out->len == VALUE_MAX && out->data[out->len - 1] != '\n'))
		out->len--;
	return rc;
}

static const struct xattr xattrs[] = {
	{.name = "user.hsds.domain", .of_node = domain_path},
	{.name = "user.hsds.root", .of_node = root_id},
	{.name = "user.hsds.owner", .of_node = owner},
	{.name = "user.hsds.acls", .of_node = acls},
	{.name = "user.hsds.created", .of_node = created},
	{.name = "user.hsds.lastModified", .of_node = last_modified},
	{.name = "user.hsds.chunks", .of_model = chunks},
	{.name = "user.hsds.filters", .of_model = filters},
};
enum { NXATTRS = sizeof(xattrs) / sizeof(xattrs[0]) };

/* ---- counters of the root ---- */

#define DEBUG_PREFIX "user.hsds.debug."

static const struct {
	const char *name;
	size_t offset;
} counters[] = {
#define COUNTER(field)                                                                             \
	{                                                                                          \
		DEBUG_PREFIX #field, offsetof(struct engine_counts, field)                         \
	}
	COUNTER(gets),		 COUNTER(range_gets),
	COUNTER(heads),		 COUNTER(lists),
	COUNTER(bytes_in),	 COUNTER(failures),
	COUNTER(in_flight_max),	 COUNTER(cache_hits),
	COUNTER(cache_misses),	 COUNTER(cache_loads),
	COUNTER(cache_bytes),	 COUNTER(prefetches),
	COUNTER(prefetch_used),	 COUNTER(disk_hits),
	COUNTER(disk_hit_bytes), COUNTER(disk_revalidated),
	COUNTER(disk_misses),	 COUNTER(disk_stored),
	COUNTER(disk_skipped),	 COUNTER(disk_dropped),
	COUNTER(disk_evicted),	 COUNTER(disk_errors),
	COUNTER(disk_bytes),	 COUNTER(images),
	COUNTER(reads),		 COUNTER(bytes_read),
#undef COUNTER
};
enum { NCOUNTERS = sizeof(counters) / sizeof(counters[0]) };

static bool has_counters(const struct engine *e, const char *path)
{
	return e->debug_count && path[0] == '\0';
}

static int get_counter(struct engine *e, const char *name, struct bytes *out)
{
	struct engine_counts counts;
	engine_get_counts(e, &counts);
	for (size_t i = 0; i < NCOUNTERS; i++) {
		uint64_t value;
		if (strcmp(counters[i].name, name) != 0)
			continue;
		memcpy(&value, (const char *)&counts + counters[i].offset, sizeof(value));
		return text_add(out, "%" PRIu64, value);
	}
	return -ENODATA;
}

/* ---- the two calls ---- */

/* Only what comes from the bucket's documents has attributes: 0, -ENODATA. Of a document that could
 * not be read nobody knows which it has: what kept it from being read. */
static int check_doc(const struct node *n, struct err *err)
{
	switch (n->doc.kind) {
	case DOC_ROOT:
	case DOC_FOLDER:
		return 0;
	case DOC_BROKEN:
	case DOC_CLOSED:
		return err_set(err, n->doc.code, "%s", n->doc.why);
	default:
		return -ENODATA;
	}
}

/* Of a document that was read. 0; -ENODATA; -ENOMEM. */
static int has_xattr(const struct node *n, const struct xattr *x)
{
	auto_bytes struct bytes value = {0};
	if (x->of_model)
		return n->kind == ENGINE_DOMAIN ? 0 : -ENODATA;
	return x->of_node(n, &value);
}

static int of_model(struct engine *e, const struct node *n, const struct xattr *x,
		    struct bytes *out, struct err *err)
{
	struct snapshot *s = NULL;
	int rc = domain_snapshot(e, n, &s, err);
	if (rc)
		return rc;
	rc = x->of_model(image_model(s->image), out);
	snapshot_close(s);
	return rc;
}

static int get_value(struct engine *e, const char *path, const char *name, struct bytes *out,
		     struct err *err)
{
	if (has_counters(e, path) && strncmp(name, DEBUG_PREFIX, strlen(DEBUG_PREFIX)) == 0)
		return get_counter(e, name, out);
	const struct xattr *x = NULL;
	for (int i = 0; i < NXATTRS && !x; i++)
		if (strcmp(xattrs[i].name, name) == 0)
			x = &xattrs[i];
	if (!x)
		return -ENODATA; /* security.capability and the like: without asking anybody */
	auto_node struct node *n = NULL;
	int rc = namespace_resolve(e, path, &n, err);
	if (!rc)
		rc = check_doc(n, err);
	if (!rc)
		rc = has_xattr(n, x);
	if (rc)
		return rc;
	return x->of_model ? of_model(e, n, x, out, err) : x->of_node(n, out);
}

/* As getxattr(2) answers. */
static ssize_t answer(const struct bytes *value, void *buf, size_t size, const char *what,
		      struct err *err)
{
	if (value->len > VALUE_MAX)
		return err_set(err, -E2BIG, "%s: %zu bytes are more than the kernel takes", what,
			       value->len);
	if (size == 0)
		return (ssize_t)value->len;
	if (value->len > size)
		return err_set(err, -ERANGE, "%s: the buffer is too small", what);
	if (value->len)
		memcpy(buf, value->data, value->len);
	return (ssize_t)value->len;
}

ssize_t engine_getxattr(struct engine *e, const char *path, const char *name, void *buf,
			size_t size, struct err *err)
{
	auto_bytes struct bytes value = {0};
	int rc = get_value(e, path, name, &value, err);
	if (rc == -ENODATA)
		return err_set(err, rc, "%s: no attribute %s", path, name);
	return rc ? rc : answer(&value, buf, size, name, err);
}

ssize_t engine_listxattr(struct engine *e, const char *path, void *buf, size_t size,
			 struct err *err)
{
	auto_bytes struct bytes names = {0};
	auto_node struct node *n = NULL;
	/* To ask how much was asked must not ask: counters are all that the root shows then. */
	bool counting = has_counters(e, path);
	int rc = counting ? 0 : namespace_resolve(e, path, &n, err);
	if (!rc && !counting)
		rc = check_doc(n, err);
	if (rc == -ENODATA)
		return 0;
	if (rc)
		return rc;
	for (int i = 0; !rc && i < NXATTRS && !counting; i++) {
		rc = has_xattr(n, &xattrs[i]);
		if (!rc)
			rc = bytes_append(&names, xattrs[i].name, strlen(xattrs[i].name) + 1);
		else if (rc == -ENODATA)
			rc = 0;
	}
	for (int i = 0; !rc && i < NCOUNTERS && counting; i++)
		rc = bytes_append(&names, counters[i].name, strlen(counters[i].name) + 1);
	return rc ? err_set(err, rc, "no memory") : answer(&names, buf, size, "names", err);
}
