/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the loaders of schema v1 and v2 share. In both schemas, a domain is a set of objects with
 * ids, and the key of an object's document follows from its id. The loaders differ in how they find
 * out which objects there are: see hsds1_load.c and hsds2_load.c. Pure.
 */
#ifndef HSDS_HSDS_LOAD_H
#define HSDS_HSDS_LOAD_H

#include <string.h>

#include <schema/schema.h>

#include "id.h"
#include "parse_object.h"

/* ---- hsds_space.c: ids and object numbers ---- */

struct hsds_entry {
	struct schema_id id;
	bool absent;	  /* the store has proved that its document does not exist */
	const char *etag; /* version of its document: as listed, later as read; "" if unknown */
	const void *text; /* its document, text_len bytes; NULL if it is not kept */
	size_t text_len;
};

struct hsds_space {
	struct schema_space base;
	struct schema_id root;
	uint32_t n, room;
	struct hsds_entry *entries; /* by number; the array moves when an entry is added */
	uint32_t *table, mask;	    /* hash table by id: number + 1, or 0 if a slot is free */
	int listing_code;	    /* v2: 0, or why the domain could not be listed whole */
	/* Only in a space that was not loaded, but is what a load is expected to find
	 * (hsds2_expect.c): the objects whose versions tell whether the domain is as expected. If
	 * it is NULL, these are the objects of the tree. */
	const uint32_t *compared;
	uint32_t ncompared;
	bool has_missing; /* if `compared` is set: a link names an object without a document */
};

/* Returns the numbers of the objects whose versions tell whether a domain has changed. The
 * reachable objects come first, beginning with the root group, and then the missing ones. */
static inline const uint32_t *hsds_compared(const struct hsds_space *s, uint32_t *n)
{
	*n = s->compared ? s->ncompared : tree_count(s->base.tree) + tree_missing(s->base.tree);
	return s->compared ? s->compared : tree_order(s->base.tree);
}
static inline bool hsds_has_missing(const struct hsds_space *s)
{
	return s->compared ? s->has_missing : tree_missing(s->base.tree) != 0;
}

/* Makes room for n entries in all. Fails with -ENOMEM. */
int hsds_space_reserve(struct hsds_space *s, struct arena *a, uint32_t n);
/* Adds an entry, whose number is the value of s->n before the call. Fails with -ENOMEM. */
int hsds_space_add(struct hsds_space *s, struct arena *a, const struct hsds_entry *entry);
/* Returns the number of an object, or OBJECT_NONE if the space has no such object. */
uint32_t hsds_number(const struct hsds_space *s, const struct schema_id *id);
/* Writes the key of the document of an object. Returns its length, or a negative errno. */
int hsds_object_key(const struct schema_id *id, char *key, size_t room);
/* See object_key(), object_text(), drop_texts() and resolve() in struct schema_ops. */
int hsds_space_key(const struct schema_space *s, uint32_t number, char *key, size_t room,
		   const char **etag);
const void *hsds_space_text(const struct schema_space *s, uint32_t number, size_t *len);
void hsds_drop_texts(struct schema_space *s);
uint64_t hsds_resolve(const struct schema_space *s, const char *text, size_t n);

/* ---- hsds_read.c: the documents of objects ---- */

struct hsds_loader {
	struct schema_loader base;
	/* The earlier load, with what this process has put since; NULL if there is none, or if it
	 * has another root group. */
	const struct hsds_space *previous;
	struct hsds_space *space;
	struct schema_types types;
	bool changed; /* the domain has changed since `previous` */
	/* A document had the version that was listed, or another one. */
	bool saw_listed, saw_other;
	bool fresh; /* a document was read that `previous` does not have in this version */
	/* Numbers of the objects of `previous` to compare by HEAD. */
	const uint32_t *heads;
	uint32_t nheads;
	/* Returns the number of an object that a document names, or OBJECT_NONE if there is no such
	 * object. */
	uint32_t (*number)(void *loader, const struct schema_id *id);
	char key[SCHEMA_KEY_MAX + 1]; /* of the document that is being parsed */
};

/* Allocates a zeroed loader of `size` bytes, which begins with a struct hsds_loader, and fills in
 * that struct except for `number`. The caller frees it with free(). Fails with -EIO if the domain's
 * document names no root group, or with -ENOMEM. */
int hsds_loader_new(const struct schema_load *load, size_t size, struct hsds_loader **out,
		    struct err *err);

/* Returns true if both versions are known and equal. */
static inline bool hsds_same_version(const char *a, const char *b)
{
	return a[0] && strcmp(a, b) == 0;
}

/* Prepares a comparison of all reachable and missing objects of `previous` by HEAD. */
void hsds_compare_all(struct hsds_loader *l);
/* Make the i-th request of such a comparison, and take its answer. hsds_answer_head() returns
 * SCHEMA_ENOUGH if the domain has changed. */
bool hsds_request_head(const struct hsds_loader *l, uint32_t i, struct schema_request *req);
int hsds_answer_head(struct hsds_loader *l, uint32_t i, const struct schema_answer *answer,
		     struct err *err);

/* Makes the request for the document of an object. Returns false if none is needed. */
bool hsds_request_document(const struct hsds_loader *l, uint32_t number,
			   struct schema_request *req);
/* Parses the document of an answer. If the answer is NULL or says `unchanged`, parses the document
 * of the earlier load. If the object cannot be shown, it is marked as broken, and a note says why.
 * Fails if that is the root group, or if the failure may be temporary. */
int hsds_answer_document(struct hsds_loader *l, uint32_t number, const struct schema_answer *answer,
			 struct err *err);
/* The same for a document that the domain may not need. If it cannot be used, *used is false, and
 * the object is as before. Fails with -ENOMEM only. */
int hsds_try_document(struct hsds_loader *l, uint32_t number, const struct schema_answer *answer,
		      bool *used, struct err *err);
/* Marks an object as broken. */
void hsds_mark_broken(struct hsds_loader *l, uint32_t number);

#endif
