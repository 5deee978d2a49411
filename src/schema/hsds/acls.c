/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access control lists that users set. Reads them strictly, and puts them into a document. All
 * other bytes of the document stay as they are: members that only the service knows, the forms of
 * numbers, and the order of the members. Pure.
 */
#include "edit.h"

#include <errno.h>
#include <string.h>

#include <base/utf8.h>

#include <json/reader.h>
#include "parse_object.h"
#include <json/splice.h>

enum {
	ACLS_MAX = 64 << 10, /* bytes of JSON; the kernel passes no longer extended attributes */
	USER_MAX = 255,	     /* bytes of the name of a user or group */
	EDIT_ARENA = 64 << 20,
};

/* ---- reading ---- */

static bool is_user(const char *name)
{
	const size_t n = strlen(name);
	if (n == 0 || n > USER_MAX || !utf8_valid(name, n))
		return false;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
			return false;
	return true;
}

static int parse_perms(const char *user, const json_t *perms, unsigned int *out, struct err *err)
{
	*out = 0;
	for (unsigned int i = 0; i < DOMAIN_PERMS; i++) {
		const json_t *perm = json_object_get(perms, domain_perm_names[i]);
		if (!json_is_boolean(perm))
			return err_set(err, -EINVAL, "user %s: %s: must be true or false", user,
				       domain_perm_names[i]);
		*out |= json_is_true(perm) ? 1U << i : 0;
	}
	if (json_object_size(perms) != DOMAIN_PERMS)
		return err_set(err, -EINVAL, "user %s: there is no such permission", user);
	return 0;
}

static int parse_users(struct arena *a, json_t *users, struct domain_info *out, struct err *err)
{
	const char *user;
	json_t *perms;
	const size_t n = json_object_size(users);
	out->acls = arena_array(a, n ? n : 1, sizeof(*out->acls));
	if (!out->acls)
		return err_no_memory(err);
	json_object_foreach(users, user, perms)
	{
		struct domain_acl *acl = &out->acls[out->nacls++];
		if (!is_user(user))
			return err_set(err, -EINVAL,
				       "the name of a user must have 1 to %d bytes of printable "
				       "UTF-8",
				       USER_MAX);
		if (!json_is_object(perms))
			return err_set(err, -EINVAL, "user %s: must be an object", user);
		const int rc = parse_perms(user, perms, &acl->perms, err);
		if (rc)
			return rc;
		acl->user = arena_strndup(a, user, strlen(user));
		if (!acl->user)
			return err_no_memory(err);
	}
	return 0;
}

int schema_acls_parse(const void *text, size_t n, struct arena *a, struct domain_info *out,
		      struct err *err)
{
	json_error_t why;
	*out = (struct domain_info){.owner = ""};
	if (n > ACLS_MAX)
		return err_set(err, -EINVAL, "more than %d bytes", ACLS_MAX);
	auto_json json_t *users = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
	if (!users && json_error_code(&why) == json_error_out_of_memory)
		return err_no_memory(err);
	if (!users)
		return err_set(err, -EINVAL, "JSON: %s (near byte %d)", why.text, why.position);
	if (!json_is_object(users))
		return err_set(err, -EINVAL, "must be an object with a member for each user");
	return parse_users(a, users, out, err);
}

/* ---- editing ---- */

static bool same_acls(const struct domain_info *a, const struct domain_info *b)
{
	if (a->nacls != b->nacls)
		return false;
	for (uint32_t i = 0; i < a->nacls; i++)
		if (a->acls[i].perms != b->acls[i].perms ||
		    strcmp(a->acls[i].user, b->acls[i].user) != 0)
			return false;
	return true;
}

/* Checks that the new document, when it is read back, differs from the old one in the list
 * alone. */
static int check(struct arena *a, const struct domain_info *old, const struct domain_info *acls,
		 const void *text, size_t n, struct err *err)
{
	struct domain_info now;
	const int rc = schema_domain_parse(a, text, n, &now, err);
	if (rc)
		return rc;
	return same_acls(&now, acls) && edit_same_text(now.root, old->root) &&
			       edit_same_text(now.owner, old->owner) &&
			       now.created_ns == old->created_ns &&
			       now.modified_ns == old->modified_ns
		       ? 0
		       : err_set(err, -EIO, "the document has an unusual form");
}

static int edit(struct arena *a, struct splice *s, const struct domain_info *acls,
		struct bytes *out, struct err *err)
{
	struct domain_info old;
	struct splice_object doc;
	const size_t start = out->len;
	int rc = schema_domain_parse(a, s->text, s->n, &old, err);
	if (!rc)
		rc = splice_scan(s->text, s->n, 0, a, &doc, err);
	if (rc)
		return rc;
	/* If the member occurs twice, the last one counts. */
	const struct splice_member *member = splice_find(&doc, "acls", NULL);
	splice_begin(s, !member && doc.n > 0);
	if (!member)
		write_key(&s->w, "acls");
	schema_emit_acls(&s->w, acls);
	splice_commit(s, member ? member->value : splice_end(&doc),
		      member ? member->end : splice_end(&doc));
	rc = splice_apply(s, out, err);
	return rc ? rc : check(a, &old, acls, out->data + start, out->len - start, err);
}

int schema_acls_edit(const void *text, size_t n, const struct domain_info *acls, struct bytes *out,
		     struct err *err)
{
	struct splice s;
	const size_t start = out->len;
	struct arena *a = arena_new(EDIT_ARENA);
	splice_init(&s, text, n);
	const int rc = a ? edit(a, &s, acls, out, err) : err_no_memory(err);
	splice_release(&s);
	arena_free(a);
	if (rc)
		out->len = start;
	return rc;
}
