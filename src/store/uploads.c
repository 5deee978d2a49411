/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads in parts that were not finished: see store/store.h. */
#include <store/implement.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>

bool store_has_uploads(const struct store *s)
{
	while (s->inner)
		s = s->inner;
	return s->ops->list_uploads;
}

static int each_of_page(const struct store_upload_page *page, store_upload_fn *fn, void *ctx)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < page->n; i++)
		rc = fn(ctx, &page->v[i]);
	return rc;
}

int store_list_uploads(struct store *s, const char *prefix, struct store_upload_page *page,
		       struct err *err)
{
	while (s->inner && !s->ops->list_uploads)
		s = s->inner;
	return s->ops->list_uploads
		       ? s->ops->list_uploads(s, prefix, page, err)
		       : err_set(err, -EOPNOTSUPP, "the store has no uploads in parts");
}

int store_each_upload(struct store *s, const char *prefix, store_upload_fn *fn, void *ctx,
		      struct err *err)
{
	auto_free struct store_upload_page *page = calloc(1, sizeof(*page));
	int rc = page ? 0 : err_no_memory(err);
	for (bool more = true; !rc && more;) {
		rc = store_list_uploads(s, prefix, page, err);
		if (!rc)
			rc = each_of_page(page, fn, ctx);
		more = page->more;
		arena_free(page->arena);
		page->arena = NULL;
	}
	return rc;
}

int store_abort_upload(struct store *s, const char *key, const char *id, struct err *err)
{
	if (!store_key_ok(key))
		return err_set(err, -EINVAL, "upload of %.64s: no valid key", key);
	while (s->inner && !s->ops->abort_upload)
		s = s->inner;
	return s->ops->abort_upload
		       ? s->ops->abort_upload(s, key, id, err)
		       : err_set(err, -EOPNOTSUPP, "the store has no uploads in parts");
}
