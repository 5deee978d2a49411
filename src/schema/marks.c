/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises domains that a listing shows (struct schema_mark). Pure. */
#include <schema/schema.h>

#include <string.h>

/* Finds the i-th mark of all schemas. The marks of a schema follow those of schemas before it. */
static const char *mark_at(const struct schema_ops *const *schemas, unsigned int i,
			   const struct schema_ops **schema)
{
	for (; *schemas; schemas++)
		for (const char *const *mark = (*schemas)->marks; mark && *mark; mark++)
			if (i-- == 0) {
				*schema = *schemas;
				return *mark;
			}
	return NULL;
}

const char *schema_mark_name(const struct schema_ops *const *schemas, unsigned int i)
{
	const struct schema_ops *schema;
	return mark_at(schemas, i, &schema);
}

/* Returns the rank of a mark, or 0 if the name is no mark. */
static unsigned int rank_of(const struct schema_ops *const *schemas, const char *name,
			    const struct schema_ops **schema)
{
	const char *mark;
	for (unsigned int i = 0; (mark = mark_at(schemas, i, schema)); i++)
		if (strcmp(mark, name) == 0)
			return i + 1;
	return 0;
}

bool schema_mark_add(const struct schema_ops *const *schemas, const char *name,
		     struct schema_mark *mark)
{
	const struct schema_ops *schema = NULL;
	const unsigned int rank = rank_of(schemas, name, &schema);
	if (!rank || (mark->schema && mark->rank <= rank))
		return false;
	*mark = (struct schema_mark){.schema = schema, .rank = rank};
	return true;
}

bool schema_is_mark(const struct schema_ops *const *schemas, const char *key)
{
	const char *slash = strrchr(key, '/');
	const struct schema_ops *schema;
	return rank_of(schemas, slash ? slash + 1 : key, &schema);
}

struct schema_document *schema_mark_document(const struct schema_mark *mark, const char *name,
					     const char *etag, int64_t mtime_ns, uint64_t size)
{
	const struct domain_info info = {
		.root = name, .owner = "", .created_ns = mtime_ns, .modified_ns = mtime_ns};
	struct schema_document *d = schema_document_new(&info, etag);
	if (d) {
		d->schema = mark->schema;
		d->size = size;
	}
	return d;
}
