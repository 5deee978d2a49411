/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extended attributes: facts of a domain or folder that POSIX attributes cannot hold. Some
 * attributes come from the document. The others come from the domain's objects: reading them opens
 * the domain or uses its current snapshot. Plain objects and drafts have an attribute of their own.
 * With debug_count, the root has counters instead. Any thread.
 */
#include <drafts/drafts.h>
#include "engine_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include <base/str.h>
#include <data/describe.h>

enum { VALUE_MAX = 65536 /* XATTR_SIZE_MAX: the kernel accepts no more */ };

struct xattr {
	const char *name;
	/* One of the two is set. They return 0, -ENODATA or -ENOMEM. */
	int (*of_node)(const struct names_node *n, struct str *out);
	int (*of_domain)(struct domain *domain, struct str *out);
	bool of_store; /* only domains that a listing shows have it */
};

/* ---- from the document ---- */

static int path_of(const struct names_node *n, struct str *out)
{
	str_addf(out, "/%s", n->path);
	return 0;
}

static int add_text(const char *text, struct str *out)
{
	if (!text || !text[0])
		return -ENODATA;
	str_add(out, text);
	return 0;
}

static int add_time(int64_t ns, struct str *out)
{
	if (ns == 0)
		return -ENODATA;
	str_add_time(out, ns);
	return 0;
}

static const struct domain_info *info_of(const struct names_node *n)
{
	static const struct domain_info none;
	return n->doc.document ? &n->doc.document->info : &none;
}

static int root_id(const struct names_node *n, struct str *out)
{
	return n->doc.kind == NAMES_DOC_STORE ? -ENODATA : add_text(info_of(n)->root, out);
}

static int owner(const struct names_node *n, struct str *out)
{
	return add_text(info_of(n)->owner, out);
}

static int acls(const struct names_node *n, struct str *out)
{
	if (!n->doc.document || n->doc.kind == NAMES_DOC_STORE)
		return -ENODATA;
	auto_free char *json = names_acls_json(info_of(n));
	return json ? add_text(json, out) : -ENOMEM;
}

static int created(const struct names_node *n, struct str *out)
{
	return add_time(info_of(n)->created_ns, out);
}

static int last_modified(const struct names_node *n, struct str *out)
{
	return add_time(info_of(n)->modified_ns, out);
}

/* ---- from the objects ---- */

/* "groups=1 datasets=2 datatypes=0 chunks=12 listed=2": 12 chunks are known, of 2 datasets whose
 * chunks are listed. */
static int chunks(struct domain *domain, struct str *out)
{
	const struct tree *tree = domain_tree(domain);
	uint32_t kinds[3] = {0}, listed = 0;
	uint64_t known = 0;
	for (uint32_t i = 0; i < tree_count(tree); i++) {
		uint32_t number = tree_nth(tree, i);
		const struct object *o = &tree_object(tree, number)->o;
		kinds[o->kind]++;
		const struct chunk_list *c =
			o->kind == OBJECT_DATASET ? domain_chunks(domain, number) : NULL;
		if (c && c->listed) {
			listed++;
			known += c->n;
		}
	}
	str_addf(out, "groups=%u datasets=%u datatypes=%u chunks=%" PRIu64 " listed=%u",
		 kinds[OBJECT_GROUP], kinds[OBJECT_DATASET], kinds[OBJECT_DATATYPE], known, listed);
	return 0;
}

/* Whole lines, as many as the kernel accepts. */
static void cut_lines(struct str *out)
{
	size_t n = (size_t)min_u64(out->b.len, VALUE_MAX);
	while (n > 0 && str_text(out)[n - 1] != '\n')
		n--;
	str_cut(out, n);
}

/* One line "path: filters" for each dataset that has filters in the bucket. */
static int filters(struct domain *domain, struct str *out)
{
	const struct tree *tree = domain_tree(domain);
	const struct schema_ops *schema = domain_schema(domain);
	struct object_paths *paths = object_paths_new(tree);
	struct pipeline pipeline;
	if (!paths)
		return -ENOMEM;
	for (uint32_t i = 0; i < tree_count(tree) && out->b.len < VALUE_MAX; i++) {
		uint32_t number = tree_nth(tree, i);
		const struct object *o = &tree_object(tree, number)->o;
		const bool is_dataset = o->kind == OBJECT_DATASET;
		const char *codecs = is_dataset && schema->codecs ? schema->codecs(o) : NULL;
		if (!codecs && !(is_dataset && !schema->codecs && o->dataset.nfilters))
			continue;
		describe_path(out, paths, number);
		str_add(out, ": ");
		if (codecs) {
			str_add(out, codecs);
		} else {
			dataset_pipeline(&o->dataset, &pipeline);
			describe_filters(out, &pipeline);
		}
		str_add(out, "\n");
	}
	object_paths_free(paths);
	cut_lines(out);
	return 0;
}

static int format(const struct names_node *n, struct str *out)
{
	return add_text(n->doc.document->schema->name, out);
}

/* Adds the number of objects and parts that are left out. `hsimage info` names them. */
static int problems(struct domain *domain, struct str *out)
{
	str_addf(out, "%u", tree_problems(domain_tree(domain)));
	return 0;
}

static const char acls_name[] = "user.hsds.acls";

static const struct xattr xattrs[] = {
	{.name = "user.hsds.domain", .of_node = path_of},
	{.name = "user.hsds.format", .of_node = format, .of_store = true},
	{.name = "user.hsds.root", .of_node = root_id},
	{.name = "user.hsds.owner", .of_node = owner},
	{.name = acls_name, .of_node = acls},
	{.name = "user.hsds.created", .of_node = created},
	{.name = "user.hsds.lastModified", .of_node = last_modified},
	{.name = "user.hsds.chunks", .of_domain = chunks},
	{.name = "user.hsds.filters", .of_domain = filters},
	{.name = "user.hsds.problems", .of_domain = problems, .of_store = true},
};
enum { NXATTRS = sizeof(xattrs) / sizeof(xattrs[0]) };

/* ---- of a draft: needs no request ---- */

static const char error_name[] = "user.hsds.error";

static int draft_error(struct engine *e, const char *path, struct str *out)
{
	auto_free char *text = drafts_error(e->drafts, path);
	return text ? add_text(text, out) : -ENODATA;
}

static const char unfinished_name[] = "user.hsds.unfinished";

static int draft_unfinished(struct engine *e, const char *path, struct str *out)
{
	char id[JOURNAL_ID];
	drafts_unfinished(e->drafts, path, id);
	return add_text(id, out);
}

/* Of a directory: what was removed from it and can be brought back. */
static const char removed_name[] = "user.hsds.removed";

static int removed(struct engine *e, const char *path, struct str *out)
{
	const int rc = undelete_list(e, path, out);
	cut_lines(out);
	return rc;
}

/* The list that the domain will have. */
static int draft_acls(struct engine *e, const char *path, struct str *out)
{
	struct schema_document *list = drafts_acls(e->drafts, path);
	if (!list)
		return -ENODATA;
	auto_free char *json = names_acls_json(&list->info);
	schema_document_unref(list);
	return json ? add_text(json, out) : -ENOMEM;
}

/* ---- of a plain object ---- */

static const char kept_name[] = "user.hsds.kept";

static int kept(struct engine *e, struct names_node *n, struct str *out, struct err *err)
{
	char note[STORE_NOTE_MAX + 1];
	if (n->kind != NAMES_OBJECT)
		return -ENODATA;
	const int rc = names_note(e->bucket.names, n, note, err);
	return rc ? rc : add_text(note, out);
}

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
	COUNTER(gets),
	COUNTER(range_gets),
	COUNTER(heads),
	COUNTER(lists),
	COUNTER(bytes_in),
	COUNTER(failures),
	COUNTER(in_flight_max),
	COUNTER(cache_hits),
	COUNTER(cache_misses),
	COUNTER(cache_loads),
	COUNTER(cache_bytes),
	COUNTER(prefetches),
	COUNTER(prefetch_used),
	COUNTER(disk_hits),
	COUNTER(disk_hit_bytes),
	COUNTER(disk_revalidated),
	COUNTER(disk_misses),
	COUNTER(disk_stored),
	COUNTER(disk_skipped),
	COUNTER(disk_dropped),
	COUNTER(disk_evicted),
	COUNTER(disk_errors),
	COUNTER(disk_bytes),
	COUNTER(images),
	COUNTER(reads),
	COUNTER(bytes_read),
	COUNTER(drafts_open),
	COUNTER(drafts_failed),
	COUNTER(commits),
	COUNTER(commit_failures),
	COUNTER(bytes_written),
	COUNTER(spool_used),
	COUNTER(spool_size),
	COUNTER(drafts_left),
	COUNTER(scanned_objects),
	COUNTER(scanned_nodes),
#undef COUNTER
};
enum { NCOUNTERS = sizeof(counters) / sizeof(counters[0]) };

static bool has_counters(const struct engine *e, const char *path)
{
	return e->debug_count && path[0] == '\0';
}

static int get_counter(struct engine *e, const char *name, struct str *out)
{
	struct engine_counts counts;
	engine_get_counts(e, &counts);
	for (size_t i = 0; i < NCOUNTERS; i++) {
		uint64_t value;
		if (strcmp(counters[i].name, name) != 0)
			continue;
		memcpy(&value, (const char *)&counts + counters[i].offset, sizeof(value));
		str_addf(out, "%" PRIu64, value);
		return 0;
	}
	return -ENODATA;
}

/* ---- the two calls ---- */

/* Returns 0 if the path has a document, and -ENODATA if it has none and so no attributes. If the
 * document could not be read, its attributes are not known, and that error is returned. */
static int check_doc(const struct names_node *n, struct err *err)
{
	switch (n->doc.kind) {
	case NAMES_DOC_ROOT:
	case NAMES_DOC_STORE:
	case NAMES_DOC_FOLDER:
		return 0;
	case NAMES_DOC_BROKEN:
	case NAMES_DOC_UNLISTABLE:
		return err_set(err, n->doc.code, "%s", n->doc.why);
	default:
		return -ENODATA;
	}
}

/* Checks that a node whose document was read has the attribute. Returns 0, -ENODATA or -ENOMEM. */
static int has_xattr(const struct names_node *n, const struct xattr *x)
{
	auto_str struct str value = {0};
	if (x->of_store && n->doc.kind != NAMES_DOC_STORE)
		return -ENODATA;
	if (x->of_domain)
		return n->kind == NAMES_DOMAIN ? 0 : -ENODATA;
	return x->of_node(n, &value);
}

static int of_domain(struct engine *e, struct names_node *n, const struct snapshot_time *requested,
		     const struct xattr *x, struct str *out, struct err *err)
{
	struct snapshot *s = NULL;
	int rc = domain_snapshot(&e->bucket, n, requested, &s, err);
	if (rc)
		return rc;
	rc = x->of_domain(s->domain, out);
	snapshot_close(s);
	return rc;
}

static int get_value(struct engine *e, const char *path, const char *name, struct str *out,
		     struct err *err)
{
	if (has_counters(e, path) && strncmp(name, DEBUG_PREFIX, strlen(DEBUG_PREFIX)) == 0)
		return get_counter(e, name, out);
	const struct xattr *x = NULL;
	for (int i = 0; i < NXATTRS && !x; i++)
		if (strcmp(xattrs[i].name, name) == 0)
			x = &xattrs[i];
	if (strcmp(name, error_name) == 0)
		return draft_error(e, path, out);
	if (strcmp(name, unfinished_name) == 0)
		return draft_unfinished(e, path, out);
	if (strcmp(name, removed_name) == 0)
		return removed(e, path, out);
	const bool is_kept = strcmp(name, kept_name) == 0;
	if (!x && !is_kept)
		return -ENODATA; /* security.capability costs no request */
	if (drafts_is_alone(e->drafts, path))
		return x && x->of_node == acls ? draft_acls(e, path, out) : -ENODATA;
	auto_names_node struct names_node *n = NULL;
	struct snapshot_time requested;
	int rc = snapshot_resolve(&e->bucket, path, &n, &requested, err);
	if (!rc && is_kept)
		return kept(e, n, out, err);
	if (!rc)
		rc = check_doc(n, err);
	if (!rc)
		rc = has_xattr(n, x);
	if (rc)
		return rc;
	return x->of_domain ? of_domain(e, n, &requested, x, out, err) : x->of_node(n, out);
}

/* Returns the value as getxattr(2) does. */
static ssize_t copy_out(const struct bytes *value, void *buf, size_t size, const char *what,
			struct err *err)
{
	if (value->len > VALUE_MAX)
		return err_set(err, -E2BIG, "%s: %zu bytes are more than the kernel accepts", what,
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
	auto_str struct str value = {0};
	int rc = get_value(e, path, name, &value, err);
	if (rc == -ENODATA)
		return err_set(err, rc, "%s: no attribute %s", path, name);
	if (!rc && !str_ok(&value))
		rc = err_no_memory(err);
	return rc ? rc : copy_out(&value.b, buf, size, name, err);
}

int engine_setxattr(struct engine *e, const char *path, const char *name, const void *value,
		    size_t size, int flags, struct err *err)
{
	if (!e->bucket.garbage)
		return err_set(err, -EROFS, "mounted read-only");
	if (strcmp(name, "user.hsds.undelete") == 0)
		return undelete_in(e, path, value, size, err);
	if (strcmp(name, acls_name) == 0)
		return acls_set(e, path, name, value, size, flags, err);
	return err_set(err, -EOPNOTSUPP, "%s: the attribute %s cannot be set", path, name);
}

int engine_removexattr(struct engine *e, const char *path, const char *name, struct err *err)
{
	struct draft_hold hold;
	if (!e->drafts)
		return err_set(err, -EROFS, "mounted read-only");
	if (strcmp(name, error_name) != 0)
		return err_set(err, -EOPNOTSUPP, "%s: the attribute %s cannot be removed", path,
			       name);
	draft_table_hold(e->drafts, &hold, path, NULL);
	const int rc = drafts_drop_failed(e->drafts, path, err);
	/* A commit whose answer was lost may have stored it. */
	if (!rc)
		names_changed(e->bucket.names, path);
	draft_table_release(e->drafts, &hold);
	return rc;
}

/* Adds a name to the list. rc is 0, -ENODATA if there is no such attribute, or another errno, which
 * is returned. */
static int add_name(struct bytes *names, const char *name, int rc)
{
	if (rc == -ENODATA)
		return 0;
	return rc ? rc : bytes_append(names, name, strlen(name) + 1);
}

static int list_node(struct engine *e, struct names_node *n, struct bytes *names, struct err *err)
{
	auto_str struct str value = {0};
	if (n->kind == NAMES_OBJECT)
		return add_name(names, kept_name, kept(e, n, &value, err));
	int rc = check_doc(n, err);
	if (rc == -ENODATA)
		return 0;
	for (int i = 0; !rc && i < NXATTRS; i++)
		rc = add_name(names, xattrs[i].name, has_xattr(n, &xattrs[i]));
	return rc;
}

static int list_all(struct engine *e, const char *path, struct bytes *names, struct err *err)
{
	auto_names_node struct names_node *n = NULL;
	auto_str struct str value = {0};
	int rc = 0;
	/* Reading the counters must not send requests, so the root has no other attributes. */
	if (has_counters(e, path)) {
		for (int i = 0; !rc && i < NCOUNTERS; i++)
			rc = add_name(names, counters[i].name, 0);
		return rc;
	}
	if (drafts_is_alone(e->drafts, path)) {
		rc = add_name(names, acls_name, draft_acls(e, path, &value));
	} else {
		rc = names_resolve(e->bucket.names, path, &n, err);
		if (!rc)
			rc = list_node(e, n, names, err);
	}
	if (!rc)
		rc = add_name(names, removed_name, undelete_list(e, path, &value));
	if (!rc)
		rc = add_name(names, error_name, draft_error(e, path, &value));
	return rc ? rc : add_name(names, unfinished_name, draft_unfinished(e, path, &value));
}

ssize_t engine_listxattr(struct engine *e, const char *path, void *buf, size_t size,
			 struct err *err)
{
	auto_bytes struct bytes names = {0};
	const int rc = list_all(e, path, &names, err);
	if (rc == -ENOMEM)
		return err_set(err, rc, "out of memory");
	return rc ? rc : copy_out(&names, buf, size, "names", err);
}
