/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wrapper of a store that counts requests, and lets some of them fail. The functions that look
 * into the bucket use the store beneath: they are not counted and do not fail.
 */
#ifndef TEST_GATE_H
#define TEST_GATE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <domain/domain.h>
#include <schema/schema.h>
#include <store/implement.h>
#include <bucket/schemas.h>

#include "store_calls.h"

struct gate {
	struct store base;
	atomic_uint n;	 /* requests so far */
	unsigned int at; /* the number of the request that fails, from 1; 0: none does */
	bool later;	 /* all later ones fail, too */
	bool after;	 /* they reach the bucket before they fail */
	int code;
	bool has_no_clock; /* it does not tell when it has stored lists of names and marks */
	atomic_uint ops[STORE_OPS];
	atomic_uint retried; /* changes that may have been made before, according to the caller */
	atomic_uint last_change; /* the number of the last PUT or DELETE */
	int sync;		 /* the result of store_sync() */
	atomic_uint syncs;
	/* Called before a request with this number, from 1; for another writer. */
	unsigned int other_at;
	void (*other)(struct store *bucket);
	/* The result of store_life(), if not empty. Then the keys of deferred puts are kept until
	 * they are synchronised, for gate_power_cut(). */
	char life[8];
	unsigned int ndeferred;
	char *deferred[64];
};

static inline struct gate *gate_of(struct store *s)
{
	return (struct gate *)s;
}

static inline void gate_submit(struct store *s, struct store_request *req)
{
	struct gate *g = gate_of(s);
	bool *fails = store_private(s, req);
	const unsigned int n = atomic_fetch_add(&g->n, 1) + 1;
	*fails = g->at && (n == g->at || (g->later && n > g->at));
	atomic_fetch_add(&g->ops[req->op], 1);
	if (req->op == STORE_PUT || req->op == STORE_DELETE)
		atomic_store(&g->last_change, n);
	atomic_fetch_add(&g->retried, req->cond.retried);
	if (g->other_at == n)
		g->other(g->base.inner);
	if (*fails && !g->after)
		store_fail(s, req, g->code, "%s: refused by the test", req->key);
	else
		store_pass(s, req);
}

static inline void gate_completed(struct store *s, struct store_request *req)
{
	struct gate *g = gate_of(s);
	const bool *fails = store_private(s, req);
	if (g->has_no_clock && strstr(req->key, "/.hsmount-"))
		req->answer.meta.mtime_ns = 0;
	if (req->deferred && g->life[0]) {
		assert_true(g->ndeferred < sizeof(g->deferred) / sizeof(g->deferred[0]));
		g->deferred[g->ndeferred++] = strdup(req->key);
	}
	if (*fails)
		store_fail(s, req, g->code, "%s: lost by the test", req->key);
	else
		store_complete(s, req);
}

static inline void gate_forget(struct gate *g)
{
	while (g->ndeferred)
		free(g->deferred[--g->ndeferred]);
}

static inline int gate_sync(struct store *s, struct err *err)
{
	struct gate *g = gate_of(s);
	g->syncs++;
	if (g->sync)
		return err_set(err, g->sync, "the disk failed in the test");
	gate_forget(g);
	return 0;
}

static inline const char *gate_life(struct store *s)
{
	return gate_of(s)->life[0] ? gate_of(s)->life : store_life(s->inner);
}

static inline void gate_free(struct store *s)
{
	gate_forget(gate_of(s));
	store_wrapper_free(s);
}

static const struct store_ops gate_ops = {
	.name = "gate",
	.submit = gate_submit,
	.completed = gate_completed,
	.sync = gate_sync,
	.life = gate_life,
	.free = gate_free,
};

/* store_free() of its base frees both. */
static inline struct gate *gate_new(struct store *inner)
{
	struct gate *g = calloc(1, sizeof(*g));
	assert_true(g && inner);
	store_wrap(&g->base, &gate_ops, inner, sizeof(bool), 0);
	return g;
}

/* Requests are counted from 0 from now on. */
static inline void gate_count(struct gate *g)
{
	g->n = g->retried = 0;
	for (int i = 0; i < STORE_OPS; i++)
		g->ops[i] = 0;
}

/* All requests succeed from now on, and are counted from 0. */
static inline void gate_open(struct gate *g)
{
	gate_count(g);
	g->at = g->other_at = 0;
	g->later = g->after = false;
	g->sync = 0;
}

/* The n-th request from now on fails. */
static inline void gate_fail(struct gate *g, unsigned int n, int code)
{
	gate_open(g);
	g->at = n;
	g->code = code;
}

/* The machine stops and starts again: of the objects that are not durable, every second one is
 * empty and the others are gone. Works without workers only. */
static inline void gate_power_cut(struct gate *g)
{
	for (unsigned int i = 0; i < g->ndeferred; i++) {
		const char *key = g->deferred[i];
		assert_int_equal(i % 2 ? call_delete(g->base.inner, key, NULL, NULL)
				       : call_put(g->base.inner, key, "", 0, NULL, NULL, NULL),
				 0);
	}
	gate_forget(g);
	g->life[0]++;
}

/* ---- the bucket ---- */

static inline void gate_put(struct gate *g, const char *key, const void *bytes, size_t n)
{
	struct err err = ERR_INIT;
	if (call_put(g->base.inner, key, bytes, n, NULL, NULL, &err))
		fail_msg("%s", err.msg);
}

static inline void gate_list(struct gate *g, const char *prefix, struct store_page *out)
{
	assert_int_equal(call_list_all(g->base.inner, prefix, false, UINT32_MAX, out, NULL), 0);
}

/* The number of keys. */
static inline size_t gate_keys(struct gate *g, const char *prefix)
{
	auto_page struct store_page page = {0};
	gate_list(g, prefix, &page);
	return page.n;
}

/* All keys below a prefix with their content, as one text. Heap. */
static inline char *gate_content(struct gate *g, const char *prefix)
{
	auto_page struct store_page page = {0};
	struct bytes all = {0};
	gate_list(g, prefix, &page);
	for (size_t i = 0; i < page.n; i++) {
		struct call_result res;
		const char *key = page.items[i].key;
		assert_int_equal(call_get(g->base.inner, key, 0, STORE_TO_END, 0, NULL, &res, NULL),
				 0);
		assert_int_equal(bytes_append(&all, key, strlen(key)), 0);
		for (size_t k = 0; k < res.body.len; k++) {
			char hex[3];
			snprintf(hex, sizeof(hex), "%02x", res.body.data[k]);
			assert_int_equal(bytes_append(&all, hex, 2), 0);
		}
		assert_int_equal(bytes_append(&all, "\n", 1), 0);
		bytes_release(&res.body);
	}
	assert_int_equal(bytes_append(&all, "", 1), 0);
	return (char *)all.data;
}

/* Opens a domain as a reader does who has nothing in its cache. NULL: there is none. */
static inline struct domain *gate_domain(struct gate *g, const char *path)
{
	struct domain *d = NULL;
	struct err err = ERR_INIT;
	const struct domain_bucket bucket = {
		.env = g->base.env, .store = g->base.inner, .schemas = schema_all()};
	const int rc = domain_open(&bucket, path, NULL, &d, &err);
	if (rc && rc != -ENOENT)
		fail_msg("%s", err.msg);
	return rc ? NULL : d;
}

/* The number of objects of a domain, which must all be there. 0: there is no domain. */
static inline uint32_t gate_objects(struct gate *g, const char *path)
{
	struct domain *d = gate_domain(g, path);
	if (!d)
		return 0;
	const uint32_t n = tree_count(domain_tree(d));
	assert_int_equal(tree_missing(domain_tree(d)), 0);
	assert_int_equal(tree_problems(domain_tree(d)), 0);
	domain_unref(d);
	return n;
}

#endif
