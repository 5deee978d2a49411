/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A domain for a person, line by line: what it is, what is in it, what is wrong with it, and, when
 * asked, whether all of its image can be read. Any thread.
 */
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "describe.h"
#include "text.h"
#include "verify.h"

/* Where lines go. A line that cannot be made or taken ends the description. */
struct report {
	engine_line_fn fn;
	void *arg;
};

static int __attribute__((format(printf, 2, 3))) say(const struct report *r, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	auto_free char *line = NULL;
	int n = vasprintf(&line, fmt, ap);
	va_end(ap);
	if (n < 0) {
		line = NULL;
		return -ENOMEM;
	}
	return r->fn(r->arg, line);
}

static int say_bytes(const struct report *r, struct bytes *text)
{
	auto_free char *line = text_take(text);
	return line ? r->fn(r->arg, line) : -ENOMEM;
}

static int say_time(const struct report *r, const char *what, int64_t ns)
{
	auto_bytes struct bytes line = {0};
	if (ns == 0)
		return 0;
	int rc = text_add(&line, "%s: ", what);
	if (!rc)
		rc = text_time(&line, ns);
	return rc ? rc : say_bytes(r, &line);
}

static int say_domain(const struct report *r, const struct node *n, struct model *m)
{
	const struct domain *d = model_domain(m);
	int rc = say(r, "domain: /%s", n->path);
	if (!rc)
		rc = say(r, "root: %s", model_object(m, model_nth(m, 0))->o.id);
	if (!rc && d->owner && d->owner[0])
		rc = say(r, "owner: %s", d->owner);
	if (!rc && n->doc.acls)
		rc = say(r, "acls: %s", n->doc.acls);
	if (!rc)
		rc = say_time(r, "created", d->created_ns);
	if (!rc)
		rc = say_time(r, "last modified", model_modified_ns(m));
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

static int say_counts(const struct report *r, struct model *m)
{
	uint32_t kinds[3] = {0};
	uint64_t links = 0, attrs = 0;
	for (uint32_t i = 0; i < model_count(m); i++) {
		const struct object *o = &model_object(m, model_nth(m, i))->o;
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
static int dataset_line(struct bytes *line, struct model *m, const struct object_paths *paths,
			uint32_t number)
{
	const struct dataset *d = &model_object(m, number)->o.dataset;
	const struct model_chunks *c = model_chunks(m, number);
	int rc = text_add(line, "dataset ");
	if (!rc)
		rc = describe_path(line, paths, number);
	if (!rc)
		rc = text_add(line, ": ");
	if (!rc)
		rc = describe_type(line, d->type);
	if (!rc)
		rc = text_add(line, " ");
	if (!rc)
		rc = describe_space(line, &d->space);
	if (rc || d->space.cls == DSPACE_NULL)
		return rc;
	rc = text_add(line, ", chunks ");
	if (!rc)
		rc = describe_chunk(line, &d->grid);
	if (!rc && c && c->listed)
		rc = text_add(line, " %" PRIu64 " of %" PRIu64, c->n, d->grid.nchunks);
	else if (!rc)
		rc = text_add(line, " %" PRIu64, d->grid.nchunks);
	if (!rc)
		rc = text_add(line, ", filters ");
	if (rc)
		return rc;
	struct pipeline filters;
	dataset_pipeline(d, &filters);
	return describe_filters(line, &filters);
}

static int say_datasets(const struct report *r, struct model *m)
{
	struct object_paths *paths = object_paths_new(m);
	int rc = paths ? 0 : -ENOMEM;
	for (uint32_t i = 0; !rc && i < model_count(m); i++) {
		auto_bytes struct bytes line = {0};
		uint32_t number = model_nth(m, i);
		if (model_object(m, number)->o.kind != OBJECT_DATASET)
			continue;
		rc = dataset_line(&line, m, paths, number);
		if (!rc)
			rc = say_bytes(r, &line);
	}
	object_paths_free(paths);
	return rc;
}

static int say_problems(const struct report *r, struct model *m)
{
	int rc = 0;
	const char *text;
	for (uint32_t i = 0; !rc && (text = model_problem(m, i)); i++)
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
	auto_node struct node *n = NULL;
	struct snapshot *s = NULL;
	struct report r = {.fn = fn, .arg = arg};
	struct err why = ERR_INIT;
	int rc = namespace_resolve(e, path, &n, err);
	if (rc)
		return rc;
	if (n->kind != ENGINE_DOMAIN)
		return err_set(err, n->kind == ENGINE_DIR ? -EISDIR : -EINVAL, "%s: not a domain",
			       path);
	rc = domain_snapshot(e, n, &s, err);
	if (rc)
		return rc;
	struct model *m = image_model(s->image);
	rc = say_domain(&r, n, m);
	if (!rc)
		rc = say_image(&r, s);
	if (!rc)
		rc = say_counts(&r, m);
	if (!rc)
		rc = say_datasets(&r, m);
	if (!rc)
		rc = say_problems(&r, m);
	if (!rc && verify)
		rc = say_verified(&r, s, &why);
	snapshot_close(s);
	if (rc && why.code)
		err_copy(err, &why);
	else if (rc == -ENOMEM)
		err_set(err, rc, "no memory");
	return rc;
}
