/* SPDX-License-Identifier: Apache-2.0 */
/* Is a model still what the bucket holds? Answered by versions (ETags), without reading bodies. */
#include <model/model.h>

#include <errno.h>
#include <string.h>

#include "model_internal.h"

enum { HEADS_AT_ONCE = 1024 };

static int changed_domain(struct model *m, struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	struct store_meta meta = {0};

	if (m->schema->domain_key(m->path, key, sizeof(key)) < 0)
		return err_set(err, -ENAMETOOLONG, "the path is too long for a key");
	int rc = store_head(m->store, key, &meta, err);
	if (rc == -ENOENT)
		return 1;
	if (rc)
		return err_wrap(err, rc, "%s", key);
	return strcmp(meta.etag, m->domain_etag) != 0;
}

static int changed_listing(struct model *m, struct err *err)
{
	auto_page struct store_page page = {0};
	int rc = store_list_all(m->store, m->storage, false, MODEL_LISTING, &page, err);

	if (rc == -E2BIG)
		return 1;
	if (rc)
		return err_wrap(err, rc, "listing %s", m->storage);
	return model_listing_digest(m, &page) != m->listing_digest;
}

static int changed_some(struct model *m, uint32_t first, uint32_t n, struct err *err)
{
	auto_free char *keys = calloc(n, SCHEMA_KEY_MAX + 1);
	auto_free struct store_get *reqs = calloc(n, sizeof(*reqs));
	auto_free struct store_get_result *results = calloc(n, sizeof(*results));
	int changed = 0;

	if (!keys || !reqs || !results)
		return err_set(err, -ENOMEM, "no memory for %u requests", n);
	for (uint32_t i = 0; i < n; i++) {
		char *key = keys + (size_t)i * (SCHEMA_KEY_MAX + 1);

		if (m->schema->object_key(&m->entries[m->order[first + i]].id, key,
					  SCHEMA_KEY_MAX + 1) < 0)
			return err_set(err, -EIO, "an object's id makes no key");
		reqs[i] = (struct store_get){.op = STORE_HEAD, .key = key};
	}
	int rc = store_get_many(m->store, reqs, n, results);
	if (rc)
		return err_set(err, rc, "no memory for %u requests", n);
	for (uint32_t i = 0; i < n; i++) {
		const char *etag = m->entries[m->order[first + i]].etag;

		if (results[i].code == -ENOENT) {
			changed = 1;
		} else if (results[i].code && !changed) {
			err_copy(err, &results[i].err);
			changed = err_wrap(err, results[i].code, "%s", reqs[i].key);
		} else if (!results[i].code && strcmp(results[i].meta.etag, etag) != 0) {
			changed = 1;
		}
		bytes_release(&results[i].body);
	}
	return changed;
}

int model_changed(struct model *m, struct err *err)
{
	int changed = changed_domain(m, err);

	if (!changed && m->listed_whole)
		changed = changed_listing(m, err);
	for (uint32_t i = 0; !changed && !m->listed_whole && i < m->count; i += HEADS_AT_ONCE)
		changed = changed_some(m, i, (uint32_t)min_u64(HEADS_AT_ONCE, m->count - i), err);
	return changed < 0 ? err_wrap(err, changed, "domain /%s", m->path) : changed;
}
