/* SPDX-License-Identifier: Apache-2.0 */
/* .domain.json: {root, owner, acls, created, lastModified} -> struct domain_info. Without a root it
 * is the document of a folder. Pure. */
#include "parse_object.h"

#include "parse.h"

#include <string.h>

static int parse_acls(struct schema_ctx *ctx, json_t *acls, struct domain_info *d, struct err *err)
{
	const char *user;
	json_t *acl;
	size_t n = json_object_size(acls);
	if (acls && !json_is_null(acls) && !json_is_object(acls))
		return err_set(err, -EIO, "acls: not an object");
	d->acls = arena_array(ctx->arena, n ? n : 1, sizeof(*d->acls));
	if (n > UINT32_MAX || !d->acls)
		return err_errno(err, -ENOMEM, "acls");
	json_object_foreach(acls, user, acl)
	{
		struct domain_acl *a = &d->acls[d->nacls];
		*a = (struct domain_acl){.perms = 0};
		int rc = schema_ctx_name(ctx, user, strlen(user), &a->user, true, err);
		if (rc)
			return err_wrap(err, rc, "acls");
		for (unsigned int i = 0; i < DOMAIN_PERMS; i++)
			if (json_is_true(json_object_get(acl, domain_perm_names[i])))
				a->perms |= 1U << i;
		d->nacls++;
	}
	return 0;
}

static int parse_domain(struct schema_ctx *ctx, const json_t *doc, struct domain_info *d,
			struct err *err)
{
	const json_t *owner = json_object_get(doc, "owner");
	d->owner = "";
	int rc = schema_group_id(ctx, json_object_get(doc, "root"), "root", &d->root, err);
	if (rc)
		return rc;
	if (json_is_string(owner)) {
		rc = schema_ctx_name(ctx, json_string_value(owner), json_string_length(owner),
				     &d->owner, true, err);
		if (rc)
			return err_wrap(err, rc, "owner");
	}
	d->created_ns = schema_time_ns(json_object_get(doc, "created"));
	d->modified_ns = schema_time_ns(json_object_get(doc, "lastModified"));
	return parse_acls(ctx, json_object_get(doc, "acls"), d, err);
}

int schema_domain_parse(struct arena *a, const void *json, size_t n, struct domain_info *out,
			struct err *err)
{
	auto_json json_t *doc = NULL;
	struct err why = ERR_INIT;
	struct schema_ctx ctx = {.arena = a};
	*out = (struct domain_info){0};
	int rc = json_text_load(json, n, &doc, &why);
	if (!rc)
		rc = parse_domain(&ctx, doc, out, &why);
	bytes_release(&ctx.text);
	if (rc) {
		*out = (struct domain_info){0};
		if (err)
			err_copy(err, &why);
	}
	return rc;
}
