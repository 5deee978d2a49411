/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether a listing would show a domain that is about to be made. Any thread. */
#include <names/names.h>

#include <errno.h>
#include <string.h>

int names_check_shown(struct names *ns, const char *suffix, const char *path,
		      char shown[STORE_KEY_MAX + 1], struct names_node **taken, struct err *err)
{
	auto_names_node struct names_node *n = NULL;
	struct err why = ERR_INIT;
	bool is_new;
	*taken = NULL;
	if (names_shown(suffix, path, shown))
		return NAMES_SHOWN_TOO_LONG;
	if (strcmp(shown, path) == 0)
		return NAMES_SHOWN_FREE;
	const int rc = names_resolve_for_open(ns, shown, &n, &is_new, &why);
	if (rc && rc != -ENOENT) {
		err_copy(err, &why);
		return rc;
	}
	if (rc || strcmp(n->path, path) == 0)
		return NAMES_SHOWN_FREE;
	*taken = names_node_ref(n);
	return NAMES_SHOWN_TAKEN;
}
