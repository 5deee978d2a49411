/* SPDX-License-Identifier: Apache-2.0 */
/* The image of a domain, with the options of the engine. Any thread. */
#include "snapshots.h"

#include <errno.h>
#include <inttypes.h>

#include "internal.h"

int snapshot_image(struct engine *e, struct domain *domain, const char *mount_dir,
		   struct image **out, struct err *err)
{
	struct image_options opt = {
		.flags = e->no_filters ? IMAGE_NO_FILTERS : 0,
		.domain_dir = mount_dir,
		.file_name = names_of_domain,
	};
	const struct chunk_source chunks = domain_chunk_source(domain);
	int rc = image_new(&e->env, e->cache, domain_tree(domain), &chunks, &opt, out, err);
	if (rc == -ENOMEM)
		err_wrap(err, rc, "objects of %" PRIu64 " bytes", domain_memory(domain));
	return rc ? err_wrap(err, rc, "domain /%s", domain_path(domain)) : 0;
}
