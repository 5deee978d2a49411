/* SPDX-License-Identifier: Apache-2.0 */
/* The notes of plain objects. Any thread. */
#include "names_internal.h"

#include <errno.h>
#include <string.h>

#include "name_cache.h"
#include "node.h"

static bool is_known(const struct names_node *node)
{
	return atomic_load(&node->note) != NULL;
}

/* The answer may be about another version than the node. Then the note is not remembered. */
static void remember(struct names_node *node, const struct store_answer *a)
{
	if (a->has_note && strcmp(a->meta.etag, node->meta.etag) == 0)
		names_node_set_note(node, a->note);
}

/* The answer to the request for the caller's node. */
static int take(struct names *ns, const struct names_node *node, const struct store_answer *a,
		char note[STORE_NOTE_MAX + 1], struct err *err)
{
	if (store_absence(a)) {
		names_forget(ns, node->name);
		return err_set(err, -ENOENT, "object %s: it was deleted", node->path);
	}
	strcpy(note, a->note);
	return store_failure(a, err);
}

int names_note(struct names *ns, struct names_node *node, char note[STORE_NOTE_MAX + 1],
	       struct err *err)
{
	struct names_node *nodes[NAMES_AT_ONCE];
	if (is_known(node)) {
		strcpy(note, atomic_load(&node->note));
		return 0;
	}
	nodes[0] = names_node_ref(node);
	const struct names_ahead ahead = {.for_each = NAMES_AT_ONCE - 1, .max = NAMES_AT_ONCE - 1};
	const size_t n = 1 + names_cache_unknown(ns->cache, node, is_known, &ahead, nodes + 1,
						 names_now(ns));
	struct store_request **reqs = store_requests_new(ns->store, n);
	for (size_t i = 0; reqs && i < n; i++) {
		reqs[i]->op = STORE_HEAD;
		reqs[i]->wants_note = true;
		store_request_key(reqs[i], nodes[i]->path);
	}
	if (reqs)
		store_run_all(ns->store, reqs, n);
	int rc = reqs ? take(ns, node, &reqs[0]->answer, note, err) : err_no_memory(err);
	for (size_t i = 0; i < n; i++) {
		if (reqs)
			remember(nodes[i], &reqs[i]->answer);
		names_node_unref(nodes[i]);
	}
	store_requests_free(reqs, n);
	names_cache_continue_walk(ns->cache, node, names_now(ns));
	return rc;
}
