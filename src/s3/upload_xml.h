/* SPDX-License-Identifier: Apache-2.0 */
/* The documents of uploads in parts. Pure. */
#ifndef S3_UPLOAD_XML_H
#define S3_UPLOAD_XML_H

#include <base/mem.h>
#include <hsmount/err.h>
#include <store/implement.h>

/* Gets the text of a child of the root element, which is "" if there is none. text has `room`
 * bytes. Fails with -EIO if the document is not valid, if it has two such children, or if the text
 * is too long, and with -ENOMEM. */
int s3_xml_element(const struct bytes *document, const char *name, char *text, size_t room);

/* Reads ListMultipartUploadsResult, the answer to a listing with this prefix. Uploads whose keys do
 * not begin with it, or are no valid keys, are left out. Fails with -EIO if the document is not
 * valid, or says that more follows and does not say after what, and with -ENOMEM. The caller frees
 * the arena, also after an error. */
int s3_uploads_parse(const void *bytes, size_t n, const char *prefix,
		     struct store_upload_page *page, struct err *err);

#endif
