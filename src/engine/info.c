/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes a domain for a person, line by line: what it is, what is in it, what is wrong with it
 * and, on request, whether all of its file can be read. Any thread.
 */
#include "engine_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>

#include <base/str.h>
#include <data/describe.h>

#include "verify.h"

static int say_text(const struct engine_info_sink *sink, const struct str *line)
{
	return str_ok(line) ? sink->line(sink->arg, str_text(line)) : -ENOMEM;
}

static int __attribute__((format(printf, 2, 3)))
say(const struct engine_info_sink *sink, const char *fmt, ...)
{
	auto_str struct str line = {0};
	va_list ap;
	va_start(ap, fmt);
	str_addv(&line, fmt, ap);
	va_end(ap);
	return say_text(sink, &line);
}

static int say_time(const struct engine_info_sink *sink, const char *what, int64_t ns)
{
	auto_str struct str line = {0};
	if (ns == 0)
		return 0;
	str_addf(&line, "%s: ", what);
	str_add_time(&line, ns);
	return say_text(sink, &line);
}

static int say_domain(const struct engine_info_sink *sink, const struct names_node *n,
		      struct domain *domain)
{
	const struct domain_info *info = domain_info(domain);
	int rc = say(sink, "domain: /%s", n->path);
	if (n->doc.kind == NAMES_DOC_STORE) {
		if (!rc)
			rc = say(sink, "format: %s", domain_schema(domain)->name);
		return rc ? rc : say_time(sink, "last modified", domain_modified_ns(domain));
	}
	if (!rc)
		rc = say(sink, "root group: %s", info->root);
	if (!rc && info->owner && info->owner[0])
		rc = say(sink, "owner: %s", info->owner);
	auto_free char *acls = names_acls_json(info);
	if (!rc)
		rc = acls ? say(sink, "access control lists: %s", acls) : -ENOMEM;
	if (!rc)
		rc = say_time(sink, "created", info->created_ns);
	if (!rc)
		rc = say_time(sink, "last modified", domain_modified_ns(domain));
	return rc;
}

/* Returns whether chunks of the domain are known to be absent. */
static bool lacks_chunks(struct domain *domain)
{
	const struct tree *t = domain_tree(domain);
	for (uint32_t i = 0; i < tree_count(t); i++) {
		const uint32_t number = tree_nth(t, i);
		const struct object *o = &tree_object(t, number)->o;
		const struct chunk_list *c = domain_chunks(domain, number);
		if (o->kind == OBJECT_DATASET && c->listed && c->n < o->dataset.grid.nchunks)
			return true;
	}
	return false;
}

/* "HDF5 file: 18.9 MB (18912345 bytes), 2.1 MB on disk when exported: chunks that were never
 * written take no space" */
static int say_file(const struct engine_info_sink *sink, const struct snapshot *s)
{
	auto_str struct str line = {0};
	const uint64_t size = image_size(s->image), data = verify_data_bytes(s->image);
	str_add(&line, "HDF5 file: ");
	describe_size(&line, size);
	str_addf(&line, " (%" PRIu64 " bytes)", size);
	if (data < size) {
		const bool certain = image_certain(s->image) == image_allocated(s->image);
		str_add(&line, certain ? ", " : ", at most ");
		describe_size(&line, data);
		str_add(&line, " on disk when exported");
		if (lacks_chunks(s->domain))
			str_add(&line, ": chunks that were never written take no space");
	}
	int rc = say_text(sink, &line);
	if (!rc && image_base(s->image))
		rc = say(sink, "user block: %" PRIu64 " bytes", image_base(s->image));
	if (!rc)
		rc = say(sink, "file layout: revision %d", IMAGE_REVISION);
	if (!rc && !s->sees_chunks)
		rc = say(sink,
			 "note: %s, so a change of chunks alone does not make a new version of the "
			 "file",
			 domain_schema(s->domain)->storage
				 ? "the domain is too large to be listed as a whole"
				 : "no listing shows the keys of the domain");
	return rc;
}

static int say_counts(const struct engine_info_sink *sink, struct domain *domain)
{
	const struct tree *tree = domain_tree(domain);
	uint32_t kinds[3] = {0};
	uint64_t links = 0, attrs = 0;
	for (uint32_t i = 0; i < tree_count(tree); i++) {
		const struct object *o = &tree_object(tree, tree_nth(tree, i))->o;
		kinds[o->kind]++;
		attrs += o->nattrs;
		links += o->kind == OBJECT_GROUP ? o->group.nlinks : 0;
	}
	return say(sink,
		   "contents: groups %u, datasets %u, committed datatypes %u, links %" PRIu64
		   ", attributes %" PRIu64,
		   kinds[OBJECT_GROUP], kinds[OBJECT_DATASET], kinds[OBJECT_DATATYPE], links,
		   attrs);
}

/* "1.2 MB of data stored in 400.0 kB (3.0:1)". Data of variable length have no fixed size. */
static void add_storage(struct str *line, const struct dataset *d, const struct chunk_list *c)
{
	uint64_t raw;
	str_add(line, ", ");
	if (!d->type->has_vlen && mul_u64(d->space.nelems, d->type->size, &raw)) {
		describe_size(line, raw);
		str_add(line, " of data stored in ");
		describe_size(line, c->bytes);
		if (c->bytes)
			str_addf(line, " (%.1f:1)", (double)raw / (double)c->bytes);
	} else {
		str_add(line, "stored in ");
		describe_size(line, c->bytes);
	}
}

/* ", in shards of [40,60]", and the shapes of nested shards: "[40,60] of [10,20]" */
static void add_shards(struct str *line, const struct dataset *d)
{
	str_add(line, ", in shards of ");
	for (const struct shard *s = d->shard; s; s = s->nested) {
		str_add(line, s == d->shard ? "[" : " of [");
		for (uint32_t i = 0; i < s->rank; i++)
			str_addf(line, "%s%" PRIu64, i ? "," : "", s->span[i] * d->grid.chunk[i]);
		str_add(line, "]");
	}
}

/* "dataset /a/b: int32 [10,20], chunks [5,20], 2 of 4 written, filters deflate(6), …", and at the
 * end "data in bucket/raw.h5" if an HDF5 file has the data */
static void dataset_line(struct str *line, struct domain *domain, const struct object_paths *paths,
			 uint32_t number)
{
	const struct object *o = &tree_object(domain_tree(domain), number)->o;
	const struct dataset *d = &o->dataset;
	const struct chunk_list *c = domain_chunks(domain, number);
	struct pipeline filters;
	str_add(line, "dataset ");
	describe_path(line, paths, number);
	str_add(line, ": ");
	describe_type(line, d->type);
	str_add(line, " ");
	describe_space(line, &d->space);
	if (d->space.cls == DSPACE_NULL)
		return;
	str_add(line, ", chunks ");
	describe_chunk(line, &d->grid);
	if (c && c->listed)
		str_addf(line, ", %" PRIu64 " of %" PRIu64 " written", c->n, d->grid.nchunks);
	else
		str_addf(line, ", %" PRIu64 " in all", d->grid.nchunks);
	if (d->shard)
		add_shards(line, d);
	const struct schema_ops *schema = domain_schema(domain);
	const char *codecs = schema->codecs ? schema->codecs(o) : NULL;
	dataset_pipeline(d, &filters);
	str_add(line, schema->codecs ? ", codecs " : ", filters ");
	if (schema->codecs)
		str_add(line, codecs ? codecs : "none");
	else
		describe_filters(line, &filters);
	if (c && c->listed)
		add_storage(line, d, c);
	if (d->reference) {
		const char *uri = d->reference->file.uri;
		str_addf(line, ", data in %s", uri ? uri : "the HDF5 files of a chunk table");
	}
}

static int say_datasets(const struct engine_info_sink *sink, struct domain *domain)
{
	const struct tree *tree = domain_tree(domain);
	struct object_paths *paths = object_paths_new(tree);
	int rc = paths ? 0 : -ENOMEM;
	for (uint32_t i = 0; !rc && i < tree_count(tree); i++) {
		auto_str struct str line = {0};
		uint32_t number = tree_nth(tree, i);
		if (tree_object(tree, number)->o.kind != OBJECT_DATASET)
			continue;
		dataset_line(&line, domain, paths, number);
		rc = say_text(sink, &line);
	}
	object_paths_free(paths);
	return rc;
}

static int say_attribute(const struct engine_info_sink *sink, const struct object_paths *paths,
			 uint32_t number, const struct attribute *a)
{
	auto_str struct str line = {0};
	str_addf(&line, "clients of HSDS cannot ask by name for: ");
	describe_path(&line, paths, number);
	str_addf(&line, ", attribute ");
	str_add_printable(&line, a->name);
	return say_text(sink, &line);
}

static int say_unaddressable(const struct engine_info_sink *sink, struct domain *domain)
{
	const struct tree *tree = domain_tree(domain);
	struct object_paths *paths = object_paths_new(tree);
	int rc = paths ? 0 : -ENOMEM;
	for (uint32_t i = 0; !rc && i < tree_count(tree); i++) {
		const uint32_t number = tree_nth(tree, i);
		const struct object *o = &tree_object(tree, number)->o;
		for (uint32_t k = 0; !rc && k < o->nattrs; k++)
			if (!schema_is_addressable(&o->attrs[k]))
				rc = say_attribute(sink, paths, number, &o->attrs[k]);
	}
	object_paths_free(paths);
	return rc;
}

static int say_verified(const struct engine_info_sink *sink, const struct snapshot *s,
			struct err *err)
{
	struct verify_result v;
	int rc = verify_image(s->image, sink, &v, err);
	if (rc)
		return rc;
	rc = say(sink, "verified: %" PRIu64 " bytes read, unreadable parts: %" PRIu64, v.bytes,
		 v.failures);
	if (!rc && v.failures)
		rc = err_set(err, -EIO, "parts of the file that cannot be read: %" PRIu64,
			     v.failures);
	return rc;
}

/* Describes a plain object that a mount has stored because it could not become a domain. Returns
 * -ENODATA for any other. */
static int say_kept(struct engine *e, const struct names_node *n, const char *path,
		    const struct engine_info_sink *sink, struct err *err)
{
	char why[STORE_NOTE_MAX + 1];
	const ssize_t len = n->kind == NAMES_OBJECT ? engine_getxattr(e, path, "user.hsds.kept",
								      why, sizeof(why) - 1, err)
						    : -ENODATA;
	if (len < 0)
		return (int)len;
	why[len] = '\0';
	const int rc = say(sink, "plain file: %s", path);
	return rc ? rc : say(sink, "kept as it is: %s", why);
}

int engine_info(struct engine *e, const char *path, bool verify,
		const struct engine_info_sink *sink, struct err *err)
{
	auto_names_node struct names_node *n = NULL;
	const char *problem;
	struct snapshot *s = NULL;
	struct err why = ERR_INIT;
	struct snapshot_time requested;
	int rc = snapshot_resolve(&e->bucket, path, &n, &requested, err);
	if (rc)
		return rc;
	if (n->kind != NAMES_DOMAIN && n->doc.kind != NAMES_DOC_STORE) {
		rc = say_kept(e, n, path, sink, err);
		if (rc != -ENODATA)
			return rc;
	}
	if (n->kind != NAMES_DOMAIN && n->doc.kind != NAMES_DOC_STORE)
		return err_set(err, n->kind == NAMES_DIR ? -EISDIR : -EINVAL, "%s: not a domain",
			       path[0] ? path : "/");
	rc = domain_snapshot(&e->bucket, n, &requested, &s, err);
	if (rc)
		return rc;
	struct domain *domain = s->domain;
	rc = say_domain(sink, n, domain);
	if (!rc)
		rc = say_file(sink, s);
	if (!rc)
		rc = say_counts(sink, domain);
	if (!rc)
		rc = say_datasets(sink, domain);
	if (!rc && domain_schema(domain)->documents)
		rc = say_unaddressable(sink, domain);
	for (uint32_t i = 0; !rc && (problem = tree_problem(domain_tree(domain), i)); i++)
		rc = say(sink, "problem: %s", problem);
	if (!rc && verify)
		rc = say_verified(sink, s, &why);
	snapshot_close(s);
	if (rc && why.code)
		err_copy(err, &why);
	else if (rc == -ENOMEM)
		err_set(err, rc, "out of memory");
	return rc;
}
