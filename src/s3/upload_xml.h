/* SPDX-License-Identifier: Apache-2.0 */
/* The documents of uploads in parts. Pure. */
#ifndef S3_UPLOAD_XML_H
#define S3_UPLOAD_XML_H

#include <base/mem.h>

/* Gets the text of a child of the root element, which is "" if there is none. text has `room`
 * bytes. Fails with -EIO if the document is not valid, if it has two such children, or if the text
 * is too long, and with -ENOMEM. */
int s3_xml_element(const struct bytes *document, const char *name, char *text, size_t room);

#endif
