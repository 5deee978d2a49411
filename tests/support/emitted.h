/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A domain in memory: the documents that a schema emits for a tree, and a tree that its loader
 * makes of them.
 */
#ifndef SUPPORT_EMITTED_H
#define SUPPORT_EMITTED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <schema/schema.h>
#include <bucket/schemas.h>

struct emitted_doc {
	char key[SCHEMA_KEY_MAX + 1];
	struct bytes text;
};
struct emitted {
	const struct schema_ops *ops;
	const char *root;
	uint32_t n;
	struct emitted_doc *docs;
};

static inline void emitted_release(struct emitted *e)
{
	for (uint32_t i = 0; i < e->n; i++)
		bytes_release(&e->docs[i].text);
	free(e->docs);
	*e = (struct emitted){0};
}

static inline int emitted_compare(const void *a, const void *b)
{
	const struct emitted_doc *x = a, *y = b;
	return strcmp(x->key, y->key);
}

/* Emits all documents of an adopted tree. */
static inline int emitted_init(struct emitted *e, const struct tree *t, struct err *err)
{
	*e = (struct emitted){.ops = schema_all()[0], .root = tree_object(t, 0)->o.id};
	e->docs = calloc(tree_count(t), sizeof(*e->docs));
	for (; e->n < tree_count(t); e->n++) {
		struct emitted_doc *d = &e->docs[e->n];
		const uint32_t number = tree_nth(t, e->n);
		int rc = e->ops->writer->object_key(t, number, d->key, sizeof(d->key));
		if (rc < 0)
			return err_set(err, rc, "object %u has no key", number);
		rc = e->ops->writer->emit_object(t, number, &d->text, err);
		if (rc)
			return rc;
	}
	qsort(e->docs, e->n, sizeof(*e->docs), emitted_compare);
	return 0;
}

static inline void emitted_item(const void *items, size_t i, struct schema_item *out)
{
	const struct emitted_doc *d = (const struct emitted_doc *)items + i;
	*out = (struct schema_item){.key = d->key, .etag = "", .size = d->text.len};
}

static inline void emitted_answer(const struct emitted *e, const struct schema_request *req,
				  struct schema_answer *a)
{
	*a = (struct schema_answer){.etag = "", .item = emitted_item};
	if (req->op == SCHEMA_LIST) {
		a->items = e->docs;
		a->nitems = req->delimit ? 0 : e->n;
		return;
	}
	for (uint32_t i = 0; i < e->n; i++)
		if (strcmp(e->docs[i].key, req->key) == 0) {
			a->body = e->docs[i].text.data;
			a->len = e->docs[i].text.len;
			return;
		}
	a->absent = true;
}

static inline int emitted_accept(void *ctx, struct object *o, struct err *err)
{
	(void)ctx, (void)o, (void)err;
	return 0;
}

static inline int emitted_rounds(const struct emitted *e, struct schema_loader *l, struct err *err)
{
	char key[SCHEMA_KEY_MAX + 1];
	for (;;) {
		uint32_t n;
		int rc = e->ops->round(l, &n, err);
		if (rc || n == 0)
			return rc;
		for (uint32_t i = 0; i < n; i++) {
			struct schema_request req = {.key = key, .room = sizeof(key)};
			struct schema_answer answer;
			const bool needed = e->ops->request(l, i, &req);
			if (needed)
				emitted_answer(e, &req, &answer);
			rc = e->ops->answer(l, i, needed ? &answer : NULL, err);
			if (rc < 0)
				return rc;
		}
	}
}

/* Loads the documents. *out: a finished tree, which the caller frees. */
static inline int emitted_load(const struct emitted *e, struct tree **out, struct err *err)
{
	const struct domain_info info = {.root = e->root, .owner = ""};
	struct schema_document *doc = schema_document_new(&info, "");
	struct schema_loader *l = NULL;
	*out = tree_new((size_t)1 << 30);
	struct schema_load load = {
		.document = doc, .tree = *out, .list_limit = UINT32_MAX, .accept = emitted_accept};
	int rc = e->ops->loader_new(&load, &l, err);
	if (!rc)
		rc = emitted_rounds(e, l, err);
	if (!rc)
		rc = tree_finish(*out, err);
	e->ops->loader_free(l);
	schema_document_unref(doc);
	if (rc) {
		tree_free(*out);
		*out = NULL;
	}
	return rc;
}

#endif
