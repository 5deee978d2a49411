/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathers what the engine's parts have counted. Each part is asked on its own, so a report is no
 * cut through one moment: a read may be in one number and not yet in the next. Any thread.
 */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"
#include "stack.h"
#include "text.h"

/* ---- domains ---- */

struct collected {
	struct report_domain *v;
	size_t n, cap;
};

static int collect(void *arg, struct snapshot *s)
{
	struct collected *c = arg;
	if (c->n == c->cap) {
		const size_t cap = c->cap ? 2 * c->cap : 16;
		struct report_domain *v = reallocarray(c->v, cap, sizeof(*v));
		if (!v)
			return -ENOMEM;
		c->v = v;
		c->cap = cap;
	}
	struct report_domain *d = &c->v[c->n];
	*d = (struct report_domain){
		.open = atomic_load(&s->use.open),
		.opens = atomic_load(&s->use.opens),
		.reads = atomic_load(&s->use.reads),
		.bytes_read = atomic_load(&s->use.bytes_read),
		.bytes_fetched = image_fetched(s->image),
	};
	image_get_stats(s->image, &d->chunks);
	snprintf(d->version, sizeof(d->version), "%" PRIu64, s->version);
	if (asprintf(&d->path, "/%s", domain_path(s->domain)) < 0)
		return -ENOMEM;
	c->n++;
	return 0;
}

static int most_reads_first(const void *a, const void *b)
{
	const struct report_domain *x = a, *y = b;
	return (x->reads < y->reads) - (x->reads > y->reads);
}

static void free_domains(struct report_domain *v, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		free(v[i].path);
}

static int gather_domains(struct engine *e, struct report *r)
{
	struct collected c = {0};
	int rc = domains_each(e->domains, collect, &c);
	r->domains = c.v;
	r->ndomains = c.n;
	if (rc || c.n == 0)
		return rc;
	qsort(c.v, c.n, sizeof(*c.v), most_reads_first);
	if (c.n > REPORT_DOMAINS_MAX) {
		free_domains(c.v, REPORT_DOMAINS_MAX, c.n);
		r->ndomains = REPORT_DOMAINS_MAX;
	}
	return 0;
}

/* ---- the whole ---- */

/* r is zeroed. */
static int gather(struct engine *e, struct report *r)
{
	r->version = HSMOUNT_VERSION;
	r->bucket = e->bucket;
	r->uptime_ns = engine_now(e) - e->opened_ns;
	r->reads = atomic_load(&e->reads);
	r->bytes_read = atomic_load(&e->bytes_read);
	r->images = domains_live(e->domains);
	store_count_read(e->stack.count, &r->store);
	cache_get_stats(e->cache, &r->cache);
	if (e->stack.disk)
		store_diskcache_read(e->stack.disk, &r->disk);
	http_stats_read(e->meter, &r->wire);
	r->retries = e->stack.retry ? store_retry_count(e->stack.retry) : 0;
	/* What was asked for twice was fetched twice; a directory has no wire. */
	r->bytes_fetched = stack_is_s3(e->bucket) ? r->wire.bytes_in : r->store.bytes_in;
	if (r->bytes_read)
		r->amplification = (double)r->bytes_fetched / (double)r->bytes_read;
	return gather_domains(e, r);
}

int engine_report(struct engine *e, enum engine_report kind, char **text, size_t *n,
		  struct err *err)
{
	auto_bytes struct bytes out = {0};
	/* Not on the stack: a thread of the front may have a small one. */
	struct report *r = calloc(1, sizeof(*r));
	int rc = r ? gather(e, r) : -ENOMEM;
	if (!rc)
		rc = kind == ENGINE_REPORT_JSON ? report_json(r, &out) : report_prometheus(r, &out);
	if (r) {
		free_domains(r->domains, 0, r->ndomains);
		free(r->domains);
	}
	free(r);
	*n = out.len;
	*text = rc ? NULL : text_take(&out);
	return *text ? 0 : err_set(err, -ENOMEM, "no memory for a report");
}
