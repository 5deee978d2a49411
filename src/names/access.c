/* SPDX-License-Identifier: Apache-2.0 */
/* Access control lists as permission bits and as JSON. Pure, any thread. */
#include <names/names.h>

#include <string.h>

#include <base/str.h>

char *names_acls_json(const struct domain_info *d)
{
	struct str out = {0};
	str_add(&out, "{");
	for (uint32_t i = 0; i < d->nacls; i++) {
		str_add(&out, i ? "," : "");
		str_add_json(&out, d->acls[i].user);
		for (unsigned int p = 0; p < DOMAIN_PERMS; p++)
			str_addf(&out, "%s\"%s\":%s", p ? "," : ":{", domain_perm_names[p],
				 d->acls[i].perms >> p & 1 ? "true" : "false");
		str_add(&out, "}");
	}
	str_add(&out, "}");
	return str_take(&out);
}

static const struct domain_acl *find_acl(const struct domain_info *d, const char *user)
{
	for (uint32_t i = 0; i < d->nacls; i++)
		if (strcmp(d->acls[i].user, user) == 0)
			return &d->acls[i];
	return NULL;
}

/* As in the service, an owner without an entry has the rights of `default`. */
static const struct domain_acl *owner_acl(const struct domain_info *d)
{
	const struct domain_acl *owner = d->owner && d->owner[0] ? find_acl(d, d->owner) : NULL;
	return owner ? owner : find_acl(d, "default");
}

unsigned int names_mode(const struct domain_info *d, bool is_dir, bool is_writable)
{
	const unsigned int writable = is_writable ? 0200 : 0;
	if (d->nacls == 0)
		return (is_dir ? 0555 : 0444) | writable;
	const struct domain_acl *others = find_acl(d, "default");
	const struct domain_acl *owner = owner_acl(d);
	unsigned int mode = 0;
	if (owner && owner->perms & DOMAIN_PERM_READ)
		mode |= is_dir ? 0500 : 0400;
	if (owner && owner->perms & (is_dir ? DOMAIN_PERM_CREATE : DOMAIN_PERM_UPDATE))
		mode |= writable;
	if (others && others->perms & DOMAIN_PERM_READ)
		mode |= is_dir ? 0055 : 0044;
	return mode;
}

unsigned int names_doc_mode(const struct names_doc *d, bool is_dir, bool is_writable)
{
	static const struct domain_info none;
	return names_mode(d->document ? &d->document->info : &none, is_dir, is_writable);
}
