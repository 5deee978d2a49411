/* SPDX-License-Identifier: Apache-2.0 */
/* See storage_sum.h. */
#include <storage/storage_sum.h>

#include <stdlib.h>
#include <string.h>

#include <base/checksum.h>
#include <base/mem.h>

int storage_sum_begin(const struct document_place *p, const struct storage *storage,
		      struct storage_sum *sum, struct err *err)
{
	*sum = (struct storage_sum){.storage = *storage};
	const int rc = storage_root_key(p, storage, sum->root, err);
	sum->is_known = !rc;
	return rc;
}

static bool counts(const struct storage_sum *sum, const char *key)
{
	const size_t n = strlen(sum->storage.prefix);
	return strncmp(key, sum->storage.prefix, n) == 0 &&
	       (strchr(key + n, '/') || strcmp(key, sum->root) == 0);
}

void storage_sum_add(struct storage_sum *sum, const char *key, const char *etag)
{
	if (!counts(sum, key))
		return;
	const uint32_t low = checksum_lookup3(key, strlen(key), 0);
	const uint32_t high = checksum_lookup3(etag, strlen(etag), low);
	sum->n++;
	sum->sum += (uint64_t)high << 32 | checksum_lookup3(etag, strlen(etag), high);
	sum->is_known &= etag[0] != '\0';
}

/* Lists a page. *after becomes the key after which the next one begins, on the heap, or NULL. */
static int add_page(const struct document_place *p, struct storage_sum *sum,
		    struct store_request *req, char **after, struct err *err)
{
	const struct store_page *page = &req->answer.page;
	store_request_reset(req, STORE_LIST);
	store_request_key(req, sum->storage.prefix);
	if (*after)
		store_request_start_after(req, *after);
	req->list.complete = true;
	req->cancelled = cancelled_by(p->cancelled);
	store_run(p->store, req);
	const int rc = store_failure(&req->answer, err);
	for (size_t i = 0; !rc && i < page->n; i++)
		storage_sum_add(sum, page->items[i].key, page->items[i].meta.etag);
	free(*after);
	*after = !rc && page->more ? strdup(page->next) : NULL;
	return rc || !page->more || *after ? rc : err_no_memory(err);
}

int storage_sum_is_there(const struct document_place *p, const struct storage_sum *sum,
			 struct err *err)
{
	auto_request struct store_request *req = store_request_new(p->store, STORE_LIST);
	auto_free char *after = NULL;
	struct storage_sum now = {.storage = sum->storage};
	if (!req)
		return err_no_memory(err);
	memcpy(now.root, sum->root, sizeof(now.root));
	int rc;
	do
		rc = add_page(p, &now, req, &after, err);
	while (!rc && after);
	return rc ? rc : now.n == sum->n && now.sum == sum->sum;
}
