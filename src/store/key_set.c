/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of a listing as a set of hashes: a table with open addressing, 16 bytes for each of its
 * cells. So ten million keys take 256 MiB at most, instead of the gigabytes of their texts. If the
 * budget has no room for more, the other keys are left out: the caller then puts them once more,
 * which does no harm.
 *
 * Constant after key_set_list(): any thread may read it.
 */
#include <store/key_set.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/mem.h>

enum { FIRST_CELLS = 1024, FULL_PERCENT = 60 };

/* 96 bits of hash. A size that does not fit is UINT32_MAX. */
struct entry {
	uint64_t hash;
	uint32_t more; /* further bits of the hash; 0 only if the cell is empty */
	uint32_t size;
};

struct key_set {
	struct entry *v;
	size_t n, cells; /* cells is a power of two */
	struct budget_charge charge;
};

/* FNV-1a with 64 bits, and the upper half of another hash with the same structure. */
static struct entry hash_key(const char *key)
{
	const uint64_t prime = UINT64_C(0x100000001b3), other = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t a = UINT64_C(0xcbf29ce484222325), b = UINT64_C(0x84222325cbf29ce4);
	for (const char *p = key; *p; p++) {
		a = (a ^ (unsigned char)*p) * prime;
		b = (b ^ (unsigned char)*p) * other;
		b ^= b >> 29;
	}
	const uint32_t more = (uint32_t)(b >> 32);
	return (struct entry){.hash = a ^ a >> 32, .more = more ? more : 1};
}

/* Returns the entry of a hash, or the empty cell where it belongs. */
static struct entry *find(struct entry *v, size_t cells, const struct entry *e)
{
	size_t i = (size_t)e->hash & (cells - 1);
	while (v[i].more && (v[i].hash != e->hash || v[i].more != e->more))
		i = (i + 1) & (cells - 1);
	return &v[i];
}

/* Fails with -ENOMEM if there is no room for more. */
static int grow(struct key_set *set)
{
	const size_t cells = set->cells ? 2 * set->cells : FIRST_CELLS;
	if (budget_set(&set->charge, (set->cells + cells) * sizeof(*set->v), NULL))
		return -ENOMEM;
	struct entry *v = calloc(cells, sizeof(*v));
	for (size_t i = 0; v && i < set->cells; i++)
		if (set->v[i].more)
			*find(v, cells, &set->v[i]) = set->v[i];
	if (v) {
		free(set->v);
		set->v = v;
		set->cells = cells;
	}
	budget_set(&set->charge, set->cells * sizeof(*set->v), NULL);
	return v ? 0 : -ENOMEM;
}

static int add(struct key_set *set, const struct store_item *item)
{
	struct entry e = hash_key(item->key);
	if (set->n >= set->cells / 100 * FULL_PERCENT && grow(set))
		return -ENOMEM;
	e.size = item->meta.size < UINT32_MAX ? (uint32_t)item->meta.size : UINT32_MAX;
	struct entry *at = find(set->v, set->cells, &e);
	if (!at->more)
		set->n++;
	*at = e;
	return 0;
}

/* Adds the pages one after the other. A set without room takes no more pages. */
static int add_pages(struct key_set *set, struct store *store, const char *prefix,
		     const atomic_bool *cancelled, struct err *err)
{
	auto_request struct store_request *req = store_request_new(store, STORE_LIST);
	auto_free char *after = NULL;
	if (!req)
		return err_no_memory(err);
	for (bool more = true, full = false; more && !full;) {
		store_request_reset(req, STORE_LIST);
		store_request_key(req, prefix);
		if (after)
			store_request_start_after(req, after);
		req->cancelled = cancelled_by(cancelled);
		store_run(store, req);
		const struct store_page *page = &req->answer.page;
		int rc = store_failure(&req->answer, err);
		if (rc)
			return rc;
		for (size_t i = 0; i < page->n && !full; i++)
			full = !page->items[i].is_prefix && add(set, &page->items[i]);
		more = page->more;
		free(after);
		after = more ? strdup(page->next) : NULL;
		if (more && !after)
			return err_no_memory(err);
	}
	return 0;
}

int key_set_list(struct store *store, struct budget *budget, const char *prefix,
		 const atomic_bool *cancelled, struct key_set **out, struct err *err)
{
	struct key_set *set = calloc(1, sizeof(*set));
	*out = NULL;
	if (!set)
		return err_no_memory(err);
	set->charge = (struct budget_charge){.budget = budget, .use = BUDGET_TREES};
	int rc = add_pages(set, store, prefix, cancelled, err);
	if (rc || !set->n) {
		key_set_free(set);
		return rc;
	}
	*out = set;
	return 0;
}

void key_set_free(struct key_set *set)
{
	if (!set)
		return;
	budget_set(&set->charge, 0, NULL);
	free(set->v);
	free(set);
}

bool key_set_find(const struct key_set *set, const char *key, uint64_t *size)
{
	const struct entry e = hash_key(key);
	const struct entry *at = set ? find(set->v, set->cells, &e) : NULL;
	if (!at || !at->more)
		return false;
	*size = at->size;
	return true;
}
