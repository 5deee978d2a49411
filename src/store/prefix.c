/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of a bucket as a bucket: what lies below a prefix. Keys get it in front on their way in
 * and lose it on their way out. No state, so no locks.
 */
#include <store/store.h>

#include <store/job.h>
#include <store/page.h>
#include <store/wrapper.h>

#include <errno.h>
#include <string.h>

struct prefix_store {
	struct wrapper wrapper;
	size_t n;      /* of prefix */
	char prefix[]; /* with a slash at its end */
};

/* A key, a prefix or a place to go on, as the inner store knows it. Any of them may be longer than
 * a key by the caller's right; the inner store says so. */
struct inner_key {
	char text[3 * STORE_KEY_MAX];
};

static struct prefix_store *prefix_of(struct store *s)
{
	return (struct prefix_store *)s;
}

static const char *extend(const struct prefix_store *p, const char *key, struct inner_key *out)
{
	const size_t n = strlen(key);
	if (n >= sizeof(out->text) - p->n)
		return NULL;
	memcpy(out->text, p->prefix, p->n);
	memcpy(out->text + p->n, key, n + 1);
	return out->text;
}

static void get(struct store *s, const struct store_get *req)
{
	struct inner_key key;
	struct store_get longer = *req;
	longer.key = extend(prefix_of(s), req->key, &key);
	if (longer.key)
		store_get_async(inner_of(s), &longer);
	else
		job_fail(req, -EINVAL, "'%.64s' cannot be a key", req->key);
}

static int shorten(const struct prefix_store *p, const struct store_page *from,
		   struct store_page *page)
{
	int rc = page_init(page);
	for (size_t i = 0; rc == 0 && i < from->n; i++) {
		const struct store_item *item = &from->items[i];
		rc = page_add(page, item->key + p->n, item->is_prefix ? NULL : &item->meta);
	}
	if (rc || !from->more)
		return rc;
	page->more = true;
	page->next = arena_strndup(page->arena, from->next + p->n, strlen(from->next + p->n));
	return page->next ? 0 : -ENOMEM;
}

static int list(struct store *s, const struct store_list *req, struct store_page *page,
		struct err *err)
{
	const struct prefix_store *p = prefix_of(s);
	struct inner_key prefix, after;
	auto_page struct store_page whole = {0};
	struct store_list longer = *req;
	longer.prefix = extend(p, req->prefix, &prefix);
	if (req->start_after)
		longer.start_after = extend(p, req->start_after, &after);
	if (!longer.prefix || (req->start_after && !longer.start_after))
		return err_set(err, -EINVAL, "'%.64s' cannot be listed", req->prefix);
	int rc = store_list_page(inner_of(s), &longer, &whole, err);
	if (rc == 0 && shorten(p, &whole, page))
		rc = err_set(err, -ENOMEM, "listing: no memory");
	return rc;
}

static int put(struct store *s, const char *key, const void *body, size_t n,
	       const struct store_cond *cond, struct store_meta *meta, struct err *err)
{
	struct inner_key longer;
	if (!extend(prefix_of(s), key, &longer))
		return err_set(err, -EINVAL, "'%.64s' cannot be a key", key);
	return store_put(inner_of(s), longer.text, body, n, cond, meta, err);
}

static int del(struct store *s, const char *key, const struct store_cond *cond, struct err *err)
{
	struct inner_key longer;
	if (!extend(prefix_of(s), key, &longer))
		return err_set(err, -EINVAL, "'%.64s' cannot be a key", key);
	return store_delete(inner_of(s), longer.text, cond, err);
}

static const struct store_ops prefix_ops = {
	.name = "prefix",
	.get = get,
	.list = list,
	.put = put,
	.del = del,
	.space = wrapper_space,
	.free = wrapper_free,
};

struct store *store_prefix_new(struct store *inner, const char *prefix, struct err *err)
{
	size_t n = strlen(prefix);
	if (n && prefix[n - 1] == '/')
		n--;
	struct prefix_store *p = calloc(1, sizeof(*p) + n + 2);
	if (!p) {
		err_set(err, -ENOMEM, "prefixed store: no memory");
		return NULL;
	}
	memcpy(p->prefix, prefix, n);
	if (!store_key_ok(p->prefix)) {
		err_set(err, -EINVAL, "'%s' cannot be a prefix", p->prefix);
		free(p);
		return NULL;
	}
	p->prefix[n] = '/';
	p->n = n + 1;
	wrapper_init(&p->wrapper, &prefix_ops, inner);
	return &p->wrapper.base;
}
