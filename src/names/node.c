/* SPDX-License-Identifier: Apache-2.0 */
/* See node.h. Any thread that holds a reference. */
#include "node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <store/page.h>

void names_doc_release(struct names_doc *d)
{
	schema_document_unref(d->document);
	free(d->why);
	*d = (struct names_doc){0};
}

int names_doc_copy(const struct names_doc *d, struct names_doc *out)
{
	*out = *d;
	out->why = d->why ? strdup(d->why) : NULL;
	if (d->why && !out->why) {
		*out = (struct names_doc){0};
		return -ENOMEM;
	}
	if (d->document)
		schema_document_ref(d->document);
	return 0;
}

int names_doc_fail(struct names_doc *out, enum names_doc_kind kind, int code, const char *why)
{
	*out = (struct names_doc){
		.kind = kind,
		.code = code,
		.why = strdup(why),
	};
	if (out->why)
		return 0;
	names_doc_release(out);
	return -ENOMEM;
}

struct names_node *names_node_new(const char *mount_path, enum names_kind kind, const char *path,
				  struct names_doc *doc)
{
	size_t n = strlen(mount_path) + 1;
	struct names_node *node = calloc(1, sizeof(*node) + n);
	char *copy = strdup(path);
	if (!node || !copy) {
		free(node);
		free(copy);
		names_doc_release(doc);
		return NULL;
	}
	atomic_init(&node->refs, 1);
	node->kind = kind;
	node->path = copy;
	node->doc = *doc;
	*doc = (struct names_doc){0};
	memcpy(node->name, mount_path, n);
	return node;
}

void names_node_set_note(struct names_node *node, const char *note)
{
	char *unknown = NULL, *copy = strdup(note);
	if (copy && !atomic_compare_exchange_strong(&node->note, &unknown, copy))
		free(copy);
}

/* ---- the keys of a domain ---- */

/* Each item is this struct, the etag and the key, both with their NUL. */
struct kept_item {
	uint64_t size;
	int64_t mtime_ns;
};

void names_keys_free(struct bytes *keys)
{
	if (keys)
		bytes_release(keys);
	free(keys);
}

struct bytes *names_keys_new(const struct store_item *items, size_t n)
{
	struct bytes *keys = calloc(1, sizeof(*keys));
	int rc = keys ? 0 : -ENOMEM;
	for (size_t i = 0; !rc && i < n; i++) {
		const struct store_meta *meta = &items[i].meta;
		if (store_item_is_marker(&items[i]))
			continue;
		const struct kept_item kept = {meta->size, meta->mtime_ns};
		rc = bytes_append(keys, &kept, sizeof(kept));
		if (!rc)
			rc = bytes_append(keys, meta->etag, strlen(meta->etag) + 1);
		if (!rc)
			rc = bytes_append(keys, items[i].key, strlen(items[i].key) + 1);
	}
	if (!rc)
		return keys;
	names_keys_free(keys);
	return NULL;
}

bool names_take_keys(struct names_node *node, struct store_page *page)
{
	struct bytes *keys = atomic_exchange(&node->keys, NULL);
	int rc = keys ? store_page_init(page) : -ENOENT;
	for (size_t at = 0; !rc && at < keys->len;) {
		const char *text = (const char *)keys->data + at + sizeof(struct kept_item);
		struct kept_item kept;
		memcpy(&kept, keys->data + at, sizeof(kept));
		struct store_meta meta = {.size = kept.size, .mtime_ns = kept.mtime_ns};
		strcpy(meta.etag, text);
		text += strlen(text) + 1;
		rc = store_page_add(page, text, &meta);
		at = (size_t)(text + strlen(text) + 1 - (const char *)keys->data);
	}
	if (rc && keys)
		store_page_release(page);
	names_keys_free(keys);
	return !rc;
}

/* ---- references ---- */

struct names_node *names_node_ref(struct names_node *node)
{
	atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
	return node;
}

void names_node_unref(struct names_node *node)
{
	/* Acquire and release: the thread that frees sees all writes of the other threads. */
	if (!node || atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) != 1)
		return;
	names_doc_release(&node->doc);
	free(node->path);
	for (struct names_sizes *s = atomic_load(&node->sizes), *next; s; s = next) {
		next = s->earlier;
		free(s);
	}
	free(atomic_load(&node->note));
	names_keys_free(atomic_load(&node->keys));
	free(node);
}
