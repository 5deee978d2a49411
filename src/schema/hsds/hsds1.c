/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ops of schema v1. The document of a domain has the same key as in v2, so the ops of v2 read
 * it. The form of the id of the root group determines the schema. Domains of v1 can be renamed,
 * removed and replaced, but not changed in place. New domains are made in v2 only.
 */
#include "hsds1.h"

#include "hsds2.h"
#include "hsds_load.h"
#include "parse_object.h"

/* A listing with one of these keys shows a bucket:
 *
 *   <5>-<g|d|t>-<8>-<4>-<4>-<4>-<12>    an object
 *   <5>-c[<k>]-<8>-…-<12>_<i>…          a chunk
 *
 * The first 5 digits are the start of the MD5 of the text after the first hyphen. They are not
 * checked. */
static void survey(struct schema_survey *s, const char *key)
{
	s->storage |= hsds1_is_object(key);
}

/* v1 has no summary. */
static int info_key(const struct schema_document *d, char *key, size_t room)
{
	(void)d;
	if (room)
		key[0] = '\0';
	return 0;
}

const struct schema_ops hsds1_ops = {
	.name = "hsds1",
	.suffix = HSDS_SUFFIX,
	.is_document = hsds1_is_catalog,
	.is_storage = hsds1_is_storage,
	.survey = survey,
	.info_key = info_key,
	.info_parse = schema_info_parse,
	.loader_new = hsds1_loader_new,
	.round = hsds1_round,
	.request = hsds1_request,
	.answer = hsds1_answer,
	.loader_free = hsds1_loader_free,
	.object_key = hsds_space_key,
	.object_text = hsds_space_text,
	.drop_texts = hsds_drop_texts,
	.resolve = hsds_resolve,
	.locate = hsds1_locate,
	.chunk_prefix = hsds1_chunk_prefix,
	.chunk_of_key = hsds1_chunk_of_key,
	.chunk_text = hsds1_chunk_text,
	.documents = &hsds_documents,
};
