/* SPDX-License-Identifier: Apache-2.0 */
/* See user_block.h. */
#include "user_block.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "domain_internal.h"

int user_block_of_file(struct source *file, uint64_t size, struct arena *a,
		       const struct user_block **out, struct err *err)
{
	struct user_block *b;
	*out = NULL;
	if (size > USER_BLOCK_MAX)
		return user_block_new(a, size, NULL, 0, &b, err);
	auto_free uint8_t *bytes = size ? malloc((size_t)size) : NULL;
	if (size && !bytes)
		return err_set(err, -ENOMEM, "out of memory: a user block of %" PRIu64 " bytes",
			       size);
	int rc = size ? source_read(file, 0, bytes, (size_t)size, err) : 0;
	if (!rc && size)
		rc = user_block_new(a, size, bytes, (size_t)size, &b, err);
	if (!rc && size)
		*out = b;
	return rc;
}

/* The block is the one that an earlier snapshot has read. */
static int take_earlier(struct domain *d, const struct domain *old, bool *taken, struct err *err)
{
	const struct user_block *b = tree_user_block(d->tree);
	const struct user_block *known = old ? tree_user_block(old->tree) : NULL;
	*taken = known && known->object && known->len > 0 && old->schema == d->schema &&
		 strcmp(known->object, b->object) == 0 &&
		 strcmp(old->document->info.root, d->document->info.root) == 0;
	return *taken ? d->schema->take_user_block(d->tree, known->data, known->len, err) : 0;
}

static int take(struct domain *d, const struct store_request *req, struct err *err)
{
	struct err why = ERR_INIT;
	const struct bytes *body = &req->answer.body;
	int rc = store_failure(&req->answer, err);
	if (rc && rc != -EFBIG)
		return err_wrap(err, rc, "user block %s", req->key);
	if (store_absence(&req->answer)) {
		/* The document may be older than a change of the block, so it is read again. */
		d->is_torn = true;
		err_set(&why, -ENOENT, "there is no such object");
	} else if (rc) {
		err_copy(&why, err);
	} else if (d->schema->take_user_block(d->tree, body->data, body->len, &why) == -ENOMEM) {
		return err_set(err, -ENOMEM, "out of memory: the user block");
	}
	if (why.code)
		tree_note(d->tree, "%s: the user block is shown as zeros: %s", req->key, why.msg);
	return 0;
}

int domain_read_user_block(struct domain *d, const struct domain_hint *hint, struct err *err)
{
	const struct user_block *b = tree_user_block(d->tree);
	auto_request struct store_request *req = NULL;
	bool taken;
	if (!b || !b->object || (hint->plan && hint->plan->is_brief) || !d->schema->take_user_block)
		return 0;
	int rc = take_earlier(d, hint->previous, &taken, err);
	if (rc || taken)
		return rc;
	req = store_request_new(d->store, STORE_GET);
	if (!req)
		return err_set(err, -ENOMEM, "out of memory");
	rc = d->schema->user_block_key(d->tree, req->key, req->room);
	if (rc < 0)
		return err_set(err, -EIO, "the key of the user block cannot be made");
	req->max = b->size;
	store_run(d->store, req);
	domain_note_failure(hint->plan, store_failure(&req->answer, NULL));
	return take(d, req, err);
}
