/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The XML of S3 and STS answers, parsed by expat: elements that contain elements or a text. Depth
 * and the lengths of tags and texts are limited, and a document type declaration (entities) is
 * refused. Pure.
 */
#ifndef AWS_XML_H
#define AWS_XML_H

#include <stdbool.h>
#include <stddef.h>

#include <base/mem.h>
#include <hsmount/err.h>

enum { XML_DEPTH_MAX = 8, XML_NAME_MAX = 48, XML_TEXT_MAX = 8192 };

struct xml_path {
	unsigned int depth;			    /* of the current element; the root has 1 */
	char name[XML_DEPTH_MAX + 1][XML_NAME_MAX]; /* [1] is the root's; without namespaces */
	bool cut; /* at an element's end, true if its text was longer than XML_TEXT_MAX */
};

struct xml_handler {
	/* Either may be NULL. A non-zero return value stops the parser and becomes the result. text
	 * is the text of the element, n bytes and a NUL. It is "" if the element contains
	 * elements. */
	int (*start)(void *arg, const struct xml_path *at);
	int (*end)(void *arg, const struct xml_path *at, const char *text, size_t n);
	void *arg;
	bool cuts_texts; /* texts that are too long are cut; otherwise they are an error */
};

/* Returns 0, or the result of a handler that is not 0. Fails with -EBADMSG and the reason if the
 * document is not acceptable, and with -ENOMEM. */
int xml_walk(const void *bytes, size_t n, const struct xml_handler *handler, struct err *err);

/* Services copy the key or the prefix of a request into their answer, and a key may contain
 * characters that XML does not allow. Appends the document to *out, with such characters,
 * references to characters, and everything that is not ASCII replaced. Fails with -ENOMEM. */
enum { XML_REPLACEMENT = '?' };
int xml_make_valid(const char *bytes, size_t n, struct bytes *out);

#endif
