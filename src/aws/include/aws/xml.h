/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small XML of S3 and STS answers, over expat: elements that hold elements or a text. Bounded
 * in depth and in the lengths of tags and texts; a document type declaration (entities) is refused.
 * Pure.
 */
#ifndef AWS_XML_H
#define AWS_XML_H

#include <stdbool.h>
#include <stddef.h>

#include <hsmount/err.h>

enum { XML_DEPTH_MAX = 8, XML_NAME_MAX = 48, XML_TEXT_MAX = 8192 };

struct xml_place {
	unsigned int depth;			    /* of the element that ends; the root has 1 */
	char name[XML_DEPTH_MAX + 1][XML_NAME_MAX]; /* [1] is the root's; without a namespace */
	bool cut; /* at an end: its text was longer than XML_TEXT_MAX */
};

struct xml_handler {
	/* Either may be NULL; non-zero stops and becomes the result. text (of n bytes, with a NUL
	 * behind) is what the element held, "" for one that held elements. */
	int (*start)(void *arg, const struct xml_place *at);
	int (*end)(void *arg, const struct xml_place *at, const char *text, size_t n);
	void *arg;
	bool cuts_texts; /* that are too long, and goes on; else they are an error */
};

/* 0; -EBADMSG with the reason: not such a document; -ENOMEM; or what a handler returned. */
int xml_walk(const void *bytes, size_t n, const struct xml_handler *handler, struct err *err);

#endif
