/* SPDX-License-Identifier: Apache-2.0 */
/* Renders a small domain, and reads the image with the decoders of h5/. */
#ifndef UNIT_IMAGE_RENDERED_H
#define UNIT_IMAGE_RENDERED_H

#include <stdlib.h>

#include <cache/cache.h>
#include <h5/message.h>
#include <h5/ohdr.h>
#include <h5/superblock.h>
#include <image/image.h>
#include <domain/domain.h>
#include <schema/schema.h>
#include <bucket/schemas.h>

#include "small_domain.h"

struct rendered {
	struct env env;
	struct store *store;
	struct cache *cache;
	struct domain *domain;
	struct image *img;
	struct arena *arena;
	struct source source;
	struct h5_file file;
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
		.bytes = 1 << 20, .metadata_min = 32 << 20, .option = "limit"});
	r->cache = cache_new(&r->env, 8, NULL);
	r->arena = arena_new(64 << 20);
	*state = r;
	return r->store && r->cache && r->arena ? 0 : -1;
}

static inline int rendered_teardown(void **state)
{
	struct rendered *r = *state;
	image_unref(r->img);
	domain_unref(r->domain);
	cache_free(r->cache);
	budget_free(r->env.budget);
	store_free(r->store);
	pool_free(r->env.pool);
	arena_free(r->arena);
	free(r);
	return 0;
}

/* Renders the current state of the domain. */
static inline int rendered_make(struct rendered *r, const struct image_options *opt,
				struct err *err)
{
	static const struct image_options none = {.domain_dir = ""};
	struct domain *domain = NULL;
	int rc = domain_open(
		&(struct domain_bucket){.env = &r->env, .store = r->store, .schemas = schema_all()},
		"d.h5", NULL, &domain, err);
	if (rc)
		return rc;
	image_unref(r->img);
	r->img = NULL;
	domain_unref(r->domain);
	r->domain = domain;
	const struct chunk_source chunks = domain_chunk_source(domain);
	rc = image_new(&r->env, r->cache, domain_tree(domain), &chunks, opt ? opt : &none, &r->img,
		       err);
	if (!rc)
		r->source = (struct source){
			.size = image_size(r->img), .read_at = rendered_read_at, .ctx = r};
	return rc ? rc : h5_file_open(&r->file, &r->source, err);
}

/* Stores a document, formatted as by printf(). */
static inline void __attribute__((format(printf, 3, 4)))
rendered_put(struct rendered *r, const char *key, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	va_start(ap, fmt);
	assert_true(vasprintf(&text, fmt, ap) >= 0);
	va_end(ap);
	assert_int_equal(small_put(r->store, key, text), 0);
	free(text);
}

/* Gives the root group n contiguous datasets of bytes. Dataset i has one stored chunk of size(i)
 * bytes with value i. */
static inline void rendered_put_datasets(struct rendered *r, unsigned int n,
					 unsigned int (*size)(unsigned int i))
{
	struct bytes links = {0};
	uint8_t chunk[1 << 16];
	char text[256];
	for (unsigned int i = 0; i < n; i++) {
		snprintf(text, sizeof(text),
			 "%s'%06x':{'class':'H5L_TYPE_HARD','id':'" SMALL_ID(
				 "d", "0004-000000-%06x") "','created':%u}",
			 i ? "," : "", i, i, i + 1);
		assert_int_equal(bytes_append(&links, text, strlen(text)), 0);
		snprintf(text, sizeof(text), SMALL_PREFIX "/d/0004-000000-%06x/.dataset.json", i);
		rendered_put(
			r, text,
			"{" SMALL_HEAD(SMALL_ID(
				"d", "0004-000000-%06x")) ",'type':"
							  "'H5T_STD_U8LE','shape':{'class':'H5S_"
							  "SIMPLE','dims':[%u]},"
							  "'attributes':{},'creationProperties':{'"
							  "layout':{'class':"
							  "'H5D_CONTIGUOUS'}},'layout':{'class':'"
							  "H5D_CHUNKED','dims':[%u]}}",
			i, size(i), size(i));
		snprintf(text, sizeof(text), SMALL_PREFIX "/d/0004-000000-%06x/0", i);
		assert_true(size(i) <= sizeof(chunk));
		memset(chunk, (int)i, size(i));
		assert_int_equal(call_put(r->store, text, chunk, size(i), NULL, NULL, NULL), 0);
	}
	assert_int_equal(bytes_append(&links, "", 1), 0);
	rendered_put(r, SMALL_PREFIX "/.group.json",
		     "{" SMALL_HEAD(SMALL_ROOT) ",'links':{%s},'attributes':{}}",
		     (const char *)links.data);
	bytes_release(&links);
}

static inline uint64_t rendered_root(struct rendered *r)
{
	return r->file.root;
}

/* The nth message of a type in the header at addr; NULL: there is none. */
static inline const struct h5_msg *rendered_message(struct rendered *r, uint64_t addr, uint8_t type,
						    uint32_t nth)
{
	struct h5_ohdr header;
	if (h5_ohdr_decode(&r->file, addr, r->arena, &header, NULL))
		return NULL;
	for (uint32_t i = 0; i < header.n; i++)
		if (header.msgs[i].type == type && nth-- == 0)
			return &header.msgs[i];
	return NULL;
}

/* Finds a link of a group with compact storage by name. */
static inline bool rendered_link(struct rendered *r, uint64_t group, const char *name,
				 struct h5_link *out)
{
	for (uint32_t i = 0;; i++) {
		const struct h5_msg *msg = rendered_message(r, group, H5_MSG_LINK, i);
		if (!msg)
			return false;
		struct cursor c = cursor_of(msg->body, msg->len);
		if (!h5_link_decode(&r->file, &c, r->arena, out, NULL) &&
		    strlen(name) == out->name_len && memcmp(out->name, name, out->name_len) == 0)
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
	return h5_layout_decode(&r->file, &c, out, NULL) == 0;
}

#endif
