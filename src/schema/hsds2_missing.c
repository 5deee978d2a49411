/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that documents name and that no listing has shown. Most are remainders: their documents
 * have been deleted. But a program may have put an object after the listing, and then the document
 * that names it. So the store is asked for each of them. Pure.
 */
#include "hsds2_load.h"

#include <stdlib.h>

enum {
	MOST = TREE_MAX_OBJECTS, /* a listing shows at most as many */
	ASKED_MAX = 1024,	 /* more remainders than a domain has */
};

void hsds2_note_missing(struct hsds2_loader *l, const struct schema_id *id)
{
	struct hsds2_missing *m = &l->missing;
	if (!hsds2_is_of_domain(l, id) || m->n == MOST)
		return;
	if (m->n == m->room) {
		const uint32_t room = m->room ? 2 * m->room : 16;
		struct schema_id *ids = reallocarray(m->ids, room, sizeof(*ids));
		m->out_of_memory |= !ids;
		if (!ids)
			return;
		m->ids = ids;
		m->room = room;
	}
	m->ids[m->n++] = *id;
}

static int compare(const void *a, const void *b)
{
	const struct schema_id *x = a, *y = b;
	const int kinds = (x->kind > y->kind) - (x->kind < y->kind);
	return kinds ? kinds : memcmp(x->b, y->b, sizeof(x->b));
}

int hsds2_sort_missing(struct hsds2_loader *l, struct err *err)
{
	struct hsds2_missing *m = &l->missing;
	uint32_t n = 0;
	if (m->out_of_memory)
		return err_set(err, -ENOMEM, "out of memory: objects");
	if (m->n)
		qsort(m->ids, m->n, sizeof(*m->ids), compare);
	for (uint32_t i = 0; i < m->n; i++)
		if (n == 0 || compare(&m->ids[n - 1], &m->ids[i]))
			m->ids[n++] = m->ids[i];
	m->n = (uint32_t)min_u64(n, ASKED_MAX);
	return 0;
}

bool hsds2_request_missing(const struct hsds2_loader *l, uint32_t i, struct schema_request *req)
{
	req->op = SCHEMA_HEAD;
	return hsds2_object_key(&l->missing.ids[i], req->key, req->room) >= 0;
}

int hsds2_answer_missing(struct hsds2_loader *l, uint32_t i, const struct schema_answer *answer,
			 struct err *err)
{
	/* An entry that cannot be examined need not belong to the domain. */
	if (answer->code == -EACCES || answer->code == -ELOOP || answer->code == -ENOLINK)
		return 0;
	if (answer->code) {
		char id[SCHEMA_ID_MAX];
		schema_id_format(&l->missing.ids[i], id);
		err_copy(err, answer->err);
		return err_wrap(err, answer->code, "object %s", id);
	}
	l->hsds.base.is_torn |= !answer->absent;
	return answer->absent ? 0 : SCHEMA_ENOUGH;
}
