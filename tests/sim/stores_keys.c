/* SPDX-License-Identifier: Apache-2.0 */
/* See stores_keys.h. */
#include "stores_keys.h"

#include <stdio.h>
#include <string.h>

#include <hsmount/engine.h>

#include "content.h"

enum { STORE_2, LISTED_2, STORE_3, LISTED_3, OBJECT, DOMAIN, BARE, FOLDER, KINDS };
/* An attribute of a store whose consolidated metadata have another one. */
enum { STALE = 1 };

/* h13a.zarr is where a short page of the herd ends. */
const struct stores_place stores_places[STORES_PLACES] = {
	{"zoo", "m.zarr", "m.zarr.nc", STORE_2},
	{"zoo", "n.zarr", "n.zarr.nc", LISTED_2},
	{"herd", "h13a.zarr", "h13a.zarr.nc", STORE_3},
	{"zoo", "p", "p.nc", LISTED_3},
	{"flat", "q.dat", NULL, OBJECT},
	{"flat", "r.h5", NULL, DOMAIN},
	{"zoo", "s", "s.h5", BARE},
	{"zoo", "t", NULL, FOLDER},
	{"", "0x.dat", NULL, OBJECT}};

/* marks: bit i: the i-th key makes the place what it is. */
static const struct {
	const char *keys[STORES_KEYS + 1];
	unsigned int marks;
} kinds[KINDS] = {
	[STORE_2] = {{"/x/.zarray", "/x/0", "/x/1", "/.zattrs", "/.zgroup"}, 1 << 4},
	[LISTED_2] = {{"/x/.zarray", "/x/0", "/x/1", "/.zattrs", "/.zgroup", "/.zmetadata"},
		      1 << 4 | 1 << 5},
	[STORE_3] = {{"/x/zarr.json", "/x/c/0", "/x/c/1", "/zarr.json"}, 1 << 3},
	[LISTED_3] = {{"/x/zarr.json", "/x/c/0", "/x/c/1", "/zarr.json"}, 1 << 3},
	[OBJECT] = {{""}, 1},
	[DOMAIN] = {{"/.domain.json"}, 1},
	[BARE] = {{"/.domain.json", "/k"}, 1},
	[FOLDER] = {{"/.domain.json", "/k"}, 1},
};

/* Documents contain ' instead of ". */
static const char array_2[] = "{'zarr_format':2,'shape':[8],'chunks':[4],'dtype':'<u8',"
			      "'fill_value':0,'order':'C','compressor':null,'filters':null}";
static const char array_3[] =
	"{'zarr_format':3,'node_type':'array','shape':[8],'data_type':'uint64',"
	"'chunk_grid':{'name':'regular','configuration':{'chunk_shape':[4]}},"
	"'chunk_key_encoding':{'name':'default','configuration':{'separator':'/'}},"
	"'fill_value':0,'codecs':[{'name':'bytes','configuration':{'endian':'little'}}],"
	"'attributes':{}}";

const char *stores_key(const struct stores_place *p, unsigned int i)
{
	return kinds[p->kind].keys[i];
}

bool stores_is_store(const struct stores_place *p)
{
	return p->kind <= LISTED_3;
}

bool stores_is_domain(const struct stores_place *p)
{
	return p->kind == DOMAIN || p->kind == BARE;
}

unsigned int stores_version_key(const struct stores_place *p)
{
	return p->kind == LISTED_2 ? 5 : 3;
}

static size_t write_document(const struct stores_place *p, unsigned int key, uint16_t value,
			     char body[STORES_BODY])
{
	const char *name = stores_key(p, key);
	int n = 0;
	if (strcmp(name, "/x/.zarray") == 0)
		n = snprintf(body, STORES_BODY, "%s", array_2);
	else if (strcmp(name, "/x/zarr.json") == 0)
		n = snprintf(body, STORES_BODY, "%s", array_3);
	else if (strcmp(name, "/.zgroup") == 0)
		n = snprintf(body, STORES_BODY, "{'zarr_format':2}");
	else if (strcmp(name, "/.zattrs") == 0)
		n = snprintf(body, STORES_BODY, "{'version':%u}", value);
	else if (strcmp(name, "/.zmetadata") == 0)
		n = snprintf(body, STORES_BODY,
			     "{'zarr_consolidated_format':1,'metadata':{'.zgroup':"
			     "{'zarr_format':2},'.zattrs':{'version':%u},'x/.zarray':%s}}",
			     value, array_2);
	else if (p->kind == LISTED_3)
		n = snprintf(body, STORES_BODY,
			     "{'zarr_format':3,'node_type':'group','attributes':{'version':%u},"
			     "'consolidated_metadata':{'kind':'inline','must_understand':false,"
			     "'metadata':{'x':%s}}}",
			     value, array_3);
	else
		n = snprintf(body, STORES_BODY,
			     "{'zarr_format':3,'node_type':'group','attributes':{'version':%u}}",
			     value);
	for (char *c = body; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	return (size_t)n;
}

size_t stores_body(const struct stores_place *p, unsigned int key, uint16_t value,
		   char body[STORES_BODY])
{
	const uint64_t chunk[CONTENT_CHUNK] = {value, value, value, value};
	if (p->kind == FOLDER && key == 0)
		return (size_t)snprintf(body, STORES_BODY,
					"{\"owner\":\"ann\",\"acls\":{},\"created\":1,"
					"\"lastModified\":1}");
	if (!stores_is_store(p))
		return (size_t)snprintf(body, STORES_BODY, "object %u", value);
	if (key != STORES_CHUNK_0 && key != STORES_CHUNK_1)
		return write_document(p, key, p->kind == LISTED_2 && key == 3 ? STALE : value,
				      body);
	memcpy(body, chunk, sizeof(chunk));
	return sizeof(chunk);
}

/* What has its own name: 1 + enum engine_kind, or 0. */
static uint16_t own_kind(const struct stores_place *p, bool is_marked, bool has_more, bool listed)
{
	switch (p->kind) {
	case OBJECT:
		return is_marked ? 1 + ENGINE_PLAIN : 0;
	case DOMAIN:
		return is_marked ? 1 + ENGINE_DOMAIN : 0;
	case BARE:
		return has_more ? 1 + ENGINE_DIR : is_marked && !listed ? 1 + ENGINE_DOMAIN : 0;
	case FOLDER:
		return is_marked || has_more ? 1 + ENGINE_DIR : 0;
	default: /* a listing shows only the file of a store */
		return is_marked ? (listed ? 0 : 1 + ENGINE_DIR) : has_more ? 1 + ENGINE_DIR : 0;
	}
}

void stores_facts(const struct stores_place *p, unsigned int keys,
		  const uint16_t values[STORES_KEYS], uint16_t out[STORES_FACTS])
{
	const unsigned int marks = kinds[p->kind].marks, version = stores_version_key(p);
	const bool is_marked = keys & marks, has_more = keys & ~marks;
	out[STORES_LISTED] = own_kind(p, is_marked, has_more, true);
	out[STORES_FOUND] = own_kind(p, is_marked, has_more, false);
	out[STORES_FILE_LISTED] = p->file && is_marked ? 1 + ENGINE_DOMAIN : 0;
	out[STORES_FILE_FOUND] = out[STORES_FILE_LISTED];
	out[STORES_ANY] = out[STORES_LISTED] || out[STORES_FILE_LISTED];
	out[STORES_VERSION] = out[STORES_VALUE_0] = out[STORES_VALUE_1] = 0;
	if (!stores_is_store(p))
		return;
	if (keys & 1u << version)
		out[STORES_VERSION] = values[version];
	else if (p->kind == LISTED_2 && keys & 1u << 3)
		out[STORES_VERSION] = STALE;
	if (keys & 1u << STORES_CHUNK_0)
		out[STORES_VALUE_0] = values[STORES_CHUNK_0];
	if (keys & 1u << STORES_CHUNK_1)
		out[STORES_VALUE_1] = values[STORES_CHUNK_1];
}
