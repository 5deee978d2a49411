/* SPDX-License-Identifier: Apache-2.0 */
/* From a path to the snapshot of its domain: see internal.h. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int snapshot_resolve(struct engine *e, const char *path, struct names_node **out,
		     struct snapshot_time *requested, struct err *err)
{
	const struct snapshot_time now = snapshots_time(e);
	bool is_new;
	int rc = names_resolve_for_open(e->names, path, out, &is_new, err);
	*requested = is_new ? now : (struct snapshot_time){0};
	return rc;
}

int domain_snapshot(struct engine *e, const struct names_node *n,
		    const struct snapshot_time *requested, struct snapshot **out, struct err *err)
{
	auto_free char *dir = strndup(n->name, names_parent_len(n->name));
	if (!dir)
		return err_set(err, -ENOMEM, "out of memory");
	const struct snapshot_domain domain = {
		.path = n->path,
		.mount_dir = dir,
		.document = n->doc.kind == NAMES_DOC_ROOT ? n->doc.document : NULL,
		.requested = *requested,
	};
	int rc = snapshots_open(e, &domain, out, err);
	/* The domain has been replaced since the look-up. */
	return rc == -EISDIR ? -ENOENT : rc;
}
