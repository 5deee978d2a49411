/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a commit has put, for the first open of the new domain: see domain/puts.h. Copies the text
 * of each document when its put has been answered, in any thread. Each object has its own slot, so
 * no lock is needed. The texts take as much memory as is reserved when the import begins: those
 * that do not fit are left out, and so are all of an import that may not have put every object
 * itself.
 */
#include "import_internal.h"

#include <stdlib.h>
#include <string.h>

#include <domain/domain.h>
#include <domain/puts.h>

enum {
	DOCUMENT_TEXT = 4096, /* bytes of a document without its attributes and links */
	LINK_TEXT = 256,
	VALUE_TEXT = 6, /* bytes of text for a byte of a value */
};

struct slot {
	char *etag; /* NULL: nothing was put */
	void *text; /* NULL if it is not kept */
	size_t len;
};

struct import_puts {
	struct budget_charge charge;
	atomic_uint_fast64_t left; /* bytes of texts */
	uint32_t n;
	struct slot slots[]; /* by number */
};

uint64_t import_document_memory(const struct object *o)
{
	uint64_t bytes = DOCUMENT_TEXT;
	for (uint32_t i = 0; i < o->nattrs; i++) {
		const struct elems *value = &o->attrs[i].value;
		bytes += LINK_TEXT + VALUE_TEXT * (value->fixed.len + value->heap.len);
	}
	return o->kind == OBJECT_GROUP ? bytes + (uint64_t)LINK_TEXT * o->group.nlinks : bytes;
}

void import_puts_begin(struct import *im)
{
	const struct import_commit *c = im->opt->commit;
	const uint32_t n = tree_numbers(im->tree);
	if (!c || !c->puts || c->continues || c->is_named)
		return;
	struct import_puts *p = calloc(1, sizeof(*p) + n * sizeof(p->slots[0]));
	if (!p)
		return;
	p->n = n;
	p->charge = (struct budget_charge){.budget = im->opt->env->budget, .use = BUDGET_TREES};
	uint64_t room = 0;
	for (uint32_t i = 0; i < tree_count(im->tree); i++)
		room += import_document_memory(&tree_object(im->tree, tree_nth(im->tree, i))->o);
	room = min_u64(room, domain_texts_limit(im->opt->env->budget));
	atomic_init(&p->left, budget_set(&p->charge, room, NULL) ? 0 : room);
	im->puts = p;
}

static bool take_room(struct import_puts *p, uint64_t n)
{
	uint_fast64_t left = atomic_load(&p->left);
	while (left >= n && !atomic_compare_exchange_weak(&p->left, &left, left - n))
		;
	return left >= n;
}

void import_puts_add(const struct import *im, uint32_t number, const struct store_request *req)
{
	struct import_puts *p = im->puts;
	if (!p || number >= p->n || req->op != STORE_PUT || req->n_pieces != 1)
		return;
	struct slot *s = &p->slots[number];
	const struct piece *text = req->pieces;
	s->etag = strdup(req->answer.meta.etag);
	s->text = take_room(p, text->n) ? malloc(text->n) : NULL;
	s->len = text->n;
	if (s->text)
		memcpy(s->text, text->data, text->n);
}

/* Returns NULL if an object was not put, or if out of memory. */
static struct domain_puts *join(const struct import *im, bool is_few)
{
	struct domain_puts *out = domain_puts_new(im->opt->env->budget, true, is_few);
	bool is_ok = out;
	for (uint32_t i = 0; is_ok && i < tree_count(im->tree); i++) {
		const uint32_t number = tree_nth(im->tree, i);
		const struct slot *s = &im->puts->slots[number];
		is_ok = s->etag && domain_puts_add(out, tree_object(im->tree, number)->o.id,
						   s->etag, s->text, s->len) == 0;
	}
	if (is_ok)
		return out;
	domain_puts_free(out);
	return NULL;
}

struct domain_puts *import_puts_end(struct import *im)
{
	struct put_queue_counts counts;
	if (im->restores)
		return NULL;
	put_queue_counts(im->queue, &counts);
	budget_set(&im->puts->charge, 0, NULL); /* the record is charged instead */
	return join(im, counts.puts <= DOMAIN_LISTING);
}

void import_puts_free(struct import *im)
{
	struct import_puts *p = im->puts;
	if (!p)
		return;
	for (uint32_t i = 0; i < p->n; i++) {
		free(p->slots[i].etag);
		free(p->slots[i].text);
	}
	budget_set(&p->charge, 0, NULL);
	free(p);
	im->puts = NULL;
}
