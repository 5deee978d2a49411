/* SPDX-License-Identifier: Apache-2.0 */
/* See template.h: a domain that is written down here, as the service stores it. */
#include "template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "content.h"
#include "engine_box.h"
#include "store_calls.h"

/* The documents below contain ' instead of ". The digits of the storage are letters: see
 * digit_of(). */
/* clang-format off */
#define PREFIX	    "db/PPPPPPPP-QQQQQQQQ"
#define ID(kind, n) kind "-PPPPPPPP-QQQQQQQQ-0001-000000-00000" n
#define ROOT	    "g-PPPPPPPP-QQQQQQQQ-RRRR-RRRRSS-SSSSSS"
#define TIMES	    "'created':1700000000,'lastModified':1700000000"
#define HEAD(id)    "{'id':'" id "','root':'" ROOT "'," TIMES
#define HARD(id)    "{'class':'H5L_TYPE_HARD','id':'" id "','created':1}"
#define NUMBER	    "'type':{'class':'H5T_INTEGER','base':'H5T_STD_U64LE'}"
#define ATTRIBUTE(value) \
	"{" NUMBER ",'shape':{'class':'H5S_SCALAR'},'value':" value ",'created':1}"
#define CHUNKS(n)   "'layout':{'class':'H5D_CHUNKED','dims':[" n "]}"
#define TEXT	    "'type':{'class':'H5T_STRING','charSet':'H5T_CSET_UTF8'," \
		    "'strPad':'H5T_STR_NULLTERM','length':'H5T_VARIABLE'}"
#define SHAPE(dims) "'shape':{'class':'H5S_SIMPLE'," dims "}"
#define DATASET(id, type, dims, chunk) \
	HEAD(id) "," type "," SHAPE(dims) ",'attributes':{}," \
	"'creationProperties':{" CHUNKS(chunk) "}," CHUNKS(chunk) "}"
#define EIGHT(id)   DATASET(id, NUMBER, "'dims':[8]", "4")

static const struct {
	const char *key, *json;
} documents[] = {
	{"/.domain.json", "{'root':'" ROOT "','owner':'ann','acls':{}," TIMES "}"},
	{PREFIX "/.group.json",
	 HEAD(ROOT) ","
	 "'links':{'x':" HARD(ID("d", "1")) ",'rows':" HARD(ID("d", "2")) ","
	 "'g':" HARD(ID("g", "3")) ",'words':" HARD(ID("d", "6")) ","
	 "'grid':" HARD(ID("d", "7")) "},"
	 "'attributes':{'uid':" ATTRIBUTE("UID") ",'count':" ATTRIBUTE("0") ","
	 "'tag':" ATTRIBUTE("TAG") "}}"},
	{PREFIX "/g/0001-000000-000003/.group.json",
	 HEAD(ID("g", "3")) ","
	 "'links':{'spare':" HARD(ID("d", "4")) ",'empty':" HARD(ID("g", "5")) "},"
	 "'attributes':{}}"},
	{PREFIX "/g/0001-000000-000005/.group.json",
	 HEAD(ID("g", "5")) ",'links':{},'attributes':{}}"},
	{PREFIX "/d/0001-000000-000001/.dataset.json", EIGHT(ID("d", "1"))},
	{PREFIX "/d/0001-000000-000002/.dataset.json",
	 DATASET(ID("d", "2"), NUMBER, "'dims':[ROWS],'maxdims':[0]", "4")},
	{PREFIX "/d/0001-000000-000004/.dataset.json", EIGHT(ID("d", "4"))},
	{PREFIX "/d/0001-000000-000006/.dataset.json",
	 DATASET(ID("d", "6"), TEXT, "'dims':[4]", "4")},
	{PREFIX "/d/0001-000000-000007/.dataset.json",
	 DATASET(ID("d", "7"), NUMBER, "'dims':[2,2],'maxdims':[0,0]", "2,2")},
};
/* clang-format on */
_Static_assert(sizeof(documents) / sizeof(documents[0]) == TEMPLATE_DOCUMENTS, "all are put");

/* ---- documents ---- */

/* The root group has the digits of the other objects, plus 8. */
static char digit_of(const struct template *t, char letter)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned int high = t->storage / 16 % 16, low = t->storage % 16;
	return digits[letter == 'P'   ? high
		      : letter == 'Q' ? low
		      : letter == 'R' ? (high + 8) % 16
				      : (low + 8) % 16];
}

/* Adds a text with the digits of the storage. */
static void add_digits(struct str *out, const struct template *t, const char *text)
{
	for (; *text; text++) {
		/* These letters are in groups of four at least, and in no word. */
		const bool is_digit =
			*text >= 'P' && *text <= 'S' && (text[1] == *text || text[-1] == *text);
		str_addf(out, "%c", is_digit ? digit_of(t, *text) : *text == '\'' ? '"' : *text);
	}
}

static void replace(struct str *text, const char *word, uint64_t number)
{
	struct str out = {0};
	const char *from = str_text(text), *at;
	for (; (at = strstr(from, word)); from = at + strlen(word))
		str_addf(&out, "%.*s%llu", (int)(at - from), from, (unsigned long long)number);
	str_add(&out, from);
	str_release(text);
	*text = out;
}

void template_put_document(struct store *s, const struct template *t, unsigned int i)
{
	struct str key = {0}, json = {0};
	if (i == TEMPLATE_DOMAIN)
		str_add(&key, t->path);
	add_digits(&key, t, documents[i].key);
	add_digits(&json, t, documents[i].json);
	replace(&json, "UID", t->uid);
	replace(&json, "TAG", t->tag);
	replace(&json, "ROWS", t->rows);
	if (call_put(s, str_text(&key), str_text(&json), json.b.len, NULL, NULL, NULL))
		abort();
	str_release(&key);
	str_release(&json);
}

void template_put_chunk(struct store *s, const struct template *t, const char *chunk,
			const uint64_t value[CONTENT_CHUNK])
{
	struct str key = {0};
	add_digits(&key, t, PREFIX "/d/0001-000000-00000");
	str_add(&key, chunk);
	if (call_put(s, str_text(&key), value, CONTENT_CHUNK * sizeof(*value), NULL, NULL, NULL))
		abort();
	str_release(&key);
}

void template_put_objects(struct store *s, const struct template *t)
{
	static const char *const chunks[] = {"1/0", "1/1", "2/0", "4/0", "4/1"};
	/* Not all fill values, so that the file has the chunk. */
	static const uint64_t first[CONTENT_CHUNK] = {1, 1, 1, 1};
	for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++)
		template_put_chunk(s, t, chunks[i], first);
	for (unsigned int i = TEMPLATE_DOMAIN + 1; i < TEMPLATE_DOCUMENTS; i++)
		template_put_document(s, t, i);
}

void template_prefix(const struct template *t, struct str *out)
{
	add_digits(out, t, PREFIX "/");
}

/* ---- the first file of the simulation ---- */

uint8_t *content_template(size_t *n)
{
	struct world w;
	struct box b;
	struct engine_file *f;
	struct engine_stat st;
	struct err err = ERR_INIT;
	const struct template first = {.path = "t.h5", .storage = 0x12, .rows = CONTENT_CHUNK};
	world_init(&w, &(struct world_plan){.seed = 0});
	template_put_objects(w.bucket, &first);
	template_put_document(w.bucket, &first, TEMPLATE_DOMAIN);
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
