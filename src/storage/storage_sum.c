/* SPDX-License-Identifier: Apache-2.0 */
/* See storage_sum.h. */
#include <storage/storage_sum.h>

#include <string.h>

#include <base/checksum.h>

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

int storage_sum_is_there(const struct document_place *p, const struct storage_sum *sum,
			 struct err *err)
{
	auto_request struct store_request *req = store_request_new(p->store, STORE_LIST);
	struct storage_sum now = {.storage = sum->storage};
	if (!req)
		return err_no_memory(err);
	memcpy(now.root, sum->root, sizeof(now.root));
	store_request_key(req, sum->storage.prefix);
	req->list.whole = true;
	req->list.complete = true;
	req->cancelled = cancelled_by(p->cancelled);
	store_run(p->store, req);
	const int rc = store_failure(&req->answer, err);
	for (size_t i = 0; !rc && i < req->answer.page.n; i++)
		storage_sum_add(&now, req->answer.page.items[i].key,
				req->answer.page.items[i].meta.etag);
	return rc ? rc : now.n == sum->n && now.sum == sum->sum;
}
