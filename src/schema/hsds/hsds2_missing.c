/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that documents name and that no listing has shown. Most of them are remainders: their
 * documents have been deleted. But a program may have put an object after the listing, and then the
 * document that names it. So the store is asked for each of them. If that is not possible, or there
 * are too many, the domain is loaded again. Then its listings are newer than the documents. Pure.
 */
#include "hsds2_load.h"

#include <stdlib.h>

enum {
	MOST = TREE_MAX_OBJECTS, /* a listing shows at most as many objects */
	ASKED_MAX = 1024,	 /* with more objects, another listing is cheaper */
};

void hsds2_note_missing(struct hsds2_loader *l, const struct schema_id *id)
{
	struct hsds2_missing *m = &l->missing;
	m->too_many |= m->n == MOST;
	if (!hsds2_is_of_domain(l, id) || m->n == MOST)
		return;
	const int rc = bytes_append(&m->bytes, id, sizeof(*id));
	m->too_many |= rc != 0;
	m->n += !rc;
	m->ids = (void *)m->bytes.data;
}

static int compare(const void *a, const void *b)
{
	const struct schema_id *x = a, *y = b;
	const int kinds = (x->kind > y->kind) - (x->kind < y->kind);
	return kinds ? kinds : memcmp(x->b, y->b, sizeof(x->b));
}

void hsds2_sort_missing(struct hsds2_loader *l)
{
	struct hsds2_missing *m = &l->missing;
	uint32_t n = 0;
	qsort(m->ids, m->n, sizeof(*m->ids), compare);
	for (uint32_t i = 0; i < m->n; i++)
		if (n == 0 || compare(&m->ids[n - 1], &m->ids[i]))
			m->ids[n++] = m->ids[i];
	m->too_many |= n > ASKED_MAX;
	l->hsds.base.is_torn |= m->too_many;
	m->n = m->too_many ? 0 : n;
	m->bytes.len = m->n * sizeof(*m->ids);
}

bool hsds2_request_missing(const struct hsds2_loader *l, uint32_t i, struct schema_request *req)
{
	req->op = SCHEMA_HEAD;
	return hsds2_object_key(&l->missing.ids[i], req->key, req->room) >= 0;
}

int hsds2_answer_missing(struct hsds2_loader *l, const struct schema_answer *answer)
{
	const bool is_torn = answer->code || !answer->absent;
	l->hsds.base.is_torn |= is_torn;
	return is_torn ? SCHEMA_ENOUGH : 0;
}
