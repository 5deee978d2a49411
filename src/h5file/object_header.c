/* SPDX-License-Identifier: Apache-2.0 */
/* Finds messages and their bodies. See object_header.h. */
#include "object_header.h"

#include <errno.h>

int header_body(struct h5file *f, const struct header *h, const struct h5_msg *m,
		struct cursor *body, uint64_t *committed, struct err *err)
{
	uint64_t ignored;
	uint64_t *where = committed ? committed : &ignored;
	struct cursor c = cursor_of(m->body, m->len);
	*where = H5_UNDEF;
	if (m->flags & H5_MSG_SHARED)
		return h5_shared_resolve(f->shared, (enum h5_msg_type)m->type, &c, h->scratch, body,
					 where, err);
	*body = c;
	return 0;
}

int header_find(struct h5file *f, const struct header *h, enum h5_msg_type type,
		struct cursor *body, struct err *err)
{
	const struct h5_msg *m = h5_ohdr_find(&h->h, type);
	const int rc = m ? header_body(f, h, m, body, NULL, err) : 0;
	return rc ? rc : m != NULL;
}

int header_type(struct h5file *f, const struct header *h, const struct dtype **type,
		uint64_t *committed, struct err *err)
{
	const struct h5_msg *m = h5_ohdr_find(&h->h, H5_MSG_DATATYPE);
	struct cursor body;
	if (!m)
		return err_set(err, -EIO, "the object header has no datatype");
	int rc = header_body(f, h, m, &body, committed, err);
	return rc ? rc : h5_dtype_decode(&f->file, &body, tree_arena(f->tree), type, err);
}
