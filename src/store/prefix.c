/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a bucket below a prefix as a bucket of its own. The prefix is put in front of the key
 * on its way down, in the headroom of the request, and removed on its way up. The store never
 * changes, so there are no locks.
 */
#include <store/implement.h>

#include <errno.h>
#include <string.h>

#include <base/str.h>

struct prefix_store {
	struct store base;
	size_t n;      /* length of prefix */
	char prefix[]; /* ends with a slash */
};

static struct prefix_store *prefix_of(struct store *s)
{
	return (struct prefix_store *)s;
}

static void add_prefix(const struct prefix_store *p, char **text)
{
	if (!*text)
		return;
	*text -= p->n;
	memcpy(*text, p->prefix, p->n);
}

static void remove_prefix(const struct prefix_store *p, char **text)
{
	if (*text)
		*text += p->n;
}

static void submit(struct store *s, struct store_request *req)
{
	const struct prefix_store *p = prefix_of(s);
	add_prefix(p, &req->key);
	add_prefix(p, &req->list.start_after);
	store_pass(s, req);
}

static void completed(struct store *s, struct store_request *req)
{
	const struct prefix_store *p = prefix_of(s);
	struct store_page *page = &req->answer.page;
	remove_prefix(p, &req->key);
	remove_prefix(p, &req->list.start_after);
	/* The marker of the prefix itself is no key of this bucket. */
	if (page->n && !page->items[0].key[p->n]) {
		page->items++;
		page->n--;
	}
	for (size_t i = 0; i < page->n; i++)
		page->items[i].key += p->n;
	if (page->more)
		page->next += p->n;
	store_complete(s, req);
}

static int move(struct store *s, const char *from, const char *from_version, const char *to,
		const struct store_cond *cond, struct store_meta *meta, struct err *err)
{
	const struct prefix_store *p = prefix_of(s);
	auto_str struct str below_from = {0}, below_to = {0};
	str_addf(&below_from, "%s%s", p->prefix, from);
	str_addf(&below_to, "%s%s", p->prefix, to);
	if (!str_ok(&below_from) || !str_ok(&below_to))
		return err_set(err, -ENOMEM, "object %s: out of memory", from);
	return store_move(s->inner, str_text(&below_from), from_version, str_text(&below_to), cond,
			  meta, err);
}

static int list_uploads(struct store *s, const char *prefix, struct store_upload_page *page,
			struct err *err)
{
	const struct prefix_store *p = prefix_of(s);
	auto_str struct str below = {0};
	str_addf(&below, "%s%s", p->prefix, prefix);
	if (!str_ok(&below))
		return err_no_memory(err);
	const int rc = store_list_uploads(s->inner, str_text(&below), page, err);
	size_t n = 0;
	for (size_t i = 0; !rc && i < page->n; i++) {
		if (strncmp(page->v[i].key, p->prefix, p->n) != 0)
			continue;
		page->v[n] = page->v[i];
		page->v[n++].key += p->n;
	}
	page->n = n;
	return rc;
}

static int abort_upload(struct store *s, const char *key, const char *id, struct err *err)
{
	auto_str struct str below = {0};
	str_addf(&below, "%s%s", prefix_of(s)->prefix, key);
	return str_ok(&below) ? store_abort_upload(s->inner, str_text(&below), id, err)
			      : err_no_memory(err);
}

static const struct store_ops prefix_ops = {
	.name = "prefix",
	.submit = submit,
	.completed = completed,
	.move = move,
	.list_uploads = list_uploads,
	.abort_upload = abort_upload,
	.free = store_wrapper_free,
};

struct store *store_prefix_new(struct store *inner, const char *prefix, struct err *err)
{
	size_t n = strlen(prefix);
	if (n && prefix[n - 1] == '/')
		n--;
	struct prefix_store *p = calloc(1, sizeof(*p) + n + 2);
	if (!p) {
		err_set(err, -ENOMEM, "prefixed store: out of memory");
		return NULL;
	}
	memcpy(p->prefix, prefix, n);
	if (!store_key_ok(p->prefix)) {
		err_set(err, -EINVAL, "invalid prefix '%s'", p->prefix);
		free(p);
		return NULL;
	}
	p->prefix[n] = '/';
	p->n = n + 1;
	store_wrap(&p->base, &prefix_ops, inner, 0, p->n);
	return &p->base;
}
