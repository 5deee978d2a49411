/* SPDX-License-Identifier: Apache-2.0 */
/* See members.h. */
#include "members.h"

#include <errno.h>
#include <stdio.h>

int members_report(const struct members *m, const char *what, int rc, struct err *err)
{
	if (!is_local(rc) || m->is_search)
		return rc;
	err_wrap(err, rc, "%s", what);
	h5file_report(m->f, m->h->number, err);
	err_clear(err);
	return 0;
}

int members_leave_out(const struct members *m, int rc, struct err *err)
{
	char what[32];
	snprintf(what, sizeof(what), "%s is left out", m->one);
	return members_report(m, what, rc, err);
}

int members_compact(const struct members *m, uint8_t type, members_fn fn, void *ctx,
		    struct err *err)
{
	int rc = 0;
	for (uint32_t i = 0; !rc && i < m->h->h.n; i++) {
		const struct h5_msg *msg = &m->h->h.msgs[i];
		struct cursor body;
		if (msg->type != type)
			continue;
		rc = header_body(m->f, m->h, msg, &body, NULL, err);
		rc = rc ? members_leave_out(m, rc, err) : fn(ctx, msg, &body, err);
	}
	return rc;
}

int members_dense(struct members *m, uint64_t heap, uint64_t names, enum h5_bt2_type type,
		  h5_bt2_side_fn side, h5_bt2_fn fn, void *ctx, struct err *err)
{
	if (names == H5_UNDEF)
		return err_set(err, -EIO, "%s is dense, without an index of names", m->one);
	int rc = h5_fheap_open(&m->f->file, heap, &m->heap, err);
	if (!rc && !m->is_search)
		h5_fheap_advise(m->heap);
	if (!rc)
		rc = h5_bt2_walk_range(&m->f->file, names, type, side, fn, ctx, err);
	h5_fheap_close(m->heap);
	m->heap = NULL;
	return rc;
}

static int count_record(void *ctx, const uint8_t *record, uint16_t record_size, struct err *err)
{
	struct members *m = ctx;
	m->indexed++;
	return 0;
}

int members_count_corders(struct members *m, uint64_t corders, enum h5_bt2_type type, bool *is_read,
			  struct err *err)
{
	*is_read = m->f->claim_orders && corders != H5_UNDEF && !m->is_search;
	return *is_read ? h5_bt2_walk(&m->f->file, corders, type, count_record, m, err) : 0;
}
