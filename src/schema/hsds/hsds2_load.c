/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader of schema v2. The domain's document names the root group, whose id determines the
 * prefix of all keys of the domain. A load has two rounds:
 *
 *   LIST     lists all keys below the prefix, up to a limit. If there are not more keys, this
 *            also shows which chunks are stored. At the same time, a page of each of three listings
 *            with a delimiter shows the objects. If there are more objects than these pages have,
 *            they are listed in ranges side by side (WALK, hsds2_walk.c);
 *   READ     reads the documents of all objects.
 *
 * If documents name objects that the listings do not show, another round (MISSING) asks the store
 * whether they exist. The load is torn if one of them exists or cannot be asked for, or if a
 * document has another version than listed: the domain may have changed between the listings and
 * the documents. If the earlier load has all documents in the same versions, MISSING is not
 * necessary, because the listings are newer than the documents.
 *
 * If the domain is to be loaded only if it can be listed whole, LIST is only the first listing.
 *
 * If there is an earlier load, a round before LIST finds out whether the domain has changed:
 *
 *   COMPARE  lists all keys below the prefix. A domain that was listed whole before has not changed
 *            if all keys, sizes, times and versions are equal; if the listing fails, the domain
 *            counts as changed. A domain with more keys than the limit is listed only if it has
 *            many objects, and only up to a few keys for each object, because these pages are
 *            cheaper than a HEAD for each object. After the first page, the rest is listed in
 *            ranges side by side (REST). The keys of the earlier load are divided so that each
 *            range has about one page;
 *   HEADS    sends a HEAD for each document whose version COMPARE does not show to be equal. It
 *            sends one for every document if there was no COMPARE, or if its listing failed and
 *            the domain was not listed whole before. If the versions of all reachable documents
 *            are equal, and no missing one exists, the domain has not changed.
 *
 * If the domain has changed, the listing of COMPARE replaces that of LIST.
 *
 * If this process has put documents since the earlier load, the domain is compared with the state
 * that they should have produced (hsds2_expect.c). If the store confirms this state, the objects
 * are known without LIST, and READ makes no request for texts that are kept. Pure.
 */
#include "hsds2_load.h"

#include <stdlib.h>

enum {
	MANY_OBJECTS = 256,
	FEW_OBJECTS = 256,   /* with fewer objects, HEADs are as fast as a few pages of a listing */
	KEYS_PER_OBJECT = 4, /* with more keys, HEADs are cheaper than the listing */
};

static struct hsds2_loader *self(struct schema_loader *l)
{
	return (struct hsds2_loader *)l;
}

/* ---- stages ---- */

static uint32_t objects_of(const struct hsds_space *old)
{
	uint32_t n;
	hsds_compared(old, &n);
	return n;
}

/* Returns the limit of the number of keys in a listing for a comparison. */
static uint32_t keys_of(const struct hsds_space *old)
{
	return KEYS_PER_OBJECT * objects_of(old);
}

/* If the earlier listing of all keys failed for a reason that may be temporary, the next open lists
 * again, because whether a domain counts as listed whole must not depend on an earlier failure. */
static bool is_compared_whole(const struct hsds_space *old)
{
	return old->base.listed_whole || (old->listing_code && old->listing_code != -E2BIG);
}

static enum hsds2_stage first_stage(struct hsds2_loader *l)
{
	const struct hsds_space *old = l->hsds.previous;
	if (!old)
		return hsds2_walk_by_pages(l) ? HSDS2_WALK : HSDS2_LIST;
	if (is_compared_whole(old) || objects_of(old) >= FEW_OBJECTS)
		return HSDS2_COMPARE;
	hsds_compare_all(&l->hsds);
	return HSDS2_HEADS;
}

/* Returns true if the store has confirmed all that is expected, so that no listing is needed. If an
 * object was missing, a listing is needed, because the object may exist now. */
static bool is_as_expected(const struct hsds2_loader *l)
{
	return l->expected && !l->hsds.changed && !hsds_has_missing(l->hsds.previous);
}

static enum hsds2_stage next_stage(struct hsds2_loader *l)
{
	switch (l->stage) {
	case HSDS2_START:
		return first_stage(l);
	case HSDS2_LIST:
		return l->walk.needed ? HSDS2_WALK : HSDS2_READ;
	case HSDS2_WALK:
		if (hsds2_walk_goes_on(l))
			return HSDS2_WALK;
		return hsds2_walk_is_void(l) ? HSDS2_LIST : HSDS2_READ;
	case HSDS2_READ:
		return l->hsds.fresh && l->missing.n ? HSDS2_MISSING : HSDS2_END;
	case HSDS2_MISSING:
	case HSDS2_END:
		return HSDS2_END;
	case HSDS2_COMPARE:
		if (l->ranges.n)
			return HSDS2_REST;
		/* fall through */
	case HSDS2_REST:
		if (l->hsds.nheads)
			return HSDS2_HEADS;
		break;
	case HSDS2_HEADS:
		break;
	}
	if (is_as_expected(l))
		return HSDS2_READ;
	if (l->hsds.changed || l->hsds.base.load.reload || l->expected)
		return l->nfound ? HSDS2_READ : HSDS2_LIST;
	l->hsds.base.same = true;
	return HSDS2_END;
}

static int go_on_without_listing(const struct schema_load *load, struct err *err)
{
	if (load->whole_only)
		return err_set(err, -E2BIG, "not all keys of the domain can be listed");
	return load->listed ? load->listed(load->ctx, NULL) : 0;
}

/* Called when the objects are known from the ranges of a listing. */
static int end_walk(struct hsds2_loader *l, struct err *err)
{
	l->hsds.base.has_pages = !l->walk.delimited;
	if (!l->walk.by_pages)
		return 0; /* LIST has noticed that there are too many keys */
	l->hsds.space->listing_code = -E2BIG;
	return go_on_without_listing(&l->hsds.base.load, err);
}

int hsds2_round(struct schema_loader *base, uint32_t *n, struct err *err)
{
	struct hsds2_loader *l = self(base);
	int rc = 0;
	const bool walked = l->stage == HSDS2_WALK;
	l->stage = next_stage(l);
	if (walked && l->stage == HSDS2_READ)
		rc = end_walk(l, err);
	switch (l->stage) {
	case HSDS2_COMPARE:
		*n = 1;
		break;
	case HSDS2_REST:
		*n = l->ranges.n;
		break;
	case HSDS2_HEADS:
		*n = l->hsds.nheads;
		break;
	case HSDS2_LIST:
		*n = 1 + (l->hsds.base.load.whole_only ? 0 : HSDS2_OBJECT_PREFIXES);
		break;
	case HSDS2_WALK:
		rc = hsds2_walk_round(l, n, err);
		break;
	case HSDS2_READ:
		if (!rc && is_as_expected(l))
			rc = hsds2_take_expected(l, err);
		if (!rc)
			rc = hsds2_number_found(l, err);
		*n = l->hsds.space->n;
		l->hsds.base.has_many = *n >= MANY_OBJECTS;
		break;
	case HSDS2_MISSING:
		hsds2_sort_missing(l);
		*n = l->missing.n;
		break;
	case HSDS2_START:
	case HSDS2_END:
		*n = 0;
		break;
	}
	return rc;
}

/* ---- listings ---- */

static bool request_whole(const struct hsds2_loader *l, uint32_t limit, struct schema_request *req)
{
	req->op = SCHEMA_LIST;
	req->limit = limit;
	return hsds2_storage_prefix(&l->hsds.space->root, req->key, req->room) >= 0;
}

static bool request_compare(const struct hsds2_loader *l, struct schema_request *req)
{
	const struct hsds_space *old = l->hsds.previous;
	req->is_page = !is_compared_whole(old);
	return request_whole(l, req->is_page ? keys_of(old) : l->hsds.base.load.list_limit, req);
}

static bool request_rest(const struct hsds2_loader *l, uint32_t i, struct schema_request *req)
{
	const struct hsds2_ranges *r = &l->ranges;
	const uint32_t least = 2 * KEYS_PER_OBJECT * HSDS2_RANGE;
	req->after = i ? r->ends[i - 1] : r->after;
	req->until = i + 1 < r->n ? r->ends[i] : NULL;
	return request_whole(l, (uint32_t)max_u64(least, keys_of(l->hsds.previous) / r->n), req);
}

/* Called if a part of the listing cannot be used. Unless the tree is loaded in any case, the
 * documents are compared one by one. */
static int compare_all(struct hsds2_loader *l)
{
	l->nfound = 0;
	if (l->hsds.base.load.reload)
		l->hsds.changed = true;
	else
		hsds_compare_all(&l->hsds);
	return SCHEMA_ENOUGH;
}

/* Takes a part of the listing. is_last says that no part follows. */
static int take_part(struct hsds2_loader *l, const struct schema_answer *answer, bool is_last,
		     struct err *err)
{
	const bool is_all = is_last && !l->ranges.n;
	int rc = is_all ? 0 : hsds2_take_whole(l, answer, err);
	if (rc == -E2BIG)
		return compare_all(l);
	l->nlisted += answer->nitems;
	if (!rc && l->hsds.base.load.reload)
		l->hsds.changed = true;
	else if (!rc)
		rc = hsds2_compare(l, answer, is_last, err);
	if (!rc && is_all && (l->hsds.changed || l->hsds.nheads))
		rc = hsds2_take_whole(l, answer, err);
	/* There are so few keys that LIST can list the domain whole. */
	if (is_last && !is_all && l->nlisted <= l->hsds.base.load.list_limit)
		l->nfound = 0;
	return rc;
}

static int answer_compare(struct hsds2_loader *l, const struct schema_answer *answer,
			  struct err *err)
{
	const struct hsds_space *old = l->hsds.previous;
	if (answer->code && old->base.listed_whole) {
		l->hsds.changed = true;
		return 0;
	}
	if (answer->code || (answer->next && answer->nitems >= keys_of(old)))
		return compare_all(l);
	const int rc = take_part(l, answer, !answer->next, err);
	return rc || !answer->next ? rc : hsds2_divide(l, answer->next, err);
}

static int answer_rest(struct hsds2_loader *l, uint32_t i, const struct schema_answer *answer,
		       struct err *err)
{
	if (answer->code || l->nlisted + answer->nitems > keys_of(l->hsds.previous))
		return compare_all(l);
	return take_part(l, answer, i + 1 == l->ranges.n, err);
}

/* Makes the request for the i-th listing. The first one is that of all keys. */
static bool request_listing(const struct hsds2_loader *l, uint32_t i, struct schema_request *req)
{
	if (i == 0)
		return request_whole(l, l->hsds.base.load.list_limit, req);
	req->op = SCHEMA_LIST;
	req->delimit = true;
	req->is_page = true;
	req->limit = TREE_MAX_OBJECTS;
	return hsds2_object_prefix(&l->hsds.space->root, i - 1, req->key, req->room) >= 0;
}

static int answer_listing(struct hsds2_loader *l, uint32_t i, const struct schema_answer *answer,
			  struct err *err)
{
	struct schema_request req = {.key = l->hsds.key, .room = sizeof(l->hsds.key)};
	request_listing(l, i, &req);
	if (i == 0)
		l->hsds.space->listing_code = answer->code;
	/* Then the other listings show the objects, and chunks are looked up one by one. */
	if (i == 0 && schema_listing_is_optional(answer->code))
		return go_on_without_listing(&l->hsds.base.load, err);
	if (i > 0 && !l->hsds.space->listing_code)
		return 0;
	if (answer->code) {
		err_copy(err, answer->err);
		return err_wrap(err, answer->code, "listing %s", l->hsds.key);
	}
	if (i == 0)
		return hsds2_take_whole(l, answer, err);
	hsds2_walk_note(l, i - 1, answer);
	return hsds2_take_listed(l, answer, true, err);
}

/* ---- ops ---- */

bool hsds2_request(struct schema_loader *base, uint32_t i, struct schema_request *req)
{
	struct hsds2_loader *l = self(base);
	switch (l->stage) {
	case HSDS2_COMPARE:
		return request_compare(l, req);
	case HSDS2_REST:
		return request_rest(l, i, req);
	case HSDS2_HEADS:
		return hsds_request_head(&l->hsds, i, req);
	case HSDS2_LIST:
		return request_listing(l, i, req);
	case HSDS2_WALK:
		return hsds2_walk_request(l, i, req);
	case HSDS2_READ:
		return hsds_request_document(&l->hsds, i, req);
	case HSDS2_MISSING:
		return hsds2_request_missing(l, i, req);
	case HSDS2_START:
	case HSDS2_END:
		break;
	}
	return false;
}

int hsds2_answer(struct schema_loader *base, uint32_t i, const struct schema_answer *answer,
		 struct err *err)
{
	struct hsds2_loader *l = self(base);
	if (!answer && l->stage != HSDS2_READ)
		return err_set(err, -EIO, "the key of an object would be too long");
	switch (l->stage) {
	case HSDS2_COMPARE:
		return answer_compare(l, answer, err);
	case HSDS2_REST:
		return answer_rest(l, i, answer, err);
	case HSDS2_HEADS:
		return hsds_answer_head(&l->hsds, i, answer, err);
	case HSDS2_LIST:
		return answer_listing(l, i, answer, err);
	case HSDS2_WALK:
		return hsds2_walk_answer(l, i, answer, err);
	case HSDS2_READ:
		return hsds_answer_document(&l->hsds, i, answer, err);
	case HSDS2_MISSING:
		return hsds2_answer_missing(l, answer);
	case HSDS2_START:
	case HSDS2_END:
		break;
	}
	return 0;
}

static uint32_t number_of(void *loader, const struct schema_id *id)
{
	struct hsds2_loader *l = loader;
	const uint32_t number = hsds_number(l->hsds.space, id);
	if (number == OBJECT_NONE && l->only_expected)
		l->hsds.base.incomplete = true;
	else if (number == OBJECT_NONE)
		hsds2_note_missing(l, id);
	return number;
}

int hsds2_loader_new(const struct schema_load *load, struct schema_loader **out, struct err *err)
{
	struct hsds_loader *l;
	int rc = hsds_loader_new(load, sizeof(struct hsds2_loader), &l, err);
	if (rc)
		return rc;
	l->number = number_of;
	rc = hsds2_expect((struct hsds2_loader *)l, err);
	if (rc)
		hsds2_loader_free(&l->base);
	*out = rc ? NULL : &l->base;
	return rc;
}

void hsds2_loader_free(struct schema_loader *base)
{
	struct hsds2_loader *l = self(base);
	if (!l)
		return;
	free(l->found);
	free(l->suspects);
	free(l->seen);
	bytes_release(&l->missing.bytes);
	hsds2_walk_release(&l->walk);
	arena_free(l->ranges.arena);
	arena_free(l->expected);
	free(l);
}
