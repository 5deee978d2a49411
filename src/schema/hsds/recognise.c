/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out whether a place that a user names is a bucket, a folder of a bucket, a single domain,
 * or something else. The keys of the first listings decide:
 *
 *   db/…                              storage of schema v2: a bucket
 *   <5>-<g|d|t>-<8>-<4>-<4>-<4>-<12>  an object of schema v1: a bucket
 *   <5>-c[<k>]-<8>-…-<12>_<i>…        a chunk of schema v1: a bucket
 *   .domain.json                      the place's own document: it is a domain or a folder
 *   <name>/.domain.json               the document of a domain or folder in the place
 *
 * The first 5 digits of a v1 key are the start of the MD5 of its id. They are not checked. Pure.
 */
#include <schema/schema.h>

#include "hsds1.h"
#include "hsds2.h"
#include <json/reader.h>

const char schema_probe_storage[] = "db/";

int schema_probe_document_key(const char *path, char *key, size_t room)
{
	const int n = hsds2_domain_key(path, key, room);
	return n < 0 ? n : 0;
}

void schema_probe_key(struct schema_probe *s, const char *key)
{
	size_t path_len;
	s->anything = true;
	if (hsds2_is_storage(key))
		s->storage |= key[2] == '/';
	else if (hsds1_is_object(key))
		s->v1 = true;
	else if (!hsds2_is_domain_key(key, &path_len))
		return;
	else if (path_len)
		s->documents = true;
	else
		s->document = true;
}

void schema_probe_document(struct schema_probe *s, const void *json, size_t n)
{
	auto_json json_t *doc = NULL;
	if (json_text_load(json, n, &doc, NULL))
		return;
	const json_t *root = json_object_get(doc, "root");
	s->has_root = root && !json_is_null(root);
}

bool schema_probe_stores(const struct schema_probe *s)
{
	return s->storage || s->v1;
}

enum schema_place schema_recognise(const struct schema_probe *s, bool within_bucket)
{
	if (schema_probe_stores(s))
		return SCHEMA_PLACE_BUCKET;
	if (s->document)
		return s->has_root ? SCHEMA_PLACE_DOMAIN : SCHEMA_PLACE_FOLDER;
	if (s->documents)
		return within_bucket ? SCHEMA_PLACE_FOLDER : SCHEMA_PLACE_BUCKET;
	return s->anything ? SCHEMA_PLACE_OTHER : SCHEMA_PLACE_EMPTY;
}
