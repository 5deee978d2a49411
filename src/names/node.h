/* SPDX-License-Identifier: Apache-2.0 */
/* Makes nodes and the documents in them (names/names.h). */
#ifndef NAMES_NODE_H
#define NAMES_NODE_H

#include <names/names.h>

void names_doc_release(struct names_doc *d);
/* Returns -ENOMEM if out of memory; out is then empty. */
int names_doc_copy(const struct names_doc *d, struct names_doc *out);
/* kind is NAMES_DOC_BROKEN or NAMES_DOC_UNLISTABLE. Returns -ENOMEM if out of memory; out is then
 * empty. */
int names_doc_fail(struct names_doc *out, enum names_doc_kind kind, int code, const char *why);

/* doc is transferred, also on failure. Returns NULL if out of memory. */
struct names_node *names_node_new(const char *mount_path, enum names_kind kind, const char *path,
				  struct names_doc *doc);
/* Sets the note of the object. If out of memory, the note stays unknown. */
void names_node_set_note(struct names_node *node, const char *note);

/* Copies n items of a listing for names_node.keys. Returns NULL if out of memory. */
struct bytes *names_keys_new(const struct store_item *items, size_t n);
void names_keys_free(struct bytes *keys); /* keys may be NULL */

#endif
