/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bodies of shared messages. A committed datatype is a message in another object header. Other
 * shared messages are objects of a fractal heap; the master table has one heap for each index, and
 * an index holds messages of one or more types (sohm.c).
 *
 * Many datasets may use one committed datatype, so the last few bodies from object headers are
 * kept.
 *
 * Resolving reads structures that others have claimed: object headers by the walk over objects, and
 * table, indexes and heaps by h5_shared_claim(). So it claims nothing.
 */
#include <h5/shared.h>

#include <string.h>

#include <h5/claims.h>
#include <h5/fheap.h>
#include <h5/message.h>

#include "msg.h"
#include "msg_shared.h"
#include "sohm.h"

enum { HEADER_ARENA = 128 << 20, KEPT = 16, BODY_MAX = 65535 };

/* A message of another object header. */
struct kept {
	uint64_t addr; /* of the header */
	enum h5_msg_type type;
	struct bytes body;
	bool used;
};

struct h5_shared {
	struct h5_file file; /* without claims */
	struct h5_claims *claims;
	bool table_read;
	struct sohm_table table;
	struct h5_fheap_reader *heaps[SOHM_MAX_INDEXES];
	struct kept kept[KEPT];
	unsigned int next;    /* the one of `kept` to replace next */
	unsigned int claimed; /* steps of h5_shared_claim() that are done */
};

struct h5_shared *h5_shared_new(const struct h5_file *f)
{
	struct h5_shared *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->file = *f;
	s->file.claims = NULL;
	s->claims = f->claims;
	return s;
}

void h5_shared_free(struct h5_shared *s)
{
	if (!s)
		return;
	for (unsigned int i = 0; i < SOHM_MAX_INDEXES; i++)
		if (s->heaps[i])
			h5_fheap_close(s->heaps[i]);
	for (unsigned int i = 0; i < KEPT; i++)
		bytes_release(&s->kept[i].body);
	free(s);
}

static int read_table(struct h5_shared *s, struct err *err)
{
	if (s->table_read)
		return 0;
	if (s->file.sohm == H5_UNDEF)
		return err_set(err, -EIO, "shared message: the file has no table of them");
	int rc = sohm_read(&s->file, &s->table, err);
	s->table_read = !rc;
	return rc;
}

/* Copies a body to the arena. */
static int give(const struct h5_shared *s, const struct bytes *from, struct arena *a,
		struct cursor *body, struct err *err)
{
	int rc = h5_file_spend(&s->file, from->len, err);
	if (rc)
		return rc;
	uint8_t *copy = arena_alloc(a, from->len ? from->len : 1);
	if (!copy)
		return err_set(err, -ENOMEM, "shared message: out of memory");
	if (from->len)
		memcpy(copy, from->data, from->len);
	*body = cursor_of(copy, from->len);
	return 0;
}

static int open_heap(struct h5_shared *s, enum h5_msg_type type, struct h5_fheap_reader **heap,
		     struct err *err)
{
	int rc = read_table(s, err);
	if (rc)
		return rc;
	const struct sohm_index *x = sohm_find(&s->table, type);
	if (!x || x->heap == H5_UNDEF)
		return err_set(err, -EIO, "shared message: no heap has messages of type 0x%02x",
			       type);
	struct h5_fheap_reader **opened = &s->heaps[x - s->table.indexes];
	if (!*opened)
		rc = h5_fheap_open(&s->file, x->heap, opened, err);
	if (rc)
		*opened = NULL;
	*heap = *opened;
	return rc;
}

int h5_shared_get(struct h5_shared *s, enum h5_msg_type type, const uint8_t *id, struct arena *a,
		  struct cursor *body, struct err *err)
{
	struct h5_fheap_reader *heap = NULL;
	auto_bytes struct bytes found = {0};
	int rc = open_heap(s, type, &heap, err);
	if (!rc)
		rc = h5_fheap_get(heap, id, H5_SHARED_ID, BODY_MAX, &found, err);
	return rc ? rc : give(s, &found, a, body, err);
}

/* Reads the message of a type in an object header. */
static int read_header(struct h5_shared *s, enum h5_msg_type type, uint64_t addr, struct arena *a,
		       struct bytes *body, struct err *err)
{
	struct h5_ohdr h;
	if (!a)
		return err_no_memory(err);
	int rc = h5_ohdr_decode(&s->file, addr, a, &h, err);
	if (rc)
		return rc;
	const struct h5_msg *m = h5_ohdr_find(&h, type);
	if (!m)
		return err_set(err, -EIO, "the object at %" PRIu64 " has no message of type 0x%02x",
			       addr, type);
	if (m->flags & H5_MSG_SHARED)
		return err_set(err, -EIO, "the message of the object at %" PRIu64 " is shared, too",
			       addr);
	return bytes_append(body, m->body, m->len) ? err_no_memory(err) : 0;
}

static int find_in_header(struct h5_shared *s, enum h5_msg_type type, uint64_t addr,
			  const struct bytes **body, struct err *err)
{
	for (unsigned int i = 0; i < KEPT; i++) {
		struct kept *k = &s->kept[i];
		if (k->used && k->addr == addr && k->type == type) {
			*body = &k->body;
			return 0;
		}
	}
	struct kept *k = &s->kept[s->next];
	struct arena *a = arena_new(HEADER_ARENA);
	k->used = false;
	k->body.len = 0;
	int rc = read_header(s, type, addr, a, &k->body, err);
	arena_free(a);
	if (rc)
		return err_wrap(err, rc, "shared message");
	k->used = true;
	k->addr = addr;
	k->type = type;
	s->next = (s->next + 1) % KEPT;
	*body = &k->body;
	return 0;
}

int h5_shared_resolve(struct h5_shared *s, enum h5_msg_type type, struct cursor *c, struct arena *a,
		      struct cursor *body, uint64_t *committed, struct err *err)
{
	struct msg_shared ref;
	*committed = H5_UNDEF;
	int rc = msg_shared_decode(&s->file, c, &ref, err);
	if (rc)
		return rc;
	if (ref.in_heap)
		return h5_shared_get(s, type, ref.id, a, body, err);
	const struct bytes *found = NULL;
	rc = find_in_header(s, type, ref.addr, &found, err);
	if (!rc)
		rc = give(s, found, a, body, err);
	if (!rc)
		*committed = ref.addr;
	return rc;
}

/* Step 0 is the table. Index i has the steps 2i + 1, its records, and 2i + 2, its heap. */
static int claim_step(struct h5_shared *s, unsigned int step, struct err *err)
{
	struct h5_file f = s->file;
	f.claims = s->claims;
	if (step == 0)
		return h5_claim(f.claims, f.sohm, sohm_size(&f), "shared message table", err);
	const struct sohm_index *x = &s->table.indexes[(step - 1) / 2];
	if (step % 2)
		return sohm_check(&f, x, err);
	if (x->heap == H5_UNDEF)
		return 0;
	struct h5_fheap_reader *heap = NULL;
	int rc = h5_fheap_open(&f, x->heap, &heap, err);
	if (!rc)
		h5_fheap_close(heap);
	return rc;
}

int h5_shared_claim(struct h5_shared *s, struct err *err)
{
	if (s->file.sohm == H5_UNDEF)
		return 0;
	int rc = read_table(s, err);
	while (!rc && s->claimed < 2 * s->table.n + 1) {
		rc = claim_step(s, s->claimed, err);
		s->claimed += !rc;
	}
	return rc;
}
