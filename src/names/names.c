/* SPDX-License-Identifier: Apache-2.0 */
/* See names/names.h. Any thread. */
#include "names_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/utf8.h>

#include "complete_dirs.h"
#include "name_cache.h"
#include "root_list.h"
#include "rules.h"

struct names *names_new(const struct names_options *opt)
{
	struct names *ns = malloc(sizeof(*ns));
	if (!ns)
		return NULL;
	*ns = (struct names){
		.env = opt->env,
		.store = opt->store,
		.disk = opt->disk,
		.schemas = opt->schemas,
		.ttl_ns = opt->ttl_ns,
		.list_ttl_ns = opt->list_ttl_ns,
		.prefixes_have_objects = opt->prefixes_have_objects,
		.roots = opt->roots,
		.cache = names_cache_new(opt->env->budget),
		.complete = names_complete_new(),
	};
	atomic_init(&ns->has_marks, opt->has_marks);
	if (ns->cache && ns->complete)
		return ns;
	names_free(ns);
	return NULL;
}

void names_free(struct names *ns)
{
	if (!ns)
		return;
	names_complete_free(ns->complete);
	names_cache_free(ns->cache);
	free(ns);
}

struct names_node *names_recall(struct names *ns, const char *path)
{
	return names_cache_recall(ns->cache, path);
}

void names_found(struct names *ns, const char *path)
{
	names_complete_add(ns, path);
	names_cache_end_absence(ns->cache, path);
}

void names_forget(struct names *ns, const char *path)
{
	/* What had the name may be newer than a listing. */
	names_complete_add(ns, path);
	names_cache_drop(ns->cache, path);
}

bool names_is_certain(const struct names_node *n)
{
	return n->kind == NAMES_DOMAIN && n->doc.kind == NAMES_DOC_ROOT &&
	       names_has_extension(names_last(n->path)) && strcmp(n->path, n->name) == 0;
}

/* Drops the nodes of the other names of a domain: "run.h5" for "run", and the reverse. */
static void drop_others(struct names *ns, const char *path)
{
	auto_free char *bare = NULL, *marked = NULL;
	for (const struct schema_ops *const *schema = ns->schemas; *schema; schema++) {
		if (names_is_file_name(*schema, names_last(path)))
			continue;
		auto_free char *file = names_with_suffix(path, (*schema)->suffix);
		if (file)
			names_cache_drop(ns->cache, file);
	}
	if (!names_bare(ns->schemas, path, &bare) && bare)
		names_cache_drop(ns->cache, bare);
	if (!names_marked(ns->schemas, path, &marked) && marked)
		names_cache_drop(ns->cache, marked);
}

static void drop_name(struct names *ns, const char *path)
{
	auto_free char *dir = strndup(path, names_parent_len(path));
	names_cache_drop(ns->cache, path);
	drop_others(ns, path);
	if (dir)
		names_cache_drop_list(ns->cache, dir);
}

void names_changed(struct names *ns, const char *path)
{
	const size_t n = names_parent_len(path);
	auto_free char *dir = n && schema_is_mark(ns->schemas, path) ? strndup(path, n) : NULL;
	names_cache_change(ns->cache);
	names_complete_add(ns, path);
	drop_name(ns, path);
	/* The directory may have become a domain, or may be none any more. */
	if (dir) {
		atomic_store(&ns->has_marks, true);
		drop_name(ns, dir);
	}
}

/* A path that can have a document can have an object, too. */
static int check_length(const struct names *ns, const char *path, struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	const struct schema_ops *schema = schema_of_new_domains(ns->schemas);
	if (strlen(path) > STORE_KEY_MAX ||
	    (schema && schema->documents->key(path, key, sizeof(key)) < 0))
		return err_set(err, -ENAMETOOLONG, "%s: the path is too long for a key", path);
	if (strlen(names_last(path)) > NAMES_MAX)
		return err_set(err, -ENAMETOOLONG, "%s: the name has more than %d bytes", path,
			       NAMES_MAX);
	return 0;
}

int names_check_new(struct names *ns, const char *path, struct err *err)
{
	const int rc = check_length(ns, path, err);
	if (rc)
		return rc;
	if (!utf8_valid(path, strlen(path)))
		return err_set(err, -EINVAL, "%s: the path is not UTF-8", path);
	/* Not every service can list them. */
	if (!utf8_in_xml(path))
		return err_set(err, -EINVAL, "%s: the path has a control character", path);
	if (!store_key_ok(path))
		return err_set(err, -EINVAL, "%s: not a valid path", path);
	if (names_is_hidden(ns->schemas, path))
		return err_set(err, -EINVAL, "%s: the path is part of the bucket's storage", path);
	if (!names_is_below_roots(ns, path))
		return err_set(err, -EINVAL, "%s: the mount does not show this path", path);
	return 0;
}

bool names_may_have_marker(const struct names *ns, const struct names_node *n)
{
	return ns->prefixes_have_objects && n->marker != NAMES_MARKER_ABSENT;
}

int names_read_only(struct names *ns, const struct names_node *n, struct err *err)
{
	struct err why = ERR_INIT;
	const int rc = err_set(&why, -EROFS,
			       "%s: a domain of the format %s can only be read; its objects are in "
			       "the directory %s",
			       n->name, n->doc.document->schema->name, n->path);
	log_warning(ns->env->log, "%s", why.msg);
	err_copy(err, &why);
	return rc;
}

bool names_list_is_whole(struct names *ns)
{
	return !ns->roots && !names_has_left_out(ns);
}

bool names_has_left_out(struct names *ns)
{
	return atomic_load(&ns->left_out);
}
