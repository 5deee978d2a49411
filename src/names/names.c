/* SPDX-License-Identifier: Apache-2.0 */
/* See names/names.h. Any thread. */
#include "names_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
		.schemas = opt->schemas,
		.ttl_ns = opt->ttl_ns,
		.list_ttl_ns = opt->list_ttl_ns,
		.roots = opt->roots,
		.cache = names_cache_new(),
	};
	if (ns->cache)
		return ns;
	free(ns);
	return NULL;
}

void names_free(struct names *ns)
{
	if (!ns)
		return;
	names_cache_free(ns->cache);
	free(ns);
}

struct names_node *names_recall(struct names *ns, const char *path)
{
	return names_cache_recall(ns->cache, path);
}

void names_forget(struct names *ns, const char *path)
{
	names_cache_drop(ns->cache, path);
}

void names_changed(struct names *ns, const char *path)
{
	struct bytes none = {0};
	auto_free char *dir = strndup(path, names_parent_len(path));
	atomic_fetch_add(&ns->changes, 1);
	names_cache_drop(ns->cache, path);
	if (dir)
		names_cache_put_list(ns->cache, dir, &none, 0);
}

int names_check_new(struct names *ns, const char *path, struct err *err)
{
	if (!store_key_ok(path))
		return err_set(err, -EINVAL, "%s: not a valid path", path);
	if (names_is_hidden(ns->schemas, path))
		return err_set(err, -EINVAL, "%s: the path is part of the bucket's storage", path);
	if (!names_is_below_roots(ns, path))
		return err_set(err, -EINVAL, "%s: the mount does not show this path", path);
	return 0;
}
