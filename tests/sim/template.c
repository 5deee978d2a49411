/* SPDX-License-Identifier: Apache-2.0 */
/* The first file of the simulation: a domain that is written down here, as an engine shows it. */
#include "content.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine_box.h"
#include "store_calls.h"

/* The documents below contain ' instead of ". */
/* clang-format off */
#define PREFIX	    "db/11111111-22222222"
#define ID(kind, n) kind "-11111111-22222222-0001-000000-00000" n
#define ROOT	    "g-11111111-22222222-9999-9999aa-aaaaaa"
#define TIMES	    "'created':1700000000,'lastModified':1700000000"
#define HEAD(id)    "{'id':'" id "','root':'" ROOT "'," TIMES
#define HARD(id)    "{'class':'H5L_TYPE_HARD','id':'" id "','created':1}"
#define NUMBER	    "'type':{'class':'H5T_INTEGER','base':'H5T_STD_U64LE'}"
#define ATTRIBUTE   "{" NUMBER ",'shape':{'class':'H5S_SCALAR'},'value':0,'created':1}"
#define CHUNKS	    "'layout':{'class':'H5D_CHUNKED','dims':[4]}"
#define TEXT	    "'type':{'class':'H5T_STRING','charSet':'H5T_CSET_UTF8'," \
		    "'strPad':'H5T_STR_NULLTERM','length':'H5T_VARIABLE'}"
#define SHAPE(dims) "'shape':{'class':'H5S_SIMPLE'," dims "}"
#define DATASET(id, type, dims) \
	HEAD(id) "," type "," SHAPE(dims) ",'attributes':{}," \
	"'creationProperties':{" CHUNKS "}," CHUNKS "}"

static const struct {
	const char *key, *json;
} documents[] = {
	{"t.h5/.domain.json", "{'root':'" ROOT "','owner':'ann','acls':{}," TIMES "}"},
	{PREFIX "/.group.json",
	 HEAD(ROOT) ","
	 "'links':{'x':" HARD(ID("d", "1")) ",'rows':" HARD(ID("d", "2")) ","
	 "'g':" HARD(ID("g", "3")) ",'words':" HARD(ID("d", "6")) "},"
	 "'attributes':{'uid':" ATTRIBUTE ",'count':" ATTRIBUTE ",'tag':" ATTRIBUTE "}}"},
	{PREFIX "/g/0001-000000-000003/.group.json",
	 HEAD(ID("g", "3")) ","
	 "'links':{'spare':" HARD(ID("d", "4")) ",'empty':" HARD(ID("g", "5")) "},"
	 "'attributes':{}}"},
	{PREFIX "/g/0001-000000-000005/.group.json",
	 HEAD(ID("g", "5")) ",'links':{},'attributes':{}}"},
	{PREFIX "/d/0001-000000-000001/.dataset.json", DATASET(ID("d", "1"), NUMBER, "'dims':[8]")},
	{PREFIX "/d/0001-000000-000002/.dataset.json",
	 DATASET(ID("d", "2"), NUMBER, "'dims':[4],'maxdims':[0]")},
	{PREFIX "/d/0001-000000-000004/.dataset.json", DATASET(ID("d", "4"), NUMBER, "'dims':[8]")},
	{PREFIX "/d/0001-000000-000006/.dataset.json", DATASET(ID("d", "6"), TEXT, "'dims':[4]")},
};
/* clang-format on */

static void put(struct store *s, const char *key, const void *bytes, size_t n)
{
	if (call_put(s, key, bytes, n, NULL, NULL, NULL))
		abort();
}

static void put_all(struct store *s)
{
	static const char *const chunks[] = {"1/0", "1/1", "2/0", "4/0", "4/1"};
	for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
		char *json = strdup(documents[i].json);
		for (char *q = json; (q = strchr(q, '\''));)
			*q = '"';
		put(s, documents[i].key, json, strlen(json));
		free(json);
	}
	for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
		char key[128];
		/* Not all fill values, so that the file has the chunk. */
		static const uint64_t first[CONTENT_CHUNK] = {1, 1, 1, 1};
		snprintf(key, sizeof(key), PREFIX "/d/0001-000000-00000%s", chunks[i]);
		put(s, key, first, sizeof(first));
	}
}

uint8_t *content_template(size_t *n)
{
	struct world w;
	struct box b;
	struct engine_file *f;
	struct engine_stat st;
	struct err err = ERR_INIT;
	world_init(&w, &(struct world_plan){.seed = 0});
	put_all(w.bucket);
	box_init(&b, &w, 0, 0, true);
	if (engine_file_open(b.engine, "t.h5", &f, &err))
		abort();
	engine_file_stat(f, &st);
	uint8_t *bytes = malloc(st.size + CONTENT_GROWTH);
	if (!bytes || engine_pread(f, bytes, st.size, 0, NULL, &err) != (ssize_t)st.size)
		abort();
	*n = st.size;
	engine_file_close(f);
	box_release(&b);
	world_release(&w);
	return bytes;
}
