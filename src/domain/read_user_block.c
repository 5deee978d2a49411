/* SPDX-License-Identifier: Apache-2.0 */
/* See read_user_block.h. */
#include <domain/read_user_block.h>

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

/* Takes the block from an earlier snapshot, which may be NULL. *taken becomes true if the block is
 * the same. */
static int take_earlier(struct domain *d, const struct domain *old, bool *taken, struct err *err)
{
	const struct user_block *b = tree_user_block(d->tree);
	const struct user_block *known = old ? tree_user_block(old->tree) : NULL;
	*taken = known && known->object && !known->is_unknown && known->size == b->size &&
		 old->schema == d->schema && strcmp(known->object, b->object) == 0 &&
		 strcmp(old->document->info.root, d->document->info.root) == 0;
	return *taken ? d->schema->take_user_block(d->tree, known->data, known->len, err) : 0;
}

/* Checks the document of the root group, because the bucket does not have the object that it names.
 * If another program has changed the block after the document was read, the domain has to be read
 * once more. */
static int look_at_root(struct domain *d, struct err *err)
{
	auto_request struct store_request *req = store_request_new(d->store, STORE_HEAD);
	const char *etag;
	if (!req)
		return err_no_memory(err);
	if (d->schema->object_key(d->space, 0, req->key, req->room, &etag) < 0)
		return err_set(err, -EIO, "the key of the root group cannot be made");
	store_run(d->store, req);
	const int rc = store_failure(&req->answer, err);
	if (!rc)
		d->is_torn |= store_absence(&req->answer) || !etag[0] ||
			      strcmp(etag, req->answer.meta.etag) != 0;
	return rc;
}

static int show_zeros(struct domain *d, const char *key, const struct err *why, struct err *err)
{
	struct user_block *b = arena_alloc(d->arena, sizeof(*b));
	if (!b)
		return err_set(err, -ENOMEM, "out of memory: the user block");
	*b = *tree_user_block(d->tree);
	b->is_unknown = true;
	tree_edit(d->tree, 0)->group.user_block = b;
	tree_note(d->tree, TREE_DAMAGE, "%s: the user block is shown as zeros: %s", key, why->msg);
	return 0;
}

static int take(struct domain *d, const struct store_request *req, struct err *err)
{
	struct err why = ERR_INIT;
	const struct bytes *body = &req->answer.body;
	int rc = store_failure(&req->answer, &why);
	if (rc && rc != -EFBIG) {
		err_copy(err, &why);
		return err_wrap(err, rc, "user block %s", req->key);
	}
	if (!rc && store_absence(&req->answer)) {
		rc = look_at_root(d, err);
		err_set(&why, -ENOENT, "there is no such object");
	} else if (!rc &&
		   d->schema->take_user_block(d->tree, body->data, body->len, &why) == -ENOMEM) {
		rc = err_set(err, -ENOMEM, "out of memory: the user block");
	} else {
		rc = 0;
	}
	return rc || !why.code ? rc : show_zeros(d, req->key, &why, err);
}

int domain_read_user_block(struct domain *d, const struct domain_hint *hint, struct err *err)
{
	static const struct err unsupported = {
		.msg = "a domain of this schema has no object for it"};
	const struct user_block *b = tree_user_block(d->tree);
	auto_request struct store_request *req = NULL;
	bool taken;
	if (!b || !b->object || (hint->plan && hint->plan->is_brief))
		return 0;
	if (!d->schema->take_user_block)
		return show_zeros(d, b->object, &unsupported, err);
	int rc = take_earlier(d, hint->previous, &taken, err);
	if (rc || taken)
		return rc;
	req = store_request_new(d->store, STORE_GET);
	if (!req)
		return err_no_memory(err);
	rc = d->schema->user_block_key(d->tree, req->key, req->room);
	if (rc < 0)
		return err_set(err, -EIO, "the key of the user block cannot be made");
	req->max = b->size;
	store_run(d->store, req);
	domain_note_failure(hint->plan, store_failure(&req->answer, NULL));
	rc = take(d, req, err);
	if (hint->plan)
		hint->plan->torn |= d->is_torn;
	return rc;
}
