/* SPDX-License-Identifier: Apache-2.0 */
/* What was found, and what is kept: see clean.h. */
#include "clean.h"

#include <errno.h>
#include <string.h>

#define SECOND_NS INT64_C(1000000000)

bool clean_is_old(const struct clean *c, int64_t newest_ns, int64_t now_ns)
{
	const int64_t age_ns = (int64_t)min_u64(c->opt->age_s, INT32_MAX) * SECOND_NS;
	return newest_ns > 0 && now_ns - newest_ns >= age_ns;
}

bool clean_is_meant(const struct clean *c, const char *key)
{
	const char *prefix = c->opt->prefix ? c->opt->prefix : "";
	return strncmp(key, prefix, strlen(prefix)) == 0;
}

int clean_found(struct clean *c, const struct engine_clean_item *item)
{
	struct engine_clean_totals *t = &c->found;
	t->kept += item->stays != NULL;
	if (!item->stays) {
		t->items[item->kind]++;
		t->objects += item->objects;
		t->bytes += item->bytes;
	}
	return c->opt->item(c->opt->arg, item);
}

void clean_keep(struct clean *c, const char *key, int rc, const struct err *why)
{
	struct err line;
	err_set(&line, 0, "%s is kept: %s", key, why->msg);
	c->opt->line(c->opt->arg, line.msg);
	c->out->kept++;
	if (!c->failed && rc != -EBUSY)
		c->failed = rc;
}
