/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A domain for a person, line by line: what it is, what is in it, what is wrong with it, and, when
 * asked, whether all of its image can be read. Any thread.
 */
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include <base/str.h>

#include "describe.h"
#include "verify.h"

/* Where lines go. A line that cannot be made or taken ends the description. */
struct report {
	engine_line_fn fn;
	void *arg;
};

static int say_text(const struct report *r, const struct str *line)
{
	return str_ok(line) ? r->fn(r->arg, str_text(line)) : -ENOMEM;
}

static int __attribute__((format(printf, 2, 3))) say(const struct report *r, const char *fmt, ...)
{
	auto_str struct str line = {0};
	va_list ap;
	va_start(ap, fmt);
	str_addv(&line, fmt, ap);
	va_end(ap);
	return say_text(r, &line);
}

static int say_time(const struct report *r, const char *what, int64_t ns)
{
	auto_str struct str line = {0};
	if (ns == 0)
		return 0;
	str_addf(&line, "%s: ", what);
	str_add_time(&line, ns);
	return say_text(r, &line);
}

static int say_domain(const struct report *r, const struct names_node *n, struct domain *domain)
{
	const struct domain_info *info = domain_info(domain);
	int rc = say(r, "domain: /%s", n->path);
	if (!rc)
		rc = say(r, "root: %s", info->root);
	if (!rc && info->owner && info->owner[0])
		rc = say(r, "owner: %s", info->owner);
	auto_free char *acls = names_acls_json(info);
	if (!rc && acls)
		rc = say(r, "acls: %s", acls);
	if (!rc)
		rc = say_time(r, "created", info->created_ns);
	if (!rc)
		rc = say_time(r, "last modified", domain_modified_ns(domain));
	return rc;
}

static int say_image(const struct report *r, const struct snapshot *s)
{
	int rc = say(r,
		     "image: %" PRIu64 " bytes, %" PRIu64 " behind something, version %" PRIu64
		     ", layout revision %d",
		     image_size(s->image), image_allocated(s->image), s->version, IMAGE_REVISION);
	if (!rc && !s->sees_chunks)
		rc = say(r, "image: too many objects to list: a change of chunks is not noticed");
	return rc;
}

static int say_counts(const struct report *r, struct domain *domain)
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
	return say(r,
		   "objects: %u groups, %u datasets, %u datatypes, %" PRIu64 " links, %" PRIu64
		   " attributes",
		   kinds[OBJECT_GROUP], kinds[OBJECT_DATASET], kinds[OBJECT_DATATYPE], links,
		   attrs);
}

/* "dataset /a/b: int32 [10,20], chunks [5,20] 2 of 4, filters deflate(6)" */
static void dataset_line(struct str *line, struct domain *domain, const struct object_paths *paths,
			 uint32_t number)
{
	const struct dataset *d = &tree_object(domain_tree(domain), number)->o.dataset;
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
		str_addf(line, " %" PRIu64 " of %" PRIu64, c->n, d->grid.nchunks);
	else
		str_addf(line, " %" PRIu64, d->grid.nchunks);
	str_add(line, ", filters ");
	dataset_pipeline(d, &filters);
	describe_filters(line, &filters);
}

static int say_datasets(const struct report *r, struct domain *domain)
{
	const struct tree *tree = domain_tree(domain);
	struct object_paths *paths = object_paths_new(tree);
	int rc = paths ? 0 : -ENOMEM;
	for (uint32_t i = 0; !rc && i < tree_count(tree); i++) {
		auto_str struct str line = {0};
		uint32_t number = tree_nth(tree, i);
		if (tree_object(domain_tree(domain), number)->o.kind != OBJECT_DATASET)
			continue;
		dataset_line(&line, domain, paths, number);
		rc = say_text(r, &line);
	}
	object_paths_free(paths);
	return rc;
}

static int say_problems(const struct report *r, struct domain *domain)
{
	const struct tree *tree = domain_tree(domain);
	int rc = 0;
	const char *text;
	for (uint32_t i = 0; !rc && (text = tree_problem(tree, i)); i++)
		rc = say(r, "problem: %s", text);
	return rc;
}

static int say_failure(void *arg, const char *what)
{
	return say(arg, "problem: %s", what);
}

static int say_verified(struct report *r, const struct snapshot *s, struct err *err)
{
	struct verify_result v;
	int rc = verify_image(s->image, say_failure, r, &v, err);
	if (rc)
		return rc;
	rc = say(r, "verified: %" PRIu64 " bytes read, %" PRIu64 " failures", v.bytes, v.failures);
	if (!rc && v.failures)
		rc = err_set(err, -EIO, "parts of the image that cannot be read: %" PRIu64,
			     v.failures);
	return rc;
}

int engine_info(struct engine *e, const char *path, bool verify, engine_line_fn fn, void *arg,
		struct err *err)
{
	auto_names_node struct names_node *n = NULL;
	struct snapshot *s = NULL;
	struct report r = {.fn = fn, .arg = arg};
	struct err why = ERR_INIT;
	struct snapshot_time asked;
	int rc = snapshot_resolve(e, path, &n, &asked, err);
	if (rc)
		return rc;
	if (n->kind != NAMES_DOMAIN)
		return err_set(err, n->kind == NAMES_DIR ? -EISDIR : -EINVAL, "%s: not a domain",
			       path);
	rc = domain_snapshot(e, n, &asked, &s, err);
	if (rc)
		return rc;
	struct domain *domain = s->domain;
	rc = say_domain(&r, n, domain);
	if (!rc)
		rc = say_image(&r, s);
	if (!rc)
		rc = say_counts(&r, domain);
	if (!rc)
		rc = say_datasets(&r, domain);
	if (!rc)
		rc = say_problems(&r, domain);
	if (!rc && verify)
		rc = say_verified(&r, s, &why);
	snapshot_close(s);
	if (rc && why.code)
		err_copy(err, &why);
	else if (rc == -ENOMEM)
		err_set(err, rc, "out of memory");
	return rc;
}
