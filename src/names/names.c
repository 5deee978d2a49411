/* SPDX-License-Identifier: Apache-2.0 */
/* See names/names.h. Any thread. */
#include "names_internal.h"

#include <stdlib.h>

#include "name_cache.h"

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
