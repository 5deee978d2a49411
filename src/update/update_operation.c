/* SPDX-License-Identifier: Apache-2.0 */
/* One operation of the plan of an update. */
#include "update_internal.h"

#include <string.h>
#include <overlay/draft_plan.h>

static int set_body(struct update *u, struct plan_operation *op, const struct bytes *body,
		    struct err *err)
{
	int rc = draft_set_body(u->opt->draft, op, body->data, body->len, err);
	if (rc)
		atomic_store(&u->failed, true);
	if (rc || op->body != PLAN_INLINE)
		return rc;
	op->bytes = arena_strndup(u->arena, (const char *)body->data, body->len);
	return op->bytes ? 0 : err_no_memory(err);
}

int update_add(struct update *u, const struct update_operation *what, const struct bytes *body,
	       struct err *err)
{
	struct plan_operation op = what->op;
	const char *version = op.version ? op.version : "";
	op.key = arena_strndup(u->arena, what->key, strlen(what->key));
	op.version = arena_strndup(u->arena, version, strlen(version));
	int rc = op.key && op.version ? 0 : err_no_memory(err);
	if (!rc && body)
		rc = set_body(u, &op, body, err);
	if (rc)
		return rc;
	if (bytes_append(&u->operations, &op, sizeof(op)) ||
	    bytes_append(&u->targets, &what->target, sizeof(what->target)))
		return err_no_memory(err);
	return 0;
}
