/* SPDX-License-Identifier: Apache-2.0 */
/* See node.h. Any thread that holds a reference. */
#include "node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
	free(node);
}
