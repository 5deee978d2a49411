/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether an object is absent if a 404 does not prove it: the answer to a HEAD has no body,
 * and a proxy may send a 404 without the service's error document. The evidence is a listing of the
 * keys that begin with the object's key.
 *
 *   the listing        the object is
 *   does not name it   absent
 *   names it           present: the 404 was wrong, and the request fails with EIO
 *   fails              unknown: the request fails like the listing
 */
#include "s3_internal.h"

#include "list_xml.h"

#include <errno.h>
#include <string.h>

/* The key itself is the least of these keys. */
static struct s3_list_query query_of(const char *key)
{
	return (struct s3_list_query){.prefix = key, .complete = true, .max = 2};
}

void s3_send_absence(struct s3_operation *op, void (*next)(struct s3_operation *op))
{
	const struct s3_list_query query = query_of(op->req->key);
	s3_send_list(op, &query, NULL, next);
}

int s3_absence_result(struct s3_operation *op)
{
	const char *key = op->req->key;
	struct err *err = &op->req->answer.err;
	const struct s3_list_query query = query_of(key);
	struct s3_list_result result;
	int rc = s3_read_list(op, &query, &result, err);
	const struct store_page *page = &result.page;
	if (rc == 0 && page->n == 0 && page->more)
		rc = err_set(err, -EIO,
			     "object %s: 404, and a listing does not show whether it exists", key);
	else if (rc == 0 && page->n && strcmp(page->items[0].key, key) == 0)
		rc = err_set(err, -EEXIST, "object %s: 404, but a listing names it", key);
	s3_list_release(&result);
	return rc;
}

static void after_listing(struct s3_operation *op)
{
	const int rc = s3_absence_result(op);
	struct err *err = &op->req->answer.err;
	if (rc == -EEXIST)
		err->code = -EIO;
	if (rc)
		s3_fail(op, err->code);
	else
		s3_absent(op, STORE_BY_LISTING);
}

void s3_confirm_absence(struct s3_operation *op)
{
	s3_send_absence(op, after_listing);
}
