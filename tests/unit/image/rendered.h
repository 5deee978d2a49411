/* SPDX-License-Identifier: Apache-2.0 */
/* A small domain rendered as an image, and the project's own decoders over its bytes. */
#ifndef UNIT_IMAGE_RENDERED_H
#define UNIT_IMAGE_RENDERED_H

#include <stdlib.h>

#include <cache/cache.h>
#include <h5/message.h>
#include <h5/ohdr.h>
#include <h5/superblock.h>
#include <image/image.h>
#include <model/model.h>
#include <schema/schema.h>

#include "small_domain.h"

struct rendered {
	struct env env;
	struct store *store;
	struct cache *cache;
	struct image *img;
	struct arena *arena;
	struct h5_src src;
};

static inline int rendered_read_at(void *ctx, uint64_t offset, void *buf, size_t n, struct err *err)
{
	struct rendered *r = ctx;
	ssize_t got = image_read(r->img, NULL, buf, n, offset, NULL, err);

	return got == (ssize_t)n ? 0 : got < 0 ? (int)got : -EIO;
}

static inline int rendered_setup(void **state)
{
	struct rendered *r = calloc(1, sizeof(*r));

	r->env = env_real(NULL, pool_new(0));
	r->store = small_domain_new(&r->env);
	r->env.budget = budget_new(&(struct budget_limits){
		.bytes = 1 << 20, .metadata_min = 16 << 20, .option = "limit"});
	r->cache = cache_new(&r->env, 8, NULL);
	r->arena = arena_new(64 << 20);
	*state = r;
	return r->store && r->cache && r->arena ? 0 : -1;
}

static inline int rendered_teardown(void **state)
{
	struct rendered *r = *state;

	image_free(r->img);
	cache_free(r->cache);
	budget_free(r->env.budget);
	store_free(r->store);
	pool_free(r->env.pool);
	arena_free(r->arena);
	free(r);
	return 0;
}

/* Renders the domain as it is in the store now. */
static inline int rendered_make(struct rendered *r, const struct image_options *opt,
				struct err *err)
{
	static const struct image_options none = {.domain_dir = ""};
	struct model *m = NULL;
	int rc = model_open(&r->env, r->store, schema_hsds2(), "d.h5", NULL, &m, err);

	if (rc)
		return rc;
	image_free(r->img);
	r->img = NULL;
	rc = image_new(&r->env, r->cache, m, opt ? opt : &none, &r->img, err);
	model_unref(m);
	if (!rc)
		r->src = (struct h5_src){
			.size = image_size(r->img), .read_at = rendered_read_at, .ctx = r};
	return rc;
}

static inline uint64_t rendered_root(struct rendered *r)
{
	uint8_t bytes[H5_SUPERBLOCK_SIZE];
	struct h5_superblock sb = {0};

	if (h5_src_read(&r->src, 0, bytes, sizeof(bytes), NULL))
		return H5_UNDEF;
	struct cursor c = cursor_of(bytes, sizeof(bytes));

	return h5_superblock_decode(&c, &sb, NULL) ? H5_UNDEF : sb.root;
}

/* The nth message of a type in the header at addr; NULL when there is none. */
static inline const struct h5_msg *rendered_message(struct rendered *r, uint64_t addr, uint8_t type,
						    uint32_t nth)
{
	struct h5_ohdr header;

	if (h5_ohdr_decode(&r->src, addr, r->arena, &header, NULL))
		return NULL;
	for (uint32_t i = 0; i < header.n; i++)
		if (header.msgs[i].type == type && nth-- == 0)
			return &header.msgs[i];
	return NULL;
}

/* A compact group's link by name. */
static inline bool rendered_link(struct rendered *r, uint64_t group, const char *name,
				 struct h5_link *out)
{
	for (uint32_t i = 0;; i++) {
		const struct h5_msg *msg = rendered_message(r, group, H5_MSG_LINK, i);

		if (!msg)
			return false;
		struct cursor c = cursor_of(msg->body, msg->len);

		if (!h5_link_decode(&c, r->arena, out, NULL) && strlen(name) == out->name_len &&
		    memcmp(out->name, name, out->name_len) == 0)
			return true;
	}
}

static inline bool rendered_layout(struct rendered *r, const char *name, struct h5_layout *out)
{
	struct h5_link link;
	const struct h5_msg *msg = rendered_link(r, rendered_root(r), name, &link)
					   ? rendered_message(r, link.addr, H5_MSG_LAYOUT, 0)
					   : NULL;

	if (!msg)
		return false;
	struct cursor c = cursor_of(msg->body, msg->len);

	return h5_layout_decode(&c, out, NULL) == 0;
}

#endif
