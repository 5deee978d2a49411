/* SPDX-License-Identifier: Apache-2.0 */
/* A domain as the service stores it: see content.h for its objects. */
#ifndef SIM_TEMPLATE_H
#define SIM_TEMPLATE_H

#include <stdint.h>

#include <base/str.h>
#include <store/store.h>

#include "content.h"

struct template
{
	const char *path;
	uint8_t storage;   /* the digits of its ids follow from this number */
	uint64_t uid, tag; /* attributes of the root group */
	uint64_t rows;
};

/* Numbers of documents; the others need no name. */
enum { TEMPLATE_DOMAIN, TEMPLATE_ROOT, TEMPLATE_ROWS = 5, TEMPLATE_DOCUMENTS = 9 };

/* These put what the service puts: without conditions. */
void template_put_document(struct store *s, const struct template *t, unsigned int i);
/* chunk: the number of the dataset and that of the chunk, as in "1/0". */
void template_put_chunk(struct store *s, const struct template *t, const char *chunk,
			const uint64_t value[CONTENT_CHUNK]);
/* All but the document of the domain. */
void template_put_objects(struct store *s, const struct template *t);
/* The prefix of all objects of the storage. The caller releases it. */
void template_prefix(const struct template *t, struct str *out);

#endif
