/* SPDX-License-Identifier: Apache-2.0 */
/* All that a name can be, asked for in one round. The rules that choose are namespace.c's. */
#ifndef ENGINE_PROBE_H
#define ENGINE_PROBE_H

#include <hsmount/err.h>
#include <store/store.h>

#include "doc.h"

struct engine;

/* What came. A failure counts only if nothing better decides, so each is kept in its place. */
struct probe {
	uint64_t asked_ns; /* when, by the engine's clock */
	struct doc doc;	   /* of the domain or folder of that very name */
	int beneath;	   /* as of beneath_of_page() */
	struct err beneath_err;
	int plain; /* the object of that very name: 0, or a negative errno */
	struct err plain_err;
	struct store_meta meta;
	struct doc bare; /* of the domain whose file would be called so: "run" for "run.h5" */
};

/* bare: path of that domain, or NULL. -ENOMEM; then p is empty. Released by probe_release(). */
int probe_name(struct engine *e, const char *path, const char *bare, struct probe *p);
void probe_release(struct probe *p);

#endif
