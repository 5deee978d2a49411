/* SPDX-License-Identifier: Apache-2.0 */
/* See domain/puts.h. */
/* A failed insertion must not end the process. The handle of the entry then has no table. */
#define HASH_NONFATAL_OOM 1
#include <domain/puts.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "domain_internal.h"

enum { TABLE_BYTES = 32 /* of the hash table, for each entry */ };

struct put {
	struct schema_put put;
	void *text;   /* the text of put, in a block of its own; owned */
	size_t bytes; /* of this struct, with its entry in the hash table */
	UT_hash_handle hh;
	char strings[];
};

struct domain_puts {
	struct budget_charge charge;
	bool is_all, is_few;
	struct put *all;       /* by id */
	uint64_t texts, limit; /* bytes of all texts; the most that are kept */
	uint64_t bytes;	       /* of all entries and texts */
};

struct domain_puts *domain_puts_new(struct budget *budget, bool is_all, bool is_few)
{
	struct domain_puts *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->charge = (struct budget_charge){.budget = budget, .use = BUDGET_TREES};
	p->is_all = is_all;
	p->is_few = is_few;
	p->limit = domain_texts_limit(budget);
	return p;
}

static void free_put(struct put *e)
{
	if (e)
		free(e->text);
	free(e);
}

static void remove_put(struct domain_puts *p, struct put *e)
{
	HASH_DEL(p->all, e);
	p->texts -= e->put.len;
	p->bytes -= e->bytes + e->put.len;
}

void domain_puts_free(struct domain_puts *p)
{
	struct put *e, *next;
	if (!p)
		return;
	HASH_ITER (hh, p->all, e, next) {
		HASH_DEL(p->all, e);
		free_put(e);
	}
	budget_set(&p->charge, 0, NULL);
	free(p);
}

/* Takes over an entry, which replaces the one of its id. Does not change the charge. Fails with
 * -ENOMEM; the entry is then freed. */
static int take(struct domain_puts *p, struct put *e)
{
	struct put *old = NULL;
	HASH_FIND_STR(p->all, e->put.id, old);
	if (old)
		remove_put(p, old);
	free_put(old);
	if (e->put.len > p->limit - p->texts) {
		free(e->text);
		e->put.text = e->text = NULL;
		e->put.len = 0;
	}
	HASH_ADD_KEYPTR(hh, p->all, e->put.id, strlen(e->put.id), e);
	if (!e->hh.tbl) {
		free_put(e);
		return -ENOMEM;
	}
	p->texts += e->put.len;
	p->bytes += e->bytes + e->put.len;
	return 0;
}

static struct put *put_new(const char *id, const char *etag, const void *text, size_t len)
{
	const size_t nid = strlen(id) + 1, netag = etag ? strlen(etag) + 1 : 0;
	struct put *e = calloc(1, sizeof(*e) + nid + netag);
	if (!e)
		return NULL;
	e->bytes = sizeof(*e) + nid + netag + TABLE_BYTES;
	e->put.id = memcpy(e->strings, id, nid);
	if (etag)
		e->put.etag = memcpy(e->strings + nid, etag, netag);
	e->text = etag && text && len ? malloc(len) : NULL;
	if (e->text) {
		e->put.text = memcpy(e->text, text, len);
		e->put.len = len;
	}
	return e;
}

int domain_puts_add(struct domain_puts *p, const char *id, const char *etag, const void *text,
		    size_t len)
{
	struct put *e = put_new(id, etag, len <= p->limit ? text : NULL, len);
	const int rc = e ? take(p, e) : -ENOMEM;
	return rc ? rc : budget_set(&p->charge, p->bytes, NULL);
}

struct domain_puts *domain_puts_join(struct domain_puts *earlier, struct domain_puts *later)
{
	struct put *e, *next;
	int rc = 0;
	if (!earlier || !later || later->is_all) {
		domain_puts_free(later ? earlier : NULL);
		return later ? later : earlier;
	}
	HASH_ITER (hh, later->all, e, next) {
		remove_put(later, e);
		rc = rc ? rc : take(earlier, e);
	}
	domain_puts_free(later);
	if (!rc)
		rc = budget_set(&earlier->charge, earlier->bytes, NULL);
	if (!rc)
		return earlier;
	domain_puts_free(earlier);
	return NULL;
}

struct schema_put *domain_puts_list(const struct domain_puts *p, uint32_t *n)
{
	struct put *e, *next;
	struct schema_put *list = calloc(HASH_COUNT(p->all) + 1, sizeof(*list));
	*n = 0;
	if (list)
		HASH_ITER (hh, p->all, e, next)
			list[(*n)++] = e->put;
	return list;
}

bool domain_puts_is_all(const struct domain_puts *p)
{
	return p->is_all;
}

bool domain_puts_is_few(const struct domain_puts *p)
{
	return p->is_few;
}
