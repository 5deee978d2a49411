/* SPDX-License-Identifier: Apache-2.0 */
/* Shared documents of domains and folders: each is one block of memory with a reference count. Any
 * thread. */
#include <schema/schema.h>

#include <stdlib.h>
#include <string.h>

static size_t size_of(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

/* Copies text to *at and moves *at past the copy. */
static const char *put(char **at, const char *text)
{
	const size_t n = size_of(text);
	char *copy = *at;
	if (!text)
		return NULL;
	memcpy(copy, text, n);
	*at += n;
	return copy;
}

struct schema_document *schema_document_new(const struct domain_info *info, const char *etag)
{
	size_t n = sizeof(struct schema_document) + info->nacls * sizeof(*info->acls);
	const size_t texts = n;
	n += size_of(info->root) + size_of(info->owner) + size_of(etag);
	for (uint32_t i = 0; i < info->nacls; i++)
		n += size_of(info->acls[i].user);
	struct schema_document *d = malloc(n);
	if (!d)
		return NULL;
	char *at = (char *)d + texts;
	atomic_init(&d->refs, 1);
	d->memory = (uint32_t)n;
	d->schema = NULL;
	d->size = 0;
	d->info = *info;
	d->info.acls = (struct domain_acl *)(d + 1);
	d->info.root = put(&at, info->root);
	d->info.owner = put(&at, info->owner);
	d->etag = put(&at, etag);
	for (uint32_t i = 0; i < info->nacls; i++)
		d->info.acls[i] = (struct domain_acl){
			.user = put(&at, info->acls[i].user),
			.perms = info->acls[i].perms,
		};
	return d;
}

struct schema_document *schema_document_ref(struct schema_document *d)
{
	atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
	return d;
}

void schema_document_unref(struct schema_document *d)
{
	/* Acquire and release: the thread that frees the document sees all earlier accesses of
	 * others. */
	if (d && atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) == 1)
		free(d);
}

int schema_storage_of_root(const struct schema_ops *schema, const char *root, struct storage *out,
			   struct err *err)
{
	*out = (struct storage){.schema = NULL};
	const int rc = schema->storage->of_root(root, out, err);
	out->schema = rc ? NULL : schema;
	return rc;
}

struct storage schema_storage_of_number(const struct schema_ops *schema, uint64_t number)
{
	struct storage s = {.schema = schema};
	schema->storage->of_number(number, &s);
	return s;
}

bool schema_storage_of_prefix(const struct schema_ops *schema, const char *prefix,
			      struct storage *out)
{
	*out = schema_storage_of_number(schema, schema->storage->number(prefix));
	return strcmp(out->prefix, prefix) == 0;
}

bool schema_storage_of(const struct schema_document *d, struct storage *out)
{
	const bool has_storage = d && d->schema && d->schema->storage && d->info.root;
	*out = (struct storage){.schema = NULL};
	return has_storage && !schema_storage_of_root(d->schema, d->info.root, out, NULL);
}
