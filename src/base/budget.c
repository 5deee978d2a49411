/* SPDX-License-Identifier: Apache-2.0 */
/* Counters under one lock: see budget.h. */
#include <base/budget.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include <base/mem.h>

enum {
	METADATA_SHARE = 2, /* part of the budget that metadata may take */
	SHARE_STEP = 1 << 16,
	SHARE_GIVEN = 8, /* part of a share that is forgotten to make room for others */
};

struct budget {
	struct budget_limits limits;
	struct budget_holder holders[BUDGET_HOLDERS]; /* constant while the budget is in use */
	unsigned int nholders;
	pthread_mutex_t lock; /* guards `used` */
	uint64_t used[BUDGET_USES];
};

struct budget *budget_new(const struct budget_limits *limits)
{
	struct budget *b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->limits = *limits;
	if (pthread_mutex_init(&b->lock, NULL)) {
		free(b);
		return NULL;
	}
	return b;
}

void budget_free(struct budget *b)
{
	if (!b)
		return;
	for (unsigned int i = 0; i < BUDGET_USES; i++)
		assert(b->used[i] == 0);
	assert(b->nholders == 0);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

void budget_add_holder(struct budget *b, const struct budget_holder *h)
{
	assert(b->nholders < BUDGET_HOLDERS);
	b->holders[b->nholders++] = *h;
}

void budget_remove_holder(struct budget *b, const void *ctx)
{
	unsigned int kept = 0;
	for (unsigned int i = 0; i < b->nholders; i++)
		if (b->holders[i].ctx != ctx)
			b->holders[kept++] = b->holders[i];
	b->nholders = kept;
}

/* ---- metadata ---- */

static uint64_t share(const struct budget *b)
{
	return b->limits.bytes / METADATA_SHARE;
}

static uint64_t metadata_limit(const struct budget *b)
{
	return max_u64(share(b), b->limits.metadata_min);
}

static uint64_t metadata_locked(const struct budget *b)
{
	return b->used[BUDGET_TREES] + b->used[BUDGET_PLANS] + b->used[BUDGET_DRAFTS] +
	       b->used[BUDGET_NAMES];
}

/* Charges n more bytes if they fit. *others becomes the metadata charged before. */
static bool grow(struct budget *b, enum budget_use use, uint64_t n, uint64_t *others)
{
	const uint64_t limit = metadata_limit(b);
	pthread_mutex_lock(&b->lock);
	*others = metadata_locked(b);
	const bool fits = *others <= limit && n <= limit - *others;
	if (fits)
		b->used[use] += n;
	pthread_mutex_unlock(&b->lock);
	return fits;
}

uint64_t budget_spare(struct budget *b)
{
	const uint64_t limit = metadata_limit(b);
	pthread_mutex_lock(&b->lock);
	const uint64_t used = metadata_locked(b);
	pthread_mutex_unlock(&b->lock);
	return used < limit ? limit - used : 0;
}

static bool free_some(const struct budget *b)
{
	for (unsigned int i = 0; i < b->nholders; i++)
		if (b->holders[i].free_metadata && b->holders[i].free_metadata(b->holders[i].ctx))
			return true;
	return false;
}

static void notify_holders(const struct budget *b)
{
	for (unsigned int i = 0; i < b->nholders; i++)
		if (b->holders[i].room_changed)
			b->holders[i].room_changed(b->holders[i].ctx);
}

static int refuse(const struct budget *b, uint64_t n, uint64_t others, struct err *err)
{
	return err_set(err, -ENOMEM,
		       "out of memory: metadata takes %" PRIu64 " of the %" PRIu64
		       " bytes that %s=%" PRIu64 " allows it, %" PRIu64
		       " more do not fit; close files or use a larger %s",
		       others, metadata_limit(b), b->limits.option, b->limits.bytes, n,
		       b->limits.option);
}

int budget_set(struct budget_charge *c, uint64_t bytes, struct err *err)
{
	struct budget *b = c->budget;
	uint64_t others;
	assert(c->use < BUDGET_CHUNKS);
	if (!b || bytes == c->bytes) {
		c->bytes = bytes;
		return 0;
	}
	if (bytes < c->bytes)
		budget_return(b, c->use, c->bytes - bytes);
	while (bytes > c->bytes && !grow(b, c->use, bytes - c->bytes, &others))
		if (!free_some(b))
			return refuse(b, bytes - c->bytes, others, err);
	c->bytes = bytes;
	notify_holders(b);
	return 0;
}

struct budget_share budget_share_of(struct budget *b, unsigned int parts)
{
	return (struct budget_share){.budget = b,
				     .limit = b ? metadata_limit(b) / parts : UINT64_MAX};
}

bool budget_share_take(struct budget_share *s, uint64_t n)
{
	uint64_t others;
	if (n > s->limit - s->used)
		return false;
	if (s->budget && s->used + n > s->charged) {
		const uint64_t more = s->used + n - s->charged;
		const uint64_t step = div_up_u64(more, SHARE_STEP) * SHARE_STEP;
		if (!grow(s->budget, BUDGET_NAMES, step, &others))
			return false;
		s->charged += step;
	}
	s->used += n;
	return true;
}

void budget_share_return(struct budget_share *s, uint64_t n)
{
	assert(s->used >= n);
	s->used -= n;
	if (!s->budget || (s->used && s->charged - s->used <= 2 * SHARE_STEP))
		return;
	const uint64_t kept = div_up_u64(s->used, SHARE_STEP) * SHARE_STEP;
	budget_return(s->budget, BUDGET_NAMES, s->charged - kept);
	s->charged = kept;
}

uint64_t budget_share_less(const struct budget_share *s)
{
	return s->used - s->used / SHARE_GIVEN;
}

/* ---- chunks ---- */

static uint64_t room_locked(const struct budget *b)
{
	return b->limits.bytes - min_u64(metadata_locked(b), share(b));
}

uint64_t budget_room(struct budget *b)
{
	pthread_mutex_lock(&b->lock);
	const uint64_t room = room_locked(b);
	pthread_mutex_unlock(&b->lock);
	return room;
}

bool budget_fits(struct budget *b, uint64_t n)
{
	pthread_mutex_lock(&b->lock);
	const uint64_t room = room_locked(b);
	const uint64_t taken = b->used[BUDGET_CHUNKS] + b->used[BUDGET_LOADS];
	pthread_mutex_unlock(&b->lock);
	return taken <= room && n <= room - taken;
}

bool budget_fits_loads(struct budget *b, uint64_t n)
{
	pthread_mutex_lock(&b->lock);
	const uint64_t room = room_locked(b), loads = b->used[BUDGET_LOADS];
	const uint64_t taken = b->used[BUDGET_CHUNKS] + loads;
	pthread_mutex_unlock(&b->lock);
	return (taken <= room && n <= room - taken) || (loads <= room / 2 && n <= room / 2 - loads);
}

void budget_trim(struct budget *b)
{
	if (!budget_fits(b, 0))
		notify_holders(b);
}

void budget_take(struct budget *b, enum budget_use use, uint64_t n)
{
	pthread_mutex_lock(&b->lock);
	b->used[use] += n;
	pthread_mutex_unlock(&b->lock);
}

void budget_return(struct budget *b, enum budget_use use, uint64_t n)
{
	pthread_mutex_lock(&b->lock);
	assert(b->used[use] >= n);
	b->used[use] -= n;
	pthread_mutex_unlock(&b->lock);
}

void budget_get_stats(struct budget *b, struct budget_stats *out)
{
	*out = (struct budget_stats){.limit = b->limits.bytes, .metadata_limit = metadata_limit(b)};
	pthread_mutex_lock(&b->lock);
	for (unsigned int i = 0; i < BUDGET_USES; i++)
		out->used[i] = b->used[i];
	pthread_mutex_unlock(&b->lock);
}
