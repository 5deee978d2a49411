/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ops of Zarr stores, versions 2 and 3 of the format. A prefix is a store if a listing shows
 * that one of the documents in `marks` is directly below it. This document says which version the
 * store has. Both versions share their functions. A store has no owner, no storage apart from its
 * name, and no writer. Pure.
 */
#include <zarr/zarr.h>

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "zarr_space.h"

/* The state of classify() is the number of the document that was requested last, from 1. */
enum { TRIED_ALL = 5 };
static const enum zarr_document_kind order[TRIED_ALL - 1] = {ZARR_V3, ZARR_CONSOLIDATED,
							     ZARR_V2_GROUP, ZARR_V2_ARRAY};

static bool is_file_name(const char *name)
{
	static const char *const endings[] = {".nc", ".nc4", ".h5", ".hdf5"};
	const size_t n = strlen(name);
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		const size_t len = strlen(endings[i]);
		if (n > len && strcasecmp(name + n - len, endings[i]) == 0)
			return true;
	}
	return false;
}

/* The documents and chunks of a store are objects of its directory, so none of them is hidden. */
static bool is_none(const char *key)
{
	(void)key;
	return false;
}

static unsigned int again(const struct schema_document *known)
{
	size_t len;
	const enum zarr_document_kind kind =
		known->info.root ? zarr_document_of_key(known->info.root, &len) : ZARR_NONE;
	for (unsigned int i = 0; i < TRIED_ALL - 1; i++)
		if (order[i] == kind)
			return i;
	return 0;
}

/* Tries one document after the other, from the one that marked the store on. */
static int classify(const char *path, const struct schema_listing *listing, unsigned int *step,
		    const struct schema_answer *answer, struct schema_request *req,
		    struct schema_document **out, struct err *err)
{
	const unsigned int asked = *step;
	(void)listing;
	if (answer && !answer->absent && asked > 0) {
		const enum zarr_document_kind kind = order[asked - 1];
		const struct schema_mark mark = {kind == ZARR_V3 ? &zarr3_ops : &zarr2_ops, asked};
		*out = schema_mark_document(&mark, zarr_document_name(kind), answer->etag, 0, 0);
		return *out ? 0 : err_errno(err, -ENOMEM, "document");
	}
	if (asked == TRIED_ALL - 1 ||
	    zarr_key(path, zarr_document_name(order[asked]), req->key, req->room) < 0)
		return 0;
	*step = asked + 1;
	return SCHEMA_NEEDS_ANSWER;
}

/* A key such as NAME/.zgroup shows that the place has a store. */
static void survey(struct schema_survey *s, const char *key)
{
	size_t len;
	const enum zarr_document_kind kind = zarr_document_of_key(key, &len);
	if (kind != ZARR_NONE && kind != ZARR_V2_ATTRS && len && !memchr(key, '/', len))
		s->documents = s->marks = true;
}

static int info_key(const struct schema_document *d, char *key, size_t room)
{
	(void)d;
	if (room)
		key[0] = '\0';
	return 0;
}

static int info_parse(const void *text, size_t n, struct schema_info *out, struct err *err)
{
	return err_set(err, -EIO, "a Zarr store has no summary");
}

static int object_key(const struct schema_space *base, uint32_t number, char *key, size_t room,
		      const char **etag)
{
	const struct zarr_space *s = (const struct zarr_space *)base;
	*etag = s->objects[number].etag;
	if (!s->objects[number].key[0])
		return 0; /* a dimension without a variable */
	return zarr_key(s->store, s->objects[number].key, key, room);
}

static const void *object_text(const struct schema_space *s, uint32_t number, size_t *len)
{
	*len = 0;
	return NULL;
}

static void drop_texts(struct schema_space *s)
{
}

/* No chunk contains references. */
static uint64_t resolve(const struct schema_space *s, const char *text, size_t n)
{
	return 0;
}

static const char *codecs(const struct object *o)
{
	const struct zarr_locator *l = o->dataset.locator;
	return l ? l->codecs : NULL;
}

/* The documents of netCDF-C 4.8 have names of their own. */
static bool is_domain_document(const char *key)
{
	static const char *const others[] = {".nczarray", ".nczgroup", ".nczattrs"};
	const char *slash = strrchr(key, '/');
	const char *name = slash ? slash + 1 : key;
	size_t len;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(others[i], name) == 0)
			return true;
	return zarr_document_of_key(key, &len) != ZARR_NONE;
}

static const char *const marks3[] = {"zarr.json", NULL};
static const char *const marks2[] = {".zmetadata", ".zgroup", ".zarray", NULL};

#define READING                                                                                    \
	.suffix = ZARR_SUFFIX, .is_file_name = is_file_name, .usual_ending = ".zarr",              \
	.is_document = is_none, .is_storage = is_none, .again = again, .survey = survey,           \
	.info_key = info_key, .info_parse = info_parse, .loader_new = zarr_loader_new,             \
	.round = zarr_round, .request = zarr_request, .answer = zarr_answer,                       \
	.loader_free = zarr_loader_free, .object_key = object_key, .object_text = object_text,     \
	.drop_texts = drop_texts, .resolve = resolve, .locate = zarr_locate,                       \
	.chunk_prefix = zarr_chunk_prefix, .chunk_of_key = zarr_chunk_of_key,                      \
	.chunk_part = zarr_chunk_part, .next_part = zarr_next_part,                                \
	.is_domain_document = is_domain_document, .codecs = codecs

const struct schema_ops zarr3_ops = {
	.name = "zarr3", .marks = marks3, .classify = classify, READING};
/* zarr3_ops finds the documents of both versions. */
const struct schema_ops zarr2_ops = {.name = "zarr2", .marks = marks2, READING};
