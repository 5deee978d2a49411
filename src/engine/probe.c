/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name may be a domain, a folder, a prefix, an object, or a bare domain's file: a get, a list, a
 * head and a get. One after the other they would take as many rounds as the name has chances. Any
 * thread.
 */
#include "probe.h"

#include <errno.h>
#include <stdlib.h>

#include "beneath.h"
#include "internal.h"

enum { DOCS = 2 };

void probe_release(struct probe *p)
{
	doc_release(&p->doc);
	doc_release(&p->bare);
}

int probe_name(struct engine *e, const char *path, const char *bare, struct probe *p)
{
	struct doc_ask asks[DOCS];
	struct doc *docs[DOCS];
	struct store_get reqs[1 + DOCS] = {{.op = STORE_HEAD, .key = path}};
	struct store_get_result results[1 + DOCS] = {0};
	size_t n = 0;
	*p = (struct probe){.asked_ns = engine_now(e)};
	auto_free char *prefix = names_join(path, "");
	if (!prefix)
		return -ENOMEM;
	struct store_list_job job = {.prefix = prefix, .how = STORE_DELIMIT, .limit = 1};
	if (doc_ask(e, path, &asks[n], &reqs[1 + n]))
		docs[n++] = &p->doc;
	if (bare && doc_ask(e, bare, &asks[n], &reqs[1 + n]))
		docs[n++] = &p->bare;
	int rc = store_round(e->store, reqs, 1 + n, results, &job, 1);
	for (size_t i = 0; i < n; i++) {
		int taken = doc_take(e, &asks[i], &results[1 + i], docs[i]);
		rc = rc ? rc : taken;
		bytes_release(&results[1 + i].body);
	}
	p->plain = results[0].code;
	p->meta = results[0].meta;
	err_copy(&p->plain_err, &results[0].err);
	p->beneath = beneath_of_page(e, job.code, &job.page);
	err_copy(&p->beneath_err, &job.err);
	store_page_release(&job.page);
	if (rc)
		probe_release(p);
	return rc;
}
