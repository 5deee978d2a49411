/* SPDX-License-Identifier: Apache-2.0 */
/* What an update has put, for the next open: see domain/puts.h. */
#include "update_internal.h"

#include <domain/puts.h>
#include <overlay/draft_plan.h>

/* Adds the document of an operation. If it is put twice, the version is that of the last put, and
 * the last put comes last in the plan, too. */
static int add(const struct update *u, const struct plan_operation *op, uint32_t number,
	       struct domain_puts *puts)
{
	const struct scan *now = u->base->next;
	const char *version = now->version[number];
	auto_bytes struct bytes text = {0};
	bool has_text = op->length && op->length <= DOMAIN_TEXTS_MIN &&
			!bytes_reserve(&text, (size_t)op->length);
	if (has_text)
		has_text =
			!draft_read_planned(u->opt->draft, u->opt->snapshot, op, text.data, NULL);
	return domain_puts_add(puts, tree_object(now->tree, number)->o.id, version ? version : "",
			       has_text ? text.data : NULL, (size_t)op->length);
}

struct domain_puts *update_puts(const struct update *u, const struct plan *plan)
{
	const struct update_target *targets = (const void *)u->base->targets.data;
	struct domain_puts *puts = domain_puts_new(u->opt->env->budget, false, false);
	const struct plan_subject *s = &plan->subject;
	int rc = puts ? 0 : -1;
	for (uint32_t i = 0; !rc && i < plan->count; i++)
		if (targets[i].object != OBJECT_NONE && !targets[i].is_chunk)
			rc = add(u, &plan->operations[i], targets[i].object, puts);
	for (uint32_t i = 0; !rc && i < s->nremoved; i++)
		rc = domain_puts_add(puts, s->removed[i].id, NULL, NULL, 0);
	if (!rc)
		return puts;
	domain_puts_free(puts);
	return NULL;
}
