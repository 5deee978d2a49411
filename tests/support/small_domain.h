/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small domain in a memory store, for unit tests of the layers above the schema: "d.h5" with a
 * root group, a subgroup, a committed type, a few datasets, an orphan and a dangling hard link.
 * A test can overwrite single keys to damage it.
 */
#ifndef SUPPORT_SMALL_DOMAIN_H
#define SUPPORT_SMALL_DOMAIN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/env.h>
#include <store/store.h>

#include "mem_store.h"
#include "store_calls.h"

#define SMALL_PREFIX	     "db/11111111-22222222"
#define SMALL_ID(kind, tail) kind "-11111111-22222222-" tail
#define SMALL_ROOT	     SMALL_ID("g", "9999-9999aa-aaaaaa")
#define SMALL_GROUP	     SMALL_ID("g", "0001-000000-000001")
#define SMALL_ORPHAN	     SMALL_ID("g", "0001-000000-0000ff")
#define SMALL_MISSING	     SMALL_ID("g", "0001-000000-0000ee")
#define SMALL_INTS	     SMALL_ID("d", "0002-000000-000001")
#define SMALL_STRINGS	     SMALL_ID("d", "0002-000000-000002")
#define SMALL_TYPE	     SMALL_ID("t", "0003-000000-000001")
#define SMALL_KEY_GROUP	     SMALL_PREFIX "/g/0001-000000-000001/.group.json"
#define SMALL_KEY_INTS	     SMALL_PREFIX "/d/0002-000000-000001/.dataset.json"
#define SMALL_KEY_STRINGS    SMALL_PREFIX "/d/0002-000000-000002/.dataset.json"
#define SMALL_KEY_TYPE	     SMALL_PREFIX "/t/0003-000000-000001/.datatype.json"
/* The documents below contain ' instead of "; small_put() replaces it. */
#define SMALL_HEAD(id)                                                                             \
	"'id':'" id "','root':'" SMALL_ROOT "','created':1700000000.5,'lastModified':1700000001.5"
#define SMALL_HARD(id, at) "{'class':'H5L_TYPE_HARD','id':'" id "','created':" at "}"
#define SMALL_I32	   "{'class':'H5T_INTEGER','base':'H5T_STD_I32LE'}"

struct small_key {
	const char *key, *json;
};

/* clang-format off */
static const struct small_key small_domain_keys[] = {
	{"d.h5/.domain.json",
	 "{'root':'" SMALL_ROOT "','owner':'admin','acls':{},"
	 "'created':1700000000,'lastModified':1700000000}"},
	{SMALL_PREFIX "/.group.json",
	 "{" SMALL_HEAD(SMALL_ROOT) ",'links':{"
	   "'sub':" SMALL_HARD(SMALL_GROUP, "1") ","
	   "'ints':" SMALL_HARD(SMALL_INTS, "2") ","
	   "'dangling':" SMALL_HARD(SMALL_MISSING, "3") "},"
	 "'attributes':{'ref':{"
	   "'type':{'class':'H5T_REFERENCE','base':'H5T_STD_REF_OBJ'},"
	   "'shape':{'class':'H5S_SCALAR'},"
	   "'value':'datasets/" SMALL_INTS "','created':1}}}"},
	{SMALL_KEY_GROUP,
	 "{" SMALL_HEAD(SMALL_GROUP) ",'links':{"
	   "'again':" SMALL_HARD(SMALL_INTS, "1") ","
	   "'up':" SMALL_HARD(SMALL_ROOT, "2") ","
	   "'strings':" SMALL_HARD(SMALL_STRINGS, "3") ","
	   "'type':" SMALL_HARD(SMALL_TYPE, "4") "},'attributes':{}}"},
	{SMALL_PREFIX "/g/0001-000000-0000ff/.group.json",
	 "{" SMALL_HEAD(SMALL_ORPHAN) ",'links':{},'attributes':{}}"},
	{SMALL_KEY_INTS,
	 "{" SMALL_HEAD(SMALL_INTS) ","
	 "'type':{'class':'H5T_INTEGER','base':'H5T_STD_I32LE','id':'" SMALL_TYPE "'},"
	 "'shape':{'class':'H5S_SIMPLE','dims':[10],'maxdims':[0]},'attributes':{},"
	 "'creationProperties':{'fillValue':7,'layout':{'class':'H5D_CHUNKED','dims':[4]}},"
	 "'layout':{'class':'H5D_CHUNKED','dims':[4]}}"},
	{SMALL_KEY_STRINGS,
	 "{" SMALL_HEAD(SMALL_STRINGS) ","
	 "'type':{'class':'H5T_STRING','charSet':'H5T_CSET_UTF8','strPad':'H5T_STR_NULLTERM',"
	   "'length':'H5T_VARIABLE'},"
	 "'shape':{'class':'H5S_SIMPLE','dims':[2]},'attributes':{},"
	 "'layout':{'class':'H5D_CHUNKED','dims':[2]}}"},
	{SMALL_KEY_TYPE, "{" SMALL_HEAD(SMALL_TYPE) ",'type':" SMALL_I32 ",'attributes':{}}"},
};
/* clang-format on */

/* chunk 1 of ints (elements 4..7), and the only chunk of strings: "ab", "" */
static const int32_t small_ints_chunk[4] = {40, 50, 60, 70};
static const uint8_t small_strings_chunk[] = {2, 0, 0, 0, 'a', 'b', 0, 0, 0, 0};

static inline int small_put(struct store *store, const char *key, const char *json)
{
	char *document = strdup(json);
	int rc = document ? 0 : -1;
	for (char *c = document; !rc && *c; c++)
		if (*c == '\'')
			*c = '"';
	if (!rc)
		rc = call_put(store, key, document, strlen(document), NULL, NULL, NULL);
	free(document);
	return rc;
}

/* A new memory store with the domain; NULL on failure. */
static inline struct store *small_domain_new(const struct env *env)
{
	struct store *store = store_mem_new(env, NULL);
	int rc = store ? 0 : -1;
	for (size_t i = 0; !rc && i < sizeof(small_domain_keys) / sizeof(small_domain_keys[0]); i++)
		rc = small_put(store, small_domain_keys[i].key, small_domain_keys[i].json);
	if (!rc)
		rc = call_put(store, SMALL_PREFIX "/d/0002-000000-000001/1", small_ints_chunk,
			      sizeof(small_ints_chunk), NULL, NULL, NULL);
	if (!rc)
		rc = call_put(store, SMALL_PREFIX "/d/0002-000000-000002/0", small_strings_chunk,
			      sizeof(small_strings_chunk), NULL, NULL, NULL);
	if (rc && store) {
		store_free(store);
		return NULL;
	}
	return store;
}

#endif
