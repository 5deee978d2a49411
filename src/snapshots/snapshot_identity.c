/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See snapshot_identity.h. The digest is a chain, so that no memory is needed for what it covers:
 * when the buffer is full, its digest becomes its beginning. Texts have their length before them.
 */
#include <snapshots/snapshot_identity.h>

#include <string.h>

#include <base/mem.h>
#include <journal/plan.h>

#include <bucket/bucket.h>
#include <names/names.h>
#include <snapshots/domain_snapshot.h>

_Static_assert((int)PLAN_DIGEST == (int)DRAFT_BENEATH_ID, "one kind of digest");

enum { BUFFER = 16 << 10 };

struct chain {
	size_t n;
	uint8_t bytes[BUFFER];
};

static void add(struct chain *c, const void *data, size_t n)
{
	const uint8_t *from = data;
	while (n > 0) {
		if (c->n == sizeof(c->bytes)) {
			uint8_t digest[PLAN_DIGEST];
			plan_digest(c->bytes, c->n, digest);
			memcpy(c->bytes, digest, sizeof(digest));
			c->n = sizeof(digest);
		}
		const size_t some = (size_t)min_u64(n, sizeof(c->bytes) - c->n);
		memcpy(c->bytes + c->n, from, some);
		c->n += some;
		from += some;
		n -= some;
	}
}

static void add_number(struct chain *c, uint64_t value)
{
	uint8_t bytes[8];
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
	add(c, bytes, sizeof(bytes));
}

static void add_text(struct chain *c, const char *text)
{
	const size_t n = strlen(text);
	add_number(c, n);
	add(c, text, n);
}

static void add_chunks(struct chain *c, const struct snapshot *s, uint32_t number)
{
	const struct chunk_list *list = domain_chunks(s->domain, number);
	char etag[STORE_ETAG_MAX];
	bool absent;
	add_number(c, (list->listed ? 1 : 0) | (list->unknown ? 2 : 0) | (list->decoded ? 4 : 0));
	add_number(c, list->listed ? list->n : 0);
	for (uint64_t i = 0; list->listed && i < list->n; i++) {
		add_number(c, list->numbers[i]);
		if (list->decoded)
			add_number(c, list->decoded[i]);
		/* Otherwise the versions are those of the loads so far. */
		if (s->sees_chunks &&
		    !domain_chunk_version(s->domain, number, list->numbers[i], etag, &absent))
			add_text(c, etag);
	}
}

static void add_object(struct chain *c, const struct snapshot *s, uint32_t number)
{
	const struct object *o = &tree_object(domain_tree(s->domain), number)->o;
	const void *text;
	size_t len;
	add_text(c, o->id ? o->id : "");
	add_text(c, domain_object_version(s->domain, number, &text, &len));
	if (o->kind == OBJECT_DATASET)
		add_chunks(c, s, number);
}

void snapshot_identity(const struct bucket *bucket, const struct snapshot *s,
		       uint8_t id[DRAFT_BENEATH_ID])
{
	const struct tree *t = domain_tree(s->domain);
	struct chain c = {.n = 0};
	add_number(&c, IMAGE_REVISION);
	add_number(&c, bucket->no_filters ? IMAGE_NO_FILTERS : 0);
	add_number(&c, image_size(s->image));
	add_text(&c, domain_document(s->domain)->etag);
	add_number(&c, s->sees_chunks);
	add_number(&c, tree_count(t));
	add_number(&c, tree_missing(t));
	for (uint32_t i = 0; i < tree_count(t); i++)
		add_object(&c, s, tree_nth(t, i));
	plan_digest(c.bytes, c.n, id);
}
