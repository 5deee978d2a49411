/* SPDX-License-Identifier: Apache-2.0 */
/* The documents of uploads in parts. Pure. */
#ifndef S3_UPLOAD_XML_H
#define S3_UPLOAD_XML_H

#include <base/mem.h>

/* The text of a child of the root element; "" if there is none. text: `room` bytes. -EIO: the
 * document is not valid, has two of them, or the text is too long; -ENOMEM. */
int s3_xml_element(const struct bytes *document, const char *name, char *text, size_t room);

#endif
